"""Entries on their way to the disk: kept for a moment, written many at a time, off the loop."""

import asyncio
import contextlib
import errno
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Protocol

from gateway.audit.chain import Head
from gateway.audit.entries import ANSWERED, LOST, DeedLine, Entry, Mark, Written, texts
from gateway.audit.pieces import FIRST, PIECE, pieces
from gateway.audit.writer import Writer
from gateway.contract.errors import Unavailable
from gateway.observe.lines import TOGETHER

# Seconds between two writes; a booking does not wait for the next.
EVERY = 1.0
# While the disk takes nothing, reads go on until so many entries wait, or about so many bytes of
# them, or so many seconds long.
MOST_WAITING = 10_000
MOST_BYTES = 16 << 20
LONGEST_WAIT = 60.0
# Calls that are under way when no more are let in have their entries too.
SPARE = 1_000
SPARE_BYTES = 8 << 20
# Seconds that a write may take before the disk counts as one that does not answer.
PATIENCE = 5.0
RETRY_AFTER = 5  # seconds


class Unwritten(Exception):
    """An entry is not on disk, and why."""


class Watcher(Protocol):
    """Who is told how the audit fares."""

    def failed(self, error: OSError, place: Path, reason: str) -> None:
        """Nothing can be written to that folder, and why; said once until it can be."""

    def back(self) -> None:
        """It can be written again."""

    def dropped(self, lines: int) -> None:
        """So many entries have just been given up."""

    def lost(self, lines: int) -> None:
        """So many are missing: said when it can be written again, or is let go of."""


class Buffer:
    """The entries of one process; every verb is for the event loop's thread.

    `broken` says why nothing can be written at present, and is empty otherwise. `written` is called
    with the head after each write.
    """

    def __init__(
        self,
        writer: Writer,
        watcher: Watcher,
        written: Callable[[Head], None],
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.broken = ""
        self._writer = writer
        self._watcher = watcher
        self._written = written
        self._now = now
        self._clock = clock
        # lines as they came, as text, and on their way to the disk
        self._fresh: list[Written] = []
        self._waiting: list[bytes] = []
        self._moving: list[bytes] = []
        # of all that is not on disk, kept only while nothing can be written
        self._bytes = 0
        self._on_disk = 0
        self._head: Head | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._writing = False
        self._failing_since: float | None = None
        self._missing = 0
        self._wanted = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def place(self) -> Path:
        """The audit's folder."""
        return self._writer.folder

    @property
    def waiting(self) -> int:
        """How many entries are not on disk."""
        return len(self._moving) + len(self._waiting) + len(self._fresh)

    def start(self) -> None:
        """Write what waits, again and again, until `aclose`."""
        self._task = asyncio.create_task(self._keep_writing(), name="write the audit")

    def note(self, entry: Entry) -> None:
        """One more entry, on disk within a moment."""
        if self.broken:
            self._note_for_later(entry)
            return
        self._fresh.append(entry)
        if len(self._fresh) >= TOGETHER:
            self._encode()

    def mark(self, mark: Mark) -> None:
        """What is to be said of the chain itself; it stands for as many lines as it tells of."""
        if self.broken and self.waiting >= MOST_WAITING + SPARE:
            self._missing += mark.lines
            self._watcher.dropped(mark.lines)
        else:
            self._fresh.append(mark)

    def check(self, *, creates: bool) -> None:
        """Unavailable where what a call does could not be noted, while the audit is broken."""
        failing = self._failing_since
        late = failing is not None and self._clock() - failing >= LONGEST_WAIT
        if creates or late or self.waiting >= MOST_WAITING or self._bytes >= MOST_BYTES:
            raise Unavailable(RETRY_AFTER)

    async def begin(self, entry: Entry) -> None:
        """It is on disk, and there is room for what follows from it; Unwritten where not so."""
        texts([entry])  # what cannot be written is a fault before anything is sent
        self.note(entry)
        await self.commit()
        if self.broken:
            raise Unwritten(self.broken)

    async def deed(self, line: DeedLine) -> None:
        """What somebody does is on disk before it is done; Unwritten where it cannot be."""
        texts([line])
        if self.broken and self.waiting >= MOST_WAITING:
            raise Unwritten(self.broken)
        self._fresh.append(line)
        await self.commit()
        if self.broken:
            raise Unwritten(self.broken)

    async def commit(self) -> None:
        """All that was noted so far is on disk; Unwritten where it is not, in time."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(done)
        self._wanted.set()
        try:
            async with asyncio.timeout(PATIENCE + EVERY):
                await done
        except TimeoutError as error:
            raise Unwritten("the disk does not answer") from error

    def amend(self, entry: Entry, outcome: str, reason: str) -> None:
        """The call ended otherwise than its entry says: changed, or noted again where written."""
        self._encode()
        [before] = texts([entry])
        entry.outcome, entry.reason = outcome, reason
        for lines in [self._waiting] if self._writing else [self._moving, self._waiting]:
            if before in lines:
                [lines[lines.index(before)]] = texts([entry])
                return
        self.note(entry)

    async def aclose(self) -> None:
        """Write the rest and the last line, where that is possible."""
        self._closing = True
        self._wanted.set()
        if self._task is not None:
            await self._task
        await self._flush()
        if not self.broken:
            with contextlib.suppress(OSError):
                self._written(await asyncio.to_thread(self._writer.end, self._now()))
        elif self.waiting:
            self._missing += self.waiting
            self._watcher.dropped(self.waiting)
        if self._missing:
            self._watcher.lost(self._missing)
        self._writer.close()

    def _encode(self) -> None:
        """What came is text from now on; a line that cannot be is missing, and no other for it."""
        fresh, self._fresh = self._fresh, []
        try:
            self._waiting += texts(fresh)
        except Exception:  # noqa: BLE001 - whatever it is, the audit must be written on
            for each in fresh:
                self._waiting += self._texts(each)

    def _texts(self, line: Written) -> list[bytes]:
        """Its text; none where it has none, which counts as missing."""
        try:
            return texts([line])
        except Exception:  # noqa: BLE001 - the same
            self._missing += 1
            self._watcher.dropped(1)
            return []

    def _note_for_later(self, entry: Entry) -> None:
        """One more while nothing can be written, where there is room."""
        if not self._has_room(entry):
            self._missing += 1
            self._watcher.dropped(1)
            return
        text = self._texts(entry)
        self._bytes += sum(map(len, text))
        self._encode()
        self._waiting += text

    def _has_room(self, entry: Entry) -> bool:
        spare, spare_bytes = (SPARE, SPARE_BYTES) if entry.outcome == ANSWERED else (0, 0)
        return self.waiting < MOST_WAITING + spare and self._bytes < MOST_BYTES + spare_bytes

    async def _keep_writing(self) -> None:
        while not self._closing:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY):
                    await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._flush()
            except Exception as fault:  # noqa: BLE001 - as above: the next time, then
                told = {"message": "the audit's own fault", "exception": fault}
                asyncio.get_running_loop().call_exception_handler(told)

    async def _flush(self) -> None:
        """One write of all that waits, for all who wait for it."""
        waiters, self._waiters = self._waiters, []
        missing = self._missing
        if missing:
            self._fresh.append(Mark(LOST, self._now(), lines=missing))
        self._encode()
        self._moving += self._waiting
        self._waiting = []
        self._writing = True
        try:
            room = await self._write()
        except OSError as error:
            # they hear of it only once all of this has been done
            _tell(waiters, Unwritten(reason_of(error)))
            self._unwritten(error, missing)
        except Exception as error:  # noqa: BLE001 - whatever it is, the audit must be written on
            fault = OSError(f"the audit's own fault ({type(error).__name__})")
            _tell(waiters, Unwritten("a fault of the gateway"))
            self._unwritten(fault, missing)
        else:
            _tell(waiters, None)
            self._missing -= missing
            self._failing_since = None
            self._let_go()
            self._recover(missing, room=room)
        finally:
            self._writing = False

    async def _write(self) -> bool:
        """In a thread, whether there is room for more; where the disk hangs, that is said at once.

        What failed is tried with little at first: it may fail again.
        """
        now, first = self._now(), FIRST if self._failing_since is not None else PIECE

        def write() -> bool:
            for piece in pieces(self._moving, first):
                self._head = self._writer.write(piece, now)
                self._on_disk += len(piece)
            return self._writer.has_room()

        work = asyncio.ensure_future(asyncio.to_thread(write))
        done, _ = await asyncio.wait({work}, timeout=PATIENCE)
        if not done:
            self._fail(TimeoutError("the disk does not answer"))
        return await work

    def _let_go(self) -> None:
        """Of what is on disk, be it not all."""
        del self._moving[: self._on_disk]
        self._on_disk = 0
        if self.broken:
            self._weigh()
        if self._head is not None:
            self._written(self._head)

    def _weigh(self) -> None:
        self._encode()
        self._bytes = sum(map(len, self._moving)) + sum(map(len, self._waiting))

    def _unwritten(self, error: OSError, missing: int) -> None:
        self._let_go()
        self._fail(error)
        if missing and self._moving:  # the mark that says so is made anew
            del self._moving[-1]
        elif missing:
            self._missing -= missing
            self._watcher.lost(missing)

    def _fail(self, error: OSError) -> None:
        if self._failing_since is None:
            self._failing_since = self._clock()
        self._break(error)

    def _break(self, error: OSError) -> None:
        if not self.broken:
            self._weigh()
            self._watcher.failed(error, self.place, reason_of(error))
        self.broken = reason_of(error)

    def _recover(self, missing: int, *, room: bool) -> None:
        if not room:
            self._break(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        elif self.broken:
            self.broken = ""
            self._watcher.back()
        if missing:
            self._watcher.lost(missing)


def _tell(waiters: list[asyncio.Future[None]], error: Unwritten | None) -> None:
    for each in waiters:
        if each.done():
            continue
        if error is None:
            each.set_result(None)
        else:
            each.set_exception(error)


def reason_of(error: OSError) -> str:
    """Why, in the system's words."""
    return (error.strerror or str(error)).lower()
