"""How the operations process hears from the workers, judges what they say and adds it up.

It asks over a socket, and each answers in JSON. A worker answers once more, unasked, when it ends;
what one that dies has not told is lost.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct, json

from gateway.background import Periodic
from gateway.observe.metrics import Series, Snapshot, lasting, merged
from gateway.purposes import NotReady, Purpose
from gateway.settings import StartRefused

# A longer path than this cannot name a socket everywhere.
LONGEST_PATH = 100
ASK_EVERY = 1.0
# Seconds that a worker has to answer, and the disk to take the figures.
PATIENCE = 0.5
CALL_AGAIN = 0.25
LARGEST = 4 * 1024 * 1024
# Of so many that are not there any more the last word is known by itself: one may come again.
MOST_GONE = 200
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
    figures: dict[str, tuple[Series, ...]]


# A worker's report, and whether it has just made it.
Answer = tuple[Report, bool]


class KeptFigures(Struct):
    """Of all that have ended, and by process id of each that may live: what it told last.

    They lie in a file for the operations process that comes next. Without it a series would fall to
    what the living have counted, and Prometheus would take all of that for new.
    """

    ended: Snapshot = {}
    each: dict[int, Snapshot] = {}


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


class Reporter(Periodic):
    """A worker's side: answers whenever it is asked, and once at the end.

    It calls, and calls again whenever nobody is there.
    """

    def __init__(self, path: Path, report: Callable[[], Awaitable[Report]]) -> None:
        self._path = path
        self._report = report
        super().__init__(CALL_AGAIN, self._call, name="report to operations", first=self._call)

    async def aclose(self) -> None:
        """Tell a last time."""
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
    """One worker's connection, and what it told last."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.last: Report | None = None
        self.answered = asyncio.Event()

    async def ask(self) -> bool:
        """Whether it answers in time; an answer that comes late is kept all the same."""
        self.answered.clear()
        with contextlib.suppress(OSError, TimeoutError):
            self.writer.write(_ASK)
            async with asyncio.timeout(PATIENCE):
                return await self.answered.wait()
        return False


class Workers:
    """The operations process's side: the workers that are there, judged and added up.

    They are heard at `path`; `own` are the operations process's figures, and `file` has what was
    counted before this process began.
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
        """Listen for the workers of this machine, and ask them now and then. StartRefused."""
        try:
            self._path.unlink(missing_ok=True)
            self._server = await asyncio.start_unix_server(
                self._listen, str(self._path), limit=LARGEST
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
        self._asking.start()

    async def aclose(self) -> None:
        """Keep what was counted once more, and listen no more."""
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
        """What each worker told last, a second ago or so."""
        return [worker.last for worker in self._workers if worker.last is not None]

    async def ask(self) -> Sequence[Answer]:
        """What each worker tells now, or told last; and whether it has just answered."""
        workers = list(self._workers)
        answered = await asyncio.gather(*(worker.ask() for worker in workers))
        return [
            (worker.last, now)
            for worker, now in zip(workers, answered, strict=True)
            if worker.last is not None
        ]

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        worker = _WorkerConnection(writer)
        self._workers.append(worker)
        try:
            writer.write(_ASK)
            while line := await reader.readline():
                worker.last = json.decode(line, type=Report)
                worker.answered.set()
        except (OSError, ValueError, DecodeError):
            pass  # it calls again
        finally:
            self._workers.remove(worker)
            writer.close()
            last = worker.last
            if last is not None and all(report.pid != last.pid for report in self.last()):
                self.ended(last)

    def ended(self, report: Report) -> None:
        """A worker is gone, or comes again: what it counted counts, once."""
        gone = self._kept.each
        gone.pop(report.pid, None)
        gone[report.pid] = lasting(report.figures)
        while len(gone) > MOST_GONE:
            self._kept.ended = merged((self._kept.ended, gone.pop(next(iter(gone)))))

    def snapshot(self, answers: Sequence[Answer]) -> Snapshot:
        """The figures of all processes together."""
        each = self._kept.each | {report.pid: report.figures for report, _ in answers}
        return merged((self._kept.ended, self._own(), *each.values()))

    async def keep(self, answers: Sequence[Answer]) -> None:
        """Have the process that comes next count on; a disk that hangs holds up nobody for long."""
        if self._keeping is None or self._keeping.done():
            living = {report.pid: lasting(report.figures) for report, _ in answers}
            before = merged((self._kept.ended, lasting(self._own())))
            kept = KeptFigures(ended=before, each=self._kept.each | living)
            self._keeping = asyncio.create_task(asyncio.to_thread(self._write, kept))
        await asyncio.wait([self._keeping], timeout=PATIENCE)

    def _write(self, kept: KeptFigures) -> None:
        """Put them there, whole; where they cannot be written the older ones stay."""
        new = self._file.with_suffix(".new")
        with contextlib.suppress(OSError):
            number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(number, "wb") as opened:
                opened.write(json.encode(kept))
            new.replace(self._file)

    async def probe(self) -> Mapping[str, Any]:
        """At least one worker can do its work."""
        return self.readiness(await self.ask())

    def readiness(self, answers: Sequence[Answer]) -> Mapping[str, Any]:
        """The workers for readiness; NotReady, with why of each, where none of them is ready.

        As long as one is, partners are answered: what does not answer takes no calls. So a purpose
        is stopped where all workers stop it.
        """
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
    """Whether a worker is ready; if not why, and for which purposes it takes no calls."""
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
