"""A practice system that speaks HTTP, and all that it may do to a gateway."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from examples.json_cloud.backend import Cloud
from tests.adapters.rest.cloud import listening, new_cloud
from tests.streams import Streams

# What it answers instead of the truth, to whatever is asked but a login.
Ill = Callable[[asyncio.StreamWriter], Awaitable[None]]


class IllBackend:
    """The example's cloud behind a port of its own, where it fails as a test says.

    While `ill` is set no call but a login gets to the cloud. `asked` counts connections.
    """

    def __init__(self, cloud: Cloud, inside: str) -> None:
        self.cloud = cloud
        self._host, _, self._port = inside.removeprefix("http://").partition("/")[0].partition(":")
        self._streams = Streams(self._meet)
        self.ill: Ill | None = None
        self.asked = 0

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._streams.port

    async def open(self) -> None:
        """Listen, on the same port as before."""
        await self._streams.open()

    async def close(self) -> None:
        """Nobody listens any more."""
        await self._streams.close()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        head = await reader.readuntil(b"\r\n\r\n")
        if self.ill is not None and b"/session " not in head:
            await self.ill(writer)
        else:
            await self._pass(head, reader, writer)

    async def _pass(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One question and its answer."""
        there, back = await asyncio.open_connection(self._host, int(self._port))
        try:
            lines = head.split(b"\r\n")
            back.write(b"\r\n".join([lines[0], b"Connection: close", *lines[1:]]))
            lengths = [x for x in lines if x.lower().startswith(b"content-length:")]
            back.write(await reader.readexactly(int(lengths[0][15:]) if lengths else 0))
            while data := await there.read(1 << 16):
                writer.write(data)
                await writer.drain()
        finally:
            back.transport.abort()


@contextlib.asynccontextmanager
async def ill_backend() -> AsyncIterator[IllBackend]:
    """One that is well so far."""
    async with listening(cloud := new_cloud()) as inside:
        backend = IllBackend(cloud, inside)
        await backend.open()
        try:
            yield backend
        finally:
            await backend.close()


def says(answer: bytes) -> Ill:
    """These bytes, and hangs up."""

    async def talk(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    return talk


def for_ever(begin: bytes, drop: bytes, pause: float = 0.0) -> Ill:
    """That beginning, then drop after drop."""

    async def talk(writer: asyncio.StreamWriter) -> None:
        writer.write(begin)
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(pause)

    return talk


async def silent(writer: asyncio.StreamWriter) -> None:
    """Takes the question and says nothing."""
    await asyncio.sleep(60)


async def resets(writer: asyncio.StreamWriter) -> None:
    """Breaks the connection."""
    writer.transport.abort()
