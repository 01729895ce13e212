"""Asks the database whether it has everything that a mapping names: each piece of SQL is prepared.

Nothing is run. Every piece is looked at by itself, so that a problem has its line.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    column,
    insert,
    literal_column,
    select,
    table,
    text,
)
from sqlalchemy.exc import DBAPIError

from adapters.document import Document, Place, Problem
from adapters.sql.engines.base import Speech
from adapters.sql.mapping import NAMED, Mapping, ResourceMap, Rows, Write
from adapters.sql.reading import rows_of, sql

# Where it stands, what it is about, the statement, and its parameters.
# Where rows cannot be had at all, nothing else is asked about them.
Check = tuple[Place, Place, Executable, dict[str, Any]]
_ONE: ColumnElement[Any] = literal_column("1")


def problems_in(
    connection: Connection, mapping: Mapping, document: Document, speech: Speech
) -> Iterator[Problem]:
    """What the database does not know of the mapping, each at its place in the file."""
    lost: set[Place] = set()
    for place, rows, statement, parameters in _checks(mapping):
        if any(rows[: len(each)] == each for each in lost):
            continue
        try:
            speech.explain(connection, statement, parameters)
        except DBAPIError as error:
            said = speech.complaint(error)
            if said is None:  # not about the statement
                raise
            if place[-1] in ("from", "insert", "counter"):
                lost.add(rows)
            yield document.problem(place, f"the database says: {said}")
    yield from _keys(connection, mapping, document, lost)


def _keys(
    connection: Connection, mapping: Mapping, document: Document, lost: set[Place]
) -> Iterator[Problem]:
    """Whether the first row of each resource has a whole number for its key."""
    for name, rows in mapping.resources.items():
        if any(("resources", name)[: len(each)] == each for each in lost):
            continue
        try:
            with connection.begin_nested():
                first = connection.execute(rows_of(rows, sql(rows.key)).limit(1)).first()
        except DBAPIError:  # said already
            continue
        if first is not None and first[0] is not None and not isinstance(first[0], int):
            text = "the key of a row here is no whole number, which it has to be so far"
            yield document.problem(("resources", name, "key"), text)


def _checks(mapping: Mapping) -> Iterator[Check]:
    for name, rows in mapping.resources.items():
        yield from _resource(("resources", name), rows)
    diary = mapping.diary
    for number, hours in enumerate(diary.hours):
        names = ("vet", "weekday", "start", "end")
        given = [((name,), getattr(hours, name)) for name in names]
        yield from _rows(("diary", "hours", number), hours, given)
    for number, busy in enumerate(diary.busy):
        given = [(("vet",), busy.vet), (("start",), busy.start.sql), (("end",), busy.end.sql)]
        given += [(("minutes",), busy.minutes)] if busy.minutes else []
        yield from _rows(("diary", "busy", number), busy, given)
    for number, write in enumerate(mapping.booking.writes):
        yield from _write(("booking", "writes", number), write)
    reference, appointments = mapping.booking.reference, mapping.resources["appointments"]
    if reference is not None:
        rows_place = ("resources", "appointments")
        yield ("booking", "reference"), rows_place, rows_of(appointments, sql(reference)), {}


def _resource(place: Place, rows: ResourceMap) -> Iterator[Check]:
    fields = [(("fields", name), each.sql) for name, each in rows.fields.items()]
    yield from _rows(place, rows, [(("key",), rows.key), *fields])
    for name, nested in rows.lists.items():
        inner = [(("fields", field), each.sql) for field, each in nested.fields.items()]
        keys = [(("parent",), nested.parent), (("key",), nested.key)]
        yield from _rows((*place, "lists", name), nested, [*keys, *inner])


def _rows(place: Place, rows: Rows, given: Iterable[tuple[Place, str]]) -> Iterator[Check]:
    bare = rows.model_copy(update={"where": None})
    yield (*place, "from"), place, rows_of(bare, _ONE), {}
    if rows.where is not None:
        yield (*place, "where"), place, rows_of(rows, _ONE), {}
    for inner, expression in given:
        yield (*place, *inner), place, rows_of(bare, sql(expression)), {}


def _write(place: Place, write: Write) -> Iterator[Check]:
    kind = "counter" if write.insert is None else "insert"
    target = write.insert or write.counter or ""
    anywhere = select(_ONE).select_from(table(target))
    yield (*place, kind), place, anywhere, {}
    named = {"key": write.key, "column": write.column}
    for name, each in named.items():
        if each is not None:
            # with its table's name: SQLite takes a lone "name" that is none for a text
            yield (*place, name), place, select(table(target, column(each)).c[each]), {}
    if write.where is not None:
        yield (
            (*place, "where"),
            place,
            select(_ONE).select_from(table(target)).where(sql(write.where)),
            {},
        )
    for name, value in write.values.items():
        yield (*place, "values", name), place, insert(table(target, column(name))), {name: None}
        if value.sql is not None:
            nothing = dict.fromkeys(NAMED(value.sql))
            yield (*place, "values", name, "sql"), place, text(f"SELECT {value.sql}"), nothing
