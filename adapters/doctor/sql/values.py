"""Real rows through the mapping's converters: what none of them covers, and what is never there."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, func, select

from adapters.base import Record
from adapters.doctor.findings import MOST_IDS, rows
from adapters.doctor.sql.case import Case, Step
from adapters.doctor.sql.pages import Sample, pages
from adapters.doctor.values import Tally, judged, unlinked, unmapped
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.sql.columns import rows_of, sql
from adapters.sql.keyed import KeyedRows
from adapters.sql.mapping import Expression
from adapters.sql.pages import MOST_BLANK
from adapters.sql.reading import ResourceReader
from adapters.values.convert import Unreadable

_SUB_SELECT = re.compile(r"\s*(?:\(\s*)*SELECT\b", re.IGNORECASE).match


def values(case: Case) -> Iterator[Step]:
    """One look at each resource."""
    for name, reader in case.readers():
        place = ("resources", name)
        yield Step("values", name, partial(_resource, case=case, reader=reader), place)


def _resource(connection: Connection, case: Case, reader: ResourceReader) -> Iterator[Finding]:
    tallies = {column.name: Tally() for column in reader.table.columns}
    keys, sample, count = Keys(reader.table), Sample(), 0
    for found in pages(connection, reader.every_row, reader.table, most=case.examination.rows):
        keys.take(found)
        for record in read(reader.table, found, tallies):
            sample.take(record)
        count += len(found)
    case.samples[reader.name] = sample.records
    yield from keys.findings(connection, case, reader)
    if not count:
        yield _nothing(connection, case, reader)
        return
    place, fields = ("resources", reader.name), case.parts.mapping.resources[reader.name].fields
    said = list(fields_judged(case, place, reader.name, fields, tallies, count))
    yield from said
    names = [*reader.table.names, *sorted(reader.lists)]
    mapped = [*reader.table.by_name, *(each.name for each in reader.children)]
    yield from unmapped(case, reader.name, names, mapped)
    many = "a sample" if count >= (case.examination.rows or count + 1) else "all there are"
    if not said:
        yield case.ok("values", reader.name, f"{rows(count)}, {many}: every value is read", ())


def fields_judged(
    case: Case,
    place: Place,
    owner: str,
    fields: Mapping[str, Expression],
    tallies: Mapping[str, Tally],
    count: int,
) -> Iterator[Finding]:
    """What is to be said of the fields of so many rows, at that place of the mapping."""
    for name, tally in tallies.items():
        yield from judged(case, place, owner, name, tally, count)
        if any(map(_SUB_SELECT, fields[name].columns)):
            yield from unlinked(case, place, owner, name, tally, count)


def read(
    table: KeyedRows, found: Iterable[Any], tallies: dict[str, Tally], offset: int = 0
) -> Iterator[Record]:
    """The rows as records, each value counted."""
    for row in found:
        record: Record = dict.fromkeys(table.names)
        shown = shown_id(table, table.key.take(row, offset))
        record["id"] = shown
        at = offset + table.key.width
        for column in table.columns:
            raw, is_time = column.take(row, at), hasattr(column.converter, "zero")
            tally = tallies[column.name]
            record[column.name] = tally.take(column.converter.decode, raw, shown, is_time=is_time)
            at += column.width
        yield record


def shown_id(table: KeyedRows, key: Any) -> str | None:
    """The public id of a key; None where it makes none."""
    try:
        return table.ids.shown(key)
    except Unreadable:
        return None


def referred_id(table: KeyedRows, key: Any) -> str | None:
    """The same of a key in another table, where it may be spelt otherwise."""
    try:
        return table.ids.referred(key)
    except Unreadable:
        return None


class Keys:
    """The keys of all rows; of each no more is kept than a number of 64 bits."""

    def __init__(self, table: KeyedRows) -> None:
        self._table = table
        self._known: set[int] = set()
        self._doubled: dict[int, str | None] = {}
        self._count = self._odd = 0

    def take(self, found: Sequence[Any]) -> None:
        for row in found:
            key = self._table.key.take(row, 0)
            shown, mark = shown_id(self._table, key), hash(self._table.key.spelling(key))
            if mark in self._known:
                self._doubled[mark] = shown if len(self._doubled) < MOST_IDS else None
            self._known.add(mark)
            self._odd += shown is None
        self._count += len(found)

    def findings(
        self, connection: Connection, case: Case, reader: ResourceReader
    ) -> Iterator[Finding]:
        place, many = ("resources", reader.name), len(self._doubled)
        if many:
            text = f"{many} of {len(self._known):,} keys occur more than once:"
            text += " `from` multiplies rows"
            remedy = "what a record has several of is a sub-select in a field, not a join"
            ids = dict.fromkeys(each for each in self._doubled.values() if each)
            at = (*place, "from")
            yield case.failed("rows", reader.name, text, at, remedy=remedy, ids=ids)
        at = (*place, "key")
        if self._odd:
            text = f"{rows(self._odd)} of {self._count:,} whose key makes no id:"
            text += " they are never shown"
            remedy = "write {sql: ..., as: hashed id}"
            yield case.failed("rows", reader.name, text, at, remedy=remedy)
        blank = connection.scalar(
            select(func.count()).select_from(reader.pages.keyless.limit(MOST_BLANK).subquery())
        )
        if blank:
            text = f"{rows(int(blank))} without a key: they are never shown"
            yield case.warning("rows", reader.name, text, at)


def _nothing(connection: Connection, case: Case, reader: ResourceReader) -> Finding:
    mapped = case.parts.mapping.resources[reader.name]
    bare = mapped.model_copy(update={"where": None})
    some = connection.execute(rows_of(bare, sql("1")).limit(1)).first()
    if some is not None:
        place = ("resources", reader.name, "where")
        return case.failed(
            "rows", reader.name, "0 records, though there are rows: is `where` right?", place
        )
    place = ("resources", reader.name, "from")
    return case.warning("rows", reader.name, "0 records: its tables are empty", place)


def every_record(connection: Connection, case: Case, name: str) -> Iterator[list[Record]]:
    """The records that are looked at, page by page; of a list inside others as invoices.lines."""
    if case.examination.rows is not None:
        yield case.samples.get(name, [])
        return
    resource, _, inner = name.partition(".")
    reader = case.parts.readers.get(resource)
    if reader is None or name not in case.samples:
        return
    table, statement, offset = reader.table, reader.every_row, 0
    for children in reader.children:
        if children.name == inner:
            table = children.table
            nested = case.parts.mapping.resources[resource].lists[inner]
            statement = rows_of(nested, *table.selected())
    tallies = {column.name: Tally() for column in table.columns}
    for found in pages(connection, statement, table, most=None):
        yield list(read(table, found, tallies, offset))
