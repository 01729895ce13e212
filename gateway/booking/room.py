"""Room for few transactions at a time; while one of them hangs, nobody queues up behind it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from gateway.store.base import StoreError

# Transactions at once: more wait here, where it is their turn, and not for one of few connections.
AT_ONCE = 2
# Seconds that the store has for one transaction, and that one may wait for room.
PATIENCE = 2.0
# Seconds between two that are let in, to see, while one of them hangs.
REST = 1.0


class Room:
    """StoreError for whoever gets no room in time, or asks while one that was let in hangs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._places = asyncio.Semaphore(AT_ONCE)
        self._since: dict[object, float] = {}
        self._next_at = 0.0

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """A place among the few."""
        self._check()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._places.acquire()
        except TimeoutError as error:
            raise StoreError("the store does not answer in time") from error
        me = object()
        self._since[me] = self._clock()
        try:
            yield
        finally:
            del self._since[me]
            self._places.release()

    def _check(self) -> None:
        now = self._clock()
        oldest = min(self._since.values(), default=now)
        if now - oldest < PATIENCE:
            return
        next_at = max(self._next_at, oldest + PATIENCE + REST)
        if now < next_at:
            raise StoreError("the store has not answered in time", next_at - now)
        self._next_at = now + REST
