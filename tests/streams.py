"""A server of bare streams for the tests: at its end nothing of any connection is left."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Streams:
    """Listens, and runs `serve` for each connection, which is closed when that has ended."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._tasks: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self.port = 0

    async def open(self) -> None:
        """Listen, on the same port as before."""
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Every connection breaks."""
        for writer in self._tasks:
            writer.transport.abort()

    async def close(self) -> None:
        """Nobody listens any more, and every connection breaks."""
        if self._server is not None:
            self._server.close()
            self._server = None
        tasks = list(self._tasks.values())
        self.cut()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # no coroutine: one that is cancelled before its first step could close nothing
    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._run(reader, writer))
        self._tasks[writer] = task
        task.add_done_callback(lambda _: self._ended(writer))

    def _ended(self, writer: asyncio.StreamWriter) -> None:
        del self._tasks[writer]
        writer.close()

    async def _run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._serve(reader, writer)
