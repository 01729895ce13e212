"""JSON lines: how they are made, and how they wait for the file that they go into."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gateway.events import Events

# So many lines are made text at once: one by one costs thrice as much, and what is kept longer as
# it came has left the processor's cache when it is looked at again.
TOGETHER = 64
_ENCODER = msgspec.json.Encoder()


def printable(value: Any) -> str:
    """Any text as UTF-8 can carry it: bytes from outside may arrive as lone surrogates."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def sane(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: sane(member) for name, member in value.items()}
    if isinstance(value, list):
        return [sane(item) for item in value]
    return printable(value) if isinstance(value, str) else value


def texts(lines: Sequence[msgspec.Struct]) -> list[bytes]:
    """Each as a JSON object without an end of line, whatever texts it holds."""
    # all at once: that costs a third of what encoding each line in its call would
    try:
        data = _ENCODER.encode_lines(lines)
    except UnicodeEncodeError:
        data = _ENCODER.encode_lines([sane(msgspec.to_builtins(line)) for line in lines])
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
        self.events = events

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

    def replace(self, at: int, line: bytes) -> None:
        """Have another text in the place of one."""
        self.size += len(line) - len(self.texts[at])
        self.texts[at] = line

    def remove(self, lines: int) -> None:
        """The oldest texts wait no more."""
        self.size -= sum(map(len, self.texts[:lines]))
        del self.texts[:lines]

    def give_up(self, lines: int) -> None:
        """The oldest texts are missing from now on."""
        if lines > 0:
            self.remove(lines)
            self.drop(lines)

    def drop(self, lines: int) -> None:
        """So many lines are missing that are not here."""
        self.missing += lines
        self.events.report("log_lines_dropped", lines=lines)

    def _keep(self, lines: Sequence[msgspec.Struct]) -> None:
        kept = texts(lines)
        self.texts += kept
        self.size += sum(map(len, kept))


def is_in_place(path: Path, file: int) -> bool:
    """Whether the open file still has its name, or was moved away to begin a new one."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
