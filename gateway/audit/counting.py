"""Counts the lines of a day's file: who was shown which record, and what each key did."""

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from gateway.audit.entries import ANSWERED, Line

# Bytes that are read, counted and added at once: others that write to the store wait as long.
CHUNK = 1 << 20
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

    def count(self, second: int) -> None:
        """Once more."""
        self.times += 1
        if second < self.first:
            self.first = second
        elif second > self.last:
            self.last = second


Seen = tuple[str | None, str, str | None, str | None, str]
Sums = tuple[dict[str, Span], dict[tuple[str, str], Span]]


@dataclass(slots=True)
class Counted:
    """The sums of some lines; `end` is where in the file the next begins.

    `reads` is (view, day) -> record -> span, `calls` (view, day) -> (outcome, reason) -> span.
    """

    end: int
    lines: int = 0
    reads: dict[tuple[View, int], dict[str, Span]] = field(default_factory=dict)
    calls: dict[tuple[View, int], dict[tuple[str, str], Span]] = field(default_factory=dict)
    _sums: dict[Seen, Sums] = field(default_factory=dict)

    def add(self, line: Line) -> None:
        """One entry more; marks and what has no time of the right form are passed over."""
        if line.kind:
            return
        time = line.time
        seen = (line.key_id, line.operation, line.level, line.policy, time[:10])
        sums = self._sums.get(seen) or self._begun(seen)
        second = second_of(time)
        if sums is None or second < 0:
            return
        reads, calls = sums
        _count(calls, (line.outcome, line.reason or ""), second)
        if line.outcome == ANSWERED:
            for record in line.record_ids:
                _count(reads, record, second)

    def _begun(self, seen: Seen) -> Sums | None:
        """Where such calls of that day are summed from now on; None where that is no day."""
        key_id, operation, level, policy, text = seen
        day = day_of(text)
        if day < 0:
            return None
        place = View(key_id or "", operation, level or "", policy or ""), day
        self._sums[seen] = self.reads.setdefault(place, {}), self.calls.setdefault(place, {})
        return self._sums[seen]


def _count(spans: dict[NameT, Span], name: NameT, second: int) -> None:
    span = spans.get(name)
    if span is None:
        spans[name] = Span(1, second, second)
    else:
        span.count(second)


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
    """The whole lines from there on, as many as fit into a chunk; of a file that went, none."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(CHUNK)
    except FileNotFoundError:
        return Counted(start)
    whole = data[: data.rfind(b"\n") + 1]
    counted = Counted(start + len(whole))
    decode = msgspec.json.Decoder(Line).decode
    for line in whole.splitlines():
        counted.lines += 1
        try:
            counted.add(decode(line))
        except msgspec.MsgspecError:
            continue  # whoever verifies the chain is told
    return counted
