"""Takes appointments of the desk as examples of a booking, with all the rows about them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from adapters.doctor.learning import Unlearnable
from adapters.doctor.sql.desk import (
    FOREIGN,
    VALUES,
    DeskTable,
    Reference,
    Row,
    follows,
    journals,
    key_column,
    leads_to,
    references,
    rows_about,
    tables_of,
    text_of,
)
from adapters.mapped.session import complete
from adapters.sql.adapter import SqlAdapter, SqlSession
from adapters.sql.columns import rows_of, sql
from adapters.sql.inspection import Unlisted
from adapters.values.convert import Unreadable

# The newest appointments that are looked through for the desk's own.
MOST_SEEN = 300
# So many of them that are still to come are enough.
FEW = 5
SCHEDULED = "SCHEDULED"
_REFERENCE = re.compile(r"[0-9A-Za-z]{16}").fullmatch
IDS = ("patientId", "clientId", "vetId", "appointmentTypeId")
# The resources whose rows come with an appointment; those of others are there before any.
MADE_BY_VISITS = ("appointments", "consultations")
FIELDS = ("scheduledAt", "endTime", "createdAt", "reason", "isUrgent", "status")


@dataclass(slots=True)
class Example:
    """An appointment that the desk made: its key, what was asked for, and its own row.

    `asked` has what a draft would have, by name: raw keys, times, and so on. `schedules` are the
    keys of its vet's schedules, as texts. `personal` are texts of the people and the animal.
    """

    key: Any
    asked: dict[str, Any]
    row: Row
    schedules: frozenset[str] = frozenset()
    personal: frozenset[str] = frozenset()
    status: str | None = None


@dataclass(slots=True)
class RowsAbout:
    """The rows of a table that hold the key of each example, or of a row `of` another table."""

    reference: Reference
    of: DeskTable
    rows: list[list[Row]]


class RowsBefore(NamedTuple):
    """A row for each example that was made before it: the `column` of `of` keeps its `key`."""

    of: DeskTable
    column: str
    table: DeskTable
    key: str
    rows: list[Row]

    @property
    def keys(self) -> list[Any]:
        return [row[self.key] for row in self.rows]


@dataclass(slots=True)
class Examples:
    """The examples, the table and column of their keys, and the rows of other tables about them.

    `before` are the rows that were made before them, in the order in which they are needed;
    `served` are the tables with rows about them that the mapping serves, and as what.
    """

    table: DeskTable
    key: str
    examples: list[Example]
    tables: list[DeskTable]
    before: list[RowsBefore] = field(default_factory=list)
    about: list[RowsAbout] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    served: list[tuple[str, str]] = field(default_factory=list)


def desk_appointments(
    session: SqlSession, adapter: SqlAdapter, keys: Sequence[str], newest: int
) -> Examples:
    """Returns those of the named keys, or the newest; raises Unlearnable."""
    mapped = adapter.mapping.resources.get("appointments")
    if mapped is None:
        raise Unlearnable(
            "the mapping has no resources.appointments, so nothing tells which rows are"
            " appointments: map them first, at least from, key, vetId, patientId and scheduledAt"
        )
    try:
        tables = tables_of(session.connection, adapter.engine.speech)
    except Unlisted as error:
        raise Unlearnable(str(error)) from error
    place = key_column(tables, mapped)
    if place is None:
        raise Unlearnable(
            "resources.appointments.key is no column of a table, so no other row can be seen to"
            " hold it: name the one column that is the appointment's key"
        )
    table, column = place
    reader = adapter.readers["appointments"]
    statement = reader.every_row
    if keys:
        spelt = [each for key in keys for each in _spellings(table, column, key)]
        statement = statement.where(reader.table.key.among(spelt))
        rows = session.connection.execute(statement).all()
        found = {text_of(reader.table.key_in(row)): row for row in rows}
        lost = [key for key in keys if key not in found]
        if lost:
            raise Unlearnable(_unknown(session, adapter, lost))
        chosen = [found[key] for key in keys]
    else:
        chosen = [row for row, _ in newest_of_desk(session, adapter, newest)]
        if not chosen:
            raise Unlearnable(
                "no appointment of the desk was found: make some there, and name them with"
                " --appointment"
            )
    raw = [reader.table.key_in(row) for row in chosen]
    whole = {text_of(row[column]): row for row in table.rows(session.connection, column, raw)}
    made = [
        _example(session, adapter, row, whole[text_of(key)])
        for row, key in zip(chosen, raw, strict=True)
    ]
    examples = Examples(table, column, made, tables)
    places = {name: key_column(tables, it) for name, it in adapter.mapping.resources.items()}
    homes = {place[0].name: name for name, place in places.items() if place is not None}
    there = {name for name, resource in homes.items() if resource not in MADE_BY_VISITS}
    seen = {table.name, *there}
    examples.before += _before(session, examples, seen, table, [it.row for it in made])
    _collect(session, examples, homes)
    return examples


def newest_of_desk(session: SqlSession, adapter: SqlAdapter, most: int) -> list[tuple[Any, Any]]:
    """Returns the newest appointments that the gateway did not make, with their raw keys.

    They are the newest by createdAt where this sorts, else by their keys. Where enough of them are
    still to come, they are those: what happened since has left other rows and codes.
    """
    reader, mapped = adapter.readers["appointments"], adapter.mapping.resources["appointments"]
    key = reader.table.key.parts
    mark = adapter.reference if adapter.reference is not None else sa.null()
    first: list[Any] = [part.desc() for part in key]
    created = mapped.fields.get("createdAt")
    if created is not None and len(created.source) == 1 and created.plus is None:
        by_time = sql(created.source[0])
        probe = rows_of(mapped, by_time.label("at")).where(by_time.is_not(None)).limit(20)
        seen = [text_of(value) or "" for value in session.connection.execute(probe).scalars()]
        if seen and all(re.match(r"\d{4}-\d\d-\d\d|\d{9,}$", value) for value in seen):
            first = [sa.case((by_time.is_(None), 1), else_=0), by_time.desc(), *first]
    statement = reader.every_row.add_columns(mark.label("mark")).order_by(*first).limit(MOST_SEEN)
    status = reader.table.by_name.get("status")
    found, planned = list[tuple[Any, Any]](), list[tuple[Any, Any]]()
    for row in session.connection.execute(statement):
        if is_ours(row[-1]) or len(planned) == most:
            continue
        found.append((row, reader.table.key_in(row)))
        if status is not None and status.shown(row) == SCHEDULED:
            planned.append(found[-1])
    return planned if len(planned) >= min(most, FEW) else found[:most]


def is_ours(mark: Any) -> bool:
    """Returns whether an appointment's mark is one that the gateway writes."""
    text = text_of(mark) or ""
    try:
        return bool(_REFERENCE(text)) or UUID(text).version == 5
    except ValueError:
        return False


def _spellings(table: DeskTable, column: str, key: str) -> Iterator[Any]:
    if table.columns[column].kind != "number":
        yield key
    elif key.isdecimal():
        yield int(key)


def _unknown(session: SqlSession, adapter: SqlAdapter, lost: Sequence[str]) -> str:
    near = [text_of(key) or "" for _, key in newest_of_desk(session, adapter, 5)]
    many = f"no appointment has the key {', '.join(lost)}, or `where` hides it"
    return f"{many}; the newest are {', '.join(near)}" if near else many


def _example(session: SqlSession, adapter: SqlAdapter, row: Any, whole: Row) -> Example:
    reader = adapter.readers["appointments"]
    by_name, asked = reader.table.by_name, dict[str, Any]()
    for name in IDS:
        asked[name] = by_name[name].plain(row) if name in by_name else None
    read = {name: by_name[name].shown(row) for name in FIELDS if name in by_name}
    for name in ("scheduledAt", "endTime", "createdAt"):
        asked[name] = datetime.fromisoformat(read[name]) if read.get(name) else None
    asked["reason"], asked["isUrgent"] = read.get("reason"), read.get("isUrgent")
    start, end = asked["scheduledAt"], asked["endTime"]
    asked["minutes"] = int((end - start).total_seconds()) // 60 if start and end else None
    schedules = frozenset[str]()
    vet = by_name["vetId"].shown(row) if "vetId" in by_name else None
    if vet is not None and adapter.schedule_rows is not None:
        schedules = frozenset(text_of(it.key) or "" for it in complete(session.schedules(vet)))
    return Example(
        key=reader.table.key_in(row),
        asked=asked,
        row=whole,
        schedules=schedules,
        personal=frozenset(_personal(session, adapter, row, asked["reason"])),
        status=read.get("status"),
    )


def _personal(session: SqlSession, adapter: SqlAdapter, row: Any, reason: Any) -> Iterator[str]:
    """Yields the texts of the client and the patient, which are shown to nobody."""
    if reason:
        yield str(reason).casefold()
    by_name = adapter.readers["appointments"].table.by_name
    for name, resource in (("clientId", "clients"), ("patientId", "patients")):
        reader = adapter.readers.get(resource)
        key = by_name[name].plain(row) if name in by_name else None
        if reader is None or key is None:
            continue
        found = session.connection.execute(
            reader.every_row.where(reader.table.key.among([key])).limit(1)
        ).first()
        for each, value in reader.table.by_name.items() if found is not None else ():
            if each not in ("id", "status", "sex", "species", "clientId"):
                try:
                    text = text_of(value.plain(found)) or ""
                except Unreadable:
                    continue
                if len(text) > 2 and not text.isdecimal():
                    yield text.casefold()


def _collect(session: SqlSession, examples: Examples, homes: Mapping[str, str]) -> None:
    """Finds the rows about the examples, and the rows about those that have a key of their own.

    `homes` are the tables of the mapping's resources.
    """
    seen = {examples.table.name, *(it.table.name for it in examples.before)}
    level = [(examples.table, examples.key, [[it.key] for it in examples.examples])]
    level += [(it.table, it.key, [[key] for key in it.keys]) for it in examples.before]
    for _ in range(2):
        further = []
        for of, column, owners in level:
            for about in _found(session, examples, seen, of, column, owners):
                table = about.reference.table
                if table.name in homes:
                    examples.served.append((table.name, homes[table.name]))
                    continue
                examples.about.append(about)
                if len(table.key) == 1:
                    keys = [[row[table.key[0]] for row in each] for each in about.rows]
                    further.append((table, table.key[0], keys))
        level = further


def _before(
    session: SqlSession, examples: Examples, seen: set[str], of: DeskTable, rows: Sequence[Row]
) -> Iterator[RowsBefore]:
    """Yields the rows that were made for these ones before them: one each, in their order."""
    for column in of.columns.values():
        led = leads_to(examples.tables, of, column)
        values = [row[column.name] for row in rows]
        spelt = [text_of(value) for value in values]
        is_each = len(values) > 1 and None not in values and len({*spelt}) == len(values)
        if led is None or led[0].name in seen or not is_each:
            continue
        table, key = led
        if table.columns[key].kind == "number":
            numbers = [int(text) for text in spelt if text and text.isdecimal()]
            if len(numbers) < len(values) or not follows(
                numbers, [it.key for it in examples.examples]
            ):
                continue
        try:
            with session.connection.begin_nested():
                own = {
                    text_of(row[key]): row for row in table.rows(session.connection, key, values)
                }
                sharing = of.rows(session.connection, column.name, values)
        except SQLAlchemyError:
            examples.unread.append(table.name)
            continue
        if len(own) == len(values) == len(sharing):  # nobody else refers to them
            seen.add(table.name)
            found = [own[text] for text in spelt]
            yield from _before(session, examples, seen, table, found)
            yield RowsBefore(of, column.name, table, key, found)


def _found(
    session: SqlSession,
    examples: Examples,
    seen: set[str],
    of: DeskTable,
    column: str,
    owners: Sequence[Sequence[Any]],
) -> Iterator[RowsAbout]:
    """Yields the rows of tables that were not seen yet about such keys of each example."""
    every = [key for each in owners for key in each]
    found_in = references(examples.tables, of, column, every)
    ordered = sorted(found_in, key=lambda each: each.why != FOREIGN)
    is_own = of is examples.table
    by_values = journals(session.connection, examples.tables, of, column, every) if is_own else ()
    for reference in chain(ordered, by_values):
        if reference.table.name in seen or not every:
            continue
        found = rows_about(session.connection, reference, every)
        if found is None:
            examples.unread.append(reference.table.name)
            seen.add(reference.table.name)
            continue
        rows = [[row for key in own for row in found.get(text_of(key) or "", ())] for own in owners]
        if any(rows) and (reference.why != VALUES or all(rows)):
            seen.add(reference.table.name)
            yield RowsAbout(reference, of, rows)
