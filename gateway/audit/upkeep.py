"""Keeps the audit's index up to date and drops what is old; one process of a folder does it.

It also tells the store of what processes wrote last that died.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import date, datetime, timedelta
from typing import Protocol

from gateway.audit.chains import Chains
from gateway.audit.ends import Ends
from gateway.audit.files import audit_folder
from gateway.audit.index import Index, forget
from gateway.audit.retention import Retention
from gateway.audit.secrets import key_file, read_secrets
from gateway.background import WallClock, ended
from gateway.settings import Settings
from gateway.store import Store

# Seconds between two looks for new lines, and between two looks for what is old.
INDEX_EVERY = 60.0
EXPIRE_EVERY = 3600.0


class Watcher(Protocol):
    """Who is told how that fares."""

    def neglected(self, error: Exception) -> None:
        """It cannot go on; said once until it does."""

    def kept_again(self) -> None:
        """It goes on again."""

    def expired(self, files: int) -> None:
        """So many day files were dropped."""

    def kept(self, why: str) -> None:
        """Old files of a chain stay, since they are not as they were written; said once."""


class Upkeep:
    """The index and the retention of one folder; several at once do no harm.

    `forget_too` drops what others keep of the days before one, once the audit has dropped its own.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        watcher: Watcher,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
        forget_too: Callable[[date], Awaitable[None]] | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._watcher = watcher
        self._now = now
        self._clock = clock
        self._forget_too = forget_too
        self._index = Index(store, audit_folder(settings))
        self._ends = Ends(Chains(store), audit_folder(settings), now)
        self._retention = Retention(Chains(store), audit_folder(settings), watcher.kept)
        self._expire_at = clock()
        self._wall_clock = WallClock(clock, now())
        self._failing = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Go on until `aclose`."""
        self._task = asyncio.create_task(self._keep(), name="keep up the audit")

    async def aclose(self) -> None:
        """Stop; what was not taken in is taken in the next time."""
        await ended(self._task)

    async def turn(self) -> None:
        """Take in what is new, and now and then drop what is old."""
        await self._try(self._all)

    async def _all(self) -> None:
        await self._record_ends()
        await self._index.catch_up()
        if self._old_may_go():
            await self._drop()

    async def _record_ends(self) -> None:
        await self._ends.record(lambda: read_secrets(key_file(self._settings)))

    async def _try(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - the next time, then
            if not self._failing:
                self._watcher.neglected(error)
            self._failing = True
        else:
            if self._failing:
                self._watcher.kept_again()
            self._failing = False

    async def _keep(self) -> None:
        # the process before this one may have been killed
        await self._try(self._record_ends)
        while True:
            await asyncio.sleep(INDEX_EVERY)
            await self.turn()

    async def _drop(self) -> None:
        before = (self._now() - timedelta(days=self._settings.audit.keep_days)).date()
        files = await self._retention.expire(read_secrets(key_file(self._settings)), before)
        await forget(self._store, before)
        if self._forget_too is not None:
            await self._forget_too(before)
        if files:
            self._watcher.expired(files)

    def _old_may_go(self) -> bool:
        clock = self._clock()
        if not self._wall_clock.is_trusted(self._now()) or clock < self._expire_at:
            return False
        self._expire_at = clock + EXPIRE_EVERY
        return True
