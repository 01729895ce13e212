"""Spawns child processes, and carries signals to them and signs of life from them."""

import math
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias

from gateway.events import Events

# What a child does; returns its exit code, which is 0 where it was told to end.
Work = Callable[["Inherited"], int]
# One number: monotonic seconds, which are the same in every process of the machine.
Heartbeat: TypeAlias = "memoryview[float]"
# A terminal sends some of these to every process, but only the parent acts on them.
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
_RESET = (*IGNORED, signal.SIGTERM, signal.SIGCHLD)
# What the parent acts on.
WATCHED = tuple(number for number in _RESET if number != signal.SIGUSR1)


@contextmanager
def watched_signals() -> Iterator[int]:
    """Yields a file with the numbers of signals, which do nothing by themselves meanwhile."""
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    # no number is written for a signal without a Python handler
    before = {number: signal.signal(number, lambda *_: None) for number in WATCHED}
    woken = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield read
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """What a child has of its parent: `life` reads as ended once the parent is gone.

    `heartbeat` is when the child's event loop last turned, in shared memory.
    """

    life: int
    heartbeat: Heartbeat
    _well: int

    def beat(self) -> None:
        """Tells the parent that the event loop turns."""
        self.heartbeat[0] = time.monotonic()

    def well(self) -> None:
        """Tells the parent that this child has begun its work."""
        self.beat()
        with suppress(OSError):
            os.write(self._well, b"1")
            os.close(self._well)


@dataclass(slots=True, kw_only=True)
class Child:
    """A forked process as its parent sees it, which speaks at `report` and must end by `until`."""

    name: str
    pid: int
    report: int
    heartbeat: Heartbeat
    began: float
    until: float = math.inf
    is_well: bool = False
    is_killed: bool = False
    is_open: bool = True
    status: int | None = None

    @property
    def is_gone(self) -> bool:
        return self.status is not None

    def read(self) -> None:
        """Reads its report: one byte once it is well, or the end of the stream where it is gone."""
        if self.is_open:
            self.is_well = bool(os.read(self.report, 1))
            os.close(self.report)
            self.is_open = False

    def signal(self, number: int) -> None:
        if not self.is_gone:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def spawn(
    name: str, work: Work, life: tuple[int, int], others: Iterable[Child], events: Events
) -> Child:
    """Forks a child that does the work; raises OSError where that fails.

    The child closes the files of `others`, and the writing end of the pipe `life`. It reports an
    unexpected error itself.
    """
    began = time.monotonic()
    heartbeat = memoryview(mmap.mmap(-1, struct.calcsize("d"))).cast("d")
    heartbeat[0] = began
    report, well = os.pipe()
    inherited = Inherited(life=life[0], heartbeat=heartbeat, _well=well)
    _flush()
    # until the child has its own handlers, its signals would go to the parent's file
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _RESET)
    try:
        pid = os.fork()
        if pid == 0:
            open_reports = [other.report for other in others if other.is_open]
            _live(work, inherited, [report, life[1], *open_reports], events)
    except OSError:
        os.close(report)
        raise
    finally:
        os.close(well)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Child(name=name, pid=pid, report=report, heartbeat=heartbeat, began=began)


def _live(work: Work, inherited: Inherited, parents: Iterable[int], events: Events) -> None:
    """Does the work and exits, without the parent's cleanup; closes the `parents` files first."""
    code = 1
    try:
        for file in parents:
            os.close(file)
        signal.set_wakeup_fd(-1)
        for number in _RESET:
            signal.signal(number, signal.SIG_IGN if number in IGNORED else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _RESET)
        code = work(inherited)
    except BaseException as error:  # noqa: BLE001 - nothing above could report it
        events.report("process_failed", error)
    finally:
        _flush()
        os._exit(code)


def _flush() -> None:
    """Empties the buffers, which the child would write too."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
