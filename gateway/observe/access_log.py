"""The access log: kept in memory for a moment, appended whole, never in the way of a call."""

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
# So many lines wait while the disk is full; then the oldest go.
MOST_WAITING = 10_000


class Access(Struct, rename="camel", gc=False, omit_defaults=True):
    """Who called what and how long it took; `operation` is empty where the path is none.

    `ms` is the whole call, `backend_ms` the part in which the practice system was asked,
    `waited_ms` the part in which it waited for room to ask. `trace_id` is there where the call is
    part of a trace.
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
    """Appends to one file; OSError where it cannot be opened. Later faults are reported."""

    def __init__(self, path: Path, events: Events) -> None:
        super().__init__(events)
        self._path = path
        self._file = _open(path)
        self._is_due = False
        self.writes = Attempts(events, "logs_unwritable", kind=OSError)

    def add(self, line: Struct) -> None:
        """One more line, written within 0.2 seconds."""
        super().add(line)
        self._soon()

    def flush(self) -> None:
        """Write what waits; where that fails it waits for the next time."""
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
        """Write the rest and let go of the file."""
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
            # half a line would spoil the next one too; other processes write here as well
            with suppress(OSError):
                end = os.lseek(self._file, 0, os.SEEK_CUR)
                if os.fstat(self._file).st_size == end:
                    os.ftruncate(self._file, end - written)
            raise OSError(f"{self._path.name} could not be written whole")


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
