"""What the operating system says of this process, and how late its event loop comes back."""

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
    """Waits a tenth of a second at a time, and notes by how much it was late.

    What blocks the event loop, blocks every call.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lags = Timings(LAGS)
        # (when, how late): of the last minute, or of longer where it was late
        self._latest: deque[tuple[float, float]] = deque(maxlen=round(LOOK_BACK / EVERY))
        # told of each lag, in seconds, as it is noted
        self.on_lag: Callable[[float], None] = lambda late: None
        self._due = 0.0
        super().__init__(EVERY, self._tick, name="watch the event loop", first=self._begin)
        metrics.ask_series("gateway_loop_lag_seconds", self._lags.durations)
        metrics.ask("gateway_loop_lag_max_seconds", lambda: self.most(LOOK_BACK)[0])

    def most(self, seconds: float) -> tuple[float, float]:
        """The largest lag that was noted within so many seconds, and how many it is ago."""
        now = self._clock()
        recent = [(late, now - at) for at, late in reversed(self._latest) if now - at <= seconds]
        return max(recent, key=itemgetter(0), default=(0.0, 0.0))

    def note(self, late: float) -> None:
        """The loop came back that late."""
        self._lags.note(("late",), late)
        self._latest.append((self._clock(), late))
        self.on_lag(late)

    async def _begin(self) -> None:
        self._due = self._clock() + EVERY

    async def _tick(self) -> None:
        self.note(max(0.0, self._clock() - self._due))
        self._due = self._clock() + EVERY


def watch_process(metrics: Metrics) -> None:
    """Tell it among the figures; looked up when they are read. Where /proc is none, not memory."""
    began, own = started_at(), metrics.process
    metrics.ask("process_start_time_seconds", lambda: began, own)
    metrics.ask("process_max_fds", lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0], own)
    metrics.ask("process_cpu_seconds_total", lambda: sum(os.times()[:2]))
    if _OF_PROCESS.is_dir():
        metrics.ask("process_resident_memory_bytes", resident, own)
        metrics.ask("process_open_fds", _open_files, own)


def started_at() -> float:
    """Seconds since 1970 when the process began; where nobody says it, now."""
    with suppress(OSError, AttributeError):
        # the name of the program, which may hold anything, stands in brackets before
        ticks = int((_OF_PROCESS / "stat").read_text().rpartition(")")[2].split()[19])
        boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.time() - boot + ticks / os.sysconf("SC_CLK_TCK")
    return time.time()


def resident() -> float:
    """Bytes of memory that the process holds; nan where no file is left to look it up."""
    with suppress(OSError):
        return int((_OF_PROCESS / "statm").read_text().split()[1]) * resource.getpagesize()
    return math.nan


def _open_files() -> float:
    with suppress(OSError):
        return len(list((_OF_PROCESS / "fd").iterdir()))
    return math.nan
