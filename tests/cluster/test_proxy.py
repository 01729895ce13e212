"""The cluster's HAProxy before a node that dies at each call: what is sent again, what is said."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

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
async def proxied(folder: Path, nodes: list[Dying]) -> AsyncIterator[int]:
    servers = [Streams(each.serve) for each in nodes]
    port = free_port()
    try:
        for each in servers:
            await each.open()
        with proxy(folder, port, [(each.port, each.port) for each in servers]):
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
