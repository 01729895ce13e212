"""What the index answers: who was shown a record, and what a key did."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import Table, select

from gateway.audit.counting import EPOCH, View
from gateway.audit.index import record_key
from gateway.store import Store
from gateway.store.tables import audit_calls, audit_reads, audit_views

_START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Seen:
    """How often, first and last."""

    times: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """From one day to another, both in UTC and both included; open where there is none."""

    since: date | None = None
    until: date | None = None


async def readers(
    store: Store, record: str, operations: Collection[str], days: Days
) -> dict[View, Seen]:
    """Who was shown a record by one of the operations. StoreError."""
    wanted = audit_reads.c.record == record_key(record)
    rows = await _rows(store, audit_reads, wanted, days)
    return _merged((view, seen) for view, seen, _ in rows if view.operation in operations)


async def deeds(store: Store, key_id: str, days: Days) -> dict[tuple[str, str, str], Seen]:
    """(operation, outcome, reason) -> a key's calls. StoreError."""
    rows = await _rows(store, audit_calls, audit_views.c.key_id == key_id, days)
    return _merged(((view.operation, row.outcome, row.reason), seen) for view, seen, row in rows)


async def _rows(
    store: Store, table: Table, wanted: Any, days: Days
) -> Sequence[tuple[View, Seen, Any]]:
    chosen = [wanted]
    if days.since is not None:
        chosen.append(table.c.day >= days.since.toordinal() - EPOCH)
    if days.until is not None:
        chosen.append(table.c.day <= days.until.toordinal() - EPOCH)
    views = [audit_views.c[name] for name in View._fields]
    query = select(table, *views).join(audit_views, audit_views.c.id == table.c.view_id)
    async with store.begin() as connection:
        rows = (await connection.execute(query.where(*chosen))).all()
    return [(View(*row[-len(views) :]), _seen(row), row) for row in rows]


def _seen(row: Any) -> Seen:
    day = _START + timedelta(days=row.day)
    return Seen(row.times, day + timedelta(seconds=row.first), day + timedelta(seconds=row.last))


def _merged(found: Iterable[tuple[Any, Seen]]) -> dict[Any, Seen]:
    """The same of several days, in the order of the first time."""
    merged: dict[Any, Seen] = {}
    for what, seen in sorted(found, key=lambda each: each[1].first):
        one = merged.setdefault(what, Seen(0, seen.first, seen.last))
        one.times += seen.times
        one.last = max(one.last, seen.last)
    return merged
