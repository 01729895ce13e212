"""The practice system of the comparison: as cheap as Python allows, since it is not measured.

`GET /clients/{id}` is a record of about 250 bytes: after 20 ms where the id begins with `51`, 404
where it begins with `de`. `GET /clients?limit=N` is N of them, 50 without a limit.
"""

import asyncio
import json
import re
import sys
from email.utils import formatdate
from functools import cache
from importlib import import_module

CLIENT = {
    "id": "7f1c1f7e-4f1a-4d7e-9a9b-000000000000",
    "firstName": "Maëlle",
    "lastName": "Fournier",
    "phone": "01 99 00 56 78",
    "email": "maelle.fournier@example.org",
    "address": "4 place du Marché, 96140 Clairfontelle",
    "createdAt": "2024-02-06T08:15:00Z",
    "updatedAt": "2025-07-02T14:45:00Z",
}
SLOW, SLOW_SECONDS, MISSING = b"51", 0.020, b"de"
_BEFORE, _AFTER = json.dumps(CLIENT, ensure_ascii=False).encode().split(CLIENT["id"].encode())
_ONE = re.compile(rb"GET /clients/([0-9a-f-]{36}) ")
_MANY = re.compile(rb"GET /clients(?:\?(?:.*&)?limit=(\d+)| |\?)")


def clients(count: int) -> bytes:
    """Returns that many records, as JSON."""
    ids = (f"7f1c1f7e-4f1a-4d7e-9a9b-{number:012x}" for number in range(count))
    return json.dumps([{**CLIENT, "id": each} for each in ids], ensure_ascii=False).encode()


_clients = cache(clients)


class Backend(asyncio.Protocol):
    """One connection, on which requests may follow one another without waiting."""

    date = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *requests, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for request in requests:
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        status, body, seconds = b"200 OK", b"", 0.0
        if found := _ONE.match(request):
            body = _BEFORE + found[1] + _AFTER
            seconds = SLOW_SECONDS if found[1].startswith(SLOW) else 0.0
        elif many := _MANY.match(request):
            body = _clients(int(many[1] or 50))
        if not body or (found and found[1].startswith(MISSING)):
            status, body = b"404 Not Found", b'{"message": "no such record"}'
        answer = (
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nDate: %b"
            b"\r\n\r\n%b" % (status, len(body), self.date, body)
        )
        write = self._transport.write  # type: ignore[attr-defined]
        if seconds:
            asyncio.get_running_loop().call_later(seconds, write, answer)
        else:
            write(answer)


async def serve(port: int) -> None:
    """Serves until the process ends; the date is a new one each second."""
    await asyncio.get_running_loop().create_server(Backend, "127.0.0.1", port)
    while True:
        Backend.date = formatdate(usegmt=True).encode()
        await asyncio.sleep(1)


if __name__ == "__main__":
    import_module("uvloop").run(serve(int(sys.argv[1])))
