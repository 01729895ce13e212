"""What a limiter promises: one counter per key, exact whoever counts at the same time.

And the limiters that need no other place: that of a single process, and one around a limiter that
counts for all, which goes on by itself where that is down.
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
# Seconds for which a call waits for what counts for all; then it is counted otherwise.
PATIENCE = 0.05
# So many calls in a row may wait in vain; then none does, and every so many seconds it is tried.
FAILURES = 5
TRY_EVERY = 1.0
# Counted where it is tried whether anything counts; no key has such an id.
TRIAL = "trial"


class Quota(Struct, frozen=True, gc=False):
    """A key's hour after a call: `reset` is whole seconds to its end, rounded up, 1 to 3600."""

    limit: int
    remaining: int
    reset: int
    admitted: bool


class Used(Struct, frozen=True, gc=False):
    """What a key has used of its hour: calls, and whole seconds to the hour's end, rounded up."""

    calls: int
    reset: int


def whole_seconds(left: float) -> int:
    """What is left of a window, in seconds rounded up: 1 to 3600."""
    return min(max(ceil(left), 1), WINDOW)


class LimiterDown(Exception):
    """What counts for all did not count this call, or did not say so in time; why, in words."""


class LimiterFull(LimiterDown):
    """It has no room for one more key; those that it knows are counted as ever."""


class Limiter:
    """Counts calls in fixed windows of an hour that start at a key's first counted call."""

    degraded = False  # whether it counts by itself, as what counts for all is down

    async def start(self) -> None:
        """Reach what counts, before the first call waits for it."""

    async def hit(self, key_id: str, limit: int) -> Quota:
        """Count one call, in one step; a call that is not admitted does not count. LimiterDown."""
        raise NotImplementedError

    async def peek(self, key_ids: Sequence[str]) -> Mapping[str, Used]:
        """What these keys have used of the hours that run, where one does; LimiterDown."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Let go of whatever counts."""


class MemoryLimiter(Limiter):
    """Exact, and gone with the process; `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # key id -> [end of the window, calls admitted in it]; insertion order is order of ending
        self._windows: dict[str, list[float]] = {}

    async def hit(self, key_id: str, limit: int) -> Quota:
        """Count one call; there is no await in here, so nothing can come between."""
        now = self._clock()
        window = self._windows.get(key_id)
        if window is None or window[0] <= now:
            for old, _ in [*takewhile(lambda kept: kept[1][0] <= now, self._windows.items())]:
                del self._windows[old]
            window = self._windows[key_id] = [now + WINDOW, 0.0]
        reset = whole_seconds(window[0] - now)
        if window[1] >= limit:
            return Quota(limit, 0, reset, admitted=False)
        window[1] += 1
        return Quota(limit, limit - int(window[1]), reset, admitted=True)

    async def peek(self, key_ids: Sequence[str]) -> Mapping[str, Used]:
        now = self._clock()
        held = ((key_id, self._windows.get(key_id)) for key_id in key_ids)
        return {
            key_id: Used(int(window[1]), whole_seconds(window[0] - now))
            for key_id, window in held
            if window is not None and window[0] > now
        }


class Degrading(Limiter):
    """The inner limiter, and `limit / share` of this process's own where that is down.

    What was counted here is not told to the inner one when that is back: in all, a key has one such
    share per process more at most, as the windows here last for an hour too, however often the
    inner one comes and goes.
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
        """Reach the inner one; where that cannot be, it is down from the beginning."""
        try:
            await self._inner.start()
        except LimiterDown as error:
            self._failures = FAILURES
            self._failed(str(error))

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
        """What counts for all has counted: what is counted here meanwhile is a part at most."""
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
        """No partner's call waits for it: it is tried beside them, with a counter of its own."""
        while True:
            await asyncio.sleep(TRY_EVERY)
            with contextlib.suppress(LimiterDown):
                await self._inner.hit(TRIAL, 1)
                break
        self._failures = 0
        self.degraded = False
        self._events.report("limiter_back")
