"""Floods of calls without a key, or with keys that nobody has, as fast as they are answered."""

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
    """Each request with another key, well-formed or not, from many addresses."""
    addresses = [f"127.2.0.{number + 1}" for number in range(CONNECTIONS)]
    return _flood("junk-keys", target, addresses, [True])


def strangers(target: Target) -> Row:
    """The same from one address, and as many requests without any key."""
    return _flood("strangers", target, ["127.2.1.1"] * CONNECTIONS, [True, False])


def _flood(name: str, target: Target, addresses: list[str], keyed: list[bool]) -> Row:
    async def flooded() -> int:
        until = time.monotonic() + target.seconds
        asking = (_one(target, each, until, keyed) for each in addresses)
        return sum(await asyncio.gather(*asking))

    def strike(target: Target) -> Iterator[str]:
        yield f"{asyncio.run(flooded())} refusals on {len(addresses)} connections"

    return struck(name, target, strike)


async def _one(target: Target, source: str, until: float, keyed: list[bool]) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(source, 0))
    answered = 0
    try:
        while time.monotonic() < until:
            writer.write(_request(target, keyed=keyed[answered % len(keyed)]))
            await _refusal(reader)
            answered += 1
    finally:
        writer.close()
    return answered


def _request(target: Target, *, keyed: bool) -> bytes:
    key = f"X-API-Key: vk_{secrets.token_urlsafe(36)}\r\n" if keyed else ""
    return f"GET {target.path} HTTP/1.1\r\nHost: x\r\n{key}\r\n".encode()


async def _refusal(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 401"):
        raise RuntimeError(f"a junk key was answered with {head[:12]!r}")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
