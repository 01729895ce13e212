"""A head has at most 16 KiB, however it arrives."""

import asyncio
import socket
from collections.abc import Callable, Iterator

import pytest
from aiohttp.http_exceptions import LineTooLong

from gateway.web.connection import LARGEST_HEAD, READ_AHEAD, TAKEN_AT_ONCE, HeadScanner, MoreBlanks
from tests.conftest import RunningGateway
from tests.partner import Partner
from tests.waiting import until
from tests.web.test_connections import entrance
from tests.web.wire import Heard, head

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIRST = b"GET / HTTP/1.1\r\nHost: x\r\n"
CLOSING = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
BODY = b" " * 20_000


@pytest.fixture
def running_gateway(lasting_gateway: RunningGateway) -> RunningGateway:
    return lasting_gateway


@pytest.fixture
def partner(lasting_partner: Partner) -> Partner:
    return lasting_partner


def of_size(size: int, first: bytes = CLOSING, padding: bytes = b"") -> bytes:
    """A head of that many bytes, in lines that are short enough each."""
    lines, number = [first], 0
    while (left := size - sum(map(len, lines)) - 2) > 0:
        length = left if left <= 4000 else min(3900, left - 100)
        name = b"X-%02d: " % number + padding
        lines.append(name + b"a" * (length - len(name) - 2) + b"\r\n")
        number += 1
    made = b"".join(lines) + b"\r\n"
    assert len(made) == size
    return made


def whole(sent: bytes) -> Iterator[bytes]:
    yield sent


def in_pieces(sent: bytes) -> Iterator[bytes]:
    for start in range(0, len(sent), 1000):
        yield sent[start : start + 1000]


def with_a_late_end(sent: bytes) -> Iterator[bytes]:
    yield sent[:-2]
    yield sent[-2:]


async def hear(port: int, pieces: Iterator[bytes]) -> Heard:
    """What comes back until the end; each piece arrives by itself."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(0.002)
    async with asyncio.timeout(10.0):
        heard = await reader.read()
    writer.close()
    return Heard(heard, closed=True)


WAYS: list[Callable[[bytes], Iterator[bytes]]] = [whole, in_pieces, with_a_late_end]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("padding", [b"", b"   " * 200], ids=["", "padded"])
async def test_the_largest_head_is_answered_and_one_byte_more_is_431(
    running_gateway: RunningGateway, way: Callable[[bytes], Iterator[bytes]], padding: bytes
) -> None:
    fits = await hear(running_gateway.port, way(of_size(LARGEST_HEAD, padding=padding)))
    assert fits.statuses == [404]
    large = await hear(running_gateway.port, way(of_size(LARGEST_HEAD + 1, padding=padding)))
    assert large.statuses == [431]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bodied", [False, True])
async def test_a_head_behind_others_has_the_same_bound(
    partner: Partner, way: Callable[[bytes], Iterator[bytes]], bodied: bool
) -> None:
    before = FIRST + b"\r\n"
    if bodied:
        kind = "Content-Type: application/json"
        lines = (kind, f"Content-Length: {len(BODY)}")
        before = head(partner, "POST", "/api/v1/appointments", *lines) + BODY
    status = 400 if bodied else 404
    fits = await hear(partner.gateway.port, way(before * 2 + of_size(LARGEST_HEAD)))
    assert fits.statuses == [status, status, 404]
    large = await hear(partner.gateway.port, way(before * 2 + of_size(LARGEST_HEAD + 1)))
    assert large.statuses == [status, status, 431]


async def test_a_large_head_in_one_write_is_431(running_gateway: RunningGateway) -> None:
    large = FIRST + b"".join(b"X-%02d: %s\r\n" % (n, b"a" * 3900) for n in range(30)) + b"\r\n"
    assert (await hear(running_gateway.port, whole(large))).statuses == [431]


async def test_requests_by_the_hundred_in_one_write_are_all_answered(
    running_gateway: RunningGateway,
) -> None:
    sent = (FIRST + b"\r\n") * 500 + CLOSING + b"\r\n"
    assert (await hear(running_gateway.port, whole(sent))).statuses == [404] * 501


async def test_little_is_read_ahead_of_the_answers(
    running_gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = asyncio.Event()

    async def hold_back(_: object) -> float:
        await go.wait()
        return 0.0

    monkeypatch.setattr(running_gateway.gateway.public.front, "_hold_back", hold_back)
    sent = of_size(LARGEST_HEAD, FIRST) * 20 + CLOSING + b"\r\n"
    hearing = asyncio.create_task(hear(running_gateway.port, whole(sent)))
    inside = entrance(running_gateway)._inside
    await until(lambda: any(each._buffer_paused for each in inside))
    [connection] = (each for each in inside if each._buffer_paused)
    assert len(connection._messages) == READ_AHEAD
    assert len(connection._unread) <= TAKEN_AT_ONCE
    go.set()
    assert (await hearing).statuses == [404] * 21


async def test_nothing_is_read_behind_a_head_that_was_refused(partner: Partner) -> None:
    evil = head(partner, "GET", "/api/v1/appointments/types", "Connection: close")
    sent = of_size(LARGEST_HEAD + 1) + evil
    assert (await hear(partner.gateway.port, whole(sent))).statuses == [431]
    sent = FIRST + b"\r\nGET  / HTTP/1.1\r\nHost: x\r\n\r\n" + evil
    assert (await hear(partner.gateway.port, whole(sent))).statuses == [404, 400]


async def test_a_body_that_breaks_is_told_at_once_though_its_head_came_before(
    partner: Partner,
) -> None:
    lines = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    reader, writer = await asyncio.open_connection("127.0.0.1", partner.gateway.port)
    writer.write(head(partner, "POST", "/api/v1/appointments", *lines))
    front = partner.gateway.gateway.public.front
    await until(lambda: front.running == 1)
    writer.write(b"ZZ\r\n")
    async with asyncio.timeout(front.body_timeout / 2):
        assert (await reader.read()).startswith(b"HTTP/1.1 400")
    writer.close()


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 1000])
async def test_where_heads_end_does_not_depend_on_the_pieces(piece: int) -> None:
    several = [b"GET /%d HTTP/1.1\r\nHost: x\r\nX: \r\r\n\r\n" % number for number in range(9)]
    data, counted, ends, at = b"\r\n".join(several), HeadScanner(), [], 0
    while at < len(data):
        fed = data[at : at + piece]
        end, is_end = counted.take(fed, 0)
        at += end
        if is_end:
            ends.append(at)
    assert ends == [len(b"\r\n".join(several[: n + 1])) for n in range(9)]


@pytest.mark.parametrize("piece", [1, 1000, 20_000])
async def test_empty_lines_before_a_head_count_with_it(piece: int) -> None:
    largest = b"\r\n" * 3000 + of_size(LARGEST_HEAD - 6000)
    head = HeadScanner()
    found = [
        head.take(part, 0)
        for at in range(0, len(largest), piece)
        for part in [largest[at : at + piece]]
    ]
    assert [is_end for _, is_end in found] == [False] * (len(found) - 1) + [True]
    with pytest.raises(LineTooLong):
        HeadScanner().take(b"\r\n" * 3000 + of_size(LARGEST_HEAD - 5999), 0)
    with pytest.raises(LineTooLong):
        HeadScanner().take(b"\r\n" * (LARGEST_HEAD // 2 + 1), 0)


@pytest.mark.parametrize("line", [b"GET  / HTTP/1.1", b"GET /  HTTP/1.1", b"GET / a HTTP/1.1"])
@pytest.mark.parametrize("piece", [1, 7, 1000])
async def test_a_request_line_has_two_blanks(line: bytes, piece: int) -> None:
    data, counted = b"\r\n" + line + b"\r\nX: a  b  c\r\n\r\n", HeadScanner()

    def take_all() -> None:
        for start in range(0, len(data), piece):
            counted.take(data[start : start + piece], 0)

    with pytest.raises(MoreBlanks):
        take_all()


@pytest.mark.parametrize("first", [CLOSING, b"GET  / HTTP/1.1\r\n", b"GET / HTTP/9.1\r\n"])
async def test_who_still_sends_hears_the_refusal_and_no_reset(
    running_gateway: RunningGateway, first: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", running_gateway.port)
    for _ in range(20):
        writer.write(first + b"X: " + b"a" * 4000 + b"\r\n")
        await asyncio.sleep(0.005)
    async with asyncio.timeout(10):
        heard = Heard(await reader.read(), closed=True)
    assert heard.statuses in ([431], [400])
    # the gateway has said all, and listens on for a moment
    writer.write(b"a" * 4000)
    await writer.drain()
    writer.close()
    front = running_gateway.gateway.public.front
    await until(lambda: front.running == 0)


async def test_who_goes_on_behind_a_head_that_came_whole_hears_its_refusal(
    running_gateway: RunningGateway,
) -> None:
    malformed = b"GET / HTTP/1.1\r\nHost: x\r\nNot a header\r\n\r\n"
    evil = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    pieces = [malformed, *[evil] * 20, *[b"a" * 4000] * 50]
    assert (await hear(running_gateway.port, iter(pieces))).statuses == [400]


async def test_who_never_stops_sending_is_cut_off(running_gateway: RunningGateway) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", running_gateway.port)

    async def send() -> None:
        while True:
            writer.write(b"GET  / HTTP/1.1\r\n" * 1000)
            await writer.drain()

    with pytest.raises(ConnectionError):
        await asyncio.wait_for(send(), 10)
