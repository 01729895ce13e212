"""Real rows through the mapping's converters, and lists whose rows lead to no record."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, func, select

from adapters.doctor.case import CheckStep
from adapters.doctor.findings import MOST_IDS, agreeing, rows, weighed
from adapters.doctor.sql.case import SqlCase, lost_ids
from adapters.doctor.sql.pages import SampleEnds, pages, read, referred_id, shown_id
from adapters.doctor.values import Tally, judged, unlinked, unmapped
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict
from adapters.mapping.models import ListMap, ValueSource
from adapters.sql.columns import Columns, KeyedRows, rows_of, sql
from adapters.sql.records import MOST_BLANK, Children, SqlReader
from adapters.sql.session import SqlSession

AHEAD = timedelta(days=90)
MOST_VETS = 50
# A larger share of rows without a record is no accident.
ORPHANS = 0.2
_SUB_SELECT = re.compile(r"\s*(?:\(\s*)*SELECT\b", re.IGNORECASE).match


def values(case: SqlCase) -> Iterator[CheckStep]:
    """One look at each resource."""
    for name, reader in case.readers():
        place = ("resources", name)
        yield CheckStep("values", name, _of_connection(_resource, case=case, reader=reader), place)


def _of_connection(
    look: Callable[..., Iterator[Finding]], **given: Any
) -> Callable[[SqlSession], Any]:
    """A look that is given the connection of its session."""
    return lambda session: look(session.connection, **given)


def _resource(connection: Connection, case: SqlCase, reader: SqlReader) -> Iterator[Finding]:
    tallies = {column.name: Tally() for column in reader.table.columns}
    keys, sample, count = Keys(reader.table), SampleEnds(), 0
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
    place, fields = ("resources", reader.name), case.core.mapping.resources[reader.name].fields
    said = list(fields_judged(case, place, reader.name, fields, tallies, count))
    yield from said
    names = [*reader.table.names, *sorted(reader.lists)]
    mapped = [*reader.table.by_name, *(each.name for each in reader.children)]
    yield from unmapped(case, reader.name, names, mapped)
    many = "a sample" if count >= (case.examination.rows or count + 1) else "all there are"
    if not said:
        yield case.ok("values", reader.name, f"{rows(count)}, {many}: every value is read", ())


def fields_judged(
    case: SqlCase,
    place: Place,
    owner: str,
    fields: Mapping[str, ValueSource],
    tallies: Mapping[str, Tally],
    count: int,
) -> Iterator[Finding]:
    """What is to be said of the fields of so many rows, at that place of the mapping."""
    for name, tally in tallies.items():
        yield from judged(case, place, owner, name, tally, count)
        if any(map(_SUB_SELECT, fields[name].expressions)):
            yield from unlinked(case, place, owner, name, tally, count)


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
        self, connection: Connection, case: SqlCase, reader: SqlReader
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
            remedy = "write {source: ..., as: hashed id}"
            yield case.failed("rows", reader.name, text, at, remedy=remedy)
        blank = connection.scalar(
            select(func.count()).select_from(reader.pages.keyless.limit(MOST_BLANK).subquery())
        )
        if blank:
            text = f"{rows(int(blank))} without a key: they are never shown"
            yield case.warning("rows", reader.name, text, at)


def _nothing(connection: Connection, case: SqlCase, reader: SqlReader) -> Finding:
    mapped = case.core.mapping.resources[reader.name]
    bare = mapped.model_copy(update={"where": None})
    some = connection.execute(rows_of(bare, sql("1")).limit(1)).first()
    if some is not None:
        place = ("resources", reader.name, "where")
        return case.failed(
            "rows", reader.name, "0 records, though there are rows: is `where` right?", place
        )
    place = ("resources", reader.name, "from")
    return case.warning("rows", reader.name, "0 records: its tables are empty", place)


def lists(case: SqlCase) -> Iterator[CheckStep]:
    """One look at each list."""
    for name, reader in case.readers():
        for children in reader.children:
            nested = case.core.mapping.resources[name].lists[children.name]
            place = ("resources", name, "lists", children.name)
            run = _of_connection(_list, case=case, reader=reader, children=children, nested=nested)
            yield CheckStep("values", f"{name}.{children.name}", run, place)


def _list(
    connection: Connection,
    case: SqlCase,
    reader: SqlReader,
    children: Children,
    nested: ListMap,
) -> Iterator[Finding]:
    place = ("resources", reader.name, "lists", children.name)
    subject, table, parent = (
        f"{reader.name}.{children.name}",
        children.table,
        Columns(nested.parent or ()),
    )
    statement = rows_of(nested, *table.selected(), *parent.labelled("parent_key"))
    offset = table.key.width + sum(each.width for each in table.columns)
    tallies = {column.name: Tally() for column in table.columns}
    sample, count, lost = SampleEnds(), 0, 0
    for found in pages(connection, statement, table, most=case.examination.rows):
        for record in read(table, found, tallies):
            sample.take(record)
        parents = [referred_id(reader.table, parent.take(row, offset)) for row in found]
        gone, _ = lost_ids(case, connection, reader.name, {each for each in parents if each})
        lost += sum(each is None or each in gone for each in parents)
        count += len(found)
    if not count:
        yield case.warning(
            "rows", subject, "no row: its table is empty, or `where` is not right", place
        )
        return
    case.samples[subject] = sample.records
    yield from fields_judged(case, place, subject, nested.fields, tallies, count)
    text = f"{rows(lost)} of {count:,} {agreeing(lost, 'belong')} to no record"
    if lost:
        verdict = weighed(lost, count, most=ORPHANS)
        yield case.judged(
            verdict,
            "links",
            subject,
            text,
            (*place, "parent"),
            remedy="is `parent` the record's key?",
        )
    else:
        yield case.judged(
            Verdict.OK,
            "links",
            subject,
            f"{rows(count)} {agreeing(count, 'belong')} to a record",
            (),
        )
