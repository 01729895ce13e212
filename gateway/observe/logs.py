"""The event log: JSON lines on stderr, or readable ones where a person watches a terminal.

What is logged are names of things and classes of faults. The text of an exception may hold a
value, so it stays out, and so do the source lines of a traceback.
"""

import asyncio
import errno
import fcntl
import os
import socket
import stat
import sys
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson
from msgspec import Struct

from adapters.base import AdapterError, Trouble
from gateway.observe.lines import printable

ACCESS = "access.jsonl"
UNREAD = "lines of the event log are lost: nobody read it"
# So many lines wait, and are tried again after so many seconds.
MOST_WAITING, AGAIN = 1_000, 0.2


class Access(Struct, rename="camel", gc=False, omit_defaults=True):
    """Who called what and how long it took; `operation` is empty where the path is none.

    `ms` is the whole call, `backend_ms` the part in which the practice system was asked,
    `waited_ms` the part in which it waited for room to ask. `trace_id` is there where the call is
    part of a trace.
    """

    time: datetime
    request_id: str
    key_id: str | None
    operation: str
    method: str
    status: int
    ms: float
    backend_ms: float
    waited_ms: float
    trace_id: str | None = None


# Takes as many of these bytes as there is room for, and says how many; BlockingIOError for none.
Write = Callable[[bytes], int]


class Outlet:
    """Lines to one stream, from any thread; `gap` is the line that stands for so many lost ones."""

    def __init__(self, stream: TextIO, gap: Callable[[int], str]) -> None:
        self._write = _unblocked(self, stream)
        self._gap = gap
        self._waiting: deque[bytes] = deque()
        self._lost = 0
        self._timer: asyncio.TimerHandle | None = None
        self._lock = threading.Lock()

    def say(self, line: str) -> None:
        """One more line, after those that wait."""
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
            # in a thread without an event loop it is tried again with the next line
            if self._timer is None:
                with suppress(RuntimeError):
                    self._timer = asyncio.get_running_loop().call_later(AGAIN, self._again)
        except OSError:
            # a log that nobody can read any more must not fail the call that it is about
            self._waiting.clear()

    def _again(self) -> None:
        with self._lock:
            self._timer = None
            self._flush()


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "backslashreplace") + b"\n"


def _unblocked(owner: Outlet, stream: TextIO) -> Write:
    """How to write to a stream and not wait; as long as the owner lives.

    A file on a disk takes everything, and what has no number is no file.
    """
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
    return _through(stream)


def _opened_anew(number: int) -> int:
    """The same pipe or terminal, opened a second time: how others write to it stays as it is.

    Where that is not allowed, as in some containers, they write without waiting too.
    """
    try:
        return os.open(f"/proc/self/fd/{number}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        file = os.dup(number)
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_NONBLOCK)
        return file


def _through(stream: TextIO) -> Write:
    def write(data: bytes) -> int:
        if stream.closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        # one write per line, so that lines from threads do not mix
        stream.write(data.decode())
        stream.flush()
        return len(data)

    return write


class Events:
    """Says what happened; one method per kind of event."""

    def __init__(self, stream: TextIO | None = None) -> None:
        stream = stream or sys.stderr
        self._render = _readable if stream.isatty() else _json
        self._outlet = Outlet(stream, lambda lines: self._line("warning", UNREAD, {"lines": lines}))

    def _line(self, level: str, event: str, details: dict[str, Any]) -> str:
        return self._render({"time": datetime.now(UTC), "level": level, "event": event, **details})

    def _say(self, level: str, event: str, details: dict[str, Any]) -> None:
        self._outlet.say(self._line(level, event, details))

    def info(self, event: str, **details: Any) -> None:
        self._say("info", event, details)

    def warn(self, event: str, **details: Any) -> None:
        self._say("warning", event, details)

    def fault(self, event: str, error: BaseException, **details: Any) -> None:
        """An exception, by its class and where it came from.

        What an adapter says is meant for this log, and is enough, as the fault is not ours; `said`
        gives what others say that is.
        """
        if isinstance(error, AdapterError):
            self.outage(event, error, said=str(error)[:300], **details)
            return
        details |= {"error": type(error).__name__, "at": places(error)}
        self._say("error", event, details)

    def outage(self, event: str, error: BaseException, *, said: str, **details: Any) -> None:
        """What others than the gateway must mend: what they say, without places in its code."""
        details |= {"said": said, "error": type(error).__name__}
        self._say("error", event, details)

    def trouble(self, trouble: Trouble) -> None:
        """A value or row of the practice system that could not be used."""
        self.warn(
            "unusable value",
            kind=trouble.kind,
            resource=trouble.resource,
            field=trouble.field,
            record=trouble.record,
        )


def places(error: BaseException) -> list[str]:
    """The frames of a traceback, innermost last, as `file:line function`."""
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def _json(line: dict[str, Any]) -> str:
    sane = {
        name: printable(value) if isinstance(value, str) else value for name, value in line.items()
    }
    return orjson.dumps(sane, default=printable, option=orjson.OPT_UTC_Z).decode()


def _readable(line: dict[str, Any]) -> str:
    time, level, event, *_ = line.values()
    details = "  ".join(f"{name}={printable(value)}" for name, value in list(line.items())[3:])
    return f"{time:%H:%M:%S} {level:8}{event}  {details}".rstrip()
