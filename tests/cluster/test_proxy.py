"""The cluster's HAProxy before nodes that die or are not ready: who is asked, what is said."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.settings import Settings
from tests.cluster.stack import proxy
from tests.streams import Streams
from tests.wire.proxies import free_port

UNKNOWN = "Booking outcome unknown."


@dataclass
class Dying:
    """Says that it is ready, and ends each connection on which something else is asked."""

    asked: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET /readyz"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        else:
            self.asked.append(head.split(b" ")[0])


@asynccontextmanager
async def proxied(folder: Path, nodes: Sequence["Dying | Able"]) -> AsyncIterator[int]:
    servers = [Streams(each.serve) for each in nodes]
    port = free_port()
    try:
        for each in servers:
            await each.open()
        with proxy(folder, port, [(each.port, each.port) for each in servers], looks="100ms"):
            yield port
    finally:
        for each in servers:
            await each.close()


async def answer(port: int, method: str, *headers: str) -> tuple[int, dict[str, str]]:
    """Status and body of a call on a connection of its own, once the proxy listens."""
    for _ in range(100):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            break
        except OSError:
            await asyncio.sleep(0.05)
    lines = [f"{method} /api/v1/appointments HTTP/1.1", "Host: x", "Content-Length: 0", *headers]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    body = await reader.readexactly(length)
    writer.close()
    await writer.wait_closed()
    return int(head[9:12]), json.loads(body)


@pytest.mark.parametrize(
    ("headers", "then"),
    [
        ((), "Check before booking again."),
        (("Idempotency-Key: k",), "Ask again with the same Idempotency-Key."),
    ],
)
async def test_a_booking_is_sent_once_and_its_outcome_is_said_to_be_unknown(
    headers: tuple[str, ...], then: str, tmp_path: Path
) -> None:
    nodes = [Dying(), Dying()]
    async with proxied(tmp_path, nodes) as port:
        assert await answer(port, "POST", *headers) == (504, {"message": f"{UNKNOWN} {then}"})
    assert [*nodes[0].asked, *nodes[1].asked] == [b"POST"]


async def test_a_read_is_asked_of_the_other_node_too(tmp_path: Path) -> None:
    nodes = [Dying(), Dying()]
    async with proxied(tmp_path, nodes) as port:
        status, said = await answer(port, "GET")
    assert (status, said) == (502, {"message": "Service temporarily unavailable"})
    assert all(b"GET" in node.asked for node in nodes)


@dataclass
class Able:
    """Says that it is ready for some purposes, and answers every call, one on each connection."""

    ready: set[str]
    asked: list[str] = field(default_factory=list)
    looks: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, path, _ = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ", 2)
        status = b"200 OK"
        if path.startswith("/readyz?for="):
            self.looks += 1
            status = b"200 OK" if path.partition("=")[2] in self.ready else b"503 Not ready"
        else:
            self.asked.append(method)
        writer.write(
            b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
        )
        await writer.drain()

    async def looked_at(self) -> None:
        """Until it has been asked often enough for the proxy to know."""
        wanted = self.looks + 8
        async with asyncio.timeout(30):
            while self.looks < wanted:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


BOTH = {"reads", "bookings"}


@pytest.mark.parametrize(
    ("first", "second", "reads", "bookings"),
    [
        (set(), BOTH, {2}, {2}),  # one that ends, or is cut off, gets nothing new
        ({"reads"}, BOTH, {1, 2}, {2}),
        ({"reads"}, {"reads"}, {1, 2}, {1, 2}),  # the shared store is down: each says so itself
        ({"reads"}, set(), {1}, {1, 2}),
        (set(), set(), {1, 2}, {1, 2}),
    ],
)
async def test_calls_go_to_those_that_are_ready_for_them_and_to_all_where_none_is(
    first: set[str], second: set[str], reads: set[int], bookings: set[int], tmp_path: Path
) -> None:
    nodes = [Able(first), Able(second)]
    async with proxied(tmp_path, nodes) as port:
        await asyncio.gather(*(node.looked_at() for node in nodes))
        for method, expected in (("GET", reads), ("POST", bookings)):
            for _ in range(8):
                assert await answer(port, method) == (200, {})
            asked = {number for number, node in enumerate(nodes, 1) if method in node.asked}
            assert asked == expected, method
    assert sum(len(node.asked) for node in nodes) == 16


async def test_a_node_that_is_ready_again_gets_calls_again(tmp_path: Path) -> None:
    nodes = [Able(set()), Able(set(BOTH))]
    async with proxied(tmp_path, nodes) as port:
        await nodes[0].looked_at()
        assert await answer(port, "GET") == (200, {})
        assert nodes[0].asked == []
        nodes[0].ready = BOTH
        await nodes[0].looked_at()
        for method in ("GET", "POST") * 8:
            assert await answer(port, method) == (200, {})
    assert {"GET", "POST"} == set(nodes[0].asked)


async def test_one_caller_holds_so_many_connections_and_is_told_so_beyond(tmp_path: Path) -> None:
    # 100 for each of two workers of two nodes: the settings' own bound, as often as they count
    most = 4 * Settings().connections_per_address
    async with proxied(tmp_path, [Able(BOTH), Able(BOTH)]) as port:
        with ExitStack() as held:
            for _ in range(most - 1):
                held.enter_context(socket.create_connection(("127.0.0.1", port), 5))
            assert await answer(port, "GET") == (200, {})
            held.enter_context(socket.create_connection(("127.0.0.1", port), 5))
            status, said = await answer(port, "GET")
            assert (status, said) == (503, {"message": "Service temporarily unavailable"})
        async with asyncio.timeout(30):
            while (await answer(port, "GET"))[0] != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
