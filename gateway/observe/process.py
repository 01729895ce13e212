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
# Of the thread that opens it: its CPU time, and how long it was ready to run and had no core.
_SCHEDULED = "/proc/thread-self/schedstat"


class OwnWork:
    """Tells how much of the event loop's lateness is this process's own work.

    Another program that uses the core makes the loop late too. `worked` is the CPU time of the
    process, as its other threads hold up the loop as well; `waited` is the time for which the
    loop's thread waited for a core. Both are in seconds and only ever grow.
    """

    def __init__(
        self,
        worked: Callable[[], float] = time.process_time,
        waited: Callable[[], float] | None = None,
    ) -> None:
        self._worked, self._waited = worked, waited or self._run_delay
        self._file: int | None = None
        self._last = 0.0, 0.0

    def begin(self) -> None:
        """Begins to measure; the thread is the event loop's."""
        with suppress(OSError):
            self._file = os.open(_SCHEDULED, os.O_RDONLY)
        self._last = self._worked(), self._waited()

    def share_of(self, late: float) -> float:
        """Returns the seconds of the lateness that are own work since the last time.

        Of the time in which the thread was not idle, own work has the same share as of the
        lateness; and it makes nobody later than it lasted.
        """
        now = self._worked(), self._waited()
        worked, waited = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        return min(late * worked / (worked + waited), worked) if worked > 0 else 0.0

    def end(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _run_delay(self) -> float:
        """Returns the seconds; no kernel but Linux tells, so that elsewhere it stays 0.

        Then own CPU time alone counts: a lateness of at most the CPU time that was used.
        """
        with suppress(OSError, ValueError, IndexError):
            if self._file is not None:
                return int(os.pread(self._file, 100, 0).split()[1]) / 1e9
        return self._last[1]


class Lag(Periodic):
    """The task that sleeps a tenth of a second at a time, and notes by how much it woke late."""

    def __init__(
        self,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
        own_work: OwnWork | None = None,
    ) -> None:
        self._clock, self._own_work = clock, own_work or OwnWork()
        self._lags = Timings(LAGS)
        # (when, how late) of the last minute, or longer where the loop was late
        self._latest: deque[tuple[float, float]] = deque(maxlen=round(LOOK_BACK / EVERY))
        # called with each lag, in seconds, as far as it is own work
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
        self.on_lag(self._own_work.share_of(late))

    async def aclose(self) -> None:
        await super().aclose()
        self._own_work.end()

    async def _begin(self) -> None:
        self._own_work.begin()
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
