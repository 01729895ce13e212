"""The interface of limiters, the limiter of one process, and one that falls back on it.

A limiter has one counter per key, exact however many count at the same time.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from math import ceil

from msgspec import Struct

from gateway.background import ended
from gateway.events import Events

WINDOW = 3600
# Seconds that a call waits for what counts for all; then its own process counts it.
PATIENCE = 0.05
# Calls in a row that may wait in vain; then none does, and a trial is made every so many seconds.
FAILURES = 5
TRY_EVERY = 1.0
# What a trial counts; no key has such an id.
TRIAL = "trial"


class Quota(Struct, frozen=True, gc=False):
    """A key's hour after a call; `reset` is the whole seconds to its end, rounded up, 1 to 3600."""

    limit: int
    remaining: int
    reset: int
    admitted: bool


class Used(Struct, frozen=True, gc=False):
    """What a key has used of its hour; `reset` is whole seconds to the end, rounded up."""

    calls: int
    reset: int


def whole_seconds(left: float) -> int:
    """Returns what is left of a window, in seconds rounded up: 1 to 3600."""
    seconds = ceil(left)
    return seconds if 0 < seconds < WINDOW else min(max(seconds, 1), WINDOW)


class LimiterDown(Exception):
    """Raised where a call was not counted, or not in time; the text says why."""


class LimiterFull(LimiterDown):
    """Raised where there is no room for one more key; known ones are counted as ever."""


class Limiter:
    """Counters of calls, in fixed windows of an hour that start at a key's first counted call."""

    degraded = False  # whether each process counts by itself, as what counts for all is down

    async def start(self) -> None:
        """Connects, before the first call waits for it. Raises LimiterDown."""

    async def hit(self, key_id: str, limit: int) -> Quota:
        """Counts one call, in one step, unless it is not admitted. Raises LimiterDown."""
        raise NotImplementedError

    def hit_at_once(self, key_id: str, limit: int) -> Quota | None:
        """Does the same without waiting; None, with nothing counted, where `hit` has to wait."""
        return None

    async def peek(self, key_ids: Sequence[str]) -> Mapping[str, Used]:
        """Returns what these keys have used of the hours that run. Raises LimiterDown."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Lets go of what counts."""


class MemoryLimiter(Limiter):
    """An exact limiter that is gone with its process; `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # key id -> the window's end, and calls admitted in it; insertion order is order of ending
        self._windows: dict[str, tuple[float, int]] = {}

    async def hit(self, key_id: str, limit: int) -> Quota:
        return self.hit_at_once(key_id, limit)

    def hit_at_once(self, key_id: str, limit: int) -> Quota:
        now = self._clock()
        window = self._windows.get(key_id)
        if window is None or window[0] <= now:
            for old, _ in [*takewhile(lambda kept: kept[1][0] <= now, self._windows.items())]:
                del self._windows[old]
            window = self._windows[key_id] = now + WINDOW, 0
        end, calls = window
        if calls >= limit:
            return Quota(limit, 0, whole_seconds(end - now), admitted=False)
        self._windows[key_id] = end, calls + 1
        return Quota(limit, limit - calls - 1, whole_seconds(end - now), admitted=True)

    async def peek(self, key_ids: Sequence[str]) -> Mapping[str, Used]:
        now = self._clock()
        held = ((key_id, self._windows.get(key_id)) for key_id in key_ids)
        return {
            key_id: Used(window[1], whole_seconds(window[0] - now))
            for key_id, window in held
            if window is not None and window[0] > now
        }


class Degrading(Limiter):
    """The inner limiter, and `limit / share` of this process's own while that is down.

    What is counted here is not handed to the inner one. Windows here last an hour too, so that a
    key gets at most one share per process in addition, however often the inner one comes and goes.
    """

    def __init__(self, inner: Limiter, share: int, events: Events) -> None:
        self._inner = inner
        self._share = share
        self._events = events
        self._here = MemoryLimiter()
        self._failures = 0
        self._full = False
        self._trying: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connects the inner limiter; where that fails it is down from the beginning."""
        try:
            await self._inner.start()
        except LimiterDown as error:
            self._failures = FAILURES
            self._failed(str(error))

    def hit_at_once(self, key_id: str, limit: int) -> Quota | None:
        return None if self._failures else self._inner.hit_at_once(key_id, limit)

    async def hit(self, key_id: str, limit: int) -> Quota:
        if not self.degraded:
            try:
                quota = await self._inner.hit(key_id, limit)
            except LimiterFull as error:
                if not self._full:
                    self._full = True
                    self._events.report("limiter_full", reason=str(error))
            except LimiterDown as error:
                self._failed(str(error))
            else:
                self._failures = 0
                return quota
        self._events.report("counted_here")
        share = max(limit // self._share, 1) if limit else 0
        quota = await self._here.hit(key_id, share)
        return Quota(limit, quota.remaining, quota.reset, quota.admitted)

    async def peek(self, key_ids: Sequence[str]) -> Mapping[str, Used]:
        """Returns what the inner limiter has counted; raises LimiterDown while it is down."""
        if self.degraded:
            raise LimiterDown("each process counts its share")
        return await self._inner.peek(key_ids)

    async def aclose(self) -> None:
        await ended(self._trying)
        await self._inner.aclose()

    def _failed(self, why: str) -> None:
        self._failures += 1
        if self._failures >= FAILURES and not self.degraded:
            self.degraded = True
            self._trying = asyncio.create_task(self._try(), name="try the limiter")
            self._events.report("limiter_down", reason=why)

    async def _try(self) -> None:
        """Tries the inner limiter every second, with a counter of its own, until it counts."""
        while True:
            await asyncio.sleep(TRY_EVERY)
            with contextlib.suppress(LimiterDown):
                await self._inner.hit(TRIAL, 1)
                break
        self._failures = 0
        self.degraded = False
        self._events.report("limiter_back")
