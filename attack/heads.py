"""Heads that are too large, however they are sent, and more connections than one may hold."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from attack.base import Row
from attack.measured import struck
from attack.target import Target

CONNECTIONS = 10
# Fifty times as many bytes as a head needs, in lines that are short enough each.
LARGE = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(
    b"X-%02d: %s\r\n" % (number, b"a" * 3900) for number in range(30)
)
WAYS: Sequence[list[bytes]] = (
    [LARGE + b"\r\n"],
    [LARGE[start : start + 5000] for start in range(0, len(LARGE), 5000)],
    [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + LARGE + b"\r\n"],
)
# More than one address may hold, and not so many that none of them is answered.
CROWD = 180
RESET = "reset"


def large_heads(target: Target) -> Row:
    """Each on a connection of its own, as fast as they are refused: every one is 431."""

    def strike(target: Target) -> Iterator[str]:
        found = asyncio.run(_large(target))
        told.update(found)
        yield f"{found['431']} large heads"

    told: Counter[str] = Counter()
    row = struck("large-heads", target, strike)
    return with_others(row, told, "431")


def beyond(target: Target) -> Row:
    """One address comes with more connections than it may hold, over and over: each is answered."""

    def strike(target: Target) -> Iterator[str]:
        found = asyncio.run(_crowds(target))
        told.update(found)
        yield f"{found['404']} connections served, {found['503']} told to come later"

    told: Counter[str] = Counter()
    row = struck("refusals", target, strike)
    return with_others(row, told, "404", "503")


def with_others(row: Row, told: Counter[str], *wanted: str) -> Row:
    """The row, with a failure where anything else was heard."""
    others = {what: times for what, times in told.items() if what not in wanted}
    return replace(row, failures=(*row.failures, f"heard {others}")) if others else row


async def _large(target: Target) -> Counter[str]:
    until = time.monotonic() + target.seconds
    told: Counter[str] = Counter()

    async def one(number: int) -> None:
        while time.monotonic() < until:
            told[await _heard(target, f"127.3.0.{number + 1}", WAYS[number % len(WAYS)])] += 1

    await asyncio.gather(*map(one, range(CONNECTIONS)))
    return told


async def _crowds(target: Target) -> Counter[str]:
    until = time.monotonic() + target.seconds
    told: Counter[str] = Counter()
    asked = [b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"]
    while time.monotonic() < until:
        told.update(
            await asyncio.gather(*(_heard(target, "127.3.1.1", asked) for _ in range(CROWD)))
        )
    return told


async def _heard(target: Target, source: str, pieces: list[bytes]) -> str:
    """The status of the last answer until the close; RESET where the line was cut without one."""
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", target.port, local_addr=(source, 0)
        )
    except OSError:
        return RESET
    heard = b""
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        while got := await reader.read(1 << 16):
            heard += got
    except OSError:
        heard += b""
    finally:
        writer.transport.abort()
    last = heard.rpartition(b"HTTP/1.1 ")[2][:3].decode()
    return last or RESET
