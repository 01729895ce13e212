"""The sums in the store, per minute and per day: added to, read, and dropped when they are old."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, delete, func, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store.base import Store
from gateway.store.tables import adding, usage, usage_days

KEPT = timedelta(days=35)
DAY = 24 * 60  # minutes
# So many rows go into one statement: making it ready holds up the event loop for as long.
ROWS_AT_ONCE = 100
STEP = 10  # minutes that are dropped in one transaction
_START = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)

# A minute (since 1970, in UTC), a key's id, an operation.
Slot = tuple[int, str, str]


@dataclass(slots=True)
class Sums:
    """Calls by how they ended: 2xx, other 4xx, 403, 429, 5xx, 401; and what time they took.

    `micros` are the microseconds of all answers, `slow` the calls that took longer than a second.
    """

    answered: int = 0
    refused: int = 0
    forbidden: int = 0
    limited: int = 0
    failed: int = 0
    unauthorized: int = 0
    micros: int = 0
    slow: int = 0

    @property
    def calls(self) -> int:
        """All of them."""
        return sum(getattr(self, name) for name in OUTCOMES)

    @property
    def mean(self) -> float:
        """Seconds that an answer took, on average; 0.0 where there was none."""
        return self.micros / self.calls / 1e6 if self.calls else 0.0

    def count(self, status: int, calls: int) -> None:
        """So many more calls that ended with that status."""
        name = outcome(status)
        setattr(self, name, getattr(self, name) + calls)

    def add(self, other: "Sums") -> None:
        """The other's calls too."""
        for name in COLUMNS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


TIMES = ("micros", "slow")
COLUMNS = tuple(each.name for each in fields(Sums))
OUTCOMES = tuple(name for name in COLUMNS if name not in TIMES)
_OWN = {401: "unauthorized", 403: "forbidden", 429: "limited"}


def outcome(status: int) -> str:
    """The column in which a status is counted."""
    if status < 400:
        return "answered"
    return _OWN.get(status, "refused") if status < 500 else "failed"


def minute_of(moment: datetime) -> int:
    """The minute in which a moment lies."""
    return (moment - _START) // _MINUTE


async def add(store: Store, sums: Mapping[Slot, Sums]) -> None:
    """Add to what is there, in one transaction. StoreError: nothing was added.

    But for a database on another machine that goes away between its commit and its answer: then
    it was, and is added once more.
    """
    days: dict[Slot, Sums] = {}
    for (minute, key_id, operation), each in sums.items():
        days.setdefault((minute // DAY, key_id, operation), Sums()).add(each)
    # in one order, whoever writes: two processes do not wait for each other's rows
    lots = [
        (table, sorted(held.items(), key=itemgetter(0)))
        for table, held in ((usage, sums), (usage_days, days))
    ]

    async def added(connection: AsyncConnection) -> None:
        for table, rows in lots:
            statement = _adding(connection, table)
            for start in range(0, len(rows), ROWS_AT_ONCE):
                some = [_row(table, *each) for each in rows[start : start + ROWS_AT_ONCE]]
                await connection.execute(statement, some)

    await store.run(added)


def _row(table: Table, slot: Slot, sums: Sums) -> dict[str, Any]:
    row = dict(zip(table.primary_key.columns.keys(), slot, strict=True))
    return row | {name: getattr(sums, name) for name in COLUMNS}


def _adding(connection: AsyncConnection, table: Table) -> Any:
    """Several gateways may write the same minute: each adds its own."""
    statement = adding(connection, table)
    both = {name: table.c[name] + statement.excluded[name] for name in COLUMNS}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=both)


async def drop(store: Store, before: datetime) -> bool:
    """Drop some of what is older, the oldest first; whether there may be more. StoreError."""
    end = minute_of(before)
    async with store.begin() as connection:
        oldest = (await connection.execute(select(func.min(usage.c.minute)))).scalar_one()
        if oldest is None or oldest >= end:
            await connection.execute(delete(usage_days).where(usage_days.c.day < end // DAY))
            return False
        await connection.execute(delete(usage).where(usage.c.minute < min(oldest + STEP, end)))
    return True


async def answered(
    store: Store, since: datetime, operations: Sequence[str] | None = None
) -> Mapping[tuple[str, str], int]:
    """(key id, operation) -> calls answered from the minute of `since` on. StoreError.

    The first day is read by the minute, the others whole.
    """
    first = minute_of(since)
    day = first // DAY
    found = union_all(
        _answered(usage, usage.c.minute.between(first, (day + 1) * DAY - 1), operations),
        _answered(usage_days, usage_days.c.day > day, operations),
    ).subquery()
    wanted = select(found.c.key_id, found.c.operation, func.sum(found.c.answered)).group_by(
        found.c.key_id, found.c.operation
    )
    async with store.begin() as connection:
        rows = await connection.execute(wanted)
        return {(key_id, operation): calls for key_id, operation, calls in rows if calls}


async def recent(store: Store, since: datetime) -> Mapping[str, Sums]:
    """Key id -> all its calls from the minute of `since` on. StoreError."""
    wanted = (
        select(usage.c.key_id, *(func.sum(usage.c[name]) for name in COLUMNS))
        .where(usage.c.minute >= minute_of(since))
        .group_by(usage.c.key_id)
    )
    async with store.begin() as connection:
        rows = await connection.execute(wanted)
        # what a database adds up may come as another kind of number
        return {key_id: Sums(*map(int, sums)) for key_id, *sums in rows}


def _answered(
    table: Table, when: ColumnElement[bool], operations: Sequence[str] | None
) -> Select[Any]:
    rows = select(table.c.key_id, table.c.operation, table.c.answered).where(when)
    return rows if operations is None else rows.where(table.c.operation.in_(operations))


async def by_minute(
    store: Store, key_id: str, since: datetime
) -> Mapping[tuple[datetime, str], Sums]:
    """(start of the minute, operation) -> a key's calls, in the order of time. StoreError."""
    return await _by_time(store, usage, key_id, minute_of(since), _MINUTE)


async def by_day(store: Store, key_id: str, since: datetime) -> Mapping[tuple[datetime, str], Sums]:
    """(start of the day in UTC, operation) -> a key's calls, in the order of time. StoreError."""
    return await _by_time(store, usage_days, key_id, minute_of(since) // DAY, timedelta(days=1))


async def _by_time(
    store: Store, table: Table, key_id: str, first: int, unit: timedelta
) -> Mapping[tuple[datetime, str], Sums]:
    wanted = (
        select(table)
        .where(table.c[0] >= first, table.c.key_id == key_id)
        .order_by(table.c[0], table.c.operation)
    )
    async with store.begin() as connection:
        rows = await connection.execute(wanted)
        return {
            (_START + when * unit, operation): Sums(*calls) for when, _, operation, *calls in rows
        }
