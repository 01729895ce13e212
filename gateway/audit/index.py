"""The index in the store: filled from the day files, as often as one likes, by whoever comes."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Dialect, Table, case, delete, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit.counting import EPOCH, Counted, View, count, day_of
from gateway.audit.files import DayFile, day_files
from gateway.store import Store
from gateway.store.tables import (
    audit_calls,
    audit_days,
    audit_progress,
    audit_reads,
    audit_views,
    insert_of,
)

# So many rows go to the driver at once.
ROWS_AT_ONCE = 2_000
# In the order of the table's columns.
Row = tuple[Any, ...]


class Progress(NamedTuple):
    """How far a chain is known: bytes of that day's file, the last line's number and time."""

    day: str
    bytes: int
    seq: int
    time: str


_NONE = Progress("", 0, 0, "")


def record_key(record: str) -> bytes:
    """The 16 bytes under which a record is known: those of its id, where that is a UUID."""
    return uuid_key(record) or blake2b(record.encode(), digest_size=16).digest()


def uuid_key(record: str) -> bytes | None:
    """The 16 bytes of a UUID in upper or lower case; None for any other text."""
    try:
        key = bytes.fromhex(record.replace("-", ""))
    except ValueError:
        return None
    return key if len(key) == 16 else None


def record_id(text: str) -> str:
    """A UUID as the audit writes it; any other text as it is."""
    return str(UUID(bytes=key)) if (key := uuid_key(text)) else text


class Index:
    """Follows the files of one folder; StoreError and OSError come through."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._views: dict[View, int] = {}

    async def catch_up(self) -> int:
        """Take in all that is there now; the number of lines that this one took in.

        What another process takes in at the same time is not taken in twice.
        """
        lines = 0
        known = dict(await self.progress())
        for file in await asyncio.to_thread(day_files, self._folder):
            lines += await self._follow(file, known)
        return lines

    async def backlog(self) -> int:
        """The bytes of lines that are still to be taken in."""
        known = await self.progress()
        return await asyncio.to_thread(_left, self._folder, known)

    async def progress(self) -> Mapping[str, Progress]:
        """How far each chain is known, those of other folders too."""
        async with self._store.begin() as connection:
            rows = await connection.execute(select(audit_progress))
            return {chain: Progress(*rest) for chain, *rest in rows}

    async def _follow(self, file: DayFile, known: dict[str, Progress]) -> int:
        """What is new in one file."""
        lines, day = 0, str(file.day)
        while (at := known.get(file.chain, _NONE)).day <= day:
            start = at.bytes if at.day == day else 0
            counted = await asyncio.to_thread(count, file.path, start)
            if counted.end == start:
                break
            now = Progress(day, counted.end, counted.seq or at.seq, counted.time or at.time)
            if await self._take(file.chain, (at, now), counted):
                known[file.chain] = now
                lines += counted.lines
            else:  # somebody else was quicker: go on from there
                known |= await self.progress()
        return lines

    async def _take(self, chain: str, way: tuple[Progress, Progress], counted: Counted) -> bool:
        """Add it, all or nothing; False where somebody else was quicker."""
        async with self._store.begin() as connection:
            if not await _moved(connection, chain, *way):
                return False
            views = await self._ids(connection, {view for view, _ in counted.calls})
            await _add(connection, audit_reads, await asyncio.to_thread(_reads, counted, views))
            await _add(connection, audit_calls, sorted(_calls(counted, views)))
            await _add(connection, audit_days, sorted(_days(counted, way[1].day)))
        self._views.update(views)
        return True

    async def _ids(self, connection: AsyncConnection, views: set[View]) -> dict[View, int]:
        """Their numbers; who is new gets one."""
        found = {view: self._views[view] for view in views if view in self._views}
        for view in sorted(views - found.keys()):
            row = view._asdict()
            await connection.execute(
                insert_of(connection.dialect, audit_views).values(**row).on_conflict_do_nothing()
            )
            same = [audit_views.c[name] == value for name, value in row.items()]
            number = await connection.execute(select(audit_views.c.id).where(*same))
            found[view] = number.scalar_one()
        return found


async def _add(connection: AsyncConnection, table: Table, rows: Sequence[Row]) -> None:
    """To what is there: how often, and the first and the last time.

    In the order of the key: so two never wait for each other, and pages lie side by side.
    """
    words = _adding(connection.dialect, table)
    for at in range(0, len(rows), ROWS_AT_ONCE):
        # as tuples to the driver: to bind a row costs else ten times what the database needs for it
        await connection.exec_driver_sql(words, rows[at : at + ROWS_AT_ONCE])


def _adding(dialect: Dialect, table: Table) -> str:
    statement = insert_of(dialect, table)
    new, old = statement.excluded, table.c
    ways = {
        "first": case((new.first < old.first, new.first), else_=old.first),
        "last": case((new.last > old.last, new.last), else_=old.last),
    } if "first" in old else {}  # fmt: skip
    sums = [each.name for each in old if not each.primary_key and each.name not in ways]
    statement = statement.on_conflict_do_update(
        index_elements=list(table.primary_key),
        set_={name: old[name] + new[name] for name in sums} | ways,
    )
    return str(statement.compile(dialect=dialect))


async def _moved(connection: AsyncConnection, chain: str, at: Progress, now: Progress) -> bool:
    """Whether the chain was still known as far as `at`, and is now as far as `now`."""
    table = audit_progress
    if at == _NONE:
        first = insert_of(connection.dialect, table).values(chain=chain, **now._asdict())
        return bool((await connection.execute(first.on_conflict_do_nothing())).rowcount)
    here = (table.c.chain == chain, table.c.day == at.day, table.c.bytes == at.bytes)
    moved = update(table).where(*here).values(**now._asdict())
    return bool((await connection.execute(moved)).rowcount)


def _left(folder: Path, known: Mapping[str, Progress]) -> int:
    left = 0
    for file in day_files(folder):
        at, day = known.get(file.chain, _NONE), str(file.day)
        if at.day <= day:
            with suppress(FileNotFoundError):
                left += file.path.stat().st_size - (at.bytes if at.day == day else 0)
    return left


def _reads(counted: Counted, views: Mapping[View, int]) -> list[Row]:
    """The rows in the order of the table: in a thread, as there may be many."""
    return sorted(
        (day, record_key(record), number, span.times, span.first, span.last)
        for (view, day), records in counted.reads.items()
        for number in (views[view],)
        for record, span in records.items()
    )


def _calls(counted: Counted, views: dict[View, int]) -> Iterator[Row]:
    for (view, day), ends in counted.calls.items():
        for (outcome, reason), span in ends.items():
            yield day, views[view], outcome, reason, span.times, span.first, span.last


def _days(counted: Counted, day: str) -> Iterator[Row]:
    """What was added to each day; the file's own is there even where it has nothing of it."""
    calls, reads = Counter({day_of(day): 0}), Counter[int]()
    for (_, each), ends in counted.calls.items():
        calls[each] += sum(span.times for span in ends.values())
    for (_, each), records in counted.reads.items():
        reads[each] += sum(span.times for span in records.values())
    return ((each, calls[each], reads[each]) for each in calls)


async def forget(store: Store, before: date) -> None:
    """Drop what is older, a day at a time: others write in between. StoreError."""
    last = before.toordinal() - EPOCH
    old = select(audit_days.c.day).where(
        audit_days.c.day < last, audit_days.c.calls + audit_days.c.reads > 0
    )
    async with store.begin() as connection:
        days = (await connection.execute(old)).scalars().all()
    for day in days:
        async with store.begin() as connection:
            # its sums first: whoever adds to the day waits, and adds to what is left
            gone = update(audit_days).where(audit_days.c.day == day).values(calls=0, reads=0)
            await connection.execute(gone)
            await connection.execute(delete(audit_calls).where(audit_calls.c.day == day))
            for low, high in _parts():
                some = [audit_reads.c.day == day, audit_reads.c.record >= low]
                some += [audit_reads.c.record < high] if high else []
                await connection.execute(delete(audit_reads).where(*some))


def _parts() -> Iterator[tuple[bytes, bytes]]:
    """The records in parts: a statement may not take long where the store is PostgreSQL."""
    for first in range(0, 256, 16):
        yield bytes([first]) + bytes(15), bytes([first + 16]) + bytes(15) if first < 240 else b""


async def forget_all(store: Store) -> None:
    """Begin anew: whoever catches up next takes in every line of its folder. StoreError."""
    async with store.begin() as connection:
        if connection.dialect.name == "postgresql":
            # in the order in which lines are added; views stay, as others may know their numbers
            await connection.execute(
                text("TRUNCATE audit_progress, audit_reads, audit_calls, audit_days")
            )
        else:
            for table in (audit_progress, audit_reads, audit_calls, audit_days):
                await connection.execute(delete(table))
