"""The connections that there is no room for: each gets a short answer, and then the close.

A close alone would be a reset where the caller has sent something that nobody read, and a reset
takes the answer away that lies unread on the caller's side. So what the caller sends is read and
thrown away for a moment. What that costs is bounded: beyond it a connection is closed at once.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from socket import SHUT_WR, socket

import orjson

from gateway.contract.errors import Unavailable

# So many are listened to at once, and so many are answered in a second; the rest are closed.
MOST_AT_ONCE = 100
MOST_IN_A_SECOND = 500
# Seconds, and bytes, for which one is listened to after its answer.
LONGEST = 2.0
MOST_BYTES = 256 * 1024
_SIP = 64 * 1024


class Overflow:
    """Answers connections, and closes them; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[socket, asyncio.TimerHandle] = {}
        self._second, self._answered = 0, 0

    def __len__(self) -> int:
        return len(self._open)

    def turn_away(self, line: socket) -> None:
        """Answer, where that is possible now, and close in a moment."""
        if len(self._open) >= MOST_AT_ONCE or not self._may_answer():
            line.close()
            return
        line.setblocking(False)
        try:
            # there is room for it: nothing was sent before
            line.send(refusal())
            line.shutdown(SHUT_WR)
        except OSError:
            line.close()
            return
        loop = asyncio.get_running_loop()
        self._open[line] = loop.call_later(LONGEST, self._close, line)
        loop.add_reader(line, partial(self._listen, line, [MOST_BYTES]))

    def close(self) -> None:
        """Close all."""
        for line in list(self._open):
            self._close(line)

    def _may_answer(self) -> bool:
        second = int(self._clock())
        if second != self._second:
            self._second, self._answered = second, 0
        self._answered += 1
        return self._answered <= MOST_IN_A_SECOND

    def _listen(self, line: socket, left: list[int]) -> None:
        """Until the caller closes too, or has sent enough."""
        with suppress(BlockingIOError, InterruptedError):
            try:
                got = len(line.recv(_SIP))
            except ConnectionError:
                got = 0
            left[0] -= got
            if not got or left[0] <= 0:
                self._close(line)

    def _close(self, line: socket) -> None:
        self._open.pop(line).cancel()
        asyncio.get_running_loop().remove_reader(line)
        line.close()


def refusal() -> bytes:
    """The answer to whatever is asked: when there is room again nobody knows."""
    error = Unavailable(0)
    body = orjson.dumps(error.members())
    headers = {
        "Server": "clinic-gateway",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, no-store",
        "Vary": "X-API-Key",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Date": formatdate(usegmt=True),
        "X-Request-Id": os.urandom(16).hex(),
        **error.headers(),
        "Connection": "close",
    }
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(["HTTP/1.1 503 Service Unavailable", *lines, "", ""]).encode() + body
