"""Asks the database whether it has everything that a mapping names: each piece of SQL is prepared.

Nothing is run but a look at one row's key. What is about the same rows is looked at together
first; where that fails, every piece is looked at by itself, so that a problem has its line.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    String,
    bindparam,
    insert,
    literal_column,
    null,
    select,
    text,
    update,
)
from sqlalchemy.exc import DBAPIError

from adapters.documents.document import Document, Place
from adapters.documents.problems import Found
from adapters.ids import NATIVE, PublicIds
from adapters.mapping.models import (
    NAMED,
    DiaryMap,
    ListMap,
    MappingFile,
    ResourceMap,
    RowSource,
    StepMap,
    ValueSource,
)
from adapters.sql.columns import Columns, rows_of, sql
from adapters.sql.engines.base import Kind, Speech
from adapters.sql.steps import following, named_table
from adapters.values.convert import Unreadable

# A statement, and its parameters.
Prepared = tuple[Executable, dict[str, Any]]
# Where it stands, what it is about, the statement, and its parameters.
# Where rows cannot be had at all, nothing else is asked about them.
Check = tuple[Place, Place, Executable, dict[str, Any]]
Piece = tuple[Place, str]


class Checks(NamedTuple):
    """Checks, and a statement that only prepares where each of theirs does, if there is one."""

    each: Sequence[Check]
    together: Prepared | None = None


_ONE: ColumnElement[Any] = literal_column("1")
# What of a draft is a text in an expression, whatever column it is compared with.
AS_TEXT = frozenset({"scheduledAt", "endTime", "createdAt", "reason", "reference"})
_SOURCES = frozenset({"from", "insert", "update", "counter", "sequence"})


def found_in(
    connection: Connection,
    mapping: MappingFile,
    document: Document,
    speech: Speech,
    ids: Callable[[str], PublicIds],
) -> Iterator[Found]:
    """What the database does not know of the mapping, each at its place in the file."""
    for fault in faults_in(connection, mapping, speech, ids):
        problem = document.problem(fault.place, fault.text + cut_short(document, fault.place))
        yield Found(problem, fault.only_sampled)


def cut_short(document: Document, place: Place) -> str:
    """The likely cause where a blank and a # ended the SQL at a place; "" where they did not.

    That is where what stands before them has a quote or a parenthesis that is never closed.
    """
    line = document.line_from((*place, "source")) or document.line_from(place)
    before, sign, _ = line.partition(" #")
    open_ends = any(before.count(each) % 2 for each in "'\"") or (
        before.count("(") > before.count(")")
    )
    if not sign or before[:1] in ("'", '"', "|", ">") or not open_ends:
        return ""
    return "; in YAML ` #` begins a comment, which cuts the text here: put the whole in quotes"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at a place of the mapping; `denied` where a grant is missing.

    `only_sampled` where it is said of one row, and not of what the database knows.
    """

    place: Place
    text: str
    denied: bool = False
    only_sampled: bool = False


def faults_in(
    connection: Connection, mapping: MappingFile, speech: Speech, ids: Callable[[str], PublicIds]
) -> Iterator[Fault]:
    """The same, by their places in the mapping."""
    lost: set[Place] = set()
    for place, rows, statement, parameters in _doubtful(connection, mapping, speech):
        if any(rows[: len(each)] == each for each in lost):
            continue
        try:
            speech.explain(connection, statement, parameters)
        except DBAPIError as error:
            said = speech.complaint(error)
            if said is None:  # not about the statement
                raise
            if place[-1] in _SOURCES:
                lost.add(rows)
            denied = speech.kind(error) is Kind.DENIED
            yield Fault(place, f"the database says: {said}", denied)
    yield from _keys(connection, mapping, lost, ids)
    yield from _without_transactions(connection, mapping, speech)


def _doubtful(connection: Connection, mapping: MappingFile, speech: Speech) -> Iterator[Check]:
    """Every piece of SQL of the mapping, without those that are fine together."""
    for checks in _together(mapping):
        if checks.together is None or not _prepares(connection, *checks.together, speech):
            yield from checks.each


def _prepares(
    connection: Connection, statement: Executable, parameters: dict[str, Any], speech: Speech
) -> bool:
    try:
        speech.explain(connection, statement, parameters)
    except DBAPIError:  # said of the piece that it is about
        return False
    return True


def _keys(
    connection: Connection,
    mapping: MappingFile,
    lost: set[Place],
    ids: Callable[[str], PublicIds],
) -> Iterator[Fault]:
    """Whether an id can be made of the first row's key, for each resource."""
    for name, rows in mapping.resources.items():
        if any(("resources", name)[: len(each)] == each for each in lost):
            continue
        key = Columns(rows.key.source)
        first = _first(connection, rows_of(rows, *key.labelled("row_key")).limit(1))
        if first is None or any(part is None for part in first):
            continue
        try:
            ids(name).shown(key.take(first, 0))
        except Unreadable:
            text = (
                "the key of a row here is longer than 8 bytes; write {source: ..., as: hashed id}"
            )
            if rows.key.ids == NATIVE:
                text = "the key of a row here is no UUID, which `as: native id` says it is"
            yield Fault(("resources", name, "key"), text, only_sampled=True)


def _first(connection: Connection, statement: Any) -> Any:
    try:
        with connection.begin_nested():
            return connection.execute(statement).first()
    except DBAPIError:  # said already
        return None


def _without_transactions(
    connection: Connection, mapping: MappingFile, speech: Speech
) -> Iterator[Fault]:
    """The tables that a booking writes without being able to undo it."""
    tables = [each.table for each in mapping.booking.steps if each.table]
    unsafe = set(speech.transactional(connection, tables))
    unsafe -= set(mapping.booking.without_transactions)
    for number, write in enumerate(mapping.booking.steps):
        if write.table in unsafe:
            text = f"{write.table} has no transactions: what a booking writes there cannot be"
            text += " undone; change its engine, or name it in booking.without_transactions"
            yield Fault(("booking", "steps", number), text)


def checks_of(mapping: MappingFile) -> Iterator[Check]:
    """Every piece of SQL of the mapping."""
    return chain.from_iterable(checks.each for checks in _together(mapping))


def _together(mapping: MappingFile) -> Iterator[Checks]:
    for name, rows in mapping.resources.items():
        yield from _resource(("resources", name), rows)
    yield from _diary(mapping.diary)
    for number, write in enumerate(mapping.booking.steps):
        yield from _write(("booking", "steps", number), write)
    reference, appointments = mapping.booking.reference, mapping.resources["appointments"]
    if reference is not None:
        rows_place = ("resources", "appointments")
        statement = rows_of(appointments, sql(reference))
        yield Checks([(("booking", "reference"), rows_place, statement, {})])


def _resource(place: Place, rows: ResourceMap) -> Iterator[Checks]:
    yield from _rows(place, rows, [*_each("key", rows.key), *_fields(rows)])
    for name, nested in rows.lists.items():
        keys = [*_each("parent", nested.parent), *_each("key", nested.key)]
        yield from _rows((*place, "lists", name), nested, [*keys, *_fields(nested)])


def _fields(rows: ResourceMap | ListMap) -> Iterator[Piece]:
    for name, value in rows.fields.items():
        yield from ((("fields", name), each) for each in value.expressions)


def _each(name: str, value: ValueSource | Iterable[str] | str | None) -> Iterator[Piece]:
    """The expressions of a value, each at its name."""
    if isinstance(value, ValueSource):
        value = value.expressions
    return (((name,), each) for each in ((value,) if isinstance(value, str) else value or ()))


# What of the rows of the diary is an expression.
_OF_DIARY = ("vet", "schedule", "weekday", "day", "start", "end", "minutes", "type", "key")


def _diary(diary: DiaryMap) -> Iterator[Checks]:
    for name in ("hours", "busy", "slots", "durations"):
        for number, rows in enumerate(getattr(diary, name)):
            if rows.is_rows:
                yield from _rows(("diary", name, number), rows, _of_rows(rows))
    if diary.schedules is not None:
        yield from _rows(("diary", "schedules"), diary.schedules, _of_rows(diary.schedules))


def _of_rows(rows: RowSource) -> Iterator[Piece]:
    for name in _OF_DIARY:
        yield from _each(name, getattr(rows, name, None))


def _rows(
    place: Place, rows: RowSource | ResourceMap | ListMap, given: Iterable[Piece]
) -> Iterator[Checks]:
    bare = rows.model_copy(update={"where": None})
    pieces = list(given)
    each: list[Check] = [((*place, "from"), place, rows_of(bare, _ONE), {})]
    if rows.where is not None:
        each.append(((*place, "where"), place, rows_of(rows, _ONE), {}))
    each += [((*place, *inner), place, rows_of(bare, sql(one)), {}) for inner, one in pieces]
    texts = [rows.from_ or "", rows.where or "", *(one for _, one in pieces)]
    together: Prepared = rows_of(rows, _ONE, *(sql(one) for _, one in pieces)), {}
    yield Checks(each, together if all(map(_is_closed, texts)) else None)


def _is_closed(expression: str) -> bool:
    """Whether all that it opens it closes itself, to every database: no other can do it instead.

    Where databases differ in what opens and closes, it is not.
    """
    if not _PLAIN(expression):
        return False
    depth = 0
    for sign in _PARENTHESES(_QUOTED("", expression)):
        depth += 1 if sign == "(" else -1
        if depth < 0:
            return False
    return depth == 0


_PLAIN = re.compile(r"""(?:[^'"`\\#$\[/-]|-(?!-)|/(?!\*)|'[^'\\]*'|"[^"\\]*")*""").fullmatch
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""").sub
_PARENTHESES = re.compile(r"[()]").findall


def _write(place: Place, write: StepMap) -> Iterator[Checks]:
    if write.sequence is not None:
        yield Checks([((*place, "sequence"), place, following(write.sequence), {})])
        return
    yield Checks(list(_row_written(place, write)))
    into = [((*place, "values", name), place, *_into(write, name)) for name in write.values]
    if into:
        yield Checks(into, _into(write, *write.values))
    yield Checks(list(_values_written(place, write)))


def _row_written(place: Place, write: StepMap) -> Iterator[Check]:
    kind = next(each for each in ("insert", "update", "counter") if getattr(write, each))
    bare = named_table(write.table, ())
    yield (*place, kind), place, select(_ONE).select_from(bare), {}
    for name, each in [*(("key", each) for each in write.keys), ("column", write.column)]:
        if each is not None:
            # with its table's name: SQLite takes a lone "name" that is none for a text
            yield (*place, name), place, select(named_table(write.table, [each]).c[each]), {}
    if write.where is not None:
        which = text(f"({write.where})")
        nothing = dict.fromkeys(NAMED(write.where))
        yield (*place, "where"), place, select(_ONE).select_from(bare).where(which), nothing


def _values_written(place: Place, write: StepMap) -> Iterator[Check]:
    for name, value in write.values.items():
        if value.sql is not None:
            names = NAMED(value.sql)
            typed = [bindparam(each, type_=String()) for each in names if each in AS_TEXT]
            statement = text(f"SELECT ({value.sql})").bindparams(*typed)
            yield (*place, "values", name, "sql"), place, statement, dict.fromkeys(names)


def _into(write: StepMap, *names: str) -> Prepared:
    """What writes these columns, and its parameters: each kind of step needs a right of its own."""
    rows = named_table(write.table, names)
    if write.insert is not None:
        return insert(rows), dict.fromkeys(names)
    return update(rows).values(dict.fromkeys(names, null())), {}
