"""How the operations process hears from the workers: it asks over a socket, each answers in JSON.

A worker answers once more, unasked, when it ends; what one that dies has not told is lost.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct, json

from gateway.observe.merged import Sample
from gateway.settings import StartRefused

# A longer path than this cannot name a socket everywhere.
LONGEST_PATH = 100
ASK_EVERY = 1.0
PATIENCE = 0.5
CALL_AGAIN = 0.25
LARGEST = 4 * 1024 * 1024
_ASK = b"?\n"


class Report(Struct, kw_only=True):
    """What a worker tells: whether it can do its work, part by part, and its figures.

    `policy` is the whole hash of what it serves by.
    """

    worker: int
    pid: int
    stopping: bool
    policy: str
    parts: dict[str, dict[str, Any]]
    figures: dict[str, tuple[Sample, ...]]


_encode, _decode = json.Encoder().encode, json.Decoder(Report).decode


@contextlib.contextmanager
def socket_in(folder: Path) -> Iterator[Path]:
    """Where the operations process is to be heard from, in that folder, also by those forked here.

    A path that is too long is shortened by way of the open folder: so nothing lies elsewhere.
    """
    path = folder / "reports.sock"
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield path
        return
    opened = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield Path(f"/proc/self/fd/{opened}") / path.name
    finally:
        os.close(opened)


class Reporter:
    """A worker's side: answers whenever it is asked, and once at the end."""

    def __init__(self, path: Path, report: Callable[[], Awaitable[Report]]) -> None:
        self._path = path
        self._report = report
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Call, and call again whenever nobody is there."""
        self._task = asyncio.create_task(self._keep_answering(), name="report to operations")

    async def aclose(self) -> None:
        """Tell a last time."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(PATIENCE), self._connection() as (_, writer):
                await self._answer(writer)

    async def _keep_answering(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                async with self._connection() as (reader, writer):
                    while await reader.readline():
                        await self._answer(writer)
            await asyncio.sleep(CALL_AGAIN)

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        writer.write(_encode(await self._report()) + b"\n")
        await writer.drain()

    @contextlib.asynccontextmanager
    async def _connection(
        self,
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_unix_connection(str(self._path))
        try:
            yield reader, writer
        finally:
            writer.close()


class _Line:
    """One worker's connection, and what it told last."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.last: Report | None = None
        self.heard = asyncio.Event()


class Reports:
    """The operations process's side: the workers that are there, and what each told last.

    `ended` is called with the last report of one that is not there any more.
    """

    def __init__(self, path: Path, ended: Callable[[Report], None]) -> None:
        self._path = path
        self._ended = ended
        self._lines: list[_Line] = []
        self._server: asyncio.Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen for the workers of this machine, and ask them now and then. StartRefused."""
        try:
            self._path.unlink(missing_ok=True)
            self._server = await asyncio.start_unix_server(
                self._met, str(self._path), limit=LARGEST
            )
            self._path.chmod(0o600)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            folder = self._path.parent.resolve()
            raise StartRefused(
                f"the socket of the processes cannot be made in {folder}: {reason};"
                " put state on a filesystem that has Unix sockets, or set workers to 1",
                "state",
            ) from error
        self._task = asyncio.create_task(self._keep_asking(), name="ask the workers")

    async def aclose(self) -> None:
        """Listen no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._server is not None:
            self._server.close()
        for line in self._lines:
            line.writer.close()

    def last(self) -> Sequence[Report]:
        """What each worker told last, a second ago or so."""
        return [line.last for line in self._lines if line.last is not None]

    async def ask(self) -> Sequence[tuple[Report, bool]]:
        """What each worker tells now, or told last; and whether it has just answered."""
        lines = list(self._lines)
        answered = await asyncio.gather(*map(_asked, lines))
        return [
            (line.last, now)
            for line, now in zip(lines, answered, strict=True)
            if line.last is not None
        ]

    async def _keep_asking(self) -> None:
        while True:
            await self.ask()
            await asyncio.sleep(ASK_EVERY)

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = _Line(writer)
        self._lines.append(line)
        try:
            writer.write(_ASK)
            while told := await reader.readline():
                line.last = _decode(told)
                line.heard.set()
        except (OSError, ValueError, DecodeError):
            pass  # it calls again
        finally:
            self._lines.remove(line)
            writer.close()
            if line.last is not None and not self._is_there(line.last.pid):
                self._ended(line.last)

    def _is_there(self, pid: int) -> bool:
        return any(each.last is not None and each.last.pid == pid for each in self._lines)


async def _asked(line: _Line) -> bool:
    """Whether it answers in time; an answer that comes late is kept all the same."""
    line.heard.clear()
    try:
        line.writer.write(_ASK)
        async with asyncio.timeout(PATIENCE):
            await line.heard.wait()
    except (OSError, TimeoutError):
        return False
    return True
