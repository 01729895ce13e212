"""Times of appointments: which are offered, how long one lasts, and those that are stored."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from math import inf
from typing import Any

from sqlalchemy import select

from adapters.base import Adapter, AdapterError, BackendUnavailable, Page, Query, Record
from adapters.wrappers import Around
from gateway.booking.rows import LedgerRows
from gateway.contract.window import BookingWindow
from gateway.store.base import Store, StoreError
from gateway.store.engine import AsyncConnection
from gateway.store.tables import adding, booked_times

# Seconds for which a reading of the ledger counts, and until the next after one that failed.
FRESH, AGAIN = 0.5, 2.0
# How long an appointment lasts where nobody knows, and at most. A time that is blocked for too long
# is free again later; one that is not blocked may be lost.
IN_DOUBT = timedelta(hours=2)
LONGEST = timedelta(days=2)
# Seconds for which the types are kept, and between two looks for one that is not there.
TYPES_KEPT, TYPES_AGAIN = 300.0, 5.0
AT_ONCE = 200
MOST_PAGES = 50
Span = tuple[datetime, datetime]


class FreeTimes(Around):
    """A wrapper that leaves out free times that must not be offered.

    They are outside the window in which partners may book, or may be taken by a booking whose
    outcome is not known. The ledger is read at most half a second before; while it cannot be read,
    its last answer counts. It is the ledger that keeps such times from being booked.
    """

    def __init__(
        self,
        inner: Adapter,
        store: Store,
        window: BookingWindow,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(inner)
        # unchanged: most calls are such reads, for which a step less matters
        self.read_one = inner.read_one
        self._window = window
        self._rows = LedgerRows(store)
        self._clock = clock
        self._taken: Mapping[str, Sequence[Span]] = {}
        self._good_until = clock()

    def read_many(self, query: Query) -> Coroutine[Any, Any, Page]:
        """Reads as the inner adapter; of slots those that are certainly free and may be booked."""
        return self._slots(query) if query.resource == "slots" else self._inner.read_many(query)

    async def _slots(self, query: Query) -> Page:
        """Reads slots; does not ask the practice system about days beyond the horizon."""
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
        """Returns each vet's times that may have been booked."""
        now = self._clock()
        if now >= self._good_until:
            # set before the reading: while the ledger hangs one caller waits for it, not all
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
    """Returns whether a slot begins within the bounds and overlaps nothing; False if unreadable."""
    try:
        start, end = (datetime.fromisoformat(slot[name]) for name in ("startTime", "endTime"))
    except (KeyError, TypeError, ValueError):
        return False
    first, last = bounds
    return first <= start <= last and all(start >= until or end <= since for since, until in taken)


class Lengths:
    """The lengths of appointments by type, read from the adapter now and then."""

    def __init__(self, adapter: Adapter, clock: Callable[[], float] = time.monotonic) -> None:
        self._adapter = adapter
        self._clock = clock
        self._known: dict[str, timedelta] = {}
        self._read_at = -inf
        self._turn = asyncio.Lock()

    async def of(self, type_id: str | None, now: datetime) -> timedelta:
        """Returns how long an appointment of the type lasts; the longest where that is unknown."""
        if type_id is None:
            return self._adapter.default_length or IN_DOUBT
        if type_id not in self._known or self._is_due(type_id):
            async with self._turn:  # callers meanwhile wait for the same answer
                if self._is_due(type_id):
                    await self._read(now)
        return self._known.get(type_id) or max([IN_DOUBT, *self._known.values()])

    def _is_due(self, type_id: str) -> bool:
        kept = TYPES_KEPT if type_id in self._known else TYPES_AGAIN
        return self._clock() - self._read_at >= kept

    async def _read(self, now: datetime) -> None:
        """Reads all types; where that fails, keeps those that are known."""
        self._read_at = self._clock()
        after: str | None = None
        lengths: dict[str, timedelta] = {}
        try:
            for _ in range(MOST_PAGES):
                query = Query(resource="appointmentTypes", now=now, limit=AT_ONCE, after=after)
                page = await self._adapter.read_many(query)
                lengths |= {
                    kind["id"]: min(timedelta(minutes=minutes), LONGEST)
                    for kind in page.records
                    if isinstance(minutes := kind.get("durationMinutes"), int) and minutes > 0
                }
                after = page.after
                if after is None:
                    break
        except (AdapterError, OverflowError):
            return
        self._known = lengths


class StoredTimes:
    """A BookedTimes in the gateway's own store; raises BackendUnavailable where the store fails.

    They are kept for good, as a partner may ask for an appointment years later.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def remember(self, appointment: str, begins: datetime, ends: datetime) -> None:
        """Stores the times of an appointment, where they are not known yet."""
        row = {"appointment_id": appointment, "starts_at": begins, "ends_at": ends}

        async def added(connection: AsyncConnection) -> None:
            new = adding(connection, booked_times).values(row)
            await connection.execute(new.on_conflict_do_nothing())

        try:
            await self._store.run(added)
        except StoreError as error:
            raise BackendUnavailable(f"a booked time cannot be kept: {error}") from error

    async def find(self, appointments: Sequence[str]) -> Mapping[str, tuple[datetime, datetime]]:
        """Returns the times of those appointments that are known."""
        query = select(booked_times).where(booked_times.c.appointment_id.in_(appointments))
        try:
            rows = await self._store.rows(query)
        except StoreError as error:
            raise BackendUnavailable(f"booked times cannot be looked up: {error}") from error
        return {row.appointment_id: (row.starts_at, row.ends_at) for row in rows}
