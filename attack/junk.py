"""A flood of keys that nobody has, as fast as they are answered."""

import asyncio
import secrets
import time
from collections.abc import Iterator

from attack.base import Row
from attack.measured import struck
from attack.target import Target

# As many as keep the gateway busy all the time; each asks again once it is answered.
CONNECTIONS = 50


def flood(target: Target) -> Row:
    """Each request with another key, well-formed or not."""

    def strike(target: Target) -> Iterator[str]:
        yield f"{asyncio.run(_flood(target))} junk keys"

    return struck("junk-keys", target, strike)


async def _flood(target: Target) -> int:
    until = time.monotonic() + target.seconds
    addresses = (f"127.2.0.{number + 1}" for number in range(CONNECTIONS))
    answered = await asyncio.gather(*(_one(target, each, until) for each in addresses))
    return sum(answered)


async def _one(target: Target, source: str, until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(source, 0))
    answered = 0
    try:
        while time.monotonic() < until:
            writer.write(_request(target))
            await _refusal(reader)
            answered += 1
    finally:
        writer.close()
    return answered


def _request(target: Target) -> bytes:
    key = f"vk_{secrets.token_urlsafe(36)}"
    return f"GET {target.path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n\r\n".encode()


async def _refusal(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 401"):
        raise RuntimeError(f"a junk key was answered with {head[:12]!r}")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
