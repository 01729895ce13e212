"""The index in the store: filled from the day files, as often as one likes, by whoever comes."""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import date
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Dialect, Table, case, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit.counting import EPOCH, Counted, View, count
from gateway.audit.files import DayFile, day_files
from gateway.store import Store
from gateway.store.tables import audit_calls, audit_chains, audit_reads, audit_views

# So many rows go to the driver at once.
ROWS_AT_ONCE = 2_000
# In the order of the table's columns.
Row = tuple[Any, ...]


def record_key(record: str) -> bytes:
    """The 16 bytes under which a record is known: those of its id, where that is a UUID."""
    try:
        key = bytes.fromhex(record.replace("-", ""))
    except ValueError:
        key = b""
    return key if len(key) == 16 else blake2b(record.encode(), digest_size=16).digest()


class Index:
    """Follows the files of one folder; StoreError and OSError come through."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._views: dict[View, int] = {}

    async def catch_up(self) -> int:
        """Take in what is new; the number of lines.

        Another process that does the same at the same time takes what this one then passes over.
        """
        lines = 0
        known = await self._progress()
        for file in await asyncio.to_thread(day_files, self._folder):
            if file.chain in known and str(file.day) >= known[file.chain][0]:
                lines += await self._follow(file, known)
        return lines

    async def _follow(self, file: DayFile, known: dict[str, tuple[str, int]]) -> int:
        """What is new in one file."""
        lines = 0
        while True:
            at = known[file.chain]
            start = at[1] if at[0] == str(file.day) else 0
            counted = await asyncio.to_thread(count, file.path, start)
            if counted.end == start or not await self._take(file, at, counted):
                return lines
            known[file.chain] = (str(file.day), counted.end)
            lines += counted.lines

    async def _progress(self) -> dict[str, tuple[str, int]]:
        columns = (audit_chains.c.id, audit_chains.c.indexed_day, audit_chains.c.indexed_to)
        async with self._store.begin() as connection:
            rows = await connection.execute(select(*columns))
            return {chain: (day, end) for chain, day, end in rows}

    async def _take(self, file: DayFile, at: tuple[str, int], counted: Counted) -> bool:
        """Add it, all or nothing; False where somebody else was quicker."""
        table = audit_chains
        here = (table.c.id == file.chain, table.c.indexed_day == at[0], table.c.indexed_to == at[1])
        moved = update(table).where(*here)
        async with self._store.begin() as connection:
            values = {"indexed_day": str(file.day), "indexed_to": counted.end}
            if (await connection.execute(moved.values(**values))).rowcount == 0:
                return False
            views = await self._ids(connection, {view for view, _ in counted.calls})
            await _add(connection, audit_reads, _reads(counted, views))
            await _add(connection, audit_calls, _calls(counted, views))
        self._views.update(views)
        return True

    async def _ids(self, connection: AsyncConnection, views: set[View]) -> dict[View, int]:
        """Their numbers; who is new gets one."""
        found = {view: self._views[view] for view in views if view in self._views}
        for view in sorted(views - found.keys()):
            row = view._asdict()
            await connection.execute(
                _insert(connection.dialect, audit_views).values(**row).on_conflict_do_nothing()
            )
            same = [audit_views.c[name] == value for name, value in row.items()]
            number = await connection.execute(select(audit_views.c.id).where(*same))
            found[view] = number.scalar_one()
        return found


def _insert(dialect: Dialect, table: Table) -> Any:
    """Both kinds of database know `on conflict`, each in a module of its own."""
    return (postgresql if dialect.name == "postgresql" else sqlite).insert(table)


async def _add(connection: AsyncConnection, table: Table, rows: Iterable[Row]) -> None:
    """To what is there: how often, and the first and the last time.

    In the order of the key: so two never wait for each other, and pages lie side by side.
    """
    text = _adding(connection.dialect, table)
    left = iter(sorted(rows))
    while some := list(islice(left, ROWS_AT_ONCE)):
        # as tuples to the driver: to bind a row costs else ten times what the database needs for it
        await connection.exec_driver_sql(text, some)


def _adding(dialect: Dialect, table: Table) -> str:
    statement = _insert(dialect, table)
    new, old = statement.excluded, table.c
    statement = statement.on_conflict_do_update(
        index_elements=list(table.primary_key),
        set_={
            "times": old.times + new.times,
            "first": case((new.first < old.first, new.first), else_=old.first),
            "last": case((new.last > old.last, new.last), else_=old.last),
        },
    )
    return str(statement.compile(dialect=dialect))


def _reads(counted: Counted, views: dict[View, int]) -> Iterator[Row]:
    for (view, day), records in counted.reads.items():
        number = views[view]
        for record, span in records.items():
            yield record_key(record), day, number, span.times, span.first, span.last


def _calls(counted: Counted, views: dict[View, int]) -> Iterator[Row]:
    for (view, day), ends in counted.calls.items():
        for (outcome, reason), span in ends.items():
            yield views[view], day, outcome, reason, span.times, span.first, span.last


async def forget(store: Store, before: date) -> None:
    """Drop what is older, a part of the records at a time: others write in between. StoreError."""
    day = before.toordinal() - EPOCH
    for low, high in _parts():
        part = [audit_reads.c.record >= low] + ([audit_reads.c.record < high] if high else [])
        async with store.begin() as connection:
            await connection.execute(delete(audit_reads).where(audit_reads.c.day < day, *part))
    async with store.begin() as connection:
        await connection.execute(delete(audit_calls).where(audit_calls.c.day < day))


def _parts() -> Iterator[tuple[bytes, bytes]]:
    for first in range(256):
        yield bytes([first]) + bytes(15), bytes([first + 1]) + bytes(15) if first < 255 else b""
