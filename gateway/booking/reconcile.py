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

from adapters.base import Adapter, OutcomeUnknown
from gateway.booking.base import Told
from gateway.booking.drafts import read
from gateway.booking.looking import Lost, look
from gateway.booking.outcomes import in_time
from gateway.booking.owners import Owners
from gateway.booking.row import Row
from gateway.booking.rows import Rows
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

    `lands` is how many seconds after it was left an attempt can still be at work, and be booked.
    """

    def __init__(
        self,
        store: Store,
        adapter: Adapter,
        owners: Owners,
        told: Told,
        *,
        lands: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rows = Rows(store)
        self._adapter = adapter
        self._owners = owners
        self._told = told
        self._lands = lands + adapter.settle
        self._clock = clock
        self._watched: dict[str, _Watched] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}
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
        tasks = [*self._looks.values(), *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def round(self) -> None:
        """Take rows from the dead, and begin the look-ups that are due. StoreError."""
        rows = await in_time(self._rows.between())
        await self._bury(rows)
        unknown: dict[str, Row] = {
            row.claim: row
            for row in rows
            if row.state == "unknown" and row.owner is None and row.draft and row.claim
        }
        for claim in self._watched.keys() - unknown.keys():
            del self._watched[claim]
        now = self._clock()
        for claim, row in unknown.items():
            watched = self._watched.setdefault(claim, _Watched(since=now, due=now))
            if watched.due <= now and claim not in self._looks:
                task = asyncio.create_task(self._look(row, watched))
                self._looks[claim] = task
                task.add_done_callback(partial(self._looked, claim))

    def _looked(self, claim: str, task: asyncio.Task[None]) -> None:
        del self._looks[claim]

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
                is_last = self._clock() - watched.since >= self._lands
                draft = read(row.draft or b"", row.reference)
                found = await look(self._rows, self._adapter, draft, row, told=False)
                if found is not None:
                    self._told.found(str(found.get("id")))
                elif is_last and await in_time(self._rows.write(row, None)):
                    self._told.released(row.reference)
        except (OutcomeUnknown, StoreError, Lost):
            pass
        finally:
            watched.due = self._clock() + watched.pause
            watched.pause = min(LONGEST_PAUSE, watched.pause * 1.5)

    async def _keep_on(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), EVERY)
            self._wake.clear()
            with contextlib.suppress(Exception):  # the store's own probe says so
                await self.round()


def _is_nobodys(row: Row) -> bool:
    """Of a version of the gateway that named no owner."""
    return row.owner is None and row.state in ("intended", "sent")
