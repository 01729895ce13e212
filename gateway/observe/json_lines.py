"""A file of JSON lines: kept in memory for a moment, appended whole, never in the way of a call."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from gateway.events import Events

EVERY = 0.2
# So many lines are made text at once: one by one costs thrice as much, and what is kept longer as
# it came has left the processor's cache when it is looked at again.
TOGETHER = 64
# So many lines wait while the disk is full; then the oldest go.
MOST_WAITING = 10_000
_ENCODER = msgspec.json.Encoder()


def printable(value: Any) -> str:
    """Any text as UTF-8 can carry it: bytes from outside may arrive as lone surrogates."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def _sane(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sane(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_sane(item) for item in value]
    return printable(value) if isinstance(value, str) else value


def texts(lines: Sequence[msgspec.Struct]) -> list[bytes]:
    """Each as a JSON object without an end of line, whatever texts it holds."""
    # all at once: that costs a third of what encoding each line in its call would
    try:
        data = _ENCODER.encode_lines(lines)
    except UnicodeEncodeError:
        data = _ENCODER.encode_lines([_sane(msgspec.to_builtins(line)) for line in lines])
    return data.splitlines()


class Outbox:
    """Lines that wait to be written; `texts` are those that are text by now, of `size` bytes.

    `missing` counts the lines that were given up; the events hear of them at once.
    """

    def __init__(self, events: Events) -> None:
        self.texts: list[bytes] = []
        self.size = 0
        self.missing = 0
        self._fresh: list[msgspec.Struct] = []
        self._events = events

    def __len__(self) -> int:
        return len(self._fresh) + len(self.texts)

    def add(self, line: msgspec.Struct) -> None:
        """One more."""
        self._fresh.append(line)
        if len(self._fresh) >= TOGETHER:
            self.encode()

    def encode(self) -> None:
        """What came is text from now on; a line that cannot be is missing, and no other for it."""
        fresh, self._fresh = self._fresh, []
        try:
            self._keep(fresh)
        except Exception:  # noqa: BLE001 - whatever it is, the others must be written
            for line in fresh:
                try:
                    self._keep([line])
                except Exception:  # noqa: BLE001 - the same
                    self.drop(1)

    def take(self) -> list[bytes]:
        """All texts; nothing waits any more."""
        self.encode()
        taken, self.texts, self.size = self.texts, [], 0
        return taken

    def give_up(self, lines: int) -> None:
        """The oldest texts are missing from now on."""
        if lines > 0:
            self.size -= sum(map(len, self.texts[:lines]))
            del self.texts[:lines]
            self.drop(lines)

    def drop(self, lines: int) -> None:
        """So many lines are missing that are not here."""
        self.missing += lines
        self._events.report("log_lines_dropped", lines=lines)

    def _keep(self, lines: Sequence[msgspec.Struct]) -> None:
        kept = texts(lines)
        self.texts += kept
        self.size += sum(map(len, kept))


class Lines:
    """Appends to one file; OSError where it cannot be opened. Later faults are reported."""

    def __init__(self, path: Path, events: Events) -> None:
        self._path = path
        self._events = events
        self._outbox = Outbox(events)
        self._file = _open(path)
        self._timer: asyncio.TimerHandle | None = None
        self.broken = False

    @property
    def waiting(self) -> int:
        """How many lines are not written yet."""
        return len(self._outbox)

    def add(self, line: msgspec.Struct) -> None:
        """One more line, written within 0.2 seconds."""
        self._outbox.add(line)
        if self._timer is None:
            self._again()

    def flush(self) -> None:
        """Write what waits; where that fails it waits for the next time."""
        self._stop_timer()
        self._outbox.encode()
        self._outbox.give_up(self.waiting - MOST_WAITING)
        if not self.waiting:
            return
        try:
            self._write(b"\n".join([*self._outbox.texts, b""]))
        except OSError as error:
            if not self.broken:
                self._events.report("logs_unwritable", error)
            self.broken = True
            self._again()
        else:
            self._outbox.take()
            self.broken = False
            self._tell()

    def close(self) -> None:
        """Write the rest and let go of the file."""
        self.flush()
        self._stop_timer()
        if self.waiting:
            self._outbox.give_up(self.waiting)
            self._tell()
        os.close(self._file)

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(EVERY, self.flush)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self) -> None:
        if self._outbox.missing:
            file, lines = self._path.name, self._outbox.missing
            self._events.report("log_lines_lost", file=file, lines=lines)
            self._outbox.missing = 0

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


def is_in_place(path: Path, file: int) -> bool:
    """Whether the open file still has its name, or was moved away to begin a new one."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
