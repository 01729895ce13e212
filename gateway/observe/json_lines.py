"""Makes JSON lines, and keeps them until they are written to their file."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gateway.events import Events

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
        """Queues a line."""
        self._fresh.append(line)
        if len(self._fresh) >= TOGETHER:
            self.encode()

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
        """Replaces one of the texts."""
        self.size += len(line) - len(self.texts[at])
        self.texts[at] = line

    def remove(self, lines: int) -> None:
        """Removes the oldest texts."""
        self.size -= sum(map(len, self.texts[:lines]))
        del self.texts[:lines]

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
