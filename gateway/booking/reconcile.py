"""Reconciles the ledger with the practice system: what nobody works on any more, and nobody knows.

Rows of dead processes are taken from them; what may have been booked is looked up, at once and then
less and less often, until it is found, or so late that nothing can come of it any more.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from adapters.base import Adapter
from gateway.background import ended
from gateway.booking.base import Told
from gateway.booking.deadlines import Deadlines
from gateway.booking.drafts import read_draft
from gateway.booking.outcomes import in_time
from gateway.booking.owners import Owners
from gateway.booking.row import Row
from gateway.booking.rows import Rows
from gateway.booking.unknown_bookings import UnknownBookings
from gateway.store.base import Store, StoreError

# Seconds between two looks at the ledger, and between those at one booking: the first, the longest.
EVERY = 0.5
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 30.0
AT_ONCE = 4


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
        told: Told,
        *,
        lands: float = 15.0,
        file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rows = Rows(store)
        self._adapter = adapter
        self._owners = owners
        self._told = told
        self._deadlines = Deadlines("", lands, clock, file)
        self._unknown = UnknownBookings(self._rows, self._deadlines, told)
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
        rows = await in_time(self._rows.between())
        await self._bury(rows)
        unknown: dict[str, Row] = {
            row.sending: row for row in rows if row.state == "unknown" and row.draft and row.claim
        }
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

    async def _bury(self, rows: Sequence[Row]) -> None:
        """Let go of what the dead worked on; forget who said that it lives, and does not."""
        others = await in_time(self._owners.others())
        owners = {row.owner for row in rows if row.owner is not None}.union(others)
        dead = {owner for owner in owners if await self._owners.is_dead(owner)}
        for row in rows:
            if row.owner in dead or _is_nobodys(row):
                await in_time(self._rows.abandon(row))
                self._wake.set()  # the next round, at once, sees it as it is now
        for owner in dead:
            await in_time(self._owners.forget(owner))

    async def _look(self, row: Row, watched: _Watched) -> None:
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

    def _tell_illegible(self, row: Row) -> None:
        """Say once of each row that what was asked for cannot be read."""
        if row.sending in self._illegible or read_draft(row.draft, row.reference) is not None:
            return
        self._illegible.add(row.sending)
        self._told.illegible(row.reference)

    async def _keep_on(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), EVERY)
            self._wake.clear()
            with contextlib.suppress(Exception):  # the store's own probe says so
                await self.round()


def _is_nobodys(row: Row) -> bool:
    """Of a version of the gateway that named no owner, or no claim."""
    return row.owner is None and (row.state != "unknown" or row.claim is None)
