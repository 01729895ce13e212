"""A wire to a server that a test can cut: it hangs, breaks, refuses, and is whole again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.streams import Streams


class Forwarder:
    """Passes bytes on between a port of its own and a server on this machine."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._flows = asyncio.Event()
        self._flows.set()
        self._streams = Streams(self._serve)
        self.connections = 0

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._streams.port

    async def listen(self) -> None:
        await self._streams.open()

    def hang(self) -> None:
        """Connections are taken; nothing passes any more."""
        self._flows.clear()

    def flow(self) -> None:
        """What waited passes, and what comes after it."""
        self._flows.set()

    def cut(self) -> None:
        """Every connection breaks; new ones work."""
        self._streams.cut()

    async def refuse(self) -> None:
        """Every connection breaks, and nobody listens."""
        await self._streams.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        finally:
            back.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self._flows.wait()
                sink.write(data)
        finally:
            sink.close()
        with suppress(ConnectionError):
            await sink.wait_closed()


@asynccontextmanager
async def forwarder(port: int) -> AsyncIterator[Forwarder]:
    """A forwarder to that port, listening."""
    made = Forwarder(port)
    await made.listen()
    try:
        yield made
    finally:
        await made.refuse()
