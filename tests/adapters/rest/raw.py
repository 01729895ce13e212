"""A server that answers with whatever bytes a test says, and remembers what it was sent."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from tests.streams import Streams

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Raw:
    """Where it listens, the requests it saw (head and body), and how many connections."""

    url: str = ""
    seen: list[str] = field(default_factory=list)
    connections: int = 0


@contextlib.asynccontextmanager
async def raw(*answers: bytes | Talk | None) -> AsyncIterator[Raw]:
    """Each request gets the next answer, the last one for ever; None hangs up without a word."""
    server_state = Raw()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_state.connections += 1
        while await one(reader, writer):
            pass

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            (int(x[15:]) for x in head.lower().split("\r\n") if x.startswith("content-length:")), 0
        )
        body = (await reader.readexactly(length)).decode()
        answer = answers[min(len(server_state.seen), len(answers) - 1)]
        server_state.seen.append(head + body)
        if answer is None:
            return False
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
            return b"Content-Length" in answer and b"close" not in answer
        await answer(reader, writer)
        return False

    server = Streams(talk)
    await server.open()
    server_state.url = f"http://127.0.0.1:{server.port}/api"
    try:
        yield server_state
    finally:
        await server.close()


def http(
    body: bytes | str = b"{}", *headers: str, status: str = "200 OK", kind: str = "application/json"
) -> bytes:
    """A whole, well-formed answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + data


def head(*headers: str, status: str = "200 OK") -> bytes:
    """The head alone, without a length."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode()
