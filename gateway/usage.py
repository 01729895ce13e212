"""Counts the calls of each key by how they end, in memory, and stores the sums once a minute."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import islice
from operator import attrgetter

from sqlalchemy import delete, func, select, union_all

from gateway.background import Periodic, WallClock
from gateway.events import Events
from gateway.store.base import Store
from gateway.store.engine import AsyncConnection
from gateway.store.tables import add_sums, usage, usage_days

# Sums that wait while the store cannot be written; beyond that number the oldest are given up.
MOST_WAITING = 50_000
WRITTEN_AT_ONCE = 1_000  # of them in one transaction
DROP_EVERY = 3600.0  # seconds between two looks at what is old, and before the first
# Seconds after which a call was a slow one.
SLOW = 1.0
# The key of calls without one, which are counted so that they take as long, and then dropped.
NOBODY = ""
KEPT = timedelta(days=35)
DAY = 24 * 60  # minutes
STEP = 10  # minutes that are dropped in one transaction
_START = datetime(1970, 1, 1, tzinfo=UTC)

# A minute (since 1970, in UTC), a key's id, an operation.
Slot = tuple[int, str, str]


@dataclass(slots=True)
class CallSums:
    """Calls by how they ended: below 400, other 4xx, 403, 429, 5xx, 401; and what time they took.

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
        return sum(_outcomes(self))

    @property
    def mean(self) -> float:
        """The average seconds of an answer; 0.0 where there was none."""
        return self.micros / self.calls / 1e6 if self.calls else 0.0

    def count(self, status: int, calls: int) -> None:
        """Adds so many calls that ended with that status."""
        name = _OWN.get(status, "answered" if status < 400 else "refused")
        name = name if status < 500 else "failed"
        setattr(self, name, getattr(self, name) + calls)

    def add(self, other: "CallSums") -> None:
        for name in COLUMNS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


COLUMNS = tuple(column.name for column in fields(CallSums))
OUTCOMES = COLUMNS[:-2]
_columns, _outcomes = attrgetter(*COLUMNS), attrgetter(*OUTCOMES)
_OWN = {401: "unauthorized", 403: "forbidden", 429: "limited"}


@dataclass(eq=False)
class Usage(Periodic):
    """The calls of this process, written at the end of each minute; for the event loop's thread."""

    store: Store
    events: Events
    now: Callable[[], datetime]
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        # (key id, operation, status) -> calls of one minute, the seconds that they took in all, and
        # how many of them were slow
        self._open: dict[tuple[str, str, int], list[float]] = {}
        self._minute = 0
        self._waiting: dict[Slot, CallSums] = {}
        self._missing = 0
        self._wall_clock = WallClock(self.clock, self.now())
        self._drop_at = self.clock() + DROP_EVERY
        self._turning = asyncio.Lock()
        super().__init__(
            lambda: max(0.1, 60 - self.now().timestamp() % 60),  # to the end of the minute
            self._turn,
            self.events,
            name="write the usage",
            failed="usage_unwritten",
        )

    def count(self, key_id: str, operation: str, status: int, seconds: float) -> None:
        """Counts a call that has ended, and the seconds that it took."""
        call = (key_id, operation, status)
        counted = self._open.get(call)
        if counted is None:
            if not self._open:
                self._minute = minute_of(self.now())
            counted = self._open[call] = [0, 0.0, 0]
        counted[0] += 1
        counted[1] += seconds
        counted[2] += seconds > SLOW

    async def aclose(self) -> None:
        """Writes the rest. A write that runs is waited for: cut off, it might be made twice."""
        await self.finish()
        await self.turn()
        self._let_go(len(self._waiting))
        self._tell()

    async def _turn(self) -> None:
        """Ends the minute: writes what is counted, and now and then drops what is old."""
        async with self._turning:
            self._end_minute()
            while self._waiting:
                some = dict(islice(self._waiting.items(), WRITTEN_AT_ONCE))
                await add(self.store, some)
                for slot in some:
                    del self._waiting[slot]
                self._tell()
            now, clock = self.now(), self.clock()
            # once an hour; not by a wall clock that was set less than a day ago
            if self._wall_clock.is_trusted(now) and clock >= self._drop_at:
                self._drop_at = clock + DROP_EVERY
                # in steps, so that others can write in between
                while not self._ending and await drop(self.store, now - KEPT):
                    pass

    def _end_minute(self) -> None:
        counted, self._open = self._open, {}
        for (key_id, operation, status), (calls, seconds, slow) in counted.items():
            if key_id == NOBODY:
                continue
            sums = self._waiting.setdefault((self._minute, key_id, operation), CallSums())
            sums.count(status, int(calls))
            sums.micros += round(seconds * 1e6)
            sums.slow += int(slow)
        self._let_go(len(self._waiting) - MOST_WAITING)

    def _let_go(self, sums: int) -> None:
        """Gives up that many sums, the oldest first."""
        if sums <= 0:
            return
        calls = sum(self._waiting.pop(slot).calls for slot in [*islice(self._waiting, sums)])
        self._missing += calls
        self.events.report("usage_dropped", calls=calls)

    def _tell(self) -> None:
        if self._missing:
            self.events.report("usage_lost", calls=self._missing)
            self._missing = 0


def minute_of(moment: datetime) -> int:
    return (moment - _START) // timedelta(minutes=1)


async def add(store: Store, sums: Mapping[Slot, CallSums]) -> None:
    """Adds to what is stored, in one transaction. Raises StoreError, and has then added nothing.

    The exception is a remote database that fails between its commit and its answer: the sums are
    there, and are added once more.
    """

    async def added(connection: AsyncConnection) -> None:
        for table, minutes in ((usage, 1), (usage_days, DAY)):
            rows = sorted(
                (minute // minutes, key_id, operation, *_columns(calls))
                for (minute, key_id, operation), calls in sums.items()
            )
            await add_sums(connection, table, rows)

    await store.run(added)


async def drop(store: Store, before: datetime) -> bool:
    """Drops some old sums, oldest first; returns whether more may be left. Raises StoreError."""
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
    """Returns (key id, operation) -> calls answered since that minute. Raises StoreError."""
    first = minute_of(since)
    day = first // DAY
    # the first day by the minute, the others whole
    parts = (
        (usage, usage.c.minute.between(first, (day + 1) * DAY - 1)),
        (usage_days, usage_days.c.day > day),
    )
    counts = union_all(
        *(select(rows.c.key_id, rows.c.operation, rows.c.answered).where(of) for rows, of in parts)
    ).subquery()
    names = (counts.c.key_id, counts.c.operation)
    query = select(*names, func.sum(counts.c.answered)).group_by(*names)
    if operations is not None:
        query = query.where(counts.c.operation.in_(operations))
    rows = await store.rows(query)
    return {(key_id, operation): calls for key_id, operation, calls in rows if calls}


async def recent(store: Store, since: datetime) -> Mapping[str, CallSums]:
    """Returns key id -> all its calls from the minute of `since` on. Raises StoreError."""
    query = (
        select(usage.c.key_id, *(func.sum(usage.c[name]) for name in COLUMNS))
        .where(usage.c.minute >= minute_of(since))
        .group_by(usage.c.key_id)
    )
    # a database may return its sums as another kind of number
    return {key_id: CallSums(*map(int, sums)) for key_id, *sums in await store.rows(query)}


async def by_day(
    store: Store, key_id: str, since: datetime
) -> Mapping[tuple[datetime, str], CallSums]:
    """Returns (start of the day in UTC, operation) -> a key's calls, by time. Raises StoreError."""
    day = usage_days.c.day
    query = (
        select(usage_days)
        .where(day >= minute_of(since) // DAY, usage_days.c.key_id == key_id)
        .order_by(day, usage_days.c.operation)
    )
    return {
        (_START + timedelta(days=number), operation): CallSums(*calls)
        for number, _, operation, *calls in await store.rows(query)
    }
