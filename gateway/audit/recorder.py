"""Tells the store the head of this process's chain after each write, beside the writing."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from gateway.audit.chain import Head
from gateway.background import ended
from gateway.store import StoreError

# Seconds between two heads, unless there is haste: not each write of reads is told.
EVERY = 1.0
# Seconds between two all the same: while much is booked the store has other things to write.
PAUSE = 0.05
# Seconds that the last one may take, at the end.
LAST = 2.0

Record = Callable[[Head, bool], Awaitable[None]]


class Watcher(Protocol):
    """Who is told how that fares."""

    def unrecorded(self, error: Exception) -> None:
        """The store does not take a head; said once until it does."""

    def recorded(self) -> None:
        """It does again."""


class Recorder:
    """The newest head goes to `record`; what fails is tried again with the next."""

    def __init__(self, record: Record, watcher: Watcher) -> None:
        self.failing = False
        self._record = record
        self._watcher = watcher
        self._head: Head | None = None
        self._news = asyncio.Event()
        self._haste = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Go on until `aclose`."""
        self._task = asyncio.create_task(self._keep_recording(), name="record the audit's head")

    def written(self, head: Head) -> None:
        """So far it is on disk."""
        if head != self._head:
            self._head = head
            self._news.set()

    def hasten(self) -> None:
        """A booking is in what was written: it is told at once, or PAUSE after the last one."""
        self._haste.set()

    async def aclose(self) -> None:
        """The last head, as that of a chain that has ended, where the store takes it in time."""
        await ended(self._task)
        if self._head is not None:
            with contextlib.suppress(StoreError, TimeoutError):
                async with asyncio.timeout(LAST):
                    await self._record(self._head, True)

    async def _keep_recording(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            self._haste.clear()
            await self._record_newest()
            if self.failing:
                await asyncio.sleep(EVERY)
                continue
            await asyncio.sleep(PAUSE)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY):
                    await self._haste.wait()

    async def _record_newest(self) -> None:
        if self._head is None:
            return
        try:
            await self._record(self._head, False)
        except Exception as error:  # noqa: BLE001 - the next time, then
            self._news.set()
            if not self.failing:
                self._watcher.unrecorded(error)
            self.failing = True
        else:
            if self.failing:
                self._watcher.recorded()
            self.failing = False
