"""Real rows through the mapping's converters: what none of them covers, and what is never there."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select, func, select

from adapters.base import Record
from adapters.convert import Unreadable
from adapters.examine import Finding, Verdict
from adapters.findings.maker import rows
from adapters.findings.values import Tally, judged, unmapped
from adapters.sql.columns import rows_of, sql
from adapters.sql.doctor.case import Case, Step
from adapters.sql.reading import MOST_BLANK, KeyedRows, ResourceReader


def values(case: Case) -> Iterator[Step]:
    """One look at each resource."""
    for name, reader in case.readers():
        place = ("resources", name)
        yield Step("values", name, partial(_resource, case=case, reader=reader), place)


def _resource(connection: Connection, case: Case, reader: ResourceReader) -> Iterator[Finding]:
    found = taken(connection, reader.every_row, reader.table, most=case.examination.rows)
    yield from _keys(connection, case, reader, found)
    tallies = {column.name: Tally() for column in reader.table.columns}
    case.samples[reader.name] = records = list(read(reader.table, found, tallies))
    if not found:
        yield _nothing(connection, case, reader)
        return
    bad = 0
    for name, tally in tallies.items():
        said = list(judged(case, ("resources", reader.name), reader.name, name, tally, len(found)))
        bad += len(said)
        yield from said
    names = [*reader.table.names, *sorted(reader.lists)]
    mapped = [*reader.table.by_name, *(each.name for each in reader.children)]
    yield from unmapped(case, reader.name, names, mapped)
    sampled = len(records) >= (case.examination.rows or len(records) + 1)
    many = "a sample" if sampled else "all there are"
    if not bad:
        yield case.ok(
            "values", reader.name, f"{rows(len(records))}, {many}: every value is read", ()
        )


def taken(
    connection: Connection, statement: Select[Any], table: KeyedRows, *, most: int | None
) -> list[Any]:
    """The rows at both ends of the keys' order, or all of them, in this order."""
    ordered = statement.order_by(*table.key.parts)
    if most is None:
        return list(connection.execute(ordered))
    first = list(connection.execute(ordered.limit(most)))
    if len(first) < most:
        return first
    backwards = statement.order_by(*(each.desc() for each in table.key.parts))
    last = list(connection.execute(backwards.limit(most // 2)))
    known = {table.key.take(row, 0) for row in first[: most // 2]}
    return first[: most // 2] + [r for r in reversed(last) if table.key.take(r, 0) not in known]


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


def _keys(
    connection: Connection, case: Case, reader: ResourceReader, found: Sequence[Any]
) -> Iterator[Finding]:
    place, table = ("resources", reader.name, "key"), reader.table
    counted = Counter(table.key.spelling(table.key.take(row, 0)) for row in found)
    doubled = {key for key, many in counted.items() if many > 1}
    if doubled:
        ids = [
            s
            for r in found
            if table.key.spelling(k := table.key.take(r, 0)) in doubled
            and (s := shown_id(table, k))
        ]
        text = (
            f"{len(doubled)} of {len(counted):,} keys occur more than once: `from` multiplies rows"
        )
        remedy = "what a record has several of is a sub-select in a field, not a join"
        yield case.failed(
            "rows",
            reader.name,
            text,
            ("resources", reader.name, "from"),
            remedy=remedy,
            ids=dict.fromkeys(ids),
        )
    odd = sum(shown_id(table, table.key.take(row, 0)) is None for row in found)
    if odd:
        text = f"{rows(odd)} of {len(found):,} whose key makes no id: they are never shown"
        remedy = "write {sql: ..., as: hashed id}"
        yield case.judged(Verdict.FAILED, "rows", reader.name, text, place, remedy=remedy)
    blank = connection.scalar(
        select(func.count()).select_from(reader.keyless.limit(MOST_BLANK).subquery())
    )
    if blank:
        text = f"{rows(int(blank))} without a key: they are never shown"
        yield case.warning("rows", reader.name, text, place)


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
