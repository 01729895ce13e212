"""Counts the lines of a day's file: who was shown which record, and what each key did."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from gateway.audit.entries import ANSWERED

# Bytes that are read and decoded at once: the event loop waits as long.
PIECE = 1 << 20
# Bytes that are counted at most before the sums are added: who reads the same records again and
# again costs one row for all that.
CHUNK = 1 << 25
# Sums after which they are added: others that write to the store wait as long.
ROWS = 4_000
EPOCH = date(1970, 1, 1).toordinal()
NameT = TypeVar("NameT", bound=str | tuple[str, str])


class View(NamedTuple):
    """What calls have in common: which key, which operation, at which level, by which policy."""

    key_id: str
    operation: str
    level: str
    policy: str


@dataclass(slots=True)
class Span:
    """How often on a day, and in which second of the day first and last."""

    times: int
    first: int
    last: int

    def count(self, second: int, times: int = 1) -> None:
        """So many times more, all in that second."""
        self.times += times
        if second < self.first:
            self.first = second
        elif second > self.last:
            self.last = second


class _Line(msgspec.Struct, rename="camel", gc=False):
    """What is counted of a line."""

    time: str
    key_id: str | None = None
    operation: str = ""
    record_ids: list[str] = []
    level: str | None = None
    policy: str | None = None
    outcome: str = ""
    reason: str | None = None
    kind: str = ""


Sums = tuple[dict[str, Span], dict[tuple[str, str], Span]]


@dataclass(slots=True)
class Counted:
    """The sums of some lines; `end` is where in the file the next begins.

    `reads` is (view, day) -> record -> span, `calls` (view, day) -> (outcome, reason) -> span.
    """

    end: int
    lines: int = 0
    rows: int = 0
    reads: dict[tuple[View, int], dict[str, Span]] = field(default_factory=dict)
    calls: dict[tuple[View, int], dict[tuple[str, str], Span]] = field(default_factory=dict)

    def add(self, lines: Iterable[_Line]) -> None:
        """Some more; marks and what has no time of the right form are passed over."""
        # calls that differ in their records alone: these come in crowds, and are looked up once
        alike: dict[tuple[str | None, ...], list[list[str]]] = {}
        last: tuple[str | None, ...] = ()
        found: list[list[str]] = []
        for line in lines:
            time, what = line.time[:19], line.operation
            key, level, policy = line.key_id, line.level, line.policy
            call = (time, key, what, level, policy, line.outcome, line.reason)
            if line.kind:
                continue
            if call != last:
                last, found = call, alike.setdefault(call, [])
            found.append(line.record_ids)
        for (at, *view, outcome, reason), shown in alike.items():
            self._add(at or "", View(*(each or "" for each in view)), outcome, reason, shown)

    def _add(
        self, time: str, view: View, outcome: str | None, reason: str | None, shown: list[list[str]]
    ) -> None:
        day, second = day_of(time[:10]), second_of(time)
        if day < 0 or second < 0:
            return
        calls = self.calls.setdefault((view, day), {})
        end = (outcome or "", reason or "")
        calls.setdefault(end, Span(0, second, second)).count(second, len(shown))
        if outcome != ANSWERED:
            return
        reads = self.reads.setdefault((view, day), {})
        known = len(reads)
        for records in shown:
            for record in records:
                span = reads.get(record)
                if span is None:
                    reads[record] = Span(1, second, second)
                else:
                    span.count(second)
        self.rows += len(reads) - known


def day_of(text: str) -> int:
    """Days since 1970 of YYYY-MM-DD; -1 where it is no day."""
    try:
        return date.fromisoformat(text).toordinal() - EPOCH
    except ValueError:
        return -1


def second_of(time: str) -> int:
    """The second of the day of a time as the audit writes it; -1 where it is none."""
    try:
        return int(time[11:13]) * 3600 + int(time[14:16]) * 60 + int(time[17:19])
    except ValueError:
        return -1


def count(path: Path, start: int) -> Counted:
    """The whole lines from there on, as many as are added at once; of a file that went, none."""
    counted = Counted(start)
    try:
        with path.open("rb") as file:
            file.seek(start)
            rest = b""
            while counted.end - start < CHUNK and counted.rows < ROWS:
                data = file.read(min(PIECE, CHUNK))
                if not data:
                    break
                cut = (data := rest + data).rfind(b"\n") + 1
                whole, rest = data[:cut], data[cut:]
                counted.end += cut
                counted.lines += whole.count(b"\n")
                counted.add(_decoded(whole))
    except FileNotFoundError:
        pass
    return counted


def _decoded(lines: bytes) -> Iterable[_Line]:
    """Each; what is no entry is passed over, since whoever verifies the chain is told."""
    decoder = msgspec.json.Decoder(_Line)
    try:
        found = decoder.decode_lines(lines)
    except msgspec.MsgspecError:
        found = []
    # all at once costs a third, but one that is spoilt spoils all
    return found if len(found) == lines.count(b"\n") else _decoded_each(lines)


def _decoded_each(lines: bytes) -> Iterable[_Line]:
    decode = msgspec.json.Decoder(_Line).decode
    for line in lines.split(b"\n"):
        try:
            yield decode(line)
        except msgspec.MsgspecError:
            continue
