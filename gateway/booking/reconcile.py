"""Reconciles the ledger with the practice system: what nobody works on any more, and nobody knows.

Rows of dead processes are taken from them; what may have been booked is looked up, at once and then
less and less often, until it is found, or so late that nothing can come of it any more.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from sqlalchemy import select

from adapters.base import WATCHED_AT_ONCE, Adapter, AdapterError
from gateway.background import Periodic, ended
from gateway.booking.base import STATES, LedgerRow
from gateway.booking.lookup import UnknownBookings
from gateway.booking.rows import LedgerRows
from gateway.booking.takeover import Owners
from gateway.events import Events
from gateway.store.base import Store, StoreError, in_time
from gateway.store.tables import bookings

# Seconds between two looks at the ledger, and between those at one booking: the first, the longest.
EVERY = 0.5
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 30.0
AT_ONCE = 4
# Seconds between two looks at what became of coming bookings, and how many of them are looked at.
WATCH_EVERY, MOST_WATCHED = 60.0, 5_000
# Seconds between two counts of the rows, and that one may take.
COUNT_EVERY, COUNT_PATIENCE = 5.0, 1.0


class Reconciler:
    """One for all processes of a node; several do no harm.

    `lands` is how many seconds after it was left an attempt can still be at work, and be booked;
    `file` is where the next process finds since when each is seen, so that it counts on.
    """

    def __init__(
        self,
        store: Store,
        adapter: Adapter,
        owners: Owners,
        events: Events,
        *,
        lands: float = 15.0,
        file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rows = LedgerRows(store)
        self._adapter = adapter
        self._owners = owners
        self._events = events
        self._unknown = UnknownBookings(self._rows, events, lands, clock, file)
        self._clock = clock
        # of each sending, when it is looked up next, and the pause after that
        self._due: dict[str, tuple[float, float]] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._illegible: set[str] = set()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._rounds = Periodic(EVERY, self.round, name="reconcile the ledger")

    async def begin(self, patience: float = 5.0) -> None:
        """Before anything is served: as far as one look at each booking gets in that time."""
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(patience):
                if await self.round():
                    await self.round()
                if self._looks:
                    await asyncio.wait(list(self._looks.values()))

    def start(self) -> None:
        """Go on in the background, until `aclose`; what fails the store's own probe tells."""
        self._rounds.start()

    async def aclose(self) -> None:
        """Stop; what is being looked up stays unknown."""
        await self._rounds.aclose()
        with contextlib.suppress(Exception):  # what they met was told
            await ended(*self._looks.values())

    async def round(self) -> bool:
        """Take rows from the dead, and begin the look-ups that are due. StoreError.

        Whether any were taken: the next round, at once, sees these as they are now.
        """
        rows = await self._rows.between()
        has_taken = await self._bury(rows)
        unknown = {row.sending: row for row in rows if row.state == "unknown"}
        now = self._clock()
        self._due = {sending: self._due.get(sending, (now, FIRST_PAUSE)) for sending in unknown}
        await self._unknown.count_only(unknown.keys())
        for sending, row in unknown.items():
            due, pause = self._due[sending]
            if row.owner is None and due <= now and sending not in self._looks:
                self._looks[sending] = asyncio.create_task(self._look(row, pause))
        if has_taken:
            self._rounds.soon()
        return has_taken

    async def _bury(self, rows: Sequence[LedgerRow]) -> bool:
        """Let go of what the dead worked on; forget who said that it lives, and does not."""
        others = await in_time(self._owners.others())
        owners = {row.owner for row in rows if row.owner is not None}.union(others)
        dead = {owner for owner in owners if await self._owners.is_dead(owner)}
        left = [row for row in rows if row.owner in dead]
        for row in left:
            await self._rows.abandon(row)
        for owner in dead:
            await in_time(self._owners.forget(owner))
        return bool(left)

    async def _look(self, row: LedgerRow, pause: float) -> None:
        """Settle the row, or look it up again later; say once that its draft cannot be read."""
        sending = row.sending
        try:
            async with self._room:
                if sending not in self._illegible and not row.is_legible:
                    self._illegible.add(sending)
                    self._events.report("booking_illegible", reference=row.reference)
                await self._unknown.look(row, self._adapter)
        finally:
            # not past the moment from which a look-up is certain
            left = self._unknown.left(self._adapter, row)
            due = self._clock() + (min(left, pause) or pause)
            self._due[sending] = due, min(LONGEST_PAUSE, pause * 1.5)
            del self._looks[sending]


class Watch(Periodic):
    """Asks the adapter about the coming bookings, which the practice's desk may write over.

    The desk takes no lock of ours, and nothing forbids it.

    Each appointment is told of once, when it is first seen written over, or there and unreadable.
    """

    def __init__(
        self, store: Store, adapter: Adapter, events: Events, now: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._adapter = adapter
        self._events = events
        self._now = now
        self._known: frozenset[str] = frozenset()
        self._unread: frozenset[str] = frozenset()
        super().__init__(
            WATCH_EVERY,
            self.look,
            events,
            name="watch the bookings",
            first=self.look,
            failed="bookings_unwatched",
        )

    @property
    def overwritten(self) -> int:
        """How many coming bookings something else is written over, as of the last look."""
        return len(self._known)

    async def look(self) -> None:
        """Ask about every booking that is not over. StoreError."""
        wanted = (
            select(bookings.c.appointment_id)
            .where(bookings.c.state == "done", bookings.c.ends_at > self._now())
            .order_by(bookings.c.ends_at)
            .limit(MOST_WATCHED)
        )
        async with self._store.begin() as connection:
            found = (await connection.execute(wanted)).scalars()
            coming = [each for each in found if each is not None]
        seen: set[str] = set()
        unread: set[str] = set()
        for start in range(0, len(coming), WATCHED_AT_ONCE):
            some = coming[start : start + WATCHED_AT_ONCE]
            try:
                watched = await self._adapter.find_overwritten(some)
            except AdapterError as error:  # what is known of these stays known
                self._events.report("bookings_unwatched", error)
                seen.update(self._known.intersection(some))
                unread.update(self._unread.intersection(some))
                continue
            # of what cannot be read now, what was seen before stays known too
            seen.update(watched.overwritten, self._known.intersection(watched.unreadable))
            unread.update(watched.unreadable)
        for appointment in sorted(seen - self._known):
            self._events.report("booking_overwritten", appointment=appointment)
        for appointment in sorted(unread - self._unread):
            self._events.report("booking_unreadable", appointment=appointment)
        self._known, self._unread = frozenset(seen), frozenset(unread)


class LedgerStatus:
    """Counts bookings by state when it is asked to, at most every five seconds.

    While the store cannot be read, what was seen last is told.
    """

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._rows = LedgerRows(store)
        self._now = now
        self._looked = -COUNT_EVERY
        self._counts: Mapping[str, int] = dict.fromkeys(STATES, 0)
        self._unknown_since: datetime | None = None

    async def look(self) -> None:
        """Within a second."""
        if time.monotonic() - self._looked < COUNT_EVERY:
            return
        self._looked = time.monotonic()
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(COUNT_PATIENCE):
                self._counts, self._unknown_since = await self._rows.states()

    def states(self) -> Mapping[tuple[str, ...], float]:
        """How many in each."""
        return {(state,): count for state, count in self._counts.items()}

    def oldest_unknown(self) -> float:
        """Seconds since the oldest unknown one was begun; 0 where there is none."""
        if self._unknown_since is None:
            return 0.0
        return max(0.0, (self._now() - self._unknown_since).total_seconds())
