"""Many connections, slow ones and greedy ones, against a gateway that runs."""

import asyncio
import os
import resource
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.pipeline import shedder
from gateway.web import connection as connections
from gateway.web import connection_limiter, server
from gateway.web.connection import LARGEST_HEAD, TAKEN_AT_ONCE, WriteBufferLimit
from gateway.web.connection_limiter import ConnectionLimiter
from tests.conftest import Begin, RunningGateway, Start
from tests.partner import Partner
from tests.waiting import GENEROUS, until
from tests.web.wire import head, say
from tests.world import World

TYPES = "/api/v1/appointments/types"
CLOSE = "Connection: close"
DOCUMENT = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def held(port: int, *addresses: str, sent: bytes = b"") -> AsyncIterator[list[Line]]:
    """A connection from each of the addresses, which has sent that."""
    async with AsyncExitStack() as stack:
        lines = []
        for each in addresses:
            line = await asyncio.open_connection("127.0.0.1", port, local_addr=(each, 0))
            stack.callback(line[1].close)
            line[1].write(sent)
            lines.append(line)
        yield lines


async def ends(line: Line, seconds: float = 3.0) -> bool:
    """Whether the other side closes within that time."""
    try:
        async with asyncio.timeout(seconds):
            while await line[0].read(1 << 16):
                pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def entrance(gateway: RunningGateway) -> ConnectionLimiter:
    found: Any = gateway.gateway.public.runner.server
    return found.limiter  # type: ignore[no-any-return]


async def count(gateway: RunningGateway, most: int) -> None:
    """Wait until so many connections are inside."""
    await until(lambda: len(entrance(gateway)) == most)


def told(gateway: RunningGateway) -> dict[str, float]:
    """How many connections were turned away, by reason."""
    metrics = gateway.gateway.public.front.observers.metrics
    found = metrics.snapshot().get("gateway_connections_turned_away_total", ())
    return {each.labels[0]: each.value for each in found}


async def test_for_one_more_connection_the_longest_idle_makes_room(start_gateway: Start) -> None:
    gateway = await start_gateway(connections=4)
    async with held(gateway.port, *["127.0.0.2"] * 4) as lines:
        await count(gateway, 4)
        heard = await say(gateway.port, DOCUMENT.replace(b"x\r\n", b"x\r\nConnection: close\r\n"))
        assert heard.statuses == [200]
        assert await ends(lines[0])
        assert not await ends(lines[1], 0.05)
        assert told(gateway) == {"idle": 1.0}


async def test_who_is_being_answered_is_not_put_out(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await partner_of(World(), connections=2)
    pipeline = partner.gateway.gateway.public.front.pipeline
    hit, inside, go = pipeline.limiter.hit, asyncio.Semaphore(0), asyncio.Event()

    async def slow(key_id: str, limit: int) -> Any:
        inside.release()
        await go.wait()
        return await hit(key_id, limit)

    monkeypatch.setattr(pipeline.limiter, "hit", slow)
    monkeypatch.setattr(pipeline, "admit", lambda call: None)
    sent = head(partner, "GET", TYPES, "Connection: close")
    async with held(partner.gateway.port, "127.0.0.1", "127.0.0.1", sent=sent) as lines:
        for _ in lines:
            await inside.acquire()
        assert (await say(partner.gateway.port, sent)).statuses == [503]
        go.set()
        for reader, _ in lines:
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
        assert told(partner.gateway) == {"process": 1.0}


async def test_whoever_only_sends_what_nobody_wants_makes_room_too(start_gateway: Start) -> None:
    gateway = await start_gateway(connections=2)
    unwanted = b"POST /api/v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
    async with held(gateway.port, "127.0.0.2", "127.0.0.2", sent=unwanted) as lines:
        for reader, _ in lines:
            assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 401")
        heard = await say(gateway.port, DOCUMENT, until=b"openapi")
        assert heard.data.startswith(b"HTTP/1.1 200")


async def test_who_takes_no_answer_makes_room(
    start_gateway: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SLOW_READER", 0.1)
    gateway = await start_gateway(connections=2)
    greedy = DOCUMENT * 300
    async with held(gateway.port, "127.0.0.2", "127.0.0.2", sent=greedy):
        await until(lambda: len(entrance(gateway).write_limit._waiting) == 2)
        await asyncio.sleep(connections.SLOW_READER)
        heard = await say(gateway.port, DOCUMENT, until=b"openapi")
        assert heard.data.startswith(b"HTTP/1.1 200")
        assert told(gateway) == {"idle": 1.0}


@pytest.mark.parametrize("waits_for", ["room", "its body"])
async def test_whose_call_waits_makes_room_before_who_has_just_come(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch, waits_for: str
) -> None:
    monkeypatch.setattr(connection_limiter, "GRACE", 0.05)
    partner = await partner_of(World(), connections=3, in_flight_per_key=2)
    pipeline = partner.gateway.gateway.public.front.pipeline
    pipeline.shedder._patience = 30.0
    hit, go = pipeline.limiter.hit, asyncio.Event()

    async def slow(key_id: str, limit: int) -> Any:
        await go.wait()
        return await hit(key_id, limit)

    sent = head(partner, "GET", TYPES)
    if waits_for == "room":
        monkeypatch.setattr(pipeline.limiter, "hit", slow)
        monkeypatch.setattr(pipeline, "admit", lambda call: None)
    else:
        kind = "Content-Type: application/json"
        sent = head(partner, "POST", "/api/v1/appointments", kind, "Content-Length: 9")
    port = partner.gateway.port
    async with held(port, *["127.0.0.1"] * 3, sent=sent) as busy:
        await count(partner.gateway, 3)
        await asyncio.sleep(0.1)
        async with held(port, "127.0.0.1") as (new,):
            first = busy[-1] if waits_for == "room" else busy[0]
            assert await ends(first, GENEROUS)
            new[1].write(DOCUMENT)
            assert (await new[0].readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
            go.set()
    assert told(partner.gateway) == {"idle": 1.0}


async def test_who_sends_more_at_once_where_it_is_crowded_gets_one_answer(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await partner_of(World(), in_flight_per_key=1)
    gate = partner.gateway.gateway.public.front.pipeline.shedder
    asked = head(partner, "GET", TYPES)
    calm = await say(partner.gateway.port, asked * 2 + head(partner, "GET", TYPES, CLOSE))
    assert calm.statuses == [200, 200, 200]
    gate._patience = 0.01
    [key_id] = partner.gateway.gateway.public.front.pipeline.keys._digests
    elsewhere: Any = type("Elsewhere", (), {"key": SimpleNamespace(id=key_id)})()
    gate.inside.add(elsewhere)
    refused = await say(partner.gateway.port, asked)
    gate.leave(elsewhere)
    assert (refused.statuses, refused.closed) == ([503], True)
    crowded = await say(partner.gateway.port, asked * 3)
    assert (crowded.statuses, crowded.closed) == ([200], True)
    alone = await say(partner.gateway.port, asked, until=b"\r\n\r\n")
    assert (alone.statuses, alone.closed) == ([200], False)
    monkeypatch.setattr(shedder, "CROWDED_FOR", 0.0)
    calm = await say(partner.gateway.port, asked * 2 + head(partner, "GET", TYPES, CLOSE))
    assert calm.statuses == [200, 200, 200]


async def test_who_keeps_it_busy_without_a_key_makes_room(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await partner_of(World(), connections=2)
    pipeline = partner.gateway.gateway.public.front.pipeline
    hit, go = pipeline.limiter.hit, asyncio.Event()

    async def slow(key_id: str, limit: int) -> Any:
        await go.wait()
        return await hit(key_id, limit)

    port = partner.gateway.port
    junk = b"GET /api/v1/clients HTTP/1.1\r\nHost: x\r\n\r\n"
    async with held(port, "127.0.0.1", sent=head(partner, "GET", TYPES)) as (honest,):
        assert (await honest[0].readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
        monkeypatch.setattr(pipeline.limiter, "hit", slow)
        monkeypatch.setattr(pipeline, "admit", lambda call: None)
        honest[1].write(head(partner, "GET", TYPES, "Connection: close"))
        async with held(port, "127.0.0.1") as (busy,):
            sending = asyncio.create_task(_send(busy, junk * 50))
            await count(partner.gateway, 2)
            await asyncio.sleep(0.3)
            # between two of its calls it may be idle for an instant: it is asked while it is not
            idle_since = connections.Connection.idle_since
            monkeypatch.setattr(
                connections.Connection,
                "idle_since",
                lambda line: idle_since(line) if line.is_known else None,
            )
            assert (await say(port, DOCUMENT, until=b"openapi")).data.startswith(b"HTTP/1.1 200")
            sending.cancel()
        go.set()
        assert b"HTTP/1.1 200" in await honest[0].read()
    assert told(partner.gateway) == {"stranger": 1.0}


async def _send(line: Line, data: bytes) -> None:
    """That, without an end; what comes back is read and thrown away."""
    while True:
        line[1].write(data)
        await line[0].read(1 << 16)


async def test_an_address_holds_no_more_than_its_share(start_gateway: Start) -> None:
    gateway = await start_gateway(connections_per_address=3)
    async with held(gateway.port, *["127.0.0.2"] * 3) as lines:
        await count(gateway, 3)
        async with held(gateway.port, "127.0.0.2", "127.0.0.3") as (refused, other):
            assert await ends(refused)
            assert not await ends(other, 0.05)
        lines[0][1].close()
        await count(gateway, 2)
        async with held(gateway.port, "127.0.0.2") as (again,):
            assert not await ends(again, 0.05)
    assert told(gateway) == {"address": 1.0}


async def test_a_trusted_proxy_brings_as_many_as_it_likes(start_gateway: Start) -> None:
    gateway = await start_gateway(connections_per_address=1, trusted_proxies="127.0.0.2")
    async with held(gateway.port, *["127.0.0.2"] * 3) as lines:
        await count(gateway, 3)
        assert not await ends(lines[0], 0.05)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"\r\n\r\n\r\n",
        DOCUMENT,
        DOCUMENT + b"GET / HTTP/1.1\r\nX",
        b"POST /api/v1/appointments HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
    ],
    ids=["nothing", "half a line", "empty lines", "one request", "half of another", "half a body"],
)
async def test_whoever_is_slow_with_a_head_is_let_go_drop_by_drop_too(
    start_gateway: Start, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    limits = {"keepalive_timeout": 0.3, "lingering_time": 0.2}
    monkeypatch.setattr(connections, "LIMITS", connections.LIMITS | limits)
    gateway = await start_gateway()
    async with held(gateway.port, "127.0.0.1", "127.0.0.1", sent=sent) as (silent, dripping):

        async def drip() -> None:
            for _ in range(100):
                dripping[1].write(b"\n" if sent.endswith(b"\r\n\r\n\r\n") else b"x")
                await asyncio.sleep(0.05)

        drops = asyncio.create_task(drip())
        began = time.monotonic()
        assert await ends(silent)
        assert await ends(dripping)
        assert time.monotonic() - began < 4.0  # it drips for five seconds
        drops.cancel()
    await count(gateway, 0)


async def test_a_head_that_does_not_end_is_431_however_it_comes(
    running_gateway: RunningGateway,
) -> None:
    lines = [b"X-%d: %s\r\n" % (number, b"a" * 4000) for number in range(6)]
    assert sum(map(len, lines)) > LARGEST_HEAD
    heard = await say(running_gateway.port, b"GET / HTTP/1.1\r\nHost: x\r\n", *lines)
    assert (heard.statuses, heard.closed) == ([431], True)
    heard = await say(running_gateway.port, b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(lines))
    assert (heard.statuses, heard.closed) == ([431], True)


async def test_each_head_has_its_own_bytes(running_gateway: RunningGateway) -> None:
    half = LARGEST_HEAD // 3
    lines = [b"X-%d: %s\r\n" % (number, b"a" * (half // 2)) for number in range(4)]
    heads = [b"GET / HTTP/1.1\r\nHost: x\r\n", *lines, b"\r\n"]
    reader, writer = await asyncio.open_connection("127.0.0.1", running_gateway.port)
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(3):
        for piece in heads:
            writer.write(piece)
            await asyncio.sleep(0.005)
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 404")
    writer.close()


async def test_a_body_that_comes_in_many_pieces_is_no_large_head(partner: Partner) -> None:
    sent = head(
        partner,
        "POST",
        "/api/v1/appointments",
        "Content-Type: application/json",
        f"Content-Length: {3 * LARGEST_HEAD}",
        "Connection: close",
    )
    heard = await say(partner.gateway.port, sent, *[b" " * LARGEST_HEAD] * 3)
    assert heard.statuses == [400]


@pytest.mark.parametrize("reads", [0, 50])
async def test_whoever_takes_an_answer_too_slowly_is_cut_off(
    start_gateway: Start, reads: int
) -> None:
    gateway = await start_gateway()
    unsent = entrance(gateway).write_limit
    unsent.patience = 0.3
    async with slow_reader(gateway, DOCUMENT) as line:
        await until(lambda: unsent.bytes > 0)
        loop, began = asyncio.get_running_loop(), time.monotonic()
        while len(entrance(gateway)) and time.monotonic() - began < GENEROUS:
            if reads:
                await loop.sock_recv(line, reads)
            await asyncio.sleep(0.02)
        assert time.monotonic() - began < GENEROUS
    assert (unsent.bytes, told(gateway)) == (0, {"reader": 1.0})


async def test_an_answer_that_is_taken_in_time_is_whole_however_small_the_sips(
    start_gateway: Start,
) -> None:
    gateway = await start_gateway()
    entrance(gateway).write_limit.patience = 2.0
    async with slow_reader(gateway, DOCUMENT * 4) as line:
        loop, got = asyncio.get_running_loop(), b""
        async with asyncio.timeout(5.0):
            while got.count(b"HTTP/1.1 200") < 4 or not got.endswith(b"}"):
                got += await loop.sock_recv(line, 1 << 14)
    assert told(gateway) == {}


def small_line(listening: socket.socket) -> socket.socket:
    """A connection on which the kernel keeps little for either side."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(listening.getsockname())
    return line


async def test_an_answer_that_is_the_last_on_its_connection_is_not_kept_for_ever(
    running_gateway: RunningGateway,
) -> None:
    inside: ConnectionLimiter = running_gateway.gateway.system.runner.server.limiter  # type: ignore[union-attr]
    inside.write_limit.patience = 0.3
    with small_line(running_gateway.gateway.system.socket) as line:
        asked = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        line.sendall(asked * 9 + asked.replace(b"st\r\n", b"st\r\nConnection: close\r\n"))
        await until(lambda: len(inside) == 1)
        await asyncio.sleep(0.1)
        assert len(inside) == 1
        await until(lambda: len(inside) == 0)


@asynccontextmanager
async def slow_reader(gateway: RunningGateway, sent: bytes) -> AsyncIterator[socket.socket]:
    """Asks and takes nothing by itself."""
    with small_line(gateway.gateway.public.socket) as line:
        line.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(line, sent)
        yield line


async def test_answers_that_nobody_takes_have_so_many_bytes_in_all(start_gateway: Start) -> None:
    gateway = await start_gateway()
    unsent = entrance(gateway).write_limit
    async with slow_reader(gateway, DOCUMENT):
        await until(lambda: unsent.bytes > 0)
        unsent.most = unsent.bytes
        async with slow_reader(gateway, DOCUMENT):
            await until(lambda: told(gateway) == {"reader": 1.0})
            assert 0 < unsent.bytes <= unsent.most
            await count(gateway, 1)


async def test_no_more_is_read_than_has_room_until_the_answers_are_taken(
    start_gateway: Start,
) -> None:
    gateway = await start_gateway()
    async with slow_reader(gateway, DOCUMENT * 4000):
        await until(lambda: entrance(gateway).write_limit.bytes > 0)
        [connection] = entrance(gateway)._inside
        assert 0 < len(connection._unread) <= 2 * TAKEN_AT_ONCE


class Taking:
    """A reader who has taken most of what it was sent."""

    def __init__(self, left: int, *, is_known: bool = False) -> None:
        self.left, self.cut, self.is_known = left, False, is_known
        self.ended = asyncio.Event()

    def unsent_bytes(self) -> int:
        return self.left

    async def drained(self) -> None:
        await self.ended.wait()

    def cut_off(self) -> None:
        self.cut = True
        self.ended.set()


async def test_readers_who_have_taken_most_of_theirs_are_not_cut_off_for_what_is_gone() -> None:
    unsent = WriteBufferLimit(most=100, patience=5.0)
    readers = [Taking(40) for _ in range(5)]
    waiting = []
    for each in readers:
        waiting.append(asyncio.create_task(unsent.sent(each)))
        await asyncio.sleep(0)
        each.left = 1
    assert not any(each.cut for each in readers)
    greedy = [Taking(40) for _ in range(3)]
    waiting += [asyncio.create_task(unsent.sent(each)) for each in greedy]
    await asyncio.sleep(0)
    assert [each.cut for each in greedy] == [True, False, False]
    assert not any(each.cut for each in readers)
    for each in (*readers, *greedy):
        each.ended.set()
    await asyncio.gather(*waiting)
    assert unsent.bytes == 0


@pytest.mark.parametrize(
    ("partners", "strangers", "cut"), [((50,), (40, 40), 1), ((50, 20), (20, 20), 0)]
)
async def test_readers_without_a_key_cut_off_no_partners_who_hold_less_than_they(
    partners: tuple[int, ...], strangers: tuple[int, ...], cut: int
) -> None:
    unsent = WriteBufferLimit(most=100)
    readers = [Taking(each, is_known=True) for each in partners]
    readers += [Taking(each) for each in strangers]
    waiting = []
    for each in readers:
        waiting.append(asyncio.create_task(unsent.sent(each)))
        await asyncio.sleep(0)
    assert [number for number, each in enumerate(readers) if each.cut] == [cut]
    for each in readers:
        each.ended.set()
    await asyncio.gather(*waiting)


async def test_a_connection_brings_so_many_requests_and_no_more(
    partner: Partner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_REQUESTS", 3)
    monkeypatch.setattr(connections, "MOST_REQUESTS", 3)
    ask = head(partner, "GET", TYPES)
    reader, writer = await asyncio.open_connection("127.0.0.1", partner.gateway.port)
    closing = []
    for _ in range(3):
        writer.write(ask)
        answered = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(answered.split(b"content-length: ")[1].split(b"\r\n")[0]))
        closing.append(b"connection: close" in answered)
    assert closing == [False, False, True]
    assert await reader.read() == b""
    writer.close()


async def test_the_kernel_gives_up_who_is_gone_without_a_word(
    running_gateway: RunningGateway,
) -> None:
    async with held(running_gateway.port, "127.0.0.1"):
        await count(running_gateway, 1)
        [connection] = running_gateway.gateway.public.runner.server.connections  # type: ignore[union-attr]
        line = connection.transport.get_extra_info("socket")  # type: ignore[union-attr]
        options = {
            name: line.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in ("TCP_USER_TIMEOUT", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_NODELAY")
        }
        assert options == {
            "TCP_USER_TIMEOUT": 10_000,
            "TCP_KEEPIDLE": 30,
            "TCP_KEEPINTVL": 10,
            "TCP_NODELAY": 1,
        }
        assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


async def test_without_a_file_left_nobody_is_accepted_for_a_while_and_nothing_spins(
    running_gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PAUSE", 0.2)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, not paths
    with socket.socket() as line, socket.socket() as spare:
        highest = max(line.fileno(), spare.fileno(), opened)
        fillers = []
        while not fillers or fillers[-1].fileno() < highest:
            fillers.append(socket.socket())
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
        try:
            line.connect(("127.0.0.1", running_gateway.port))
            await until(lambda: told(running_gateway) != {})
            await asyncio.sleep(0.5)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in fillers:
            each.close()
        assert 2 <= told(running_gateway)["files"] <= 4
        await count(running_gateway, 1)
    assert (await say(running_gateway.port, DOCUMENT, until=b"openapi")).statuses[:1] == [200]


async def test_the_operations_listener_answers_while_the_public_one_is_full(
    start_gateway: Start,
) -> None:
    gateway = await start_gateway(connections=1)
    async with held(gateway.port, "127.0.0.1"):
        asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        assert (await say(gateway.gateway.system.port, asked)).statuses == [200]
