"""Reads on the wire: in pieces, cut off, endless, unasked, given up, and never too many at once."""

import asyncio
import contextlib
import math
import socket
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yarl import URL

from adapters.base import AdapterError, BackendNonsense, BackendTimeout, BackendUnavailable
from adapters.rest import reader as reading
from adapters.rest.backend import for_each
from adapters.rest.client import Client, Request
from adapters.rest.reader import LARGEST_HEAD, Reader, Received
from tests.adapters.rest.backends import ASK, WRITE, asking
from tests.adapters.rest.raw import head, http, raw
from tests.streams import Streams
from tests.waiting import until
from tests.web.test_tls import write_pair

PLAIN = http('{"a": 1}', "Link: <x>; rel=next")
CHUNKED = (
    head("Transfer-Encoding: chunked") + b'4\r\n{"a"\r\n4;x=1\r\n: 1}\r\n0\r\nX-Trailer: 1\r\n\r\n'
)
EARLY = b"HTTP/1.1 103 Early Hints\r\nContent-Type: text/plain\r\nLink: </a>\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@contextlib.asynccontextmanager
async def client_of(url: str, **more: Any) -> AsyncIterator[Client]:
    made = Client(url, **{"timeout": 5.0, **more})
    try:
        yield made
    finally:
        await made.aclose()


async def end_of(answer: bytes, **more: Any) -> Received | AdapterError:
    """What a client makes of an answer behind which the connection is closed."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    async with raw(talk) as server, client_of(server.url, **more) as client:
        try:
            return await client.read(ASK, {})
        except AdapterError as error:
            return error


def pieces(*parts: bytes, pause: float = 0.002) -> Any:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)

    return talk


@pytest.mark.parametrize(
    "answer", [PLAIN, CHUNKED, CONTINUE + PLAIN], ids=["length", "chunks", "100"]
)
async def test_an_answer_may_come_in_any_two_pieces(answer: bytes) -> None:
    talks = [pieces(answer[:cut], answer[cut:]) for cut in range(1, len(answer))]
    async with raw(*talks) as server, client_of(server.url) as client:
        for _ in talks:
            assert (await client.read(ASK, {})).body == b'{"a": 1}'


@pytest.mark.parametrize("answer", [PLAIN, CHUNKED, EARLY + PLAIN], ids=["length", "chunks", "103"])
async def test_an_answer_that_is_cut_off_is_never_taken(answer: bytes) -> None:
    whole = await end_of(answer)
    assert isinstance(whole, Received)
    assert (whole.status, whole.kind, whole.body) == (200, "application/json", b'{"a": 1}')
    ends = await asyncio.gather(*(end_of(answer[:cut]) for cut in range(len(answer))))
    assert {type(end) for end in ends} == {BackendUnavailable, BackendNonsense}


async def test_a_kept_connection_that_breaks_within_an_answer_is_not_asked_again() -> None:
    broken: list[bytes] = [b"H", PLAIN[:40], PLAIN[:-1]]
    for part in broken:
        talk = pieces(part, pause=0)
        async with raw(PLAIN, talk, PLAIN) as server, client_of(server.url) as client:
            await client.read(ASK, {})
            with pytest.raises(AdapterError):
                await client.read(ASK, {})
            assert len(server.seen) == 2


async def test_what_comes_before_the_answer_is_no_part_of_it() -> None:
    answer = await end_of(CONTINUE + EARLY + http("{}"))
    assert isinstance(answer, Received)
    assert (answer.kind, answer.link) == ("application/json", "")


async def test_an_answer_without_a_body_is_an_empty_one() -> None:
    for status in ("204 No Content", "205 Reset Content"):
        lines = () if status.startswith("204") else ("Content-Length: 0",)
        async with (
            raw(head(*lines, status=status), PLAIN) as server,
            client_of(server.url) as client,
        ):
            assert (await client.read(ASK, {})).body == b""
            assert (await client.read(ASK, {})).status == 200


REFUSED = {
    "another protocol": b"RTSP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "an old version": b"HTTP/0.9 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "a new version": b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "a switch of protocols": head("Upgrade: x", "Connection: upgrade", status="101 Switching"),
    "a status of four digits": head("Content-Length: 2", status="2000 OK") + b"{}",
    "a signed length": head("Content-Length: +2") + b"{}",
    "a negative length": head("Content-Length: -2") + b"{}",
    "a length with a blank in it": head("Content-Length: 1 2") + b"{}",
    "no number": head("Content-Length: two") + b"{}",
    "an empty length": head("Content-Length:") + b"{}",
    "a list of lengths": head("Content-Length: 2, 2") + b"{}",
    "two equal lengths": head("Content-Length: 2", "Content-Length: 2") + b"{}",
    "an immense length": head(f"Content-Length: {'9' * 30}") + b"{}",
    "a length and chunks": head("Content-Length: 2", "Transfer-Encoding: chunked")
    + b"2\r\n{}\r\n0\r\n\r\n",
    "another coding": head("Transfer-Encoding: gzip, chunked") + b"2\r\n{}\r\n0\r\n\r\n",
    "chunks twice": head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")
    + b"2\r\n{}\r\n0\r\n\r\n",
    "a coding that ends in chunked": head("Transfer-Encoding: xchunked") + b"2\r\n{}\r\n0\r\n\r\n",
    "a signed chunk": head("Transfer-Encoding: chunked") + b"+2\r\n{}\r\n0\r\n\r\n",
    "a long chunk": head("Transfer-Encoding: chunked") + b"1\r\n{}\r\n0\r\n\r\n",
    "bare line feeds": PLAIN.replace(b"\r\n", b"\n"),
    "a folded line": head("X-A: b", " c", "Content-Length: 2") + b"{}",
    "a blank before a colon": head("Content-Length : 2") + b"{}",
    "a NUL": head("X-A: b\0c", "Content-Length: 2") + b"{}",
    "two encodings": http("{}", "Content-Encoding: identity", "Content-Encoding: gzip"),
    "lines before it": b"\r\n" + PLAIN,
}


@pytest.mark.parametrize("answer", REFUSED.values(), ids=REFUSED)
async def test_what_may_be_read_in_two_ways_is_read_in_none(answer: bytes) -> None:
    assert isinstance(await end_of(answer), BackendNonsense)


def endless(begin: bytes, part: bytes) -> Any:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(begin)
        while True:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)

    return talk


@pytest.mark.parametrize(
    ("begin", "part", "said"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n", "head of the answer is larger than 16 KiB"),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 5_000, "head of the answer is larger than 16 KiB"),
        (b"HTTP/1.1 200 ", b"OK " * 100, "head of the answer is larger than 16 KiB"),
        (b"", EARLY, "the answer does not begin"),
        (head("Transfer-Encoding: chunked"), b"1\r\n \r\n" * 5_000, "larger than 2 MiB"),
        (head("Transfer-Encoding: chunked") + b"1;", b"x" * 65_536, "larger than 2 MiB"),
        (head("Transfer-Encoding: chunked") + b"0\r\nX: ", b"x" * 65_536, "larger than 2 MiB"),
    ],
    ids=["lines", "a line", "a reason", "1xx", "chunks", "an extension", "a trailer"],
)
async def test_what_does_not_end_is_cut_off(begin: bytes, part: bytes, said: str) -> None:
    async with raw(endless(begin, part)) as server, client_of(server.url, timeout=20) as client:
        with pytest.raises(BackendNonsense, match=said):
            await client.read(ASK, {})


async def test_a_head_within_its_bound_may_have_many_lines() -> None:
    lines = [f"X-{number}: {'x' * 20}" for number in range(500)]
    answer = http("{}", *lines)
    assert LARGEST_HEAD - 2_000 < len(answer) < LARGEST_HEAD
    assert isinstance(await end_of(answer), Received)


@pytest.mark.parametrize("behind", [b"{", b"\0"])
async def test_an_answer_that_is_longer_than_its_length_is_turned_down(behind: bytes) -> None:
    assert isinstance(await end_of(http("[1]") + behind), BackendNonsense)


@pytest.mark.parametrize("behind", [PLAIN, b"H"], ids=["an answer", "its begin"])
async def test_what_stands_behind_an_answer_is_nobodys(behind: bytes) -> None:
    async with raw(http("[1]") + behind, http("[2]")) as server, client_of(server.url) as client:
        assert (await client.read(ASK, {})).body == b"[1]"
        assert (await client.read(ASK, {})).body == b"[2]"
        assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (http("{}"), True),
        (http("{}", "Connection: close"), False),
        (http("{}").replace(b"/1.1", b"/1.0"), False),
        (http("{}", "Connection: keep-alive").replace(b"/1.1", b"/1.0"), True),
    ],
    ids=["1.1", "close", "1.0", "1.0 kept"],
)
async def test_a_connection_is_kept_where_both_sides_keep_it(answer: bytes, *, kept: bool) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            writer.write(answer)
            await reader.readuntil(b"\r\n\r\n")

    server = Streams(talk)
    await server.open()
    async with client_of(f"http://127.0.0.1:{server.port}") as client:
        for _ in range(3):
            await client.read(ASK, {})
        assert client._reader is not None
        assert len(client._reader.open) == int(kept)
    await server.close()


async def test_idle_connections_are_closed_the_one_that_was_used_last_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "KEPT_ALIVE", 0.3)
    async with raw(http()) as server, client_of(server.url) as client:
        await asyncio.gather(*(client.read(ASK, {}) for _ in range(4)))
        assert client._reader is not None
        open_ones = client._reader.open
        assert len(open_ones) == server.connections == 4
        for _ in range(4):
            await asyncio.sleep(0.1)
            await client.read(ASK, {})
        assert (len(open_ones), server.connections) == (1, 4)
        await until(lambda: not open_ones)


class Counting:
    """A backend that takes its time, and knows the most requests that it had at once."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.most, self.connections = seconds, 0, 0, 0
        self.server = Streams(self.talk)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while await reader.readuntil(b"\r\n\r\n"):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(self.seconds)
            self.now -= 1
            writer.write(http())

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        await self.server.open()
        try:
            yield f"http://127.0.0.1:{self.server.port}/api"
        finally:
            await self.server.close()


async def test_as_many_as_may_be_under_way_are_answered_in_one_round() -> None:
    counting = Counting(0.4)
    async with counting.listening() as url, asking(url, in_flight=64) as backend:
        began = time.monotonic()
        await asyncio.gather(*(backend.read(ASK) for _ in range(64)))
        assert time.monotonic() - began < 0.8
        assert counting.most == 64


async def test_no_more_are_asked_at_once_than_the_bound_whatever_a_call_asks_for() -> None:
    counting = Counting(0.01)
    async with counting.listening() as url, asking(url, in_flight=5) as backend:

        async def detail(number: int) -> None:
            await backend.read(ASK)

        lists = [for_each(detail, range(20)) for _ in range(5)]
        writes = [backend.write(WRITE._replace(body=None), 5.0) for _ in range(5)]
        await asyncio.gather(*lists, *writes, *(backend.read(ASK) for _ in range(5)))
        assert counting.most == 5
        assert backend._client._room.in_use == 0


async def test_a_write_takes_the_place_of_an_idle_connection() -> None:
    counting = Counting(0.05)
    async with counting.listening() as url, asking(url, in_flight=2) as backend:
        await asyncio.gather(backend.read(ASK), backend.read(ASK))
        reader = backend._client._reader
        assert reader is not None
        assert len(reader.open) == 2
        await backend.write(WRITE._replace(body=None), 5.0)
        assert len(reader.open) == 1


@pytest.mark.parametrize("value", ["a\r\nX: b", "a\nb", "a\rb", "a\0b", "\x7f"])
async def test_no_header_makes_another_one(value: str) -> None:
    async with raw(http()) as server, client_of(server.url) as client:
        for headers in ({"X-A": value}, {f"X-{value}": "a"}, {"X A": "b"}, {"": "b"}):
            with pytest.raises(BackendNonsense, match="a header of"):
                await client.read(ASK, headers)
            # nothing was sent, so the outcome of a write is known
            with pytest.raises(BackendNonsense, match="a header of"):
                await client.write(WRITE, headers, 5.0)
        assert server.seen == []


@pytest.mark.parametrize(
    "target", ["/a b", "/a\r\nX: b", "/a HTTP/1.1\r\n\r\nGET /b", "/é", "/a\tb", "/\x7f", "/a\0"]
)
async def test_no_target_makes_another_request(target: str) -> None:
    async with raw(http()) as server, client_of(server.url) as client:
        with pytest.raises(BackendNonsense, match="cannot be sent"):
            await client.read(Request(label="GET /a", method="GET", target=target), {})
        assert server.seen == []


async def test_the_mappings_headers_take_the_place_of_ours_however_they_are_written() -> None:
    async with raw(http()) as server, client_of(server.url) as client:
        await client.read(ASK, {"accept": "application/x+json", "HOST": "cloud.example.org"})
        lines = server.seen[0].lower().split("\r\n")
        assert lines.count("accept: application/x+json") == 1
        assert [each for each in lines if each.startswith(("host", "accept:"))] == [
            "host: cloud.example.org",
            "accept: application/x+json",
        ]


async def test_who_leaves_takes_the_connection_along() -> None:
    """Before a word, within the head, within the body, and while waiting for a place."""
    for part in (b"", PLAIN[:20], PLAIN[:-1]):
        gone: list[bytes] = []

        async def talk(
            reader: asyncio.StreamReader,
            writer: asyncio.StreamWriter,
            part: bytes = part,
            gone: list[bytes] = gone,
        ) -> None:
            writer.write(part)
            with contextlib.suppress(ConnectionError):
                gone.append(await reader.read())

        async with raw(talk, PLAIN) as server, client_of(server.url, in_flight=1) as client:
            first = asyncio.create_task(client.read(ASK, {}))
            await until(lambda: bool(server.seen))
            waiting = asyncio.create_task(client.read(ASK, {}))
            await asyncio.sleep(0.02)
            waiting.cancel()
            first.cancel()
            ends = await asyncio.gather(first, waiting, return_exceptions=True)
            assert {type(end) for end in ends} == {asyncio.CancelledError}
            assert client._room.in_use == 0
            assert client._reader is not None
            assert not client._reader.open
            assert (await client.read(ASK, {})).status == 200
            assert server.connections == 2


@contextlib.contextmanager
def full_socket() -> Any:
    """An address that takes no connection, and does not say so."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        yield full.getsockname()


@pytest.mark.parametrize("closes", [True, False])
async def test_a_connection_that_is_being_made_is_given_up(*, closes: bool) -> None:
    with full_socket() as (host, port):
        client = Client(f"http://{host}:{port}", timeout=5.0)
        asked = asyncio.create_task(client.read(ASK, {}))
        await until(lambda: bool(client._reader and client._reader._connecting))
        began = time.monotonic()
        if not closes:
            asked.cancel()
        await client.aclose()
        expected = BackendUnavailable if closes else asyncio.CancelledError
        with pytest.raises(expected):
            await asked
        assert time.monotonic() - began < 0.5
        await until(lambda: not client._reader._connecting)  # type: ignore[union-attr]


async def test_of_several_addresses_one_that_is_silent_leaves_time_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "CONNECT_PATIENCE", 1.0)
    async with raw(http()) as server, client_of("http://cloud.test/api") as client:
        with full_socket() as silent:
            good = ("127.0.0.1", int(server.url.split(":")[2].split("/")[0]))
            reader = client._reader = Reader(URL("http://cloud.test/api"))
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            reader._found, reader._found_until = [(*kind, silent), (*kind, good)], math.inf
            began = time.monotonic()
            assert (await client.read(ASK, {})).status == 200
            assert 0.3 < time.monotonic() - began < 1.0


async def test_of_several_addresses_one_that_this_machine_has_no_sockets_for_is_passed_over() -> (
    None
):
    async with raw(http()) as server, client_of("http://cloud.test/api") as client:
        good = ("127.0.0.1", int(server.url.split(":")[2].split("/")[0]))
        reader = client._reader = Reader(URL("http://cloud.test/api"))
        stream = (socket.SOCK_STREAM, 6, "")
        reader._found = [(999, *stream, good), (socket.AF_INET, *stream, good)]
        reader._found_until = math.inf
        assert (await client.read(ASK, {})).status == 200


async def test_a_host_name_is_looked_up_once_for_all_who_need_it_and_again_after_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, go, asked = list[Any](), asyncio.Event(), list[str]()

    async def look_up(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        await go.wait()
        if not found:
            raise socket.gaierror(socket.EAI_AGAIN, "no")
        return found

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    async with raw(http()) as server, client_of("http://cloud.test/api") as client:
        left, *calls = [asyncio.create_task(client.read(ASK, {})) for _ in range(5)]
        await until(lambda: bool(asked))
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        go.set()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(end) for end in ends} == {BackendUnavailable}
        assert asked == ["cloud.test"]
        good = ("127.0.0.1", int(server.url.split(":")[2].split("/")[0]))
        found.append((socket.AF_INET, socket.SOCK_STREAM, 6, "", good))
        await asyncio.gather(*(client.read(ASK, {}) for _ in range(5)))
        assert asked.count("cloud.test") == 2


async def test_no_connection_is_made_once_the_client_is_closed() -> None:
    """Not even in the place of a kept one that broke at that very moment."""
    async with raw(PLAIN, None, PLAIN) as server, client_of(server.url) as client:
        await client.read(ASK, {})
        reader = client._reader
        assert reader is not None
        (kept,) = reader.open
        asked = asyncio.create_task(client.read(ASK, {}))
        await asyncio.sleep(0)
        kept.connection_lost(None)
        await client.aclose()
        with pytest.raises(BackendUnavailable, match="has closed its connections"):
            await asked
        await asyncio.sleep(0.05)
        assert server.connections == 1
        assert not reader.open


async def test_a_peer_is_watched_for_signs_of_life() -> None:
    async with raw(http()) as server, client_of(server.url) as client:
        await client.read(ASK, {})
        assert client._reader is not None
        (connection,) = client._reader.open
        opened = connection._transport.get_extra_info("socket")
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 5_000


@contextlib.asynccontextmanager
async def over_tls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """A port that answers over TLS as `localhost`, whose certificate the system trusts."""
    certificate, key = write_pair(folder)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(http())
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_a_certificate_must_be_trusted_and_be_the_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with over_tls(tmp_path, monkeypatch) as port:
        async with client_of(f"https://localhost:{port}") as client:
            assert (await client.read(ASK, {})).body == b"{}"
            assert (await client.read(ASK, {})).body == b"{}"
            assert client._reader is not None
            assert len(client._reader.open) == 1
        async with client_of(f"https://localhost.:{port}") as client:
            reader = client._reader = Reader(URL(f"https://localhost.:{port}"))
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            reader._found, reader._found_until = [(*kind, ("127.0.0.1", port))], math.inf
            assert (await client.read(ASK, {})).body == b"{}"
        async with client_of(f"https://127.0.0.1:{port}") as client:
            with pytest.raises(BackendUnavailable, match="certificate is not to be trusted"):
                await client.read(ASK, {})
        monkeypatch.delenv("SSL_CERT_FILE")
        async with client_of(f"https://localhost:{port}") as client:
            with pytest.raises(BackendUnavailable, match="certificate is not to be trusted"):
                await client.read(ASK, {})


LINES = st.sampled_from(
    [
        *("Content-Length: 2", "Content-Length: 3", "Content-Length: 0", "Content-Length: x"),
        *("Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked"),
        *("Connection: close", "Connection: keep-alive", "Content-Encoding: gzip"),
        *("Content-Type: application/json", "Content-Type: text/html; charset=latin-1"),
        *("X-A: b", "X-A : b", " folded", "X-\xe9: b", ": b", "nothing"),
    ]
)
BODIES = st.sampled_from(
    [b"{}", b"{} ", b"", b"2\r\n{}\r\n0\r\n\r\n", b"2\r\n{}\r\n", b"0\r\n\r\n", b"2\n{}\n0\n\n"]
)
STATUSES = st.sampled_from(
    ["200 OK", "204 No", "404 Not Found", "302 Found", "100 C", "099 X", "200"]
)
ANSWERS = st.builds(
    lambda before, version, status, lines, ends, body: (
        before + ends.join([f"{version} {status}", *lines, "", ""]).encode("latin-1") + body
    ),
    st.sampled_from([b"", CONTINUE, b"\r\n"]),
    st.sampled_from(["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "http/1.1", "ICE/1.0"]),
    STATUSES,
    st.lists(LINES, max_size=5),
    st.sampled_from(["\r\n", "\r\n", "\r\n", "\n"]),
    BODIES,
)


async def _by_aiohttp(answer: bytes) -> tuple[int, bytes] | None:
    """What aiohttp's client makes of an answer; None where it takes none."""
    async with raw(pieces(answer, pause=0)) as server, aiohttp.ClientSession() as session:
        timeout = aiohttp.ClientTimeout(total=0.3)
        try:
            async with session.get(server.url, timeout=timeout, allow_redirects=False) as response:
                return response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError):
            return None


@given(ANSWERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_it_takes_aiohttps_client_takes_likewise(answer: bytes) -> None:
    async def both() -> tuple[Received | AdapterError, tuple[int, bytes] | None]:
        ours = await end_of(answer)
        theirs = await _by_aiohttp(answer) if isinstance(ours, Received) else None
        return ours, theirs

    ours, theirs = asyncio.run(both())
    if isinstance(ours, Received):
        assert theirs == (ours.status, ours.body)
    else:
        assert isinstance(ours, BackendNonsense | BackendTimeout | BackendUnavailable)
