"""A limiter around a limiter: where what counts for all is down, this process counts its share.

The share is the limit, by the number of processes that count. What was counted here is not told to
what counts for all when that is back: in all, a key has one such share per process more at most,
as the windows here last for an hour too, however often the other one comes and goes.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from gateway.background import ended
from gateway.limits.base import TRIAL, Limiter, LimiterDown, LimiterFull, Quota, Used
from gateway.limits.memory import MemoryLimiter

# So many calls in a row may wait in vain; then none does, and every so many seconds it is tried.
FAILURES = 5
TRY_EVERY = 1.0


class Watcher(Protocol):
    """Who is told how the limiter fares."""

    def degraded(self, why: str) -> None:
        """Every process counts its share from now on; said once until that is over."""

    def restored(self) -> None:
        """What counts for all counts again."""

    def counted_here(self) -> None:
        """One call was counted by this process alone."""

    def full(self, why: str) -> None:
        """A key had no room, and is counted here; said once."""


class Degrading:
    """The inner limiter, and `limit / share` of this process's own where that is down."""

    def __init__(
        self,
        inner: Limiter,
        share: int,
        watcher: Watcher,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._share = share
        self._watcher = watcher
        self._here = MemoryLimiter(clock)
        self._failures = 0
        self._full = False
        self._trying: asyncio.Task[None] | None = None

    @property
    def degraded(self) -> bool:
        return self._trying is not None

    async def start(self) -> None:
        """Reach the inner one; where that cannot be, it is down from the beginning."""
        try:
            await self._inner.start()
        except LimiterDown as error:
            self._failures = FAILURES
            self._failed(str(error))

    async def hit(self, key_id: str, limit: int) -> Quota:
        """Count one call, there or here."""
        if self._trying is None:
            try:
                quota = await self._inner.hit(key_id, limit)
            except LimiterFull as error:
                self._say_full(str(error))
            except LimiterDown as error:
                self._failed(str(error))
            else:
                self._failures = 0
                return quota
        self._watcher.counted_here()
        return await self._counted_here(key_id, limit)

    async def peek(self, key_ids: Sequence[str]) -> Mapping[str, Used]:
        """What counts for all has counted: what is counted here meanwhile is a part at most."""
        if self._trying is not None:
            raise LimiterDown("each process counts its share")
        return await self._inner.peek(key_ids)

    async def aclose(self) -> None:
        """Close the inner one too."""
        await ended(self._trying)
        await self._inner.aclose()

    async def _counted_here(self, key_id: str, limit: int) -> Quota:
        share = max(limit // self._share, 1) if limit else 0
        quota = await self._here.hit(key_id, share)
        return Quota(limit, quota.remaining, quota.reset, quota.admitted)

    def _failed(self, why: str) -> None:
        self._failures += 1
        if self._failures >= FAILURES and self._trying is None:
            self._trying = asyncio.create_task(self._try(), name="try the limiter")
            self._watcher.degraded(why)

    def _say_full(self, why: str) -> None:
        if not self._full:
            self._full = True
            self._watcher.full(why)

    async def _try(self) -> None:
        """No partner's call waits for it: it is tried beside them, with a counter of its own."""
        while True:
            await asyncio.sleep(TRY_EVERY)
            with contextlib.suppress(LimiterDown):
                await self._inner.hit(TRIAL, 1)
                break
        self._failures = 0
        self._trying = None
        self._watcher.restored()
