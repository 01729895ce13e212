"""Keeps the audit's lines in memory for a moment and writes them, many at a time, in a thread."""

import asyncio
import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from gateway.audit import entries
from gateway.audit.chains import lock, sync_folder
from gateway.audit.entries import AuditSecret, ChainHead, DeedLine, Entry, Mark, seal
from gateway.background import Periodic
from gateway.contract.errors import Unavailable
from gateway.events import Events
from gateway.identity import reason_of
from gateway.observe.lines import Outbox, is_in_place, texts

# Seconds between two writes; a booking does not wait for the next.
EVERY = 1.0
# While the disk takes nothing, reads go on until so many entries wait, or about so many bytes of
# them, or for so many seconds.
MOST_WAITING = 10_000
MOST_BYTES = 16 << 20
LONGEST_WAIT = 60.0
# Room for the entries of calls that are under way when no more are let in.
SPARE = 1_000
SPARE_BYTES = 8 << 20
# Seconds after which a disk that is written to counts as one that does not answer.
PATIENCE = 5.0
# Bytes that are written at once, and by how many a disk that took nothing is tried.
PIECE, FIRST = 1 << 20, 1 << 15
# Seconds by which the wall clock must depart from the steady one to be noted as set.
STEP = 2.0
# Bytes that must be free on the disk before a booking may begin.
ROOM = 1 << 20


@dataclass(eq=False)
class Writer:
    """The writer of one process's chain, with a file for each day (UTC); for one thread at a time.

    It appends lines whole and synced, or not at all. `head` is the last line. A lock on the file
    tells other processes that it is still being written.
    """

    folder: Path
    chain: str
    secret: Callable[[], AuditSecret]
    began: datetime
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._sealing: AuditSecret | None = None
        self._ahead = self.began.timestamp() - self.clock()
        self.head = ChainHead()
        # the day's file, whether it is locked, its bytes in whole lines, whether it may have more
        self._day = date.min
        self._file: int | None = None
        self._locked = False
        self._size = 0
        self._spoilt = False

    def write(self, lines: Sequence[bytes], now: datetime) -> None:
        """Appends and syncs the lines; raises OSError where none of them counts."""
        now = now.astimezone(UTC)
        # a clock that is set back begins no file
        file = self._file
        if file is None or now.date() > self._day:
            self._mend()
            file = self._open(now.date())
        elif not self._locked:  # somebody else held the lock for long
            self._locked = lock(file, tries=1)
        secret, ahead = self.secret(), now.timestamp() - self.clock()
        marks = []
        # nosemgrep: digests-are-compared-in-constant-time - both are our own, neither is a guess
        if not self._size or secret != self._sealing:
            day, key = str(self._day), secret.id
            marks.append(Mark(entries.BEGIN, now, chain=self.chain, day=day, key=key))
        if abs(ahead - self._ahead) > STEP:
            marks.append(Mark(entries.CLOCK, now, seconds=round(ahead - self._ahead, 3)))
        if not marks and not lines:
            return
        data, head = seal([*texts(marks), *lines], self.head, secret)
        if not is_in_place(self._path(self._day), file):
            # somebody moved the file away; verification will report what is missing
            file = self._open(self._day)
            self._spoilt = False
        self._append(file, data)
        self.head, self._sealing, self._ahead = head, secret, ahead

    def end(self, now: datetime) -> None:
        """Writes the last line, which says that the process ended in order. Raises OSError."""
        self.write(texts([Mark(entries.END, now)]), now)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)

    def _path(self, day: date) -> Path:
        return self.folder / f"{day}.{self.chain}.jsonl"

    def _open(self, day: date) -> int:
        """Opens and locks the day's file, and closes the one before. Raises OSError."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        file = os.open(self._path(day), flags, 0o600)
        self._locked = lock(file)
        sync_folder(self.folder)
        self.close()
        self._file, self._day, self._size = file, day, os.fstat(file).st_size
        return file

    def _append(self, file: int, data: bytes) -> None:
        """Appends and syncs the data; cuts off what this or an earlier failed write left."""
        self._mend()
        self._spoilt = True
        try:
            written = os.write(file, data)
            while written < len(data):
                # writing the rest raises the reason why it does not fit
                written += os.write(file, data[written:])
            os.fdatasync(file)
        except OSError:
            with contextlib.suppress(OSError):
                self._mend()
            raise
        self._spoilt = False
        self._size += len(data)

    def _mend(self) -> None:
        if self._spoilt and self._file is not None:
            os.ftruncate(self._file, self._size)
            self._spoilt = False


class Unwritten(Exception):
    """Raised where an entry is not on disk; its text says why."""


@dataclass(eq=False)
class Buffer(Periodic):
    """The lines of one process that wait to be written; for the event loop's thread."""

    writer: Writer
    events: Events
    now: Callable[[], datetime]
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.broken = ""  # why nothing can be written at present
        self._outbox = Outbox(self.events)
        # how many of its texts are being written, and how many are on disk
        self._moving = self._on_disk = 0
        # why the next write failed, or nothing
        self._next: asyncio.Future[str] = asyncio.Future()
        self._failing_since: float | None = None
        super().__init__(
            EVERY, self._flush, self.events, name="write the audit", failed="fault_outside_call"
        )

    @property
    def waiting(self) -> int:
        """The number of lines that are not on disk yet."""
        return len(self._outbox)

    def note(self, line: Entry | Mark) -> None:
        """Queues a line for the next write, or counts it as missing where there is no room."""
        if not self.broken:
            self._outbox.add(line)
            return
        is_late = isinstance(line, Mark) or line.outcome == entries.ANSWERED
        if self._has_room(*((SPARE, SPARE_BYTES) if is_late else (0, 0))):
            self._outbox.add(line)
            self._outbox.encode()  # its bytes count
        else:
            self._outbox.drop(line.lines if isinstance(line, Mark) else 1)

    def check(self, *, creates: bool) -> None:
        """Raises Unavailable where what a call did or showed could not be written."""
        if self.broken and (creates or self.is_full):
            raise Unavailable(EVERY)

    @property
    def is_full(self) -> bool:
        """Whether so many entries wait, or for so long, that even reads must be refused."""
        failing = self._failing_since
        late = failing is not None and self.clock() - failing >= LONGEST_WAIT
        return late or not self._has_room()

    def _has_room(self, spare: int = 0, spare_bytes: int = 0) -> bool:
        return self.waiting < MOST_WAITING + spare and self._outbox.size < MOST_BYTES + spare_bytes

    async def begin(self, line: Entry | DeedLine) -> None:
        """Writes a line at once; raises Unwritten unless it is on disk and others can follow it."""
        texts([line])  # a line that cannot be encoded raises before anything is done
        if self.broken and not self._has_room():
            raise Unwritten(self.broken)
        self._outbox.add(line)
        await self.commit()
        if self.broken:
            raise Unwritten(self.broken)

    async def commit(self) -> None:
        """Waits until all lines so far are on disk; raises Unwritten where they are not in time."""
        self.soon()
        try:
            async with asyncio.timeout(PATIENCE + EVERY):
                reason = await asyncio.shield(self._next)
        except TimeoutError as error:
            raise Unwritten("the disk does not answer") from error
        if reason:
            raise Unwritten(reason)

    def amend(self, entry: Entry, outcome: str, reason: str) -> None:
        """Changes how the entry's call ended; adds a second line where the first may be on disk."""
        self._outbox.encode()
        [before] = texts([entry])
        entry.outcome, entry.reason = outcome, reason
        try:
            at = self._outbox.texts.index(before, self._moving)
        except ValueError:
            self.note(entry)
        else:
            [after] = texts([entry])
            self._outbox.replace(at, after)

    async def aclose(self) -> None:
        """Writes the rest and the last line where possible; reports the lines that are lost."""
        await self.finish()
        await self._flush()
        if not self.broken:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self.writer.end, self.now())
        elif self.waiting:
            self._outbox.drop(self.waiting)
        if self._outbox.missing:
            self.events.report("audit_entries_lost", lines=self._outbox.missing)
        self.writer.close()

    async def _flush(self) -> None:
        """Writes all lines that wait, and tells those who wait for it how that went."""
        written, self._next = self._next, asyncio.Future()
        self._outbox.encode()
        missing, error, has_room = self._outbox.missing, None, False
        lines, self._on_disk = list(self._outbox.texts), 0
        self._moving = len(lines)
        if missing:
            lines += texts([Mark(entries.LOST, self.now(), lines=missing)])
        try:
            has_room = await self._write(lines)
        except OSError as unwritten:
            error = unwritten
        except Exception as fault:  # noqa: BLE001 - whatever it is, the audit must be written on
            error = OSError(f"the audit's own fault ({type(fault).__name__})")
        # whoever waits is resumed only once all of this has been done
        written.set_result(reason_of(error) if error else "")
        # a part may be on disk where not all is; a mark that is not will be made anew
        reported = missing if self._on_disk > self._moving else 0
        self._outbox.remove(min(self._on_disk, self._moving))
        self._moving = 0
        self._outbox.missing -= reported
        self._tell(error, has_room=has_room)
        if reported:
            self.events.report("audit_entries_lost", lines=reported)

    def _tell(self, error: OSError | None, *, has_room: bool) -> None:
        if error is not None:
            self._break(error)
            return
        self._failing_since = None
        if not has_room:
            self._break(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), failing=False)
        elif self.broken:
            self.broken = ""
            self.events.report("audit_writable")

    async def _write(self, lines: Sequence[bytes]) -> bool:
        """Writes the lines in a thread; returns whether the disk has room for more."""
        # after a failure a little is tried first: it may fail again
        now, first = self.now(), FIRST if self._failing_since is not None else PIECE

        def write() -> bool:
            for piece in _pieces(lines, first):
                self.writer.write(piece, now)
                self._on_disk += len(piece)
            disk = os.statvfs(self.writer.folder)
            return disk.f_bavail * disk.f_frsize >= ROOM

        work = asyncio.ensure_future(asyncio.to_thread(write))
        done, _ = await asyncio.wait({work}, timeout=PATIENCE)
        if not done:
            self._break(TimeoutError("the disk does not answer"))
        return await work

    def _break(self, error: OSError, *, failing: bool = True) -> None:
        if failing and self._failing_since is None:
            self._failing_since = self.clock()
        if not self.broken:
            self._outbox.encode()  # its bytes count from now on
            text, kind = f"{self.writer.folder}: {reason_of(error)}", type(error).__name__
            self.events.report("audit_unwritable", said=text, error=kind)
        self.broken = reason_of(error)


def _pieces(lines: Sequence[bytes], first: int) -> Iterator[Sequence[bytes]]:
    """Yields the lines in pieces: the first of at most `first` bytes, the others of at most PIECE.

    A longer line is a piece of its own. There is at least one piece, even without lines.
    """
    begin, size, most = 0, 0, first
    for at, line in enumerate(lines):
        size += len(line)
        if size > most and at > begin:
            yield lines[begin:at]
            begin, size, most = at, len(line), PIECE
    yield lines[begin:]
