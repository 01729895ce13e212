"""Where the event log goes out: whoever writes a line never waits for whoever reads it.

A pipe that nobody reads is full after 64 KiB, and a plain write to it would hold the event loop for
ever. Lines that find no room wait for the next one, or for a moment; when too many do, the new ones
are dropped, and how many is said once there is room again.
"""

import asyncio
import errno
import fcntl
import os
import socket
import stat
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

# So many lines wait, and are tried again after so many seconds.
MOST_WAITING, AGAIN = 1_000, 0.2

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
            self._wait()
        except OSError:
            # a log that nobody can read any more must not fail the call that it is about
            self._waiting.clear()

    def _wait(self) -> None:
        """Try again in a moment; in a thread without an event loop with the next line."""
        if self._timer is None:
            with suppress(RuntimeError):
                self._timer = asyncio.get_running_loop().call_later(AGAIN, self._again)

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
