"""Appends the access log to its file; lines wait in memory for a moment and delay no call."""

import asyncio
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from gateway.background import Attempts
from gateway.events import Events
from gateway.observe.json_lines import Outbox, is_in_place

ACCESS = "access.jsonl"
EVERY = 0.2
# At most so many lines wait while the disk is full; then the oldest are given up.
MOST_WAITING = 10_000


class Access(Struct, rename="camel", gc=False, omit_defaults=True):
    """A line of the access log; `operation` is empty where the path is of none.

    `ms` is the whole call, `backend_ms` the part in which the practice system was asked,
    `waited_ms` the part in which the call waited for room to ask. `trace_id` is there where the
    call is part of a trace.
    """

    time: datetime
    request_id: str
    key_id: str | None
    operation: str
    method: str
    status: int
    ms: float
    backend_ms: float
    waited_ms: float
    trace_id: str | None = None


class AccessLog(Outbox):
    """The log in one file. Raises OSError where that cannot be opened; reports later faults."""

    def __init__(self, path: Path, events: Events) -> None:
        super().__init__(events)
        self._path = path
        self._file = _open(path)
        self._is_due = False
        self.writes = Attempts(events, "logs_unwritable", kind=OSError)

    def add(self, line: Struct) -> None:
        """Queues a line, which is written within 0.2 seconds."""
        super().add(line)
        self._soon()

    def flush(self) -> None:
        """Writes what waits; where that fails it waits for the next time."""
        self._is_due = False
        self.encode()
        self.give_up(len(self) - MOST_WAITING)
        if not self.texts:
            return
        with self.writes:
            self._write(b"\n".join([*self.texts, b""]))
        if self.writes.failing:
            self._soon()
        else:
            self.remove(len(self))
            self._tell()

    def close(self) -> None:
        """Writes the rest and closes the file."""
        self.flush()
        self.give_up(len(self))
        self._tell()
        os.close(self._file)

    def _soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(EVERY, self.flush)

    def _tell(self) -> None:
        if self.missing:
            self.events.report("log_lines_lost", file=self._path.name, lines=self.missing)
            self.missing = 0

    def _write(self, data: bytes) -> None:
        if not is_in_place(self._path, self._file):
            moved, self._file = self._file, _open(self._path)
            os.close(moved)
        written = os.write(self._file, data)
        if written != len(data):
            # half a line would spoil the next one; it stays where another process wrote behind it
            with suppress(OSError):
                end = os.lseek(self._file, 0, os.SEEK_CUR)
                if os.fstat(self._file).st_size == end:
                    os.ftruncate(self._file, end - written)
            raise OSError(f"{self._path.name} could not be written whole")


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
