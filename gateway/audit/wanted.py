"""Which entries somebody looks for: lines are passed over by their bytes, then read in earnest."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import msgspec

from gateway.audit.entries import CLOCK, Line

# A chain has its lines in the order in which calls ended, and each tells when its call came in.
SLACK = timedelta(minutes=10)
_CLOCK = b'"kind":"%b"' % CLOCK.encode()
_TIME = b'"time":"'
_decode = msgspec.json.Decoder(Line).decode


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that was looked for, and the bytes of its file that it stands in."""

    at: datetime
    entry: Line
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines: the bytes from `start` to `stop`, of which the file has `offset` before `data`.

    They are not cut out, as that would take as long as to search them.
    """

    data: bytes
    start: int
    stop: int
    offset: int

    @property
    def place(self) -> int:
        """Where in the file they begin."""
        return self.offset + self.start

    @property
    def first(self) -> datetime | None:
        """The time of the first line."""
        return _time_of(self.data, self.start)

    @property
    def last(self) -> datetime | None:
        """The time of the last line."""
        return _time_of(self.data, self.begin_of(self.stop - 1))

    def begin_of(self, at: int) -> int:
        """Where the line begins that such a byte is of."""
        return self.data.rfind(b"\n", self.start, at) + 1 or self.start

    def has(self, needle: bytes) -> int:
        """How often it is in them."""
        return self.data.count(needle, self.start, self.stop)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """All that an entry must be; what is None or "" does not matter.

    `keys` are ids, of which it has one. `since` and `until` are moments; both may be it.
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
        """Whether more than the time matters, so that the index can tell of its days."""
        return bool(self.operation or self.record or self.outcome) or self.keys is not None

    @cached_property
    def needles(self) -> Sequence[Sequence[bytes]]:
        """Of each of these a line has at least one."""
        groups = [
            [b'"keyId":%b,' % _text(each) for each in sorted(self.keys or ())],
            [b'"operation":%b,' % _text(self.operation)] if self.operation else [],
            [_text(self.record)] if self.record else [],
            [b'"outcome":%b,' % _text(self.outcome)] if self.outcome else [],
            [b'"requestId":%b,' % _text(self.request)] if self.request else [],
        ]
        return [each for each in groups if each]

    def among(self, piece: Piece, most: int) -> list[Hit]:
        """The last ones of some lines, the last first."""
        if self.keys == frozenset() or self._is_past(piece):
            return []
        found = []
        for begin, end in self._likely(piece):
            hit = self._hit(piece.data[begin:end], piece.offset + begin)
            if hit is not None:
                found.append(hit)
            if len(found) == most:
                break
        return found

    def _likely(self, piece: Piece) -> Iterator[tuple[int, int]]:
        """Where lines that have the rarest of the bytes begin and end, the last first."""
        counts = [sum(map(piece.has, group)) for group in self.needles]
        if not counts:
            yield from _backwards(piece)
        elif min(counts):
            rarest = self.needles[counts.index(min(counts))]
            likely = re.compile(b"|".join(map(re.escape, rarest)))
            before = piece.stop
            for match in reversed(list(likely.finditer(piece.data, piece.start, piece.stop))):
                if match.start() < before:
                    before = piece.begin_of(match.start())
                    yield before, piece.data.index(b"\n", match.start()) + 1

    def _hit(self, line: bytes, start: int) -> Hit | None:
        if not all(any(each in line for each in group) for group in self.needles):
            return None
        try:
            entry = _decode(line)
            at = datetime.fromisoformat(entry.time)
        except (msgspec.MsgspecError, ValueError):
            return None
        is_wanted = not entry.kind and entry.outcome and self._is_meant(entry) and self._is_then(at)
        return Hit(at, entry, start, start + len(line)) if is_wanted else None

    def _is_meant(self, entry: Line) -> bool:
        return (
            (self.keys is None or entry.key_id in self.keys)
            and self.operation in {"", entry.operation}
            and self.outcome in {"", entry.outcome}
            and self.request in {"", entry.request_id}
            and (not self.record or self.record in entry.record_ids)
        )

    def _is_then(self, at: datetime) -> bool:
        return (self.since is None or at >= self.since) and (self.until is None or at <= self.until)

    def _is_past(self, piece: Piece) -> bool:
        """Whether all of them are of another time: so are those between the first and the last.

        Unless the clock was set meanwhile.
        """
        if self.since is None and self.until is None:
            return False
        first, last = piece.first, piece.last
        if first is None or last is None or piece.has(_CLOCK):
            return False
        early = self.since is not None and max(first, last) < self.since - SLACK
        return early or (self.until is not None and min(first, last) > self.until + SLACK)


def _time_of(data: bytes, start: int) -> datetime | None:
    """The time of the line that begins there; None where it has none."""
    begin = data.find(_TIME, start) + len(_TIME)
    end = data.find(b'"', begin)
    try:
        found = datetime.fromisoformat(data[begin:end].decode("ascii"))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _backwards(piece: Piece) -> Iterator[tuple[int, int]]:
    end = piece.stop
    while end > piece.start:
        begin = piece.begin_of(end - 1)
        yield begin, end
        end = begin


def _text(text: str) -> bytes:
    return msgspec.json.encode(text)
