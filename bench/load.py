"""A small load client: keep-alive connections, one request each in turn, every answer checked.

It never sleeps, unless it `waits`: waking it is a cost of the server that sends, and more so of a
slow one; but where it never sleeps, it keeps a core for itself.
"""

import socket
import time
from collections.abc import Sequence
from itertools import cycle

CONNECTIONS = 16
PATIENCE = 10.0  # seconds


class Load:
    """Sends requests for some paths over and over, on connections that stay open."""

    def __init__(
        self,
        port: int,
        paths: Sequence[str],
        secret: str,
        connections: int = CONNECTIONS,
        *,
        waits: bool = False,
    ) -> None:
        self._requests = cycle([request_for(port, each, secret) for each in paths])
        self._sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
        for each in self._sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.settimeout(PATIENCE if waits else 0)

    def run(self, requests: int) -> None:
        """That many requests, rounded up to whole rounds; RuntimeError for any but a 200."""
        for _ in range(-(-requests // len(self._sockets))):
            for each in self._sockets:
                each.sendall(next(self._requests))
            for each in self._sockets:
                read_answer(each)

    def close(self) -> None:
        for each in self._sockets:
            each.close()


def request_for(port: int, path: str, secret: str) -> bytes:
    """One request as bytes."""
    return (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n"
        f"X-API-Key: {secret}\r\n\r\n"
    ).encode()


def read_answer(connection: socket.socket) -> bytes:
    """One whole answer's body."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode(errors="replace"))
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += _more(connection)
    return body


def _more(connection: socket.socket) -> bytes:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            data = connection.recv(1 << 18)
        except BlockingIOError:
            continue
        if not data:
            raise RuntimeError("the server closed the connection")
        return data
    raise RuntimeError("the server does not answer")
