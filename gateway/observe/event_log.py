"""The event log: JSON lines on stderr, or readable ones where a person watches a terminal.

A line holds names of things and classes of errors. The text of an exception may hold a value, so it
stays out, and so do the source lines of a traceback.
"""

import asyncio
import fcntl
import math
import os
import socket
import stat
import sys
import threading
import time
import traceback
import weakref
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from types import FrameType
from typing import Any, TextIO

import orjson

from adapters.base import AdapterError
from adapters.documents.problems import DocumentErrors
from gateway.events import EventKind, Sayable, event_table
from gateway.observe.lines import printable, sane
from gateway.observe.metrics import Metrics

# At most so many lines wait, and are tried again after so many seconds.
MOST_WAITING, AGAIN = 1_000, 0.2
# Seconds between two lines of an event that is summed up.
SILENCE = 60.0
# At most so many details are remembered of what is logged once, and so many values of an event that
# is summed up; and at most so many kinds of failed calls are told apart.
MOST_REMEMBERED, MOST_KINDS = 10_000, 1_000
# Characters of what an adapter says.
LONGEST = 300
# Writes as many of the bytes as there is room for, and returns how many; BlockingIOError for none.
Write = Callable[[bytes], int]


class Outlet:
    """A stream that takes lines from any thread; `gap` makes the line for so many lost ones."""

    def __init__(self, stream: TextIO, gap: Callable[[int], str]) -> None:
        self._write = _unblocked(self, stream)
        self._gap = gap
        self._waiting: deque[bytes] = deque()
        self._lost = 0
        self._timer: asyncio.TimerHandle | None = None
        self._lock = threading.Lock()

    def say(self, line: str) -> None:
        """Writes a line after those that wait; where too many wait the line is lost."""
        with self._lock:
            if len(self._waiting) >= MOST_WAITING:
                self._flush()
            if len(self._waiting) >= MOST_WAITING:
                self._lost += 1
            else:
                self._waiting.append(_encoded(line))
            self._flush()

    def _flush(self) -> None:
        try:
            while self._waiting:
                line = self._waiting[0]
                written = self._write(line)
                if written < len(line):
                    self._waiting[0] = line[written:]
                    continue
                self._waiting.popleft()
                if self._lost and not self._waiting:
                    self._waiting.append(_encoded(self._gap(self._lost)))
                    self._lost = 0
        except BlockingIOError:
            # a thread without an event loop tries again with its next line
            if self._timer is None:
                with suppress(RuntimeError):
                    self._timer = asyncio.get_running_loop().call_later(AGAIN, self._again)
        except (OSError, ValueError):  # the stream may be closed
            # a log that nobody can read any more must not fail a call
            self._waiting.clear()

    def _again(self) -> None:
        with self._lock:
            self._timer = None
            self._flush()


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "backslashreplace") + b"\n"


def _unblocked(owner: Outlet, stream: TextIO) -> Write:
    """Returns what writes to the stream without waiting, for as long as the owner lives."""
    try:
        number = stream.fileno()
        kind = os.fstat(number).st_mode
    except (OSError, ValueError):
        return _through(stream)
    if stat.S_ISSOCK(kind):
        own = socket.socket(fileno=os.dup(number))
        weakref.finalize(owner, own.close)
        return lambda data: own.send(data, socket.MSG_DONTWAIT)
    if stat.S_ISFIFO(kind) or stat.S_ISCHR(kind):
        file = _opened_anew(number)
        weakref.finalize(owner, os.close, file)
        return lambda data: os.write(file, data)
    return _through(stream)  # a file on a disk takes everything


def _opened_anew(number: int) -> int:
    """Opens the same pipe or terminal a second time, so that others write to it as before."""
    try:
        return os.open(f"/proc/self/fd/{number}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:  # not allowed, as in some containers: others no longer wait, either
        file = os.dup(number)
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_NONBLOCK)
        return file


def _through(stream: TextIO) -> Write:
    def write(data: bytes) -> int:
        # one write per line, so that lines from threads do not mix
        stream.write(data.decode())
        stream.flush()
        return len(data)

    return write


class EventLog:
    """The log of events: writes lines and moves figures as the table of events says."""

    def __init__(
        self,
        stream: TextIO | None = None,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        stream = stream or sys.stderr
        self._kinds = event_table().event
        self._metrics = metrics
        self._clock = clock
        self._began = clock()
        self._known: set[tuple[object, ...]] = set()
        # event -> kind -> when it was last logged, and how often each value of a detail came since
        self._sums = defaultdict[str, dict[tuple[object, ...], tuple[float, Counter[str]]]](dict)
        self._render = _readable if stream.isatty() else _json
        self._outlet = Outlet(
            stream, lambda lines: self._line("event_lines_lost", {"lines": lines})
        )

    def report(self, event: str, error: BaseException | None = None, /, **details: Any) -> None:
        """Tells of an event of the table, from any thread; as `gateway.events.Events`."""
        kind = self._kinds[event]
        if kind.counter and self._metrics is not None:
            labels = [label.format_map(details) for label in kind.labels.values()]
            self._metrics.add(kind.counter, details.get(kind.amount, 1), *labels)
        if kind.text and self._is_due(event, error, details):
            self._outlet.say(self._line(event, details, error))

    def _is_due(self, event: str, error: BaseException | None, details: dict[str, Any]) -> bool:
        """Returns whether a line is due; adds to its details what came since the last one."""
        kind = self._kinds[event]
        value = details.pop(kind.sum or kind.most, "")
        this: tuple[object, ...] = (*details.values(),)
        if kind.unsaid:
            this = (*_raised(error), details.get(kind.unsaid))
        if kind.once:
            is_new = (event, *this) not in self._known
            if is_new and len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known.add((event, *this))
            return is_new
        if not (kind.sum or kind.most or kind.unsaid):
            return True
        now, sums = self._clock(), self._sums[event]
        # there are no more kinds of other events than there are keys
        if kind.unsaid and this not in sums and len(sums) >= MOST_KINDS:
            sums.clear()
        last, times = sums.setdefault(this, (self._began if kind.later else -math.inf, Counter()))
        # beyond so many addresses the others are counted together
        times[value if len(times) < MOST_REMEMBERED else "others"] += 1
        if now - last < SILENCE:
            return False
        sums[this] = now, Counter()
        details |= _told(kind, times)
        return True

    def _line(self, event: str, details: dict[str, Any], error: BaseException | None = None) -> str:
        kind = self._kinds[event]
        if error is not None:
            text = said_of(error)
            details = ({"said": text} if text else {}) | details | {"error": type(error).__name__}
            # an adapter's text is enough: places in our code would not help
            details |= {} if isinstance(error, AdapterError) else {"at": places(error)}
        if kind.remedy:
            details |= {"remedy": kind.remedy.format_map(details)}
        head = {"time": datetime.now(UTC), "level": kind.level, "event": kind.text}
        return self._render(head | details)


def _told(kind: EventKind, times: Counter[str]) -> Mapping[str, Any]:
    """Returns what a line says of how often each value came, its own included."""
    if kind.sum:
        return times
    if kind.unsaid:
        return {"unsaid": times.total() - 1} if times.total() > 1 else {}
    [(first, of_these)] = times.most_common(1)
    totals = {"times": times.total(), "addresses": len(times)}
    return totals | {"most_from": first, "of_these": of_these}


def _raised(error: BaseException | None) -> tuple[object, ...]:
    """Returns the class of an error, and the innermost place that it comes from."""
    innermost: deque[tuple[FrameType, int]] = deque(maxlen=1)
    innermost.extend(traceback.walk_tb(error.__traceback__ if error else None))
    return type(error), *((frame.f_code, line) for frame, line in innermost)


def said_of(error: BaseException) -> str:
    """Returns the text of an error where it is ours, an adapter's or the system's; else nothing."""
    if isinstance(error, AdapterError | DocumentErrors):
        return str(error)[:LONGEST]
    if isinstance(error, Sayable):
        return str(error)
    if isinstance(error, OSError) and error.errno and error.strerror == os.strerror(error.errno):
        return error.strerror.lower()
    return ""


def places(error: BaseException) -> list[str]:
    """Returns the last 12 frames of a traceback, innermost last, as `file:line function`."""
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def _json(line: dict[str, Any]) -> str:
    return orjson.dumps(sane(line), default=printable, option=orjson.OPT_UTC_Z).decode()


def _readable(line: dict[str, Any]) -> str:
    time, level, event, *_ = line.values()
    details = "  ".join(f"{name}={printable(value)}" for name, value in list(line.items())[3:])
    return f"{time:%H:%M:%S} {level:8}{event}  {details}".rstrip()
