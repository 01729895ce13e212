"""A process that the parent has spawned: how it begins, says that it is well, and is signalled."""

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

# What a child does; it ends with this, and 0 means that it was told to.
Work = Callable[["Inherited"], int]
# One number, in seconds of a clock that is the same in every process of the machine.
Heartbeat: TypeAlias = "memoryview[float]"
# These come to a whole terminal at once, and the parent says what to do.
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
_RESET = (*IGNORED, signal.SIGTERM, signal.SIGCHLD)
# What the parent hears.
WATCHED = tuple(number for number in _RESET if number != signal.SIGUSR1)


@contextmanager
def watched_signals() -> Iterator[int]:
    """Signals as things that are read: nothing happens in between, whatever comes when.

    Meanwhile they end nothing by themselves; their numbers stand in the file that is given.
    """
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    # without a handler of Python's no number would be written
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

    `heartbeat` is when the child's event loop last turned, in memory that both share.
    """

    life: int
    heartbeat: Heartbeat
    _well: int

    def beat(self) -> None:
        """Say that the event loop turns."""
        self.heartbeat[0] = time.monotonic()

    def well(self) -> None:
        """Say that this child does its work from now on."""
        self.beat()
        with suppress(OSError):
            os.write(self._well, b"1")
            os.close(self._well)


@dataclass(slots=True, kw_only=True)
class Child:
    """A forked process as the parent sees it; `report` reads what it says of itself.

    `until` is when it must have ended.
    """

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
        """Whether it has ended."""
        return self.status is not None

    def read(self) -> None:
        """Read what it says: one byte once it is well, the end of the stream where it is gone."""
        if self.is_open:
            self.is_well = bool(os.read(self.report, 1))
            os.close(self.report)
            self.is_open = False

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if not self.is_gone:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def spawn(
    name: str, work: Work, life: tuple[int, int], others: Iterable[Child], events: Events
) -> Child:
    """A new child that does the work; `others` are the parent's business alone. OSError.

    `life` is a pipe of which the parent alone keeps the writing end. What ends the child and
    nobody expected, the child itself tells.
    """
    began = time.monotonic()
    heartbeat = memoryview(mmap.mmap(-1, struct.calcsize("d"))).cast("d")
    heartbeat[0] = began
    report, well = os.pipe()
    inherited = Inherited(life=life[0], heartbeat=heartbeat, _well=well)
    _flush()
    # what comes before the child has let go of the parent's signals would go to the parent
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
    """The rest of a child's life; nothing of the parent's own ending runs in it.

    Of the files, some are the parent's alone.
    """
    code = 1
    try:
        for file in parents:
            os.close(file)
        signal.set_wakeup_fd(-1)
        for number in _RESET:
            signal.signal(number, signal.SIG_IGN if number in IGNORED else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _RESET)
        code = work(inherited)
    except BaseException as error:  # noqa: BLE001 - there is nobody above who could say it
        events.report("process_failed", error)
    finally:
        _flush()
        os._exit(code)


def _flush() -> None:
    """What stands in a buffer would be written by the child too."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
