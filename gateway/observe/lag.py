"""How late the event loop comes back: what blocks it, blocks every call."""

import asyncio
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable

from gateway.background import ended
from gateway.observe.figures import LAGS
from gateway.observe.merged import Sample
from gateway.observe.metrics import Metrics

EVERY = 0.1
LOOK_BACK = 60.0


class Lag:
    """Waits a tenth of a second at a time, and notes by how much it was late."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets = [0] * (len(LAGS) + 1)
        self._seconds = 0.0
        # (when, how late): of a minute, each later than all that follow it
        self._latest: deque[tuple[float, float]] = deque()
        self._told: list[Callable[[float], None]] = []
        self._task: asyncio.Task[None] | None = None
        metrics.tell("gateway_loop_lag_seconds", self._samples)
        metrics.ask("gateway_loop_lag_max_seconds", lambda: self.most(LOOK_BACK)[0])

    def start(self) -> None:
        """Begin, until `aclose`."""
        self._task = asyncio.create_task(self._watch(), name="watch the event loop")

    async def aclose(self) -> None:
        """End it."""
        await ended(self._task)

    def tells(self, told: Callable[[float], None]) -> None:
        """Have each lag told, in seconds, as it is noted."""
        self._told.append(told)

    def most(self, seconds: float) -> tuple[float, float]:
        """The largest lag that was noted within so many seconds, and how many it is ago."""
        now = self._clock()
        for at, late in self._latest:
            if now - at <= seconds:
                return late, now - at
        return 0.0, 0.0

    def note(self, late: float) -> None:
        """The loop came back that late."""
        now = self._clock()
        self._seconds += late
        self._buckets[bisect_left(LAGS, late)] += 1
        while self._latest and self._latest[-1][1] <= late:
            self._latest.pop()
        self._latest.append((now, late))
        while now - self._latest[0][0] > LOOK_BACK:
            self._latest.popleft()
        for told in self._told:
            told(late)

    async def _watch(self) -> None:
        while True:
            due = self._clock() + EVERY
            await asyncio.sleep(EVERY)
            self.note(max(0.0, self._clock() - due))

    def _samples(self) -> list[Sample]:
        return [Sample((), self._seconds, tuple(self._buckets))]
