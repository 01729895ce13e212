"""Many connections at once from many addresses: what each sends first, and then drop by drop."""

import asyncio
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

# So many come from one address.
OF_ONE = 100
AT_ONCE = 200
EVERY = 2.0  # seconds between two drops


def sources(connections: int) -> Iterator[str]:
    """An address of 127/8 for each connection."""
    for number in range(connections):
        group = number // OF_ONE
        yield f"127.1.{group // 250}.{group % 250 + 1}"


def within_files(connections: int) -> int:
    """That many, or as many as this process may open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 100
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        return connections
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - 100


class Crowd:
    """Connections that send `first`, then `drop` every other second, and read nothing."""

    def __init__(self, port: int, first: bytes = b"", drop: bytes = b"") -> None:
        self._port, self._first, self._drop = port, first, drop
        self._lines: list[socket.socket] = []
        self.failed = 0

    async def gather(self, connections: int) -> None:
        """Let that many come, a few hundred at a time."""
        room = asyncio.Semaphore(AT_ONCE)

        async def come(source: str) -> None:
            async with room:
                await self._come(source)

        await asyncio.gather(*map(come, sources(connections)))

    async def _come(self, source: str) -> None:
        line = socket.socket()
        line.setblocking(False)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(5):
                line.bind((source, 0))
                await loop.sock_connect(line, ("127.0.0.1", self._port))
                await loop.sock_sendall(line, self._first)
        except (OSError, TimeoutError):
            self.failed += 1
            line.close()
        else:
            self._lines.append(line)

    async def stay(self, seconds: float) -> None:
        """Send the drops for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for each in self._lines:
                with suppress(OSError):
                    each.send(self._drop)
            await asyncio.sleep(min(EVERY, max(0.0, until - time.monotonic())))

    def leave(self) -> None:
        for each in self._lines:
            each.close()
