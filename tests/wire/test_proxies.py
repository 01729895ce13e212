"""What the proxies of the examples say to the gateway, and what they answer by themselves."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.web.wire import Heard
from tests.wire.proxies import FILES, UNTRUSTING, proxied

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
HEAD = "{} /api/v1/clients HTTP/1.1\r\nHost: gateway.example\r\n{}\r\n"
FORGED = (
    "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\nX-Forwarded-Proto: gopher\r\n"
    "X-Forwarded-Host: evil.example\r\nUpgrade: h2c\r\nX-API-Key: one\r\nX-API-Key: two\r\n"
    "Connection: close, Upgrade\r\n"
)


@dataclass
class Sink:
    """Stands where the gateway would: keeps what it is sent, answers what it is told to."""

    program: str
    answer: bytes = OK
    heard: list[bytes] = field(default_factory=list)
    proxy: int = 0
    server: asyncio.Server = field(init=False)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server.sockets[0].getsockname()[1])

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await _head(reader):
            if b"/readyz" in head:
                writer.write(OK)
                continue
            self.heard.append(head)
            writer.write(self.answer)
            if not self.answer:
                break
        writer.close()

    async def ask(self, sent: str) -> tuple[int, dict[str, str], bytes]:
        """What the proxy answers."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy, ssl=UNTRUSTING)
        writer.write(sent.encode())
        try:
            async with asyncio.timeout(5):
                head = await _head(reader)
                [(status, headers, _)] = Heard(head, closed=False).answers
                return status, headers, await reader.readexactly(int(headers["content-length"]))
        finally:
            writer.transport.abort()


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


@pytest.fixture(params=FILES)
async def sink(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Sink]:
    sink = Sink(request.param)
    sink.server = await asyncio.start_server(sink, "127.0.0.1", 0)
    try:
        async with proxied(request.param, tmp_path, sink.port, sink.port) as sink.proxy:
            yield sink
    finally:
        sink.server.close()


async def test_a_proxy_with_tls_has_browsers_come_back_over_it(sink: Sink) -> None:
    _, answered, _ = await sink.ask(HEAD.format("GET", ""))
    _, refused, _ = await sink.ask(HEAD.format("POST", "Content-Length: 70000\r\n"))
    sink.answer = b""
    status, gone, _ = await sink.ask(HEAD.format("GET", ""))
    assert status in {502, 503}
    for headers in (answered, refused, gone):
        assert headers["strict-transport-security"] == "max-age=31536000"


async def test_a_proxy_puts_its_own_word_in_place_of_the_callers(sink: Sink) -> None:
    status, _, _ = await sink.ask(HEAD.format("GET", FORGED))
    assert status == 200
    [head] = sink.heard
    first, *lines = head.decode().rstrip().split("\r\n")
    assert first == "GET /api/v1/clients HTTP/1.1"
    sent = sorted(tuple(line.lower().split(": ", 1)) for line in lines)
    told = [each for each in sent if each[0].startswith("x-") or each[0] == "upgrade"]
    assert told == [
        ("x-api-key", "one"),  # both, so that the gateway can refuse them
        ("x-api-key", "two"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "gateway.example"),
        ("x-forwarded-proto", "https"),
    ]


@pytest.mark.parametrize(
    ("header", "then"),
    [
        ("", "Check before booking again."),
        ("Idempotency-Key: k\r\n", "Ask again with the same Idempotency-Key."),
    ],
)
async def test_a_booking_whose_answer_is_lost_is_sent_once_and_said_to_be_unknown(
    sink: Sink, header: str, then: str
) -> None:
    sink.answer = b""
    sent = HEAD.format("POST", f"Content-Length: 0\r\n{header}")
    status, headers, body = await sink.ask(sent)
    assert len(sink.heard) == 1
    assert (status, headers["content-type"]) == (504, "application/json")
    assert json.loads(body) == {"message": f"Booking outcome unknown. {then}"}


async def test_a_booking_that_nobody_took_is_not_said_to_be_unknown(sink: Sink) -> None:
    sink.server.close()
    await asyncio.sleep(0)
    for method in ("POST", "GET"):
        sent = HEAD.format(method, "Content-Length: 0\r\n" if method == "POST" else "")
        status, headers, body = await sink.ask(sent)
        assert (status, headers["retry-after"]) == (503, "1")
        assert json.loads(body) == {"message": "Service temporarily unavailable"}


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (HEAD.format("POST", "Content-Length: 65537\r\n"), 413),
        (HEAD.format("GET", "Content-Length: x\r\n"), 400),
        (HEAD.format("G\1T", ""), 400),
    ],
    ids=["large", "length", "method"],
)
async def test_what_a_proxy_refuses_itself_has_the_shape_of_every_error(
    sink: Sink, sent: str, status: int
) -> None:
    found, headers, body = await sink.ask(sent)
    assert (found, sink.heard) == (status, [])
    if status != 400 or sink.program != "haproxy":  # which cannot be told what to say to these
        assert headers["content-type"] == "application/json"
        assert set(json.loads(body)) == {"message"}


async def test_http_2_is_not_spoken_even_to_who_begins_with_it(sink: Sink) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", sink.proxy, ssl=UNTRUSTING)
    # the preface of a client, and its first frame
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
    async with asyncio.timeout(5):
        assert (await reader.readexactly(12)) == b"HTTP/1.1 400"
    writer.transport.abort()
    assert sink.heard == []


async def test_what_a_proxy_refuses_has_the_shape_of_every_error(sink: Sink) -> None:
    head = "/api/v1/clients HTTP/1.1\r\nHost: x\r\n"
    refused = {
        "nginx": {
            f"TRACE {head}\r\n": 405,
            f"POST {head}Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n": 400,
        },
        "haproxy": {f"GET {head}X_API_KEY: one\r\n\r\n": 403},
    }
    for sent, expected in refused[sink.program].items():
        status, headers, body = await sink.ask(sent)
        assert (status, headers["content-type"]) == (expected, "application/json")
        assert isinstance(json.loads(body)["message"], str)
    assert sink.heard == []
