"""The limiter of several processes on one machine: exact, and gone with the last of them."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from gateway.limits.base import PATIENCE, LimiterDown, Quota, Used
from gateway.limits.counters import Counters

# Whoever writes is done in a few microseconds: so often is looked again at once, and then after
# pauses of so many seconds.
LOOKS = 20
PAUSE = 0.001
PEEKED_AT_ONCE = 500  # keys for which the event loop is held up


class SharedLimiter:
    """Counts in the table; LimiterDown where a process that was stopped holds a part of it.

    `clock` is the same in all processes of a machine, in nanoseconds, and nobody sets it.
    """

    degraded = False

    def __init__(self, counters: Counters, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._counters = counters
        self._clock = clock

    async def start(self) -> None:
        """Nothing: it is there."""

    async def hit(self, key_id: str, limit: int) -> Quota:
        """Count one call, as a rule without waiting for anything."""
        quota = self._counters.hit(key_id, limit, self._clock())
        return quota or await self._later(key_id, limit)

    async def peek(self, key_ids: Sequence[str]) -> Mapping[str, Used]:
        """What is used of the hours that run, as it stands in the table."""
        found: dict[str, Used] = {}
        for start in range(0, len(key_ids), PEEKED_AT_ONCE):
            some = key_ids[start : start + PEEKED_AT_ONCE]
            found |= self._counters.peek(some, self._clock())
            await asyncio.sleep(0)
        return found

    async def aclose(self) -> None:
        """The table is its maker's."""

    async def _later(self, key_id: str, limit: int) -> Quota:
        deadline = time.monotonic() + PATIENCE
        looks = 0
        while True:
            quota = self._counters.hit(key_id, limit, self._clock())
            if quota is not None:
                return quota
            looks += 1
            if looks > LOOKS:
                if time.monotonic() >= deadline:
                    raise LimiterDown("another process holds the counters and does not let go")
                await asyncio.sleep(PAUSE)
