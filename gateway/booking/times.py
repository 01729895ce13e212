"""Times of appointments: which are offered, how long one lasts, and those kept for the clinic."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from math import inf
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.base import Adapter, AdapterError, BackendUnavailable, Page, Query, Record
from adapters.wrappers import Around
from gateway.booking.rows import LedgerRows
from gateway.contract.window import BookingWindow
from gateway.store.base import Store, StoreError
from gateway.store.tables import adding, booked_times

# Seconds for which what is read of the ledger counts, and until it is asked again after it failed.
FRESH, AGAIN = 0.5, 2.0
# Where nobody says how long one lasts, or as the longest type: what is blocked for too long is free
# again later, what is not may be lost.
IN_DOUBT = timedelta(hours=2)
LONGEST = timedelta(days=2)
# Seconds for which the types are as they were, and between two looks for one that is not there.
TYPES_KEPT, TYPES_AGAIN = 300.0, 5.0
AT_ONCE = 200
MOST_PAGES = 50
Span = tuple[datetime, datetime]


class FreeTimes(Around):
    """The inner adapter, but for free times that are not to be offered.

    Those are outside the window in which partners may book, or may have been taken by a booking
    whose outcome is not known. What it says of the ledger is half a second old at most; where the
    ledger can't be read it is what was read before. That nothing is booked there is not its care
    but the ledger's.
    """

    def __init__(
        self,
        inner: Adapter,
        store: Store,
        window: BookingWindow,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(inner)
        # as it is: most calls are such reads, and a step less is felt
        self.read_one = inner.read_one
        self._window = window
        self._rows = LedgerRows(store)
        self._clock = clock
        self._taken: Mapping[str, Sequence[Span]] = {}
        self._good_until = clock()

    def read_many(self, query: Query) -> Coroutine[Any, Any, Page]:
        """As it is; of free times those that are certainly free and may be booked."""
        return self._slots(query) if query.resource == "slots" else self._inner.read_many(query)

    async def _slots(self, query: Query) -> Page:
        """Of a day beyond the horizon the practice system is not asked."""
        day = query.values.get("date")
        if isinstance(day, date) and day > self._window.last_day(query.now):
            return Page(records=[])
        page = await self._inner.read_many(query)
        taken = (await self._read_taken()).get(str(query.values.get("vetId")), ())
        bounds = self._window.bounds(query.now)
        return replace(
            page, records=[slot for slot in page.records if _is_free(slot, bounds, taken)]
        )

    async def _read_taken(self) -> Mapping[str, Sequence[Span]]:
        """Each vet's times that may have been booked, nobody knows."""
        now = self._clock()
        if now >= self._good_until:
            # set before it is asked: while the ledger hangs one caller waits for it, not all
            self._good_until = now + AGAIN
            try:
                unknown = await self._rows.unknown()
            except StoreError:
                return self._taken
            taken: dict[str, list[Span]] = {}
            for vet, start, end in unknown:
                taken.setdefault(vet, []).append((start, end))
            self._taken, self._good_until = taken, self._clock() + FRESH
        return self._taken


def _is_free(slot: Record, bounds: Span, taken: Sequence[Span]) -> bool:
    """Whether it begins within the bounds, and is over nothing; what cannot be read is not."""
    try:
        start, end = (datetime.fromisoformat(slot[name]) for name in ("startTime", "endTime"))
    except (KeyError, TypeError, ValueError):
        return False
    first, last = bounds
    return first <= start <= last and all(start >= until or end <= since for since, until in taken)


class Lengths:
    """Reads the appointment types now and then."""

    def __init__(self, adapter: Adapter, clock: Callable[[], float] = time.monotonic) -> None:
        self._adapter = adapter
        self._clock = clock
        self._known: dict[str, timedelta] = {}
        self._read_at = -inf
        self._turn = asyncio.Lock()

    async def of(self, type_id: str | None, now: datetime) -> timedelta:
        """What an appointment of the type lasts, or one without a type.

        Where that cannot be known, the longest there is; IN_DOUBT at least.
        """
        if type_id is None:
            return self._adapter.default_length or IN_DOUBT
        if type_id not in self._known or self._is_due(type_id):
            async with self._turn:  # who asks meanwhile waits for the same answer
                if self._is_due(type_id):
                    await self._read(now)
        return self._known.get(type_id) or max([IN_DOUBT, *self._known.values()])

    def _is_due(self, type_id: str) -> bool:
        kept = TYPES_KEPT if type_id in self._known else TYPES_AGAIN
        return self._clock() - self._read_at >= kept

    async def _read(self, now: datetime) -> None:
        """All types; where they cannot be read, what is known stays."""
        self._read_at = self._clock()
        after: str | None = None
        found: dict[str, timedelta] = {}
        try:
            for _ in range(MOST_PAGES):
                query = Query(resource="appointmentTypes", now=now, limit=AT_ONCE, after=after)
                page = await self._adapter.read_many(query)
                found |= {
                    each["id"]: min(timedelta(minutes=minutes), LONGEST)
                    for each in page.records
                    if isinstance(minutes := each.get("durationMinutes"), int) and minutes > 0
                }
                after = page.after
                if after is None:
                    break
        except (AdapterError, OverflowError):
            return
        self._known = found


class StoredTimes:
    """Times of appointments that the practice system's clock cannot tell: a BookedTimes.

    What the store cannot do is BackendUnavailable. They are kept for good: a partner may ask for an
    appointment years later.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def remember(self, appointment: str, begins: datetime, ends: datetime) -> None:
        """Keep it, where it is not known yet."""
        row = {"appointment_id": appointment, "starts_at": begins, "ends_at": ends}

        async def added(connection: AsyncConnection) -> None:
            new = adding(connection, booked_times).values(row)
            await connection.execute(new.on_conflict_do_nothing())

        try:
            await self._store.run(added)
        except StoreError as error:
            raise BackendUnavailable(f"a booked time cannot be kept: {error}") from error

    async def find(self, appointments: Sequence[str]) -> Mapping[str, tuple[datetime, datetime]]:
        """Those that are known."""
        wanted = select(booked_times).where(booked_times.c.appointment_id.in_(appointments))
        try:
            rows = await self._store.rows(wanted)
        except StoreError as error:
            raise BackendUnavailable(f"booked times cannot be looked up: {error}") from error
        return {row.appointment_id: (row.starts_at, row.ends_at) for row in rows}
