"""A wire to a server that a test can cut: it hangs, breaks, refuses, and is whole again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Forwarder:
    """Passes bytes on between a port of its own and a server on this machine."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.connections = 0

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def hang(self) -> None:
        """Connections are taken; nothing passes any more."""
        self._flows.clear()

    def flow(self) -> None:
        """What waited passes, and what comes after it."""
        self._flows.set()

    def cut(self) -> None:
        """Every connection breaks; new ones work."""
        for writer in self._writers:
            writer.transport.abort()

    async def refuse(self) -> None:
        """Every connection breaks, and nobody listens."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()

    async def aclose(self) -> None:
        await self.refuse()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, back}
        for source, sink in ((reader, back), (there, writer)):
            pump = asyncio.create_task(self._pump(source, sink))
            self._pumps.add(pump)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                await self._flows.wait()
                sink.write(data)
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
        await made.aclose()
