"""Counts the lines of a day's file: who was shown which record, and what each key did."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NamedTuple

import msgspec

from gateway.audit.entries import ANSWERED

# Bytes that are read and decoded at once: what fits into the processor's cache costs half.
PIECE = 1 << 16
# Bytes that are counted at most before the sums are added: who reads the same records again and
# again costs one row for all that.
CHUNK = 1 << 25
# Sums after which they are added: others that write to the store wait as long, some 0.1 s. Each
# time costs every page of the day, so fewer at once cost more in all.
ROWS = 20_000
# Seconds.
DAY = 24 * 3600
EPOCH = date(1970, 1, 1).toordinal()


class View(NamedTuple):
    """What calls have in common: which key, which operation, at which level, by which policy."""

    key_id: str
    operation: str
    level: str
    policy: str


class Span(msgspec.Struct, gc=False):
    """How often on a day, and in which second of the day first and last."""

    times: int
    first: int
    last: int

    def count(self, second: int, times: int = 1) -> None:
        """So many times more, all in that second."""
        self.times += times
        self.first = min(self.first, second)
        self.last = max(self.last, second)


class _Line(msgspec.Struct, rename="camel", gc=False):
    """What is counted of a line."""

    time: str
    seq: int = 0
    key_id: str | None = None
    operation: str = ""
    record_ids: list[str] = []
    level: str | None = None
    policy: str | None = None
    outcome: str = ""
    reason: str | None = None
    kind: str = ""


# Time or day, key, operation, level, policy, outcome, reason, as they are written.
_Call = tuple[str, str | None, str, str | None, str | None, str, str | None]
# How often that was, and what was shown, where anything is.
_Cell = tuple[Span, dict[str, Span] | None]


@dataclass(slots=True)
class Counted:
    """The sums of some lines; `end` is where in the file the next begins.

    `seq` and `time`, to the second, are the last line's.

    `reads` is (view, day) -> record -> span, `calls` (view, day) -> (outcome, reason) -> span.
    """

    end: int
    lines: int = 0
    rows: int = 0
    seq: int = 0
    time: str = ""
    reads: dict[tuple[View, int], dict[str, Span]] = field(default_factory=dict)
    calls: dict[tuple[View, int], dict[tuple[str, str], Span]] = field(default_factory=dict)

    def add(self, lines: Iterable[_Line]) -> None:
        """Some more; marks and what has no time of the right form are passed over."""
        cells: dict[_Call, _Cell | None] = {}
        # calls that differ in their records alone come in crowds, and are looked up once
        last: _Call = ("", None, "", None, None, "", None)
        crowd: list[list[str]] = []
        line = None
        for line in lines:
            if line.kind:
                continue
            call = (line.time[:19], line.key_id, line.operation, line.level, line.policy,
                    line.outcome, line.reason)  # fmt: skip
            if call != last:
                self._count(cells, last, crowd)
                last, crowd = call, []
            crowd.append(line.record_ids)
        self._count(cells, last, crowd)
        if line is not None:
            self.seq, self.time = line.seq, line.time[:19]

    def _cell(self, date: str, *what: str | None) -> _Cell | None:
        """Where such calls are counted, and what they show; None where that is no day."""
        day = day_of(date)
        if day < 0:
            return None
        *of_view, outcome, reason = (each or "" for each in what)
        view = View(*of_view)
        ends = self.calls.setdefault((view, day), {})
        calls = ends.setdefault((outcome, reason), Span(0, DAY, -1))
        return calls, self.reads.setdefault((view, day), {}) if outcome == ANSWERED else None

    def _count(self, cells: dict[_Call, _Cell | None], call: _Call, crowd: list[list[str]]) -> None:
        if (second := second_of(call[0])) < 0:
            return
        of_day = (call[0][:10], *call[1:])
        cell = cells[of_day] if of_day in cells else cells.setdefault(of_day, self._cell(*of_day))
        if cell is None:
            return
        calls, shown = cell
        calls.count(second, len(crowd))
        if shown is not None:
            self._show(shown, second, crowd)

    def _show(self, shown: dict[str, Span], second: int, crowd: list[list[str]]) -> None:
        for records in crowd:
            for record in records:
                span = shown.get(record)
                if span is None:
                    shown[record] = Span(1, second, second)
                    self.rows += 1
                    continue
                span.times += 1
                if second > span.last:
                    span.last = second
                elif second < span.first:
                    span.first = second


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
