"""A file of JSON lines: kept in memory for a moment, appended whole, never in the way of a call."""

import asyncio
import os
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

EVERY = 0.2
# So many lines are made text at once: one by one costs thrice as much, and what is kept longer as
# it came has left the processor's cache when it is looked at again.
TOGETHER = 64
# So many lines wait while the disk is full; then the oldest go.
MOST_WAITING = 10_000


def printable(value: Any) -> str:
    """Any text as UTF-8 can carry it: bytes from outside may arrive as lone surrogates."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def _sane(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sane(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_sane(each) for each in value]
    return printable(value) if isinstance(value, str) else value


class Watcher(Protocol):
    """Who is told how the files fare."""

    def failed(self, error: OSError) -> None:
        """One cannot be written; said once until it can be."""

    def dropped(self, lines: int) -> None:
        """So many lines have just been given up."""

    def lost(self, file: str, lines: int) -> None:
        """So many are missing in a file: said when it can be written again, or is let go of."""


class Lines:
    """Appends to one file; OSError where it cannot be opened. Later faults go to `watcher`."""

    def __init__(self, path: Path, watcher: Watcher) -> None:
        self._path = path
        self._watcher = watcher
        self._missing = 0
        self._encoder = msgspec.json.Encoder()
        # as they came; then as text, many lines in each, and how many in all
        self._fresh: list[msgspec.Struct] = []
        self._texts: deque[bytes] = deque()
        self._lines = 0
        self._file = _open(path)
        self._timer: asyncio.TimerHandle | None = None
        self.broken = False

    @property
    def waiting(self) -> int:
        """How many lines are not written yet."""
        return len(self._fresh) + self._lines

    def add(self, line: msgspec.Struct) -> None:
        """One more line, written within 0.2 seconds."""
        self._fresh.append(line)
        if len(self._fresh) >= TOGETHER:
            self._encode()
        if self._timer is None:
            self._again()

    def flush(self) -> None:
        """Write what waits; where that fails it waits for the next time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._encode()
        if not self._lines:
            return
        try:
            self._write(b"".join(self._texts))
        except OSError as error:
            if not self.broken:
                self._watcher.failed(error)
            self.broken = True
            self._again()
        else:
            self._texts.clear()
            self._lines = 0
            self.broken = False
            self._tell()

    def close(self) -> None:
        """Write the rest and let go of the file."""
        self.flush()
        if self._timer is not None:
            self._timer.cancel()
        if self._lines:
            self._drop(self._lines)
            self._tell()
        os.close(self._file)

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(EVERY, self.flush)

    def _encode(self) -> None:
        """What came is text from now on; of too much of it the oldest lines go.

        A line that cannot be a text is missing, and no other for it.
        """
        fresh, self._fresh = self._fresh, []
        if not fresh:
            return
        try:
            self._keep(fresh)
        except Exception:  # noqa: BLE001 - whatever it is, the others must be written
            for each in fresh:
                try:
                    self._keep([each])
                except Exception:  # noqa: BLE001 - the same
                    self._drop(1)
        if self._lines > MOST_WAITING:
            self._let_go(self._lines - MOST_WAITING)

    def _keep(self, lines: Sequence[msgspec.Struct]) -> None:
        self._texts.append(encoded(self._encoder, lines))
        self._lines += len(lines)

    def _let_go(self, lines: int) -> None:
        self._drop(lines)
        self._lines -= lines
        while lines:
            *gone, rest = self._texts.popleft().split(b"\n", lines)
            lines -= len(gone)
            if rest:
                self._texts.appendleft(rest)

    def _drop(self, lines: int) -> None:
        self._missing += lines
        self._watcher.dropped(lines)

    def _tell(self) -> None:
        if self._missing:
            self._watcher.lost(self._path.name, self._missing)
            self._missing = 0

    def _write(self, data: bytes) -> None:
        if not self._in_place():
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

    def _in_place(self) -> bool:
        """Whether the open file still has its name, or was moved away to begin a new one."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._file))
        except FileNotFoundError:
            return False


def encoded(encoder: msgspec.json.Encoder, lines: Sequence[msgspec.Struct]) -> bytes:
    """Each as a line of JSON, whatever texts it holds."""
    # all at once: that costs a third of what encoding each line in its call would
    try:
        return encoder.encode_lines(lines)
    except UnicodeEncodeError:
        return encoder.encode_lines([_sane(msgspec.to_builtins(line)) for line in lines])


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
