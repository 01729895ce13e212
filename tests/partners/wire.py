"""A bad wire to a gateway: it is busy at first, and loses the answer to the first booking."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar
from urllib.parse import urlsplit

# What concerns one connection, and not the message.
_OWN = {"connection", "content-length", "host", "server", "date"}


class BadWire:
    """`busy` are the calls that were told 503, `lost` the bookings whose answer was lost."""

    def __init__(self, base: str) -> None:
        split = urlsplit(base)
        self.to, self.path = split.netloc, split.path
        self.busy: list[str] = []
        self.lost: list[int] = []
        self.base = ""


@contextmanager
def bad_wire(base: str) -> Iterator[BadWire]:
    """A wire to the gateway at that address, at an address of its own."""
    wire = BadWire(base)
    handler = type("Handler", (_Handler,), {"wire": wire})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        wire.base = f"http://127.0.0.1:{server.server_port}{wire.path}"
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield wire
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    wire: ClassVar[BadWire]

    def do_GET(self) -> None:
        if not self.wire.busy:
            self.wire.busy.append(self.path)
            self._answer(503, [("Retry-After", "1")], b"")
        else:
            self._answer(*self._asked())

    def do_POST(self) -> None:
        status, headers, body = self._asked()
        if not self.wire.lost:
            self.wire.lost.append(status)
            self.close_connection = True
        else:
            self._answer(status, headers, body)

    def _asked(self) -> tuple[int, list[tuple[str, str]], bytes]:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        there = HTTPConnection(self.wire.to, timeout=20)
        headers = {name: text for name, text in self.headers.items() if _travels(name)}
        there.request(self.command, self.path, sent or None, headers)
        answer = there.getresponse()
        status, back, body = answer.status, answer.getheaders(), answer.read()
        there.close()
        return status, [each for each in back if _travels(each[0])], body

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        for name, text in [*headers, ("Content-Length", str(len(body)))]:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: what is asked for is nobody's business."""


def _travels(name: str) -> bool:
    return name.lower() not in _OWN
