"""Fills the audit's index in the store: counts who was shown which record, and what keys did."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from msgspec.structs import astuple
from sqlalchemy import delete, select, text, update

from gateway.audit.chains import day_files
from gateway.audit.entries import ANSWERED, CountedLine
from gateway.store import Store, tables
from gateway.store.engine import AsyncConnection
from gateway.store.tables import audit_calls, audit_days, audit_reads, audit_views

# Bytes that are read and decoded at once: what fits the processor's cache takes half the time.
PIECE = 1 << 16
# Bytes that are counted at most before the sums are added: a record that is read again and again
# costs one row for all of them.
CHUNK = 1 << 25
# Sums that are added at once, while others that write to the store wait, some 0.1 s. Each time
# rewrites every page of the day, so that fewer at once cost more in all.
ROWS = 20_000
EPOCH = date(1970, 1, 1).toordinal()
# In the order of the table's columns.
Row = tuple[Any, ...]


class CallView(NamedTuple):
    """What calls have in common: the key, the operation, the level and the policy."""

    key_id: str
    operation: str
    level: str
    policy: str


_decoder = msgspec.json.Decoder(CountedLine)
_MALFORMED = msgspec.MsgspecError, UnicodeDecodeError


class DaySpan(msgspec.Struct, gc=False):
    """How often something happened on a day, and in which second of the day first and last."""

    times: int
    first: int
    last: int

    def count(self, second: int) -> None:
        self.times += 1
        # no min and max, which take twice as long: this runs for each record of each call
        if second > self.last:
            self.last = second
        elif second < self.first:
            self.first = second


# A record's id -> how often it was shown.
Shown = dict[str, DaySpan]
# A day, who called what, how that ended and why; how often, and how often each record was shown.
CallKind = tuple[int, CallView, str, str, DaySpan, Shown]


@dataclass(slots=True)
class Counted:
    """The sums of some lines of a file; `end` is the offset of the next line.

    `seq` and `time`, to the second, are the last line's. `calls` says how often a kind of call was
    made, and how often it was shown each record. Its keys are day, key, operation, level, policy,
    outcome and reason, as they are written.
    """

    end: int
    lines: int = 0
    rows: int = 0
    seq: int = 0
    time: str = ""
    calls: dict[tuple[str | None, ...], tuple[DaySpan, Shown]] = field(default_factory=dict)

    def add(self, lines: Sequence[CountedLine]) -> None:
        """Adds lines to the sums; leaves out marks, deeds and malformed times."""
        last: tuple[str | None, ...] = ()
        for line in lines:
            if line.kind:
                continue
            call = (line.time[:19], line.key_id, line.operation, line.level, line.policy,
                    line.outcome, line.reason)  # fmt: skip
            # consecutive lines that differ only in their records share one look-up
            if call != last:
                last, second = call, _second_of(line.time)
                made, shown = self._sums(call, second)
            if second < 0:
                continue
            made.count(second)
            for record in line.record_ids if line.outcome == ANSWERED else ():
                span = shown.get(record)
                if span is None:
                    shown[record] = DaySpan(1, second, second)
                    self.rows += 1
                else:
                    span.count(second)
        if lines:
            self.seq, self.time = lines[-1].seq, lines[-1].time[:19]

    def _sums(self, call: tuple[Any, ...], second: int) -> tuple[DaySpan, Shown]:
        """Returns the sums of such calls on that day; new ones are kept unless `second` is -1."""
        sums = self.calls.get(kind := (call[0][:10], *call[1:]))
        if sums is None:
            sums = DaySpan(0, second, second), {}
            if second >= 0:
                self.calls[kind] = sums
        return sums

    def kinds(self) -> Iterator[CallKind]:
        """Yields each kind of call, but for those without a valid day."""
        for call, sums in self.calls.items():
            day, *of_view, outcome, reason = (part or "" for part in call)
            if (number := day_of(day)) >= 0:
                yield number, CallView(*of_view), outcome, reason, *sums


def _second_of(time: str) -> int:
    """Returns the second of the day of a time as the audit writes it; -1 where it is none."""
    with suppress(ValueError):
        return int(time[11:13]) * 3600 + int(time[14:16]) * 60 + int(time[17:19])
    return -1


def day_of(text: str) -> int:
    """Returns the days since 1970 of YYYY-MM-DD; -1 where the text is no day."""
    with suppress(ValueError):
        return date.fromisoformat(text).toordinal() - EPOCH
    return -1


def count(path: Path, start: int) -> Counted:
    """Counts whole lines from `start` on, as many as are added at once; of a missing file none."""
    counted = Counted(start)
    with suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(start)
        while counted.end - start < CHUNK and counted.rows < ROWS:
            lines = file.readlines(min(PIECE, CHUNK))
            if lines and not lines[-1].endswith(b"\n"):
                lines.pop()
            if not lines:
                break
            counted.end += sum(map(len, lines))
            counted.lines += len(lines)
            counted.add(_decoded(lines))
    return counted


def _decoded(lines: Sequence[bytes]) -> Sequence[CountedLine]:
    """Returns the lines that can be decoded; verification reports the others."""
    # all at once takes a third of the time, but fails where one line is malformed
    with suppress(*_MALFORMED):
        decoded = _decoder.decode_lines(b"".join(lines))
        if len(decoded) == len(lines):
            return decoded
    found = []
    for line in lines:
        with suppress(*_MALFORMED):
            found.append(_decoder.decode(line))
    return found


class IndexProgress(NamedTuple):
    """How far a chain is indexed: bytes of that day's file, the last line's number and time."""

    day: str
    bytes: int
    seq: int
    time: str


_NONE = IndexProgress("", 0, 0, "")


def record_key(record: str) -> bytes:
    """Returns the 16 bytes that stand for a record: those of its UUID, else a digest of its id."""
    return uuid_key(record) or blake2b(record.encode(), digest_size=16).digest()


def uuid_key(record: str) -> bytes | None:
    """Returns the 16 bytes of a UUID in upper or lower case; None for any other text."""
    try:
        key = bytes.fromhex(record.replace("-", ""))
    except ValueError:
        return None
    return key if len(key) == 16 else None


def record_id(text: str) -> str:
    """Returns a UUID as the audit writes it; any other text as it is."""
    return str(UUID(bytes=key)) if (key := uuid_key(text)) else text


class Index:
    """The index of one folder. Every method raises StoreError and OSError."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._views: dict[CallView, int] = {}

    async def catch_up(self) -> int:
        """Indexes all new lines; returns how many, without those that another process took."""
        lines, known = 0, dict(await self.progress())
        for file in await asyncio.to_thread(day_files, self._folder):
            day = str(file.day)
            while (at := known.get(file.chain, _NONE)).day <= day:
                start = at.bytes if at.day == day else 0
                new = await asyncio.to_thread(count, file.path, start)
                if new.end == start:
                    break
                now = IndexProgress(day, new.end, new.seq or at.seq, new.time or at.time)
                if await self._take(file.chain, at, now, new):
                    known[file.chain] = now
                    lines += new.lines
                else:  # another process was faster: go on from there
                    known |= await self.progress()
        return lines

    async def backlog(self) -> int:
        """Returns the bytes of lines that are still to be indexed."""
        known, left = await self.progress(), 0
        for file in await asyncio.to_thread(day_files, self._folder):
            at, day = known.get(file.chain, _NONE), str(file.day)
            if at.day <= day:
                with suppress(FileNotFoundError):
                    left += file.path.stat().st_size - (at.bytes if at.day == day else 0)
        return left

    async def progress(self) -> Mapping[str, IndexProgress]:
        """Returns how far each chain is indexed, those of other folders included."""
        rows = await self._store.rows(select(tables.audit_progress))
        return {chain: IndexProgress(*rest) for chain, *rest in rows}

    async def _take(self, chain: str, at: IndexProgress, now: IndexProgress, new: Counted) -> bool:
        """Adds the sums, all or none; returns False where the index is not at `at` any more."""
        table, kinds = tables.audit_progress, await asyncio.to_thread(list, new.kinds())
        async with self._store.begin() as connection:
            if at == _NONE:
                first = tables.adding(connection, table).values(chain=chain, **now._asdict())
                moved = await connection.execute(first.on_conflict_do_nothing())
            else:
                here = (table.c.chain == chain, table.c.day == at.day, table.c.bytes == at.bytes)
                change = update(table).where(*here).values(**now._asdict())
                moved = await connection.execute(change)
            if not moved.rowcount:
                return False
            views = await self._ids(connection, {view for _, view, *_ in kinds})
            rows = await asyncio.to_thread(_rows, kinds, views, now.day)
            for filled, sums in zip((audit_reads, audit_calls, audit_days), rows, strict=True):
                await tables.add_sums(connection, filled, sums)
        self._views.update(views)
        return True

    async def _ids(self, connection: AsyncConnection, views: set[CallView]) -> dict[CallView, int]:
        """Returns the numbers of the views; a new one gets its number."""
        numbers = {view: self._views[view] for view in views if view in self._views}
        for view in sorted(views - numbers.keys()):
            row = view._asdict()
            added = tables.adding(connection, audit_views).values(**row)
            await connection.execute(added.on_conflict_do_nothing())
            same = [audit_views.c[name] == value for name, value in row.items()]
            number = await connection.execute(select(audit_views.c.id).where(*same))
            numbers[view] = number.scalar_one()
        return numbers


def _rows(
    kinds: Sequence[CallKind], views: Mapping[CallView, int], file_day: str
) -> Sequence[list[Row]]:
    """Returns the rows of reads, calls and days; the file's own day is there even without calls."""
    reads, calls = list[Row](), list[Row]()
    all_calls, all_reads = Counter({day_of(file_day): 0}), Counter[int]()
    for day, view, outcome, reason, made, shown in kinds:
        number = views[view]
        reads += ((day, record_key(name), number, *astuple(span)) for name, span in shown.items())
        calls.append((day, number, outcome, reason, *astuple(made)))
        all_calls[day] += made.times
        all_reads[day] += sum(span.times for span in shown.values())
    days = [(day, all_calls[day], all_reads[day]) for day in all_calls]
    return [sorted(rows) for rows in (reads, calls, days)]


async def forget(store: Store, before: date) -> None:
    """Deletes the days before that one, each in a transaction of its own. Raises StoreError."""
    days, last = audit_days.c, before.toordinal() - EPOCH
    old = select(days.day).where(days.day < last, days.calls + days.reads > 0)
    for (day,) in await store.rows(old):
        async with store.begin() as connection:
            # the day's sums first: others that add to the day wait for this transaction
            gone = update(audit_days).where(audit_days.c.day == day).values(calls=0, reads=0)
            await connection.execute(gone)
            await connection.execute(delete(audit_calls).where(audit_calls.c.day == day))
            # the records in parts: PostgreSQL ends a statement that takes long
            for first in range(240, -1, -16):
                low = bytes([first]) + bytes(15)
                some = (audit_reads.c.day == day, audit_reads.c.record >= low)
                await connection.execute(delete(audit_reads).where(*some))


async def forget_all(store: Store) -> None:
    """Empties the index; the next `catch_up` takes every line of its folder. Raises StoreError."""
    # in the order in which sums are added; views stay, as others may know their numbers
    filled = (tables.audit_progress, audit_reads, audit_calls, audit_days)
    async with store.begin() as connection:
        if connection.dialect.name == "postgresql":
            names = ", ".join(table.name for table in filled)
            # nosemgrep: sql-is-never-put-together-as-text - names of our own tables
            await connection.execute(text(f"TRUNCATE {names}"))
        else:
            for table in filled:
                await connection.execute(delete(table))
