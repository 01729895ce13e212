"""Makes JSON lines, keeps them until they are written, and appends those of the access log.

Lines wait in memory for a moment and delay no call.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from gateway.background import Attempts
from gateway.events import Events

ACCESS = "access.jsonl"
EVERY = 0.2
# At most so many lines wait while the disk is full; then the oldest are given up.
MOST_WAITING = 10_000
# Lines that are encoded at once: one by one takes three times as long, and lines that wait longer
# have left the processor's cache by then.
TOGETHER = 64
_ENCODER = msgspec.json.Encoder()


def printable(value: Any) -> str:
    """Returns the value as text that UTF-8 can encode; input may have lone surrogates."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def sane(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: sane(member) for name, member in value.items()}
    if isinstance(value, list):
        return [sane(item) for item in value]
    return printable(value) if isinstance(value, str) else value


def texts(lines: Sequence[msgspec.Struct]) -> list[bytes]:
    """Returns each line as a JSON object without an end of line, whatever texts it holds."""
    try:
        data = _ENCODER.encode_lines(lines)
    except UnicodeEncodeError:
        data = _ENCODER.encode_lines([sane(msgspec.to_builtins(line)) for line in lines])
    return data.splitlines()


class Outbox:
    """Lines that wait to be written; `texts` are those encoded so far, of `size` bytes."""

    def __init__(self, events: Events) -> None:
        self.texts: list[bytes] = []
        self.size = 0
        self.missing = 0  # lines that were given up, which are reported at once
        self._fresh: list[msgspec.Struct] = []
        self.events = events

    def __len__(self) -> int:
        return len(self._fresh) + len(self.texts)

    def add(self, line: msgspec.Struct) -> None:
        fresh = self._fresh
        fresh.append(line)
        if len(fresh) == 1:
            self.on_first()
        elif len(fresh) >= TOGETHER:
            self.encode()

    def on_first(self) -> None:
        """Does what a line needs that comes while no other waits to be encoded."""

    def encode(self) -> None:
        """Encodes the new lines; one that cannot be encoded is missing, and no other for it."""
        fresh, self._fresh = self._fresh, []
        try:
            self._keep(fresh)
        except Exception:  # noqa: BLE001 - whatever it is, the others must be written
            for line in fresh:
                try:
                    self._keep([line])
                except Exception:  # noqa: BLE001 - the same
                    self.drop(1)

    def replace(self, at: int, line: bytes) -> None:
        self.size += len(line) - len(self.texts[at])
        self.texts[at] = line

    def remove(self, lines: int) -> None:
        removed, self.texts = self.texts[:lines], self.texts[lines:]
        # mostly all are removed, and there is nothing to add up
        self.size = self.size - sum(map(len, removed)) if self.texts else 0

    def give_up(self, lines: int) -> None:
        """Removes the oldest texts, which count as missing."""
        if lines > 0:
            self.remove(lines)
            self.drop(lines)

    def drop(self, lines: int) -> None:
        """Counts lines as missing that are not in here, and reports them."""
        self.missing += lines
        self.events.report("log_lines_dropped", lines=lines)

    def _keep(self, lines: Sequence[msgspec.Struct]) -> None:
        kept = texts(lines)
        self.texts += kept
        self.size += sum(map(len, kept))


def is_in_place(path: Path, file: int) -> bool:
    """Returns whether the open file still has its name, and was not moved away."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


class Access(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
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

    def on_first(self) -> None:
        """Has the lines written within 0.2 seconds."""
        if not self._is_due:
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
        """Plans the next write; called where none is due."""
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
