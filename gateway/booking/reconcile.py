"""Reconciles the ledger with the practice system: what nobody works on any more, and nobody knows.

Rows of dead processes are taken from them; what may have been booked is looked up, at once and then
less and less often, until it is found, or so late that nothing can come of it any more.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlalchemy import select

from adapters.base import WATCHED_AT_ONCE, Adapter, AdapterError
from gateway.background import ended
from gateway.booking.base import STATES, LedgerListener, LedgerRow
from gateway.booking.lookup import Deadlines, UnknownBookings
from gateway.booking.rows import LedgerRows
from gateway.booking.takeover import Owners
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


@dataclass(slots=True)
class _Watched:
    """When a booking that nobody knows of is looked up next, and the pause after that."""

    due: float
    pause: float


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
        listener: LedgerListener,
        *,
        lands: float = 15.0,
        file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rows = LedgerRows(store)
        self._adapter = adapter
        self._owners = owners
        self._listener = listener
        self._deadlines = Deadlines("", lands, clock, file)
        self._unknown = UnknownBookings(self._rows, self._deadlines, listener)
        self._clock = clock
        self._watched: dict[str, _Watched] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._illegible: set[str] = set()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def begin(self, patience: float = 5.0) -> None:
        """Before anything is served: as far as one look at each booking gets in that time."""
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(patience):
                await self.round()
                if self._wake.is_set():
                    await self.round()
                if self._looks:
                    await asyncio.wait(list(self._looks.values()))

    def start(self) -> None:
        """Go on in the background, until `aclose`."""
        self._task = asyncio.create_task(self._keep_on(), name="reconcile the ledger")

    def died(self, owner: str) -> None:
        """A process of this node has ended, by whatever: look at what it left, now."""
        self._wake.set()

    async def aclose(self) -> None:
        """Stop; what is being looked up stays unknown."""
        with contextlib.suppress(Exception):  # what they met was told
            await ended(self._task, *self._looks.values())

    async def round(self) -> None:
        """Take rows from the dead, and begin the look-ups that are due. StoreError."""
        rows = await self._rows.between()
        await self._bury(rows)
        unknown: dict[str, LedgerRow] = {row.sending: row for row in rows if row.state == "unknown"}
        now = self._clock()
        self._watched = {
            sending: self._watched.get(sending) or _Watched(now, FIRST_PAUSE) for sending in unknown
        }
        await self._deadlines.count_only(unknown.keys())
        for sending, row in unknown.items():
            watched = self._watched[sending]
            if row.owner is None and watched.due <= now and sending not in self._looks:
                task = asyncio.create_task(self._look(row, watched))
                self._looks[sending] = task
                task.add_done_callback(partial(self._looked, sending))

    def _looked(self, sending: str, task: asyncio.Task[None]) -> None:
        del self._looks[sending]

    async def _bury(self, rows: Sequence[LedgerRow]) -> None:
        """Let go of what the dead worked on; forget who said that it lives, and does not."""
        others = await in_time(self._owners.others())
        owners = {row.owner for row in rows if row.owner is not None}.union(others)
        dead = {owner for owner in owners if await self._owners.is_dead(owner)}
        for row in rows:
            if row.owner in dead:
                await self._rows.abandon(row)
                self._wake.set()  # the next round, at once, sees it as it is now
        for owner in dead:
            await in_time(self._owners.forget(owner))

    async def _look(self, row: LedgerRow, watched: _Watched) -> None:
        """Settle the row, or look it up again later."""
        try:
            async with self._room:
                self._tell_illegible(row)
                await self._unknown.look(row, self._adapter)
        finally:
            # not past the moment from which a look-up is certain
            left = self._deadlines.left(self._adapter, row)
            watched.due = self._clock() + (min(left, watched.pause) or watched.pause)
            watched.pause = min(LONGEST_PAUSE, watched.pause * 1.5)

    def _tell_illegible(self, row: LedgerRow) -> None:
        """Say once of each row that what was asked for cannot be read."""
        if row.sending in self._illegible or row.read_draft() is not None:
            return
        self._illegible.add(row.sending)
        self._listener.illegible(row.reference)

    async def _keep_on(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), EVERY)
            self._wake.clear()
            with contextlib.suppress(Exception):  # the store's own probe says so
                await self.round()


class Watch:
    """Asks the adapter about the coming bookings, which the practice's desk may write over.

    It takes no lock of ours, and nothing forbids it.

    `found` is called with each appointment's public id once, when it is first seen written over;
    `unreadable` likewise with one that is there and cannot be read; `failed` with what kept it from
    looking.
    """

    def __init__(
        self,
        store: Store,
        adapter: Adapter,
        found: Callable[[str], None],
        unreadable: Callable[[str], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._store = store
        self._adapter = adapter
        self._found = found
        self._unreadable = unreadable
        self._failed = failed
        self._known: frozenset[str] = frozenset()
        self._unread: frozenset[str] = frozenset()
        self._task: asyncio.Task[None] | None = None

    @property
    def overwritten(self) -> int:
        """How many coming bookings something else is written over, as of the last look."""
        return len(self._known)

    def start(self, now: Callable[[], datetime]) -> None:
        """Look now and then, until `aclose`."""
        self._task = asyncio.create_task(self._keep_looking(now), name="watch the bookings")

    async def aclose(self) -> None:
        """Stop looking."""
        await ended(self._task)

    async def look(self, now: datetime) -> None:
        """Ask about every booking that is not over. StoreError."""
        coming = await self._coming(now)
        seen: set[str] = set()
        unread: set[str] = set()
        for start in range(0, len(coming), WATCHED_AT_ONCE):
            some = coming[start : start + WATCHED_AT_ONCE]
            try:
                watched = await self._adapter.find_overwritten(some)
            except AdapterError as error:  # what is known of these stays known
                self._failed(error)
                seen.update(self._known.intersection(some))
                unread.update(self._unread.intersection(some))
                continue
            # of what cannot be read now, what was seen before stays known too
            seen.update(watched.overwritten, self._known.intersection(watched.unreadable))
            unread.update(watched.unreadable)
        _tell(self._found, seen - self._known)
        _tell(self._unreadable, unread - self._unread)
        self._known, self._unread = frozenset(seen), frozenset(unread)

    async def _coming(self, now: datetime) -> list[str]:
        wanted = (
            select(bookings.c.appointment_id)
            .where(bookings.c.state == "done", bookings.c.ends_at > now)
            .order_by(bookings.c.ends_at)
            .limit(MOST_WATCHED)
        )
        async with self._store.begin() as connection:
            found = (await connection.execute(wanted)).scalars()
            return [each for each in found if each is not None]

    async def _keep_looking(self, now: Callable[[], datetime]) -> None:
        while True:
            try:
                await self.look(now())
            except Exception as error:  # noqa: BLE001 - the watch must outlive an adapter's fault
                self._failed(error)
            await asyncio.sleep(WATCH_EVERY)


def _tell(tell: Callable[[str], None], new: Iterable[str]) -> None:
    for each in sorted(new):
        tell(each)


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
