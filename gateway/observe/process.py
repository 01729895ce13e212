"""Measures this process for the metrics: memory, files, time, and the lag of its event loop."""

import math
import os
import resource
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from operator import itemgetter
from pathlib import Path

from gateway.background import Periodic
from gateway.observe.metrics import LAGS, Metrics, Timings

EVERY = 0.1
LOOK_BACK = 60.0
_OF_PROCESS = Path("/proc/self")


class Lag(Periodic):
    """The task that sleeps a tenth of a second at a time, and notes by how much it woke late."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lags = Timings(LAGS)
        # (when, how late) of the last minute, or longer where the loop was late
        self._latest: deque[tuple[float, float]] = deque(maxlen=round(LOOK_BACK / EVERY))
        # called with each lag, in seconds, as it is noted
        self.on_lag: Callable[[float], None] = lambda late: None
        self._due = 0.0
        super().__init__(EVERY, self._tick, name="watch the event loop", first=self._begin)
        metrics.ask_series("gateway_loop_lag_seconds", self._lags.durations)
        metrics.ask("gateway_loop_lag_max_seconds", lambda: self.most(LOOK_BACK)[0])

    def most(self, seconds: float) -> tuple[float, float]:
        """Returns the largest lag of the last so many seconds, and how many seconds ago it was."""
        now = self._clock()
        recent = [(late, now - at) for at, late in reversed(self._latest) if now - at <= seconds]
        return max(recent, key=itemgetter(0), default=(0.0, 0.0))

    def note(self, late: float) -> None:
        self._lags.note(("late",), late)
        self._latest.append((self._clock(), late))
        self.on_lag(late)

    async def _begin(self) -> None:
        self._due = self._clock() + EVERY

    async def _tick(self) -> None:
        self.note(max(0.0, self._clock() - self._due))
        self._due = self._clock() + EVERY


def watch_process(metrics: Metrics) -> None:
    """Registers the figures of this process; those of memory and files where there is a /proc."""
    began, own = started_at(), metrics.process
    metrics.ask("process_start_time_seconds", lambda: began, own)
    metrics.ask("process_max_fds", lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0], own)
    metrics.ask("process_cpu_seconds_total", lambda: sum(os.times()[:2]))
    if _OF_PROCESS.is_dir():
        metrics.ask("process_resident_memory_bytes", resident, own)
        metrics.ask("process_open_fds", _open_files, own)


def started_at() -> float:
    """Returns when the process began, in seconds since 1970; now where nobody knows."""
    with suppress(OSError, AttributeError):
        # the name of the program comes before, in brackets, and may hold anything
        ticks = int((_OF_PROCESS / "stat").read_text().rpartition(")")[2].split()[19])
        boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.time() - boot + ticks / os.sysconf("SC_CLK_TCK")
    return time.time()


def resident() -> float:
    """Returns the bytes of memory that the process holds; nan where no file is left to read it."""
    with suppress(OSError):
        return int((_OF_PROCESS / "statm").read_text().split()[1]) * resource.getpagesize()
    return math.nan


def _open_files() -> float:
    with suppress(OSError):
        return len(list((_OF_PROCESS / "fd").iterdir()))
    return math.nan
