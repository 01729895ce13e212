"""Searches the day files from their ends, the newest entries first, for as long as there is time.

Each file is read by its bytes, once: whatever a clock did, no entry is passed over.
"""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import time as time_of_day
from heapq import heappop, heappush
from pathlib import Path

from gateway.audit.entries import Line
from gateway.audit.files import DayFile, is_open
from gateway.audit.wanted import Hit, Piece, Wanted

# Bytes that are read at once: few at first, as what is looked for may be at the very end.
LEAST, MOST = 1 << 16, 1 << 18
# Bytes that tell when a file ends.
GLANCE = 1 << 13
LAST_MOMENT = time_of_day.max
# Files that a place may name: as many as are written at once, and some.
_MOST_FILES = 500
_NAME = 20
_part = re.compile(r"\d{8}[0-9a-f]{12}-\d{1,15}").fullmatch


@dataclass(frozen=True, kw_only=True)
class Place:
    """How far a search has come: everything after `until` has been looked at.

    `bytes` is (day, beginning of a chain) -> how many bytes of its file are still to be read, of
    files that are not told by the time alone.
    """

    until: datetime
    bytes: Mapping[str, int]

    def __str__(self) -> str:
        files = "".join(f"_{name}-{left}" for name, left in sorted(self.bytes.items()))
        return f"{self.until.astimezone(UTC):%Y%m%dT%H%M%S.%f}{files}"


def read_place(text: str) -> Place:
    """What a place was written as; ValueError."""
    moment, *files = text.split("_")
    if len(files) > _MOST_FILES or not all(map(_part, files)):
        raise ValueError("no place in the audit")
    until = datetime.strptime(moment, "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
    return Place(until=until, bytes={each[:_NAME]: int(each[_NAME + 1 :]) for each in files})


class _Reader:
    """One file, of which `left` bytes are still to be read; `newest` tells of what is in them."""

    def __init__(self, file: DayFile) -> None:
        self.file = file
        self.newest = end_of(file)
        self.began_at: datetime | None = None
        self.is_begun = False
        self.left = 0
        self.hits: list[Hit] = []
        self._reached = self.newest
        self._at_once = LEAST

    @property
    def name(self) -> str:
        """What a place calls it."""
        return f"{self.file.day:%Y%m%d}{self.file.chain.replace('-', '')[:12]}"

    @property
    def rest(self) -> int:
        """The bytes that the next search has to read."""
        return self.hits[0].stop if self.hits else self.left

    def open(self, left: int | None = None) -> None:
        """Look how long it is, and when it ends; `left` is how far another search has come."""
        size = _size(self.file.path)
        self.is_begun = left is not None
        self.left = size if left is None else min(left, size)
        piece = self._piece(GLANCE)
        self.newest = self.began_at = (piece and piece.last) or self.newest

    def read(self, wanted: Wanted, most: int) -> None:
        """Some bytes more, from the end."""
        piece = self._piece(self._at_once)
        self._at_once = min(self._at_once * 2, MOST)
        self.is_begun, self.left = True, 0
        if piece is not None:
            self.hits, self.left = wanted.among(piece, most), piece.place
            self._reached = piece.first or self.newest
        if len(self.hits) == most:
            self.left = self.hits[-1].start
        self._look()

    def take(self) -> Line:
        """The newest entry that was found."""
        hit = self.hits.pop(0)
        self._look()
        return hit.entry

    def _look(self) -> None:
        self.newest = self.hits[0].at if self.hits else self._reached

    def _piece(self, at_once: int) -> Piece | None:
        """The last whole lines that are left; what was torn is left out."""
        try:
            with self.file.path.open("rb", buffering=0) as file:
                while self.left:
                    begin = max(0, self.left - at_once)
                    file.seek(begin)
                    data = file.read(self.left - begin)
                    start = data.find(b"\n") + 1 if begin else 0
                    stop = data.rfind(b"\n") + 1
                    if start < stop:
                        return Piece(data, start, stop, begin)
                    if not begin:
                        break
                    at_once *= 4
        except FileNotFoundError:  # it went since it was old
            pass
        return None


class Search:
    """One search by one thread; `add` files, the newest days first, and `run` after each time."""

    def __init__(self, wanted: Wanted, most: int, place: Place | None = None) -> None:
        self.entries: list[Line] = []
        self._wanted = wanted
        self._most = most
        self._place = place
        self._heap: list[tuple[float, str, _Reader]] = []
        self._done: list[_Reader] = []
        self._has_read = False

    @property
    def is_full(self) -> bool:
        """Whether as many were found as were asked for."""
        return len(self.entries) == self._most

    def add(self, files: Iterable[DayFile]) -> None:
        """Some more; those that the place has passed are left out. OSError."""
        for each in files:
            reader = _Reader(each)
            if self._place is None or self._is_to_be_read(reader, self._place):
                self._keep(reader)

    def run(self, deadline: float) -> bool:
        """Whether, by then (time.monotonic), all is searched or enough was found. OSError."""
        while self._heap:
            _, _, reader = heappop(self._heap)
            if reader.hits and self.is_full:
                self._keep(reader)
                return True
            if reader.hits:
                self.entries.append(reader.take())
            elif reader.began_at is None:
                reader.open()
            elif self._has_read and time.monotonic() >= deadline:
                self._keep(reader)
                return False
            else:
                self._has_read = True
                reader.read(self._wanted, self._most + 1)
            self._keep(reader)
        return True

    def rest(self, next_day: DayFile | None) -> Place | None:
        """Where to go on; `next_day` is a newest file of those that were not added."""
        left = [reader for *_, reader in self._heap]
        ends = [each.newest for each in left] + ([end_of(next_day)] if next_day else [])
        if not ends:
            return None
        # where a clock was set back a file goes on later: what was done before stays so
        until = max(ends) if self._place is None else min(max(ends), self._place.until)
        told = {each.name: each.rest for each in left if _must_be_told(each, until)}
        told |= {each.name: 0 for each in self._done if each.began_at and each.began_at <= until}
        return Place(until=until, bytes=told)

    def _is_to_be_read(self, reader: _Reader, place: Place) -> bool:
        left = place.bytes.get(reader.name)
        if left is not None:
            reader.open(left)
            if not left:
                reader.began_at = place.until
            return True
        if end_of(reader.file) <= place.until:
            return True
        if reader.file.day > place.until.date():
            return False
        reader.open()
        return reader.newest <= place.until

    def _keep(self, reader: _Reader) -> None:
        if reader.began_at is not None and not reader.rest:
            self._done.append(reader)
        else:
            heappush(self._heap, (-reader.newest.timestamp(), reader.file.path.name, reader))


def _must_be_told(reader: _Reader, until: datetime) -> bool:
    """Whether the time alone does not say how much of it is left.

    What is written to it meanwhile is newer than the search.
    """
    if reader.began_at is None:
        return False
    return reader.is_begun or reader.file.day > until.date() or is_open(reader.file.path)


def end_of(file: DayFile) -> datetime:
    """The last moment of its day."""
    return datetime.combine(file.day, LAST_MOMENT, UTC)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
