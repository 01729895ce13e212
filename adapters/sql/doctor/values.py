"""Real rows through the mapping's converters: what none of them covers, and what is never there."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select, func, select

from adapters.base import Record
from adapters.convert import UnknownCode, Unreadable, plain
from adapters.examine import Finding, Verdict
from adapters.sql.columns import rows_of, sql
from adapters.sql.doctor.case import MOST_IDS, Case, Step, rows, weighed
from adapters.sql.reading import MOST_BLANK, FieldColumn, KeyedRows, ResourceReader

# A larger share of unreadable values is more than old sins.
TOLERABLE = 0.01
MOST_CODES = 20
LONGEST_CODE = 20
# Rows of which some should have a value.
ENOUGH = 20
BEFORE = "1902"
# What old programs write for no date; the first three are none anyway.
PLACEHOLDERS = ("0001-01-01", "1753-01-01", "1899-12-30", "1899-12-31", "1901-01-01", "9999-12-31")


@dataclass(slots=True)
class Tally:
    """What the values of one field came to."""

    present: int = 0
    unreadable: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    odd_days: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)

    @property
    def unknown(self) -> int:
        return self.codes.total()

    def bad(self, shown: str | None) -> None:
        if shown and len(self.ids) < MOST_IDS:
            self.ids.append(shown)


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
    yield from _unmapped(case, reader)
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
            record[column.name] = _value(column, column.take(row, at), tallies[column.name], shown)
            at += column.width
        yield record


def shown_id(table: KeyedRows, key: Any) -> str | None:
    """The public id of a key; None where it makes none."""
    try:
        return table.ids.shown(key)
    except Unreadable:
        return None


def _value(column: FieldColumn, raw: Any, tally: Tally, shown: str | None) -> Any:
    try:
        value = column.converter.decode(raw)
    except UnknownCode:
        tally.codes[_code(raw)] += 1
        tally.bad(shown)
        return None
    except Unreadable:
        tally.unreadable += 1
        tally.bad(shown)
        return None
    tally.present += value is not None
    if isinstance(value, str) and (value[:10] in PLACEHOLDERS or _is_old(column, value)):
        tally.odd_days[value[:10]] += 1
    return value


def _is_old(column: FieldColumn, value: str) -> bool:
    is_time = hasattr(column.converter, "zero")
    return is_time and value[:4] < BEFORE


def _code(raw: Any) -> str:
    try:
        return plain(raw) or ""
    except Unreadable:
        return ""


def _told(codes: Counter[str]) -> dict[str, int]:
    """Those that may be shown: what is long, or different in many rows, is no code but a text."""
    if len(codes) > MOST_CODES:
        return {}
    return {code: many for code, many in codes.most_common() if len(code) <= LONGEST_CODE}


def judged(
    case: Case, place: tuple[str, ...], owner: str, name: str, tally: Tally, count: int
) -> Iterator[Finding]:
    """The findings about one field."""
    at = (*place, "fields", name)
    subject, all_ = f"{owner}.{name}", tally.present + tally.unreadable + tally.unknown
    if tally.unknown:
        known = _told(tally.codes)
        what = ", ".join(f"{code or repr(code)} ({many})" for code, many in known.items())
        text = (
            f"{rows(tally.unknown)} with an unknown code: {what or 'long or many different texts'}"
        )
        remedy = (
            "add them to its codes; null where one means nothing"
            if known
            else "is it a code at all?"
        )
        verdict = weighed(tally.unknown, all_, most=TOLERABLE)
        yield case.judged(
            verdict, "values", subject, text, at, remedy=remedy, ids=tally.ids, codes=known
        )
    if tally.unreadable:
        text = f"{rows(tally.unreadable)} of {all_:,} that its converter cannot read"
        verdict = weighed(tally.unreadable, all_, most=TOLERABLE)
        remedy = "name another under `as`, or mend them"
        yield case.judged(verdict, "values", subject, text, at, remedy=remedy, ids=tally.ids)
    if tally.odd_days:
        yield _odd_days(case, at, subject, tally)
    if not all_ and count >= ENOUGH:
        text = f"null in all of {rows(count)}: mapped in vain?"
        yield case.warning("values", subject, text, at)


def _odd_days(case: Case, at: tuple[str, ...], subject: str, tally: Tally) -> Finding:
    named = [each for each in tally.odd_days if each in PLACEHOLDERS]
    text = f"{rows(tally.odd_days.total())} with a day before {BEFORE} or after 9998"
    if named:
        text = f"{text}: {', '.join(named)}"
    remedy = "where it means no value, list it under `zero`, with the others that do"
    return case.warning("values", subject, text, at, remedy=remedy)


def _unmapped(case: Case, reader: ResourceReader) -> Iterator[Finding]:
    mapped = {*reader.table.by_name, "id", *(each.name for each in reader.children)}
    missing = [each for each in [*reader.table.names, *sorted(reader.lists)] if each not in mapped]
    if missing:
        text = f"not mapped, and so null for everybody: {', '.join(missing)}"
        yield case.warning("values", reader.name, text, ("resources", reader.name, "fields"))


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
