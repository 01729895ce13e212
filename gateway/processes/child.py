"""A process that the parent has forked: how it is begun, told that it is well, and ended."""

import math
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

# What a child does; it ends with this, and 0 means that it was told to.
Work = Callable[["Inherited"], int]
# Who is told, in the child, of what ended it and nobody expected.
Failed = Callable[[BaseException], None]
# These come to a whole terminal at once, and the parent says what to do.
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
_RESET = (*IGNORED, signal.SIGTERM, signal.SIGCHLD)


class Pulses:
    """When each child's event loop last turned, in memory that all of them share.

    In seconds of a clock that is the same in every process of the machine; 0 before the first turn.
    """

    _ONE = struct.Struct("d")

    def __init__(self, children: int) -> None:
        self._shared = mmap.mmap(-1, self._ONE.size * children)

    def beat(self, place: int) -> None:
        """This child's loop turns."""
        self._ONE.pack_into(self._shared, place * self._ONE.size, time.monotonic())

    def last(self, place: int) -> float:
        """When it last did."""
        moment: float = self._ONE.unpack_from(self._shared, place * self._ONE.size)[0]
        return moment

    def forget(self, place: int) -> None:
        """For the next child in this place."""
        self._ONE.pack_into(self._shared, place * self._ONE.size, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """What a child has of its parent: `life` reads as ended once the parent is gone."""

    place: int
    life: int
    pulses: Pulses
    _well: int

    def beat(self) -> None:
        """Say that the event loop turns."""
        self.pulses.beat(self.place)

    def well(self) -> None:
        """Say that this child does its work from now on."""
        self.beat()
        with suppress(OSError):
            os.write(self._well, b"1")
            os.close(self._well)


@dataclass(slots=True, kw_only=True)
class Child:
    """A forked process as the parent sees it; `said` reads what it says of itself.

    `until` is when it must have ended.
    """

    name: str
    place: int
    pid: int
    said: int
    began: float
    until: float = math.inf
    is_well: bool = False
    is_killed: bool = False
    status: int | None = None
    _closed: bool = field(default=False, init=False)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended."""
        return self.status is not None

    def hear(self) -> None:
        """Read what it says: one byte once it is well, the end of the stream where it is gone."""
        self.is_well = bool(os.read(self.said, 1)) or self.is_well
        self.close()

    def close(self) -> None:
        """Nothing more is to be heard."""
        if not self._closed:
            os.close(self.said)
            self._closed = True

    @property
    def is_heard(self) -> bool:
        """Whether it may still say something."""
        return not self._closed

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if not self.is_gone:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


@dataclass(slots=True, kw_only=True)
class Nest:
    """Where children are forked: what they inherit, and what they must let go of."""

    pulses: Pulses
    failed: Failed
    life: tuple[int, int] = field(default_factory=os.pipe)

    def fork(self, name: str, place: int, work: Work, others: Iterable[Child]) -> Child:
        """A new child that does the work; `others` are the parent's business alone. OSError."""
        heard, well = os.pipe()

        def let_go() -> None:
            for each in (heard, self.life[1]):
                os.close(each)
            for other in others:
                other.close()

        self.pulses.forget(place)
        _flush()
        # what comes before the child has let go of the parent's ears would be heard by the parent
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _RESET)
        try:
            pid = os.fork()
            if pid == 0:
                life = Inherited(place=place, life=self.life[0], pulses=self.pulses, _well=well)
                _live(work, life, self.failed, let_go)
        except OSError:
            os.close(heard)
            raise
        finally:
            os.close(well)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return Child(name=name, place=place, pid=pid, said=heard, began=time.monotonic())

    def end(self) -> None:
        """Whoever still lives sees that the parent is gone."""
        for each in self.life:
            with suppress(OSError):
                os.close(each)


def _flush() -> None:
    """What stands in a buffer would be written by the child too."""
    for each in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            each.flush()


def _live(work: Work, inherited: Inherited, failed: Failed, let_go: Callable[[], None]) -> None:
    """The rest of a child's life; nothing of the parent's own ending runs in it."""
    code = 1
    try:
        let_go()
        signal.set_wakeup_fd(-1)
        for number in _RESET:
            signal.signal(number, signal.SIG_IGN if number in IGNORED else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _RESET)
        code = work(inherited)
    except BaseException as error:  # noqa: BLE001 - there is nobody above who could say it
        failed(error)
    finally:
        _flush()
        os._exit(code)
