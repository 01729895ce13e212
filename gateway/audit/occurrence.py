"""On which days the index knows of entries that may be meant, so that other days are not read."""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Any

from sqlalchemy import Select, select

from gateway.audit.counting import EPOCH
from gateway.audit.entries import ANSWERED, FAILED, UNKNOWN
from gateway.audit.index import record_key
from gateway.audit.wanted import Wanted
from gateway.store import Store
from gateway.store.tables import audit_calls, audit_days, audit_reads, audit_views

# Calls that were shown a record and that the index has not counted among its reads.
_UNCOUNTED = (UNKNOWN, FAILED)


async def known_days(store: Store) -> list[date]:
    """The days that the index has anything of. StoreError."""
    async with store.begin() as connection:
        days = await connection.execute(select(audit_days.c.day).order_by(audit_days.c.day))
        return [date.fromordinal(each + EPOCH) for each in days.scalars()]


async def days_with(store: Store, wanted: Wanted, days: Collection[date]) -> set[date]:
    """Those of the days on which there may be such an entry. StoreError."""
    numbers = [each.toordinal() - EPOCH for each in days]
    async with store.begin() as connection:
        found: set[int] = set()
        for query in _queries(wanted, numbers):
            found.update((await connection.execute(query)).scalars().all())
    return {date.fromordinal(each + EPOCH) for each in found}


def _queries(wanted: Wanted, days: Sequence[int]) -> list[Select[Any]]:
    calls, reads = audit_calls, audit_reads
    called = _of_days(calls, days, wanted)
    if not wanted.record:
        return [called if not wanted.outcome else called.where(calls.c.outcome == wanted.outcome)]
    shown = _of_days(reads, days, wanted).where(reads.c.record == record_key(wanted.record))
    if wanted.outcome == ANSWERED:
        return [shown]
    if wanted.outcome:
        return [called.where(calls.c.outcome == wanted.outcome)]
    return [shown, called.where(calls.c.outcome.in_(_UNCOUNTED))]


def _of_days(table: Any, days: Sequence[int], wanted: Wanted) -> Select[Any]:
    # each day by its number: so the index is sought once a day, and never read along
    query = select(table.c.day).where(table.c.day.in_(days)).distinct()
    views = select(audit_views.c.id)
    if wanted.keys is not None:
        views = views.where(audit_views.c.key_id.in_(wanted.keys))
    if wanted.operation:
        views = views.where(audit_views.c.operation == wanted.operation)
    is_narrow = wanted.keys is not None or bool(wanted.operation)
    return query.where(table.c.view_id.in_(views)) if is_narrow else query
