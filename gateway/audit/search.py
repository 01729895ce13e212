"""Searches the day files from their ends, the newest entries first, for as long as there is time.

Each file is read once, by its bytes, so that no entry is missed whatever a clock did. Lines are
compared as bytes first, and only likely ones are decoded.
"""

import math
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gateway.audit.chains import DayFile, day_files
from gateway.audit.entries import CLOCK, AuditLine, read_line

# Bytes that are read at once: few at first, as the entries may be at the very end.
LEAST, MOST = 1 << 16, 1 << 18
# Bytes that are enough for the last line of most files.
GLANCE = 1 << 13
# Lines are in the order in which calls ended, and each has the time at which its call began.
SLACK = timedelta(minutes=10)
# It names as many files as are written at once, and some.
_cursor = re.compile(r"(\d{8})_(\d{8}T\d{6}\.\d{6})((?:_[0-9a-f]{12}-\d{1,15}){0,500})").fullmatch
_CLOCK = b'"kind":"%b"' % CLOCK.encode()


class Step(NamedTuple):
    """The place of a search in a file: at an entry that matches, or where it reads on.

    `left` is the bytes that are left, `at` when the newest of their entries may have come.
    """

    at: datetime
    left: int
    entry: AuditLine | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a file, which begin at `offset`."""

    data: bytes
    offset: int

    @property
    def last(self) -> bytes:
        return self.data[self.data.rfind(b"\n", 0, -1) + 1 :]

    @property
    def times(self) -> tuple[datetime | None, datetime | None]:
        """The times of the first and the last line."""
        first = self.data[: self.data.index(b"\n")]
        return _moment(read_line(first)), _moment(read_line(self.last))


def _moment(line: AuditLine | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(line.time if line else "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def last_lines(path: Path, left: int | None = None, at_once: int = GLANCE) -> Piece | None:
    """Returns the last whole lines of the first `left` bytes; None where there are none.

    A torn line at the end is left out. A file that was dropped has no lines. Raises OSError.
    """
    with suppress(FileNotFoundError), path.open("rb", buffering=0) as file:
        left = file.seek(0, 2) if left is None else left
        while left:
            begin = max(0, left - at_once)
            file.seek(begin)
            data = file.read(left - begin)
            start = data.find(b"\n") + 1 if begin else 0
            stop = data.rfind(b"\n") + 1
            if start < stop:
                return Piece(data[start:stop], begin + start)
            if not begin:
                break
            at_once *= 4
    return None


@dataclass(frozen=True, kw_only=True)
class EntryFilter:
    """The conditions that an entry must meet; None or "" is no condition.

    `keys` are the ids of which it must have one. `since` and `until` are included.
    """

    keys: frozenset[str] | None = None
    operation: str = ""
    record: str = ""
    outcome: str = ""
    request: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether there is a condition that the index knows, so that it can tell the days."""
        return bool(self.operation or self.record or self.outcome) or self.keys is not None

    @cached_property
    def needles(self) -> Sequence[Sequence[bytes]]:
        """Groups of texts; a line that matches has at least one of each."""
        encode = msgspec.json.encode
        groups = [
            [b'"keyId":%b,' % encode(key) for key in sorted(self.keys or ())],
            [b'"operation":%b,' % encode(self.operation)] if self.operation else [],
            [encode(self.record)] if self.record else [],
            [b'"outcome":%b,' % encode(self.outcome)] if self.outcome else [],
            [b'"requestId":%b,' % encode(self.request)] if self.request else [],
        ]
        return [group for group in groups if group] or [[b'"outcome":']]

    def among(self, piece: Piece) -> Iterator[Step]:
        """Yields the entries of a piece that match, the last first."""
        if self.keys == frozenset() or self._is_past(piece):
            return
        data, before = piece.data, len(piece.data)
        rarest = min(self.needles, key=lambda group: sum(map(data.count, group)))
        likely = re.compile(b"|".join(map(re.escape, rarest)))
        for match in reversed(list(likely.finditer(data))):
            if match.start() >= before:
                continue
            before = data.rfind(b"\n", 0, match.start()) + 1
            end = data.index(b"\n", match.start()) + 1
            entry = read_line(data[before:end])
            at = _moment(entry) if entry and entry.outcome and not entry.kind else None
            if entry and at and self._is_meant(entry, at):
                yield Step(at, piece.offset + end, entry)

    def _is_meant(self, entry: AuditLine, at: datetime) -> bool:
        return (
            (self.since is None or at >= self.since)
            and (self.until is None or at <= self.until)
            and (self.keys is None or entry.key_id in self.keys)
            and self.operation in {"", entry.operation}
            and self.outcome in {"", entry.outcome}
            and self.request in {"", entry.request_id}
            and (not self.record or self.record in entry.record_ids)
        )

    def _is_past(self, piece: Piece) -> bool:
        """Returns whether all lines are of another time, by the first and the last of them."""
        if self.since is None and self.until is None:
            return False
        first, last = piece.times
        if first is None or last is None or _CLOCK in piece.data:
            return False
        early = self.since is not None and max(first, last) < self.since - SLACK
        return early or (self.until is not None and min(first, last) > self.until + SLACK)


@dataclass(frozen=True, kw_only=True)
class SearchCursor:
    """How far a search has come: to `until`, through all files of the days after `day`.

    `left` maps the beginning of a chain's id to the bytes of its file of that day that are still to
    be searched. It is empty where no file of the day was begun.
    """

    day: date
    until: datetime
    left: Mapping[str, int]

    def __str__(self) -> str:
        files = "".join(f"_{name}-{left}" for name, left in sorted(self.left.items()))
        return f"{self.day:%Y%m%d}_{self.until.astimezone(UTC):%Y%m%dT%H%M%S.%f}{files}"


def read_cursor(text: str) -> SearchCursor:
    """Returns the cursor that was written as this text; raises ValueError for any other."""
    read = _cursor(text)
    if read is None:
        raise ValueError("no place in the audit")
    files = [file.split("-") for file in read[3].split("_")[1:]]
    return SearchCursor(
        day=datetime.strptime(read[1], "%Y%m%d").replace(tzinfo=UTC).date(),
        until=datetime.strptime(read[2], "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC),
        left={name: int(left) for name, left in files},
    )


def _steps(file: DayFile, left: int | None, conditions: EntryFilter) -> Iterator[Step]:
    """Yields the steps of a search through the first `left` bytes of a file, from their end."""
    at_once, piece = LEAST, last_lines(file.path, left)
    left = piece.offset + len(piece.data) if piece else 0
    reached = (piece and piece.times[1]) or end_of(file.day)
    while left:
        yield Step(reached, left)
        piece = last_lines(file.path, left, at_once)
        at_once, left = min(at_once * 2, MOST), 0
        if piece is not None:
            yield from conditions.among(piece)
            reached, left = piece.times[0] or reached, piece.offset


def search(
    files: Iterable[DayFile],
    conditions: EntryFilter,
    entries: list[AuditLine],
    most: int,
    deadline: float,
    place: SearchCursor | None = None,
) -> SearchCursor | None:
    """Appends entries, the newest first, until there are `most` or the deadline has passed.

    Returns where to go on, having read something; None once all is searched. `deadline` is of
    time.monotonic. Raises OSError.
    """
    has_read = False
    for day, own in groupby(sorted(files, reverse=True), key=lambda file: file.day):
        # files that a cursor in the midst of their day does not name are read, or too new
        left = place.left if place is not None and place.day == day else {}
        ways = {
            _name(file): _steps(file, left.get(_name(file), 0) if left else None, conditions)
            for file in own
        }
        steps = {name: step for name, way in ways.items() if (step := next(way, None))}
        while steps:
            name, step = max(steps.items(), key=lambda item: item[1].at)
            is_late = has_read and time.monotonic() >= deadline
            if len(entries) == most if step.entry else is_late:
                rest = {name: step.left for name, step in steps.items()}
                return SearchCursor(day=day, until=step.at, left=rest)
            if step.entry:
                entries.append(step.entry)
            has_read = has_read or step.entry is None
            if following := next(ways[name], None):
                steps[name] = following
            else:
                del steps[name]
    return None


def _name(file: DayFile) -> str:
    return file.chain.replace("-", "")[:12]


def end_of(day: date) -> datetime:
    return datetime.combine(day, time_of_day.max, UTC)


def newest_entries(
    folder: Path, conditions: EntryFilter, most: int = sys.maxsize
) -> list[dict[str, Any]]:
    """Returns up to `most` entries as JSON objects, the newest first. Raises OSError."""
    entries: list[AuditLine] = []
    search(day_files(folder), conditions, entries, most, math.inf)
    entries.sort(key=lambda entry: entry.time, reverse=True)
    return [entry.members() for entry in entries]
