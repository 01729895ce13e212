"""Reconciles the ledger with the practice system: what nobody works on any more, and nobody knows.

Rows of dead processes are taken from them; what may have been booked is looked up, at once and then
less and less often, until it is found, or so late that nothing can come of it any more.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from adapters.base import Adapter, Draft, OutcomeUnknown
from gateway.background import ended
from gateway.booking.base import Told
from gateway.booking.drafts import read
from gateway.booking.looking import Lost, look
from gateway.booking.outcomes import in_time
from gateway.booking.owners import Owners
from gateway.booking.row import Row
from gateway.booking.rows import Rows
from gateway.booking.since import keep_since, kept_since
from gateway.store.base import Store, StoreError

# Seconds between two looks at the ledger, and between those at one booking: the first, the longest.
EVERY = 0.5
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 30.0
AT_ONCE = 4


@dataclass(slots=True)
class _Watched:
    """A booking that nobody knows of: since when it is seen here, and when it is looked up next."""

    since: float
    due: float
    pause: float = FIRST_PAUSE
    looks: int = 0


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
        self._lands = lands + adapter.settle
        self._file = file
        self._clock = clock
        self._earlier = {} if file is None else kept_since(file, clock())
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
        await self._watch(unknown.keys(), now)
        for sending, row in unknown.items():
            watched = self._watched[sending]
            if row.owner is None and watched.due <= now and sending not in self._looks:
                task = asyncio.create_task(self._look(row, watched))
                self._looks[sending] = task
                task.add_done_callback(partial(self._looked, sending))

    async def _watch(self, sendings: AbstractSet[str], now: float) -> None:
        """Just these from now on; what an earlier process saw already since then.

        Who only looks for one, and finds nothing, does not make it younger.
        """
        earlier, self._earlier = self._earlier, {}
        if self._watched.keys() == sendings:
            return
        for sending in self._watched.keys() - sendings:
            del self._watched[sending]
        for sending in sendings - self._watched.keys():
            self._watched[sending] = _Watched(since=earlier.get(sending, now), due=now)
        if self._file is not None:
            since = {sending: watched.since for sending, watched in self._watched.items()}
            await in_time(asyncio.to_thread(keep_since, self._file, since))

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
        """Found, released, or looked up again later."""
        try:
            async with self._room:
                # where look-ups wait for bookings one that finds nothing is certain at once
                is_last = self._adapter.excludes or self._clock() >= watched.since + self._lands
                draft = self._draft(row)
                if draft is None:
                    return
                found = await look(self._rows, self._adapter, draft, row, told=False)
                if found is not None:
                    self._told.found(str(found.get("id")))
                elif is_last and await in_time(self._rows.write(row, None)):
                    self._told.released(row.reference)
        except (OutcomeUnknown, StoreError, Lost):
            pass
        finally:
            watched.due = self._next_look(watched)
            watched.pause = min(LONGEST_PAUSE, watched.pause * 1.5)

    def _next_look(self, watched: _Watched) -> float:
        """After its pause, but not past the moment from which a look-up is certain."""
        now, lands = self._clock(), watched.since + self._lands
        later = now + watched.pause
        return lands if now < lands < later else later

    def _draft(self, row: Row) -> Draft | None:
        """What was asked for; None where that cannot be read, which is told once."""
        try:
            return read(row.draft or b"", row.reference)
        except (ValueError, TypeError, KeyError):
            if row.sending not in self._illegible:
                self._illegible.add(row.sending)
                self._told.illegible(row.reference)
            return None

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
