"""Brings the workers' reports to the operations process, which judges them and adds them up.

It asks over a socket, and each worker answers in JSON, and once more when it ends. What a worker
has counted since its last report is lost where it dies.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct, json

from gateway.background import Periodic
from gateway.identity import reason_of
from gateway.observe.metrics import Series, Snapshot, lasting, merged
from gateway.purposes import NotReady, Purpose
from gateway.settings import StartRefused

# The longest path that names a socket on every system.
LONGEST_PATH = 100
ASK_EVERY = 1.0
# Seconds that a worker has to answer, and the disk to take the figures.
PATIENCE = 0.5
CALL_AGAIN = 0.25
LARGEST = 4 * 1024 * 1024
# The reports that are kept apart of workers that are gone, for one may come again.
MOST_GONE = 200
_ASK = b"?\n"


class Report(Struct, kw_only=True):
    """What a worker tells: the state of its parts, its figures, and the hash of its policy."""

    worker: int
    pid: int
    stopping: bool
    policy: str
    parts: dict[str, dict[str, Any]]
    figures: dict[str, tuple[Series, ...]]


# A worker's last report, and whether it is an answer to the last question.
Answer = tuple[Report, bool]


class KeptFigures(Struct):
    """The last figures of all workers that ended, and of `each` other one by its process id.

    A file keeps them for the next operations process. Without them a series would fall to the
    counts of the live workers, which Prometheus would take for new.
    """

    ended: Snapshot = {}
    each: dict[int, Snapshot] = {}


@contextlib.contextmanager
def socket_in(folder: Path) -> Iterator[Path]:
    """Yields the path of the reports' socket in that folder, also for forked processes.

    A path that is too long is shortened by way of the open folder.
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


class Reporter(Periodic):
    """A worker's side: connects, answers whenever it is asked, and once more at the end."""

    def __init__(self, path: Path, report: Callable[[], Awaitable[Report]]) -> None:
        self._path = path
        self._report = report
        super().__init__(CALL_AGAIN, self._call, name="report to operations", first=self._call)

    async def aclose(self) -> None:
        """Sends a last report."""
        if self._task is None:
            return
        await super().aclose()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                _, writer = await asyncio.open_unix_connection(str(self._path))
                with contextlib.closing(writer):
                    await self._answer(writer)

    async def _call(self) -> None:
        reader, writer = await asyncio.open_unix_connection(str(self._path))
        with contextlib.closing(writer):
            while await reader.readline():
                await self._answer(writer)

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        writer.write(json.encode(await self._report()) + b"\n")
        await writer.drain()


class _WorkerConnection:
    """The connection of a worker, and its last report."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.last: Report | None = None
        self.answered = asyncio.Event()

    async def ask(self) -> bool:
        """Asks the worker; returns whether it answers in time. A late answer is kept too."""
        self.answered.clear()
        with contextlib.suppress(OSError, TimeoutError):
            self.writer.write(_ASK)
            async with asyncio.timeout(PATIENCE):
                return await self.answered.wait()
        return False


class Workers:
    """The operations process's side: the workers' reports, judged and added up.

    Workers connect at `path`. `own` gives the operations process's figures, and `file` keeps the
    figures for the next one.
    """

    def __init__(self, path: Path, file: Path, own: Callable[[], Snapshot], wanted: int) -> None:
        self._path = path
        self._file = file
        self._own = own
        self._wanted = wanted
        self._workers: list[_WorkerConnection] = []
        self._server: asyncio.Server | None = None
        self._asking = Periodic(ASK_EVERY, self.ask, name="ask the workers", first=self.ask)
        try:
            self._kept = json.decode(file.read_bytes(), type=KeptFigures)
        except (OSError, DecodeError):
            self._kept = KeptFigures()
        self._keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listens for workers, and asks them each second; raises StartRefused where it cannot."""
        try:
            self._path.unlink(missing_ok=True)
            self._server = await asyncio.start_unix_server(
                self._listen, str(self._path), limit=LARGEST
            )
            self._path.chmod(0o600)
        except OSError as error:
            folder = self._path.parent.resolve()
            raise StartRefused(
                f"the socket of the processes cannot be made in {folder}: {reason_of(error)};"
                " put state on a filesystem that has Unix sockets, or set workers to 1",
                "state",
            ) from error
        self._asking.start()

    async def aclose(self) -> None:
        """Keeps the figures once more, and stops listening."""
        try:
            if self._server is not None:
                await self.keep(await self.ask())
        finally:
            if self._server is not None:
                self._server.close()
            await self._asking.aclose()
            for worker in self._workers:
                worker.writer.close()

    def last(self) -> Sequence[Report]:
        """Returns the last report of each worker, from about a second ago."""
        return [worker.last for worker in self._workers if worker.last is not None]

    async def ask(self) -> Sequence[Answer]:
        """Asks every worker; returns the last report of each, and whether it has just answered."""
        workers = list(self._workers)
        answered = await asyncio.gather(*(worker.ask() for worker in workers))
        return [
            (worker.last, now)
            for worker, now in zip(workers, answered, strict=True)
            if worker.last is not None
        ]

    async def figures(self) -> Snapshot:
        """Returns the figures of all processes, kept first: none falls below what is seen."""
        answers = await self.ask()
        shown = self.snapshot(answers)
        await self.keep(answers)
        return shown

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        worker = _WorkerConnection(writer)
        self._workers.append(worker)
        try:
            writer.write(_ASK)
            while line := await reader.readline():
                worker.last = json.decode(line, type=Report)
                worker.answered.set()
        except (OSError, ValueError, DecodeError):
            pass  # it connects again
        finally:
            self._workers.remove(worker)
            writer.close()
            last = worker.last
            if last is not None and all(report.pid != last.pid for report in self.last()):
                self.ended(last)

    def ended(self, report: Report) -> None:
        """Keeps the figures of a worker that is gone, once even if it comes again."""
        gone = self._kept.each
        gone.pop(report.pid, None)
        gone[report.pid] = lasting(report.figures)
        while len(gone) > MOST_GONE:
            self._kept.ended = merged((self._kept.ended, gone.pop(next(iter(gone)))))

    def snapshot(self, answers: Sequence[Answer]) -> Snapshot:
        """Returns the figures of all processes together."""
        each = self._kept.each | {report.pid: report.figures for report, _ in answers}
        return merged((self._kept.ended, self._own(), *each.values()))

    async def keep(self, answers: Sequence[Answer]) -> None:
        """Writes the figures for the next operations process; waits up to PATIENCE for the disk."""
        if self._keeping is None or self._keeping.done():
            living = {report.pid: lasting(report.figures) for report, _ in answers}
            before = merged((self._kept.ended, lasting(self._own())))
            kept = KeptFigures(ended=before, each=self._kept.each | living)
            self._keeping = asyncio.create_task(asyncio.to_thread(self._write, kept))
        await asyncio.wait([self._keeping], timeout=PATIENCE)

    def _write(self, kept: KeptFigures) -> None:
        """Replaces the file as a whole; leaves the older one where it cannot be written."""
        new = self._file.with_suffix(".new")
        with contextlib.suppress(OSError):
            number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(number, "wb") as opened:
                opened.write(json.encode(kept))
            new.replace(self._file)

    async def probe(self) -> Mapping[str, Any]:
        """Returns the state of each worker; raises NotReady, with all reasons, where none is ready.

        A worker that does not answer takes no calls either. So a purpose is stopped only where all
        workers stop it.
        """
        answers = await self.ask()
        each = [_status(*answer) for answer in sorted(answers, key=lambda pair: pair[0].worker)]
        if not any(status["ready"] for status in each):
            numbers: dict[str, list[int]] = {}
            for status in each:
                numbers.setdefault(status["reason"], []).append(status["worker"])
            reasons = [
                f"worker{'s' if len(workers) > 1 else ''} {', '.join(map(str, workers))}: {reason}"
                for reason, workers in numbers.items()
            ]
            stopped = [p for p in Purpose if all(p in status["stops"] for status in each)]
            raise NotReady("; ".join(reasons) or "no worker answers", stopped)
        return {"wanted": self._wanted, "running": len(each), "each": each}


def _status(report: Report, now: bool) -> dict[str, Any]:
    """Returns whether a worker is ready; if not why, and for which purposes it takes no calls."""
    ill = {name: part for name, part in report.parts.items() if not part["ready"]}
    stops = {purpose for part in report.parts.values() for purpose in part.get("stops", ())}
    reason = None
    if not now or report.stopping:
        reason = "it is shutting down" if now else "it does not answer"
        stops = set(Purpose)
    elif ill:
        name, part = next(iter(ill.items()))
        reason = f"{name}: {part.get('reason', 'not ready')}"
    why = {"stops": [p for p in Purpose if p in stops], "reason": reason} if reason else {}
    return {
        "worker": report.worker,
        "pid": report.pid,
        "ready": reason is None,
        **why,
        "parts": report.parts,
    }
