"""What the operating system says of this process: its beginning, CPU, memory and open files."""

import math
import os
import resource
import time
from pathlib import Path

from gateway.observe.metrics import Metrics

_OF_PROCESS = Path("/proc/self")


def watch_process(metrics: Metrics) -> None:
    """Tell it among the figures; looked up when they are read. Where /proc is none, not memory."""
    began = started_at()
    metrics.ask("process_start_time_seconds", lambda: began)
    metrics.ask("process_max_fds", lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    metrics.ask("process_cpu_seconds_total", _cpu_seconds)
    if _OF_PROCESS.is_dir():
        metrics.ask("process_resident_memory_bytes", resident)
        metrics.ask("process_open_fds", _open_files)


def started_at() -> float:
    """Seconds since 1970 when the process began; where nobody says it, now."""
    try:
        # the name of the program, which may hold anything, stands in brackets before
        ticks = int((_OF_PROCESS / "stat").read_text().rpartition(")")[2].split()[19])
        boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError):
        return time.time()
    return time.time() - boot + ticks / os.sysconf("SC_CLK_TCK")


def resident() -> float:
    """Bytes of memory that the process holds; nan where no file is left to look it up."""
    try:
        pages = int((_OF_PROCESS / "statm").read_text().split()[1])
    except OSError:
        return math.nan
    return pages * resource.getpagesize()


def _open_files() -> float:
    try:
        return len(list((_OF_PROCESS / "fd").iterdir()))
    except OSError:
        return math.nan


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system
