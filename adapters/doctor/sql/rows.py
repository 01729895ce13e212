"""A mapped database that the doctor looks at: its rows, page by page, and what they come to.

No more than a page of rows is held at a time, however large the table is.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, func, not_, select

from adapters.base import Record
from adapters.doctor.case import MOST_IDS, CheckStep, DoctorCase, agreeing, counted, weighed
from adapters.doctor.values import FieldTally, fields_judged, is_time, unmapped
from adapters.examination import SAMPLE, Finding
from adapters.mapping.models import ListMap, ResourceMap
from adapters.sql.adapter import SqlAdapter
from adapters.sql.columns import Columns, KeyedRows, rows_of, sql
from adapters.sql.engines.base import Engine, Speech
from adapters.sql.records import MOST_BLANK, Children, SqlReader
from adapters.sql.session import SqlSession
from adapters.values.convert import Unreadable

T = TypeVar("T")
PAGE = 2_000
# So many records from either end are kept for the looks that need some.
KEPT = SAMPLE // 2
# So many ids at a time: in all their spellings they are no more than SQL Server's parameters.
AT_ONCE = 400
# A larger share of rows without a record is no accident.
ORPHANS = 0.2
_SUB_SELECT = re.compile(r"\s*(?:\(\s*)*SELECT\b", re.IGNORECASE).match


@dataclass(slots=True, kw_only=True)
class SqlCase(DoctorCase):
    """A mapped database, and what is known of it so far."""

    ahead = timedelta(days=90)
    most_vets = 50
    adapter: SqlAdapter

    @property
    def engine(self) -> Engine:
        return self.adapter.driver.engine

    @property
    def speech(self) -> Speech:
        return self.engine.speech

    def readers(self) -> Iterator[tuple[str, SqlReader]]:
        """The resources that can be read."""
        for name, reader in self.adapter.readers.items():
            if not self.is_lost("resources", name):
                yield name, reader

    async def run(self, flow: Callable[[SqlSession], Awaitable[T]]) -> T:
        return await self.adapter.driver.read(flow)

    def converter(self, resource: str, name: str) -> Any:
        column = self.adapter.readers[resource].table.by_name.get(name)
        return None if column is None else column.converter

    def pages(self, session: Any, name: str) -> Iterator[list[Record]]:
        """The records of a resource, or of a list inside others as invoices.lines."""
        if self.examination.rows is not None:
            yield self.samples.get(name, [])
            return
        if name not in self.samples:
            return
        resource, _, inner = name.partition(".")
        reader = self.adapter.readers[resource]
        table, statement = reader.table, reader.every_row
        if inner:
            table = next(each.table for each in reader.children if each.name == inner)
            nested = self.core.mapping.resources[resource].lists[inner]
            statement = rows_of(nested, *table.selected())
        tallies = _tallies(table)
        for found in pages(session.connection, statement, table, most=None):
            yield list(_records(table, found, tallies))

    async def missing(
        self, session: Any, target: str, ids: set[str]
    ) -> tuple[set[str], set[str], set[str]]:
        gone, hidden = self.lost_ids(session.connection, target, ids)
        return ids, gone, hidden

    def lost_ids(
        self, connection: Connection, target: str, ids: set[str]
    ) -> tuple[set[str], set[str]]:
        """Those of the public ids that lead to no row at all, and to one that `where` hides."""
        mapped = self.core.mapping.resources[target]
        bare = mapped.model_copy(update={"where": None})
        unseen = ids - self._existing(connection, target, mapped, sorted(ids))
        gone = unseen - self._existing(connection, target, bare, sorted(unseen))
        return gone, unseen - gone

    def _existing(
        self, connection: Connection, target: str, mapped: ResourceMap, ids: Sequence[str]
    ) -> set[str | None]:
        reader = self.adapter.readers[target]
        key = reader.table.key
        statement = rows_of(mapped, *key.labelled("row_key"))
        found = set()
        for first in range(0, len(ids), AT_ONCE):
            keys = [raw for each in ids[first : first + AT_ONCE] for raw in reader.spellings(each)]
            for row in connection.execute(statement.where(key.among(keys))):
                found.add(reader.table.public_id(key.take(row, 0)))
        return found


def pages(
    connection: Connection, statement: Select[Any], table: KeyedRows, *, most: int | None
) -> Iterator[list[Any]]:
    """The rows in the order of their keys, each once: those of both ends, or of the whole table."""
    if most is not None:
        yield _of_both_ends(connection, statement, table, most)
        return
    # what has no key has no place among the others: it comes by itself, as far as a page goes
    yield list(connection.execute(statement.where(not_(table.key.present)).limit(PAGE)))
    ordered = statement.where(table.key.present).order_by(*table.key.parts)
    limit, key = PAGE, None
    while True:
        asked = ordered if key is None else ordered.where(table.key.beyond(key, at_least=True))
        found = list(connection.execute(asked.limit(limit)))
        if len(found) < limit:
            yield found
            return
        key = table.key.take(found[-1], 0)
        last = Columns.spelling(key)
        # the rows of one key stay together: the last key's come again with the next page
        whole = [row for row in found if Columns.spelling(table.key.take(row, 0)) != last]
        limit = PAGE if whole else 2 * limit
        if whole:
            yield whole


def _of_both_ends(
    connection: Connection, statement: Select[Any], table: KeyedRows, most: int
) -> list[Any]:
    first = list(connection.execute(statement.order_by(*table.key.parts).limit(most)))
    if len(first) < most:
        return first
    backwards = statement.order_by(*(part.desc() for part in table.key.parts))
    last = list(connection.execute(backwards.limit(most // 2)))
    known = {table.key.take(row, 0) for row in first[: most // 2]}
    return first[: most // 2] + [r for r in reversed(last) if table.key.take(r, 0) not in known]


def _tallies(table: KeyedRows) -> dict[str, FieldTally]:
    return {
        column.name: FieldTally(column.converter.decode, is_time=is_time(column.converter))
        for column in table.columns
    }


def _records(
    table: KeyedRows, found: Iterable[Any], tallies: dict[str, FieldTally]
) -> Iterator[Record]:
    """The rows as records, each value counted."""
    for row in found:
        record: Record = dict.fromkeys(table.names)
        record["id"] = shown = table.public_id(table.key.take(row, 0))
        offset = table.key.width
        for column in table.columns:
            record[column.name] = tallies[column.name].take(column.take(row, offset), shown)
            offset += column.width
        yield record


def values(case: SqlCase) -> Iterator[CheckStep]:
    """One look at each resource."""
    for name, reader in case.readers():
        yield CheckStep("values", name, partial(_resource, case, reader), ("resources", name))


def _resource(case: SqlCase, reader: SqlReader, session: SqlSession) -> Iterator[Finding]:
    name, table, mapped = reader.name, reader.table, case.core.mapping.resources[reader.name]
    tallies, keys, count = _tallies(table), DoubledKeys(table), 0
    sample: list[Record] = []
    for found in pages(session.connection, reader.every_row, table, most=case.examination.rows):
        keys.take(found)
        sample += _records(table, found, tallies)
        del sample[KEPT:-KEPT]
        count += len(found)
    case.samples[name] = sample
    yield from keys.findings(session.connection, case, reader)
    if not count:
        yield _nothing(session.connection, case, name, mapped)
        return
    judged = [*fields_judged(case, ("resources", name), name, tallies, count, _selecting(mapped))]
    yield from judged
    filled = [*table.by_name, *(children.name for children in reader.children)]
    yield from unmapped(case, name, [*table.names, *sorted(reader.lists)], filled)
    if not judged:
        many = "a sample" if count >= (case.examination.rows or count + 1) else "all there are"
        yield case.ok("values", name, f"{counted(count, 'row')}, {many}: every value is read")


def _selecting(mapped: ResourceMap | ListMap) -> set[str]:
    """The fields that are made by a sub-select."""
    fields = mapped.fields.items()
    return {name for name, source in fields if any(map(_SUB_SELECT, source.expressions))}


class DoubledKeys:
    """The keys of all rows; of each no more is kept than a number of 64 bits."""

    def __init__(self, table: KeyedRows) -> None:
        self._table = table
        self._known: set[int] = set()
        self._doubled: dict[int, str | None] = {}
        self._count = self._odd = 0

    def take(self, found: Sequence[Any]) -> None:
        for row in found:
            key = self._table.key.take(row, 0)
            shown, mark = self._table.public_id(key), hash(self._table.key.spelling(key))
            if mark in self._known:
                self._doubled[mark] = shown if len(self._doubled) < MOST_IDS else None
            self._known.add(mark)
            self._odd += shown is None
        self._count += len(found)

    def findings(
        self, connection: Connection, case: SqlCase, reader: SqlReader
    ) -> Iterator[Finding]:
        place, key = ("resources", reader.name, "from"), ("resources", reader.name, "key")
        if self._doubled:
            text = f"{len(self._doubled)} of {len(self._known):,} keys occur more than once:"
            text += " `from` multiplies rows"
            remedy = "what a record has several of is a sub-select in a field, not a join"
            ids = dict.fromkeys(shown for shown in self._doubled.values() if shown)
            yield case.failed("rows", reader.name, text, place, remedy=remedy, ids=ids)
        if self._odd:
            text = f"{counted(self._odd, 'row')} of {self._count:,} whose key makes no id:"
            text += " they are never shown"
            remedy = "write {source: ..., as: hashed id}"
            yield case.failed("rows", reader.name, text, key, remedy=remedy)
        blank = connection.scalar(
            select(func.count()).select_from(reader.pages.keyless.limit(MOST_BLANK).subquery())
        )
        if blank:
            text = f"{counted(int(blank), 'row')} without a key: they are never shown"
            yield case.warning("rows", reader.name, text, key)


def _nothing(connection: Connection, case: SqlCase, name: str, mapped: ResourceMap) -> Finding:
    bare = mapped.model_copy(update={"where": None})
    if connection.execute(rows_of(bare, sql("1")).limit(1)).first() is None:
        text, place = "0 records: its tables are empty", ("resources", name, "from")
        return case.warning("rows", name, text, place)
    text = "0 records, though there are rows: is `where` right?"
    return case.failed("rows", name, text, ("resources", name, "where"))


def lists(case: SqlCase) -> Iterator[CheckStep]:
    """One look at each list."""
    for name, reader in case.readers():
        for children in reader.children:
            place = ("resources", name, "lists", children.name)
            run = partial(_list, case, reader, children)
            yield CheckStep("values", f"{name}.{children.name}", run, place)


def _list(
    case: SqlCase, reader: SqlReader, children: Children, session: SqlSession
) -> Iterator[Finding]:
    nested = case.core.mapping.resources[reader.name].lists[children.name]
    place = ("resources", reader.name, "lists", children.name)
    subject, table = f"{reader.name}.{children.name}", children.table
    parent = Columns(nested.parent or ())
    statement = rows_of(nested, *table.selected(), *parent.labelled("parent_key"))
    offset = table.key.width + sum(column.width for column in table.columns)
    tallies, count, lost = _tallies(table), 0, 0
    sample: list[Record] = []
    for found in pages(session.connection, statement, table, most=case.examination.rows):
        sample += _records(table, found, tallies)
        del sample[KEPT:-KEPT]
        parents = [_referred(reader.table, parent.take(row, offset)) for row in found]
        ids = {shown for shown in parents if shown}
        gone, _ = case.lost_ids(session.connection, reader.name, ids)
        lost += sum(shown is None or shown in gone for shown in parents)
        count += len(found)
    if not count:
        text = "no row: its table is empty, or `where` is not right"
        yield case.warning("rows", subject, text, place)
        return
    case.samples[subject] = sample
    yield from fields_judged(case, place, subject, tallies, count, _selecting(nested))
    if lost:
        verdict, remedy = weighed(lost, count, most=ORPHANS), "is `parent` the record's key?"
        text = f"{counted(lost, 'row')} of {count:,} {agreeing(lost, 'belong')} to no record"
        yield case.judged(verdict, "links", subject, text, (*place, "parent"), remedy=remedy)
    else:
        text = f"{counted(count, 'row')} {agreeing(count, 'belong')} to a record"
        yield case.ok("links", subject, text)


def _referred(table: KeyedRows, key: Any) -> str | None:
    """The public id of a key in another table, where it may be spelt otherwise."""
    try:
        return table.ids.referred(key)
    except Unreadable:
        return None
