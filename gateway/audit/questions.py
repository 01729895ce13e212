"""What the index answers: who was shown a record, what a key did, and what it has lost itself."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import Select, Table, and_, exists, func, or_, select

from gateway.audit.counting import EPOCH, View, day_of
from gateway.audit.files import DayFile
from gateway.audit.index import Progress, record_key
from gateway.store import Store
from gateway.store.tables import audit_calls, audit_days, audit_reads, audit_views

# A statement takes some thousand values.
DAYS_AT_ONCE = 1_000
_SUMS = ((audit_days.c.calls, audit_calls), (audit_days.c.reads, audit_reads))
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


async def has_called(store: Store, key_id: str) -> bool:
    """Whether any line of the audit has been of that key. StoreError."""
    wanted = select(audit_views.c.id).where(audit_views.c.key_id == key_id).limit(1)
    async with store.begin() as connection:
        found = await connection.execute(wanted)
        return bool(key_id) and found.first() is not None  # calls without a key have an empty one


async def _rows(
    store: Store, table: Table, wanted: Any, days: Days
) -> Sequence[tuple[View, Seen, Any]]:
    # each day by its number: so the index is sought once a day, and never read along
    some = select(audit_days.c.day)
    if days.since is not None:
        some = some.where(audit_days.c.day >= days.since.toordinal() - EPOCH)
    if days.until is not None:
        some = some.where(audit_days.c.day <= days.until.toordinal() - EPOCH)
    views = [audit_views.c[name] for name in View._fields]
    query = select(table, *views).join(audit_views, audit_views.c.id == table.c.view_id)
    rows: list[Any] = []
    async with store.begin() as connection:
        known = (await connection.execute(some)).scalars().all()
        for at in range(0, len(known), DAYS_AT_ONCE):
            part = table.c.day.in_(known[at : at + DAYS_AT_ONCE])
            rows += await connection.execute(query.where(part, wanted))
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


async def first_loss(
    store: Store, files: Sequence[DayFile], progress: Mapping[str, Progress]
) -> date | None:
    """The first day of which the index had something, and has nothing any more. StoreError."""
    once = {day_of(str(each.day)) for each in files if _is_known(each, progress)}
    parts = [
        and_(sums > 0, ~exists(_of_day(table, table.c.day, audit_days.c.day)))
        for sums, table in _SUMS
    ]
    async with store.begin() as connection:
        days = set((await connection.execute(select(audit_days.c.day))).scalars())
        empty = await connection.execute(select(func.min(audit_days.c.day)).where(or_(*parts)))
        lost = (once - days) | {each for each in empty.scalars() if each is not None}
    return _date(min(lost)) if lost else None


async def losses(store: Store) -> list[date]:
    """The days that do not add up to what was taken in. StoreError."""
    async with store.begin() as connection:
        days = (await connection.execute(select(audit_days.c.day))).scalars().all()
    found = []
    for day in sorted(days):
        # in one statement: lines may be added meanwhile
        query = select(*(sums - _total(table, day) for sums, table in _SUMS))
        async with store.begin() as connection:
            rows = await connection.execute(query.where(audit_days.c.day == day))
            if any(any(row) for row in rows):
                found.append(_date(day))
    return found


def _total(table: Table, day: int) -> Any:
    return _of_day(table, func.coalesce(func.sum(table.c.times), 0), day).scalar_subquery()


def _of_day(table: Table, what: Any, day: Any) -> Select[Any]:
    """Of the rows of a day whose view is known."""
    return select(what).where(table.c.day == day, table.c.view_id == audit_views.c.id)


def _is_known(file: DayFile, progress: Mapping[str, Progress]) -> bool:
    at = progress.get(file.chain)
    return at is not None and at.day >= str(file.day)


def _date(day: int) -> date:
    return date.fromordinal(day + EPOCH)
