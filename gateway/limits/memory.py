"""The limiter of a single process: exact, and gone with the process."""

import time
from collections.abc import Callable, Mapping, Sequence
from math import ceil

from gateway.limits.base import WINDOW, Quota, Used


class MemoryLimiter:
    """Windows in a dict, in the order in which they started; `clock` is monotonic, in seconds."""

    degraded = False

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # key id -> [end of the window, calls admitted in it]; insertion order is order of ending
        self._windows: dict[str, list[float]] = {}

    async def start(self) -> None:
        """Nothing: it is there."""

    async def hit(self, key_id: str, limit: int) -> Quota:
        """Count one call; there is no await in here, so nothing can come between."""
        now = self._clock()
        window = self._windows.get(key_id)
        if window is None or window[0] <= now:
            window = self._start(key_id, now)
        reset = _seconds_to(window[0], now)
        if window[1] >= limit:
            return Quota(limit, 0, reset, admitted=False)
        window[1] += 1
        return Quota(limit, limit - int(window[1]), reset, admitted=True)

    async def peek(self, key_ids: Sequence[str]) -> Mapping[str, Used]:
        """What is used of the hours that run."""
        now = self._clock()
        held = ((key_id, self._windows.get(key_id)) for key_id in key_ids)
        return {
            key_id: Used(int(window[1]), _seconds_to(window[0], now))
            for key_id, window in held
            if window is not None and window[0] > now
        }

    async def aclose(self) -> None:
        """Forget everything."""
        self._windows.clear()

    def _start(self, key_id: str, now: float) -> list[float]:
        self._windows.pop(key_id, None)
        for other in list(self._ended(now)):
            del self._windows[other]
        window = [now + WINDOW, 0.0]
        self._windows[key_id] = window
        return window

    def _ended(self, now: float) -> list[str]:
        ended = []
        for key_id, (end, _) in self._windows.items():
            if end > now:
                break
            ended.append(key_id)
        return ended


def _seconds_to(end: float, now: float) -> int:
    return min(max(ceil(end - now), 1), WINDOW)
