"""Stand-ins for gateways behind a proxy, and a partner that asks through it."""

import asyncio
import json
from dataclasses import dataclass, field


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
