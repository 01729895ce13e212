"""Defines the mapped database that the doctor looks at; of its rows a page is held at a time."""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, func, not_, select
from sqlalchemy import case as case_of
from sqlalchemy.exc import DBAPIError

from adapters.base import Record
from adapters.doctor.case import NO_PARENT, DoctorCase, Look, RowTaken, SomeRows, Undecided
from adapters.examination import MOST_IDS, SAMPLE, Examination, counted
from adapters.mapping.models import BusyMap, ResourceMap, TimesMap
from adapters.sql.adapter import SqlAdapter, SqlSession
from adapters.sql.columns import Columns, KeyedRows, Rows, rows_of, sql
from adapters.sql.records import MOST_BLANK
from adapters.values.convert import Unreadable

T = TypeVar("T")
# Seconds of one look at a sample, and at all rows.
PATIENCE, PATIENCE_FOR_ALL = 60.0, 1800.0
PAGE = 2_000
# Rows of which a condition is asked.
MOST_DECIDED = 100_000
# What leaves the condition out of rows.
_BARE = {"where": None}
_FIRST = re.compile(r"\s*((?:\"[^\"]+\"|`[^`]+`|\[[^\]]+\]|[\w.]+))").match
_COLUMN = re.compile(r"(?:[\w\"`\[\]]+\.)?(\"[^\"]+\"|`[^`]+`|\w+)").fullmatch
# Ids in one statement: with all their spellings they stay within SQL Server's parameters.
AT_ONCE = 400


class SqlCase(DoctorCase):
    """A mapped database, asked through connections that have more time than a call's."""

    ahead = timedelta(days=90)
    most_vets = 200
    most_durations = 400
    # records from either end that are kept for other looks
    kept = SAMPLE // 2
    rows_in = ("from", "from")
    doubled = (
        "from",
        "does `from` multiply rows? what a record has several of is a sub-select in a field,"
        " not a join",
    )
    adapter: SqlAdapter
    session: SqlSession

    def __init__(self, adapter: SqlAdapter, examination: Examination) -> None:
        super().__init__(examination)
        least = PATIENCE if examination.rows is not None else PATIENCE_FOR_ALL
        patience = max(least, adapter.options.timeout)
        options = replace(adapter.options, report=self.troubles.append, timeout=patience)
        self.adapter = SqlAdapter(options)
        self.engine = self.adapter.engine
        self.speech = self.engine.speech

    async def run(self, flow: Callable[[SqlSession], Awaitable[T]]) -> T:
        return await self.adapter.look(flow)

    def readable(self) -> Iterator[str]:
        return (name for name in self.adapter.readers if not self.is_lost("resources", name))

    def batches(self, name: str) -> Iterator[list[RowTaken]]:
        """Yields the rows page by page; behind the fields of a list's row is its parent's key."""
        table: KeyedRows = self.rows(name)
        reader, is_inner = self.adapter.readers[table.resource], table.parent.width > 0
        statement = table.statement if is_inner else reader.every_row
        most, count = self.examination.rows, 0

        def taken(row: Any) -> RowTaken:
            owner = None
            if is_inner:
                owner = NO_PARENT
                with suppress(Unreadable):  # it may be spelt differently from the key
                    owner = reader.table.ids.referred(table.parent_in(row)) or NO_PARENT
            return RowTaken(row, table.id_of(row), Columns.spelling(table.key_in(row)), owner)

        for rows in pages(self.session.connection, statement, table.key, most=most):
            count += len(rows)
            yield list(map(taken, rows))
        if most is None or count < most:
            self.whole.add(name)

    async def with_lists(self, resource: str, records: list[Record]) -> list[Record]:
        reader, ids = self.session.reader(resource), [each["id"] for each in records if each["id"]]
        whole: list[Record] = []
        for first in range(0, len(ids), AT_ONCE):
            rows = (await reader.rows_of(ids[first : first + AT_ONCE])).values()
            made = reader.records(list(rows), None)
            some = [record for record in made if record and record["id"]]
            await reader.add_lists(some, None)
            whole += some
        return whole

    def misfits(self, look: Look, name: str) -> None:
        if "." not in name:
            keyless = self.adapter.readers[name].keyless.limit(MOST_BLANK).subquery()
            if blank := self.session.connection.scalar(select(func.count()).select_from(keyless)):
                text = f"{counted(int(blank), 'row')} without a key: they are never shown"
                look.warning(text, "key", check="rows")

    def has_rows(self, resource: str) -> bool:
        return self._has_any(self.adapter.mapping.resources[resource].model_copy(update=_BARE))

    def has_blocks(self, source: int) -> SomeRows:
        rows = self.adapter.mapping.diary.busy[source]
        return SomeRows(self._has_any(rows), self._has_any(rows.model_copy(update=_BARE)))

    def undecided(self, rows: ResourceMap | BusyMap) -> Undecided | None:
        if rows.where is None:
            return None
        yes = sql(rows.where)
        says = case_of((yes, 1), (not_(yes), 0), else_=2).label("says")
        bare = rows.model_copy(update=_BARE)
        some = rows_of(bare, says).limit(MOST_DECIDED).subquery()
        counts = select(some.c.says, func.count()).group_by(some.c.says)
        said = {int(what): int(count) for what, count in self.session.connection.execute(counts)}
        keys = list[str]()
        if said.get(2) and rows.key is not None:
            key = Columns(rows.key.source)
            open_ = rows_of(bare, *key.labelled("row_key")).where(says.element == 2)
            found = self.session.connection.execute(open_.limit(MOST_IDS))
            keys = [" ".join(Columns.spelling(tuple(row))) for row in found]
        return Undecided(said.get(1, 0), said.get(2, 0), keys)

    def are_appointments(self, rows: TimesMap) -> bool:
        appointments = self.adapter.mapping.resources.get("appointments")
        if appointments is None or rows.key is None:
            return False
        free = _key_in(rows.from_ or "", rows.key.source)
        return free is not None and free == _key_in(
            appointments.from_ or "", appointments.key.source
        )

    def _has_any(self, rows: Rows) -> bool:
        return self.session.connection.execute(rows_of(rows, sql("1")).limit(1)).first() is not None

    def refusal(self, error: DBAPIError) -> str:
        """Returns why the database refuses a question, in its own words where it has some."""
        return self.speech.complaint(error) or f"a statement failed ({self.speech.kind(error)})"

    async def missing(self, target: str, ids: set[str]) -> tuple[set[str], set[str], set[str]]:
        mapped = self.adapter.mapping.resources[target]
        bare = mapped.model_copy(update=_BARE)
        unseen = ids - self._existing(target, mapped, ids)
        gone = unseen - self._existing(target, bare, unseen)
        return ids, gone, unseen - gone

    async def hidden_visits(self, ids: set[str]) -> set[str]:
        mapped = self.adapter.mapping.resources["appointments"]
        animal = mapped.fields.get("patientId", mapped.fields.get("clientId"))
        _, _, hidden = await self.missing("appointments", ids)
        if animal is None:
            return set()
        named = " AND ".join(f"({part}) IS NOT NULL" for part in animal.source)
        bare = mapped.model_copy(update={"where": named})
        return hidden & self._existing("appointments", bare, hidden)

    def _existing(self, target: str, mapped: ResourceMap, some: Set[str]) -> set[str | None]:
        ids = sorted(some - {NO_PARENT})
        reader, existing = self.adapter.readers[target], set[str | None]()
        key = reader.table.key
        statement = rows_of(mapped, *key.labelled("row_key"))
        for first in range(0, len(ids), AT_ONCE):
            keys = [raw for id_ in ids[first : first + AT_ONCE] for raw in reader.spellings(id_)]
            rows = self.session.connection.execute(statement.where(key.among(keys)))
            existing.update(map(reader.table.id_of, rows))
        return existing


def _key_in(from_: str, key: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the first table of rows and the columns of their key, bare and in lower case."""
    table = _FIRST(from_)
    columns = [_COLUMN(part.strip()) for part in key]
    if table is None or None in columns:
        return None
    return tuple(_bare(found[1]) for found in (table, *filter(None, columns)))


def _bare(name: str) -> str:
    return name.strip('"`[]').lower()


def pages(
    connection: Connection, statement: Select[Any], key: Columns, *, most: int | None
) -> Iterator[list[Any]]:
    """Yields each row once, in the order of keys: those of both ends, or of the whole table."""
    ordered, key_in = statement.order_by(*key.parts), key.getter(0)
    if most is not None:
        first, half = list(connection.execute(ordered.limit(most))), most // 2
        if len(first) == most:
            backwards = statement.order_by(*(part.desc() for part in key.parts)).limit(half)
            last, known = list(connection.execute(backwards)), set(map(key_in, first[:half]))
            first[half:] = [row for row in reversed(last) if key_in(row) not in known]
        yield first
        return
    # rows without a key have no place in the order; up to a page of them comes first
    yield list(connection.execute(statement.where(not_(key.present)).limit(PAGE)))
    query = ordered = ordered.where(key.present)
    limit = PAGE
    while len(rows := list(connection.execute(query.limit(limit)))) == limit:
        raw = key_in(rows[-1])
        query, last_key = ordered.where(key.beyond(raw, at_least=True)), Columns.spelling(raw)
        # rows of one key stay together: those of the last key are read again with the next page
        whole = [row for row in rows if Columns.spelling(key_in(row)) != last_key]
        limit = PAGE if whole else 2 * limit
        if whole:
            yield whole
    yield rows
