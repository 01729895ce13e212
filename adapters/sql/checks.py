"""Asks the database whether it has everything that a mapping names: each piece of SQL is prepared.

Nothing is run but a look at one row's key. What is about the same rows is looked at together
first; where that fails, every piece is looked at by itself, so that a problem has its line.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
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
    ListMap,
    MappingFile,
    ResourceMap,
    RowSource,
    StepMap,
    ValueSource,
)
from adapters.sql.booking import following, named_table
from adapters.sql.columns import Columns, rows_of, sql
from adapters.sql.engines.base import ErrorKind, Expression, Speech
from adapters.values.convert import Unreadable

Rows = RowSource | ResourceMap | ListMap
Piece = tuple[Place, str]
Ids = Callable[[str], PublicIds]
_ONE: Expression = literal_column("1")
# What of a draft is a text in an expression, whatever column it is compared with.
AS_TEXT = frozenset({"scheduledAt", "endTime", "createdAt", "reason", "reference"})
_SOURCES = frozenset({"from", "insert", "update", "counter", "sequence"})
# What of the rows of the diary is an expression.
_OF_DIARY = ("vet", "schedule", "weekday", "day", "start", "end", "minutes", "type", "key")
_PLAIN = re.compile(r"""(?:[^'"`\\#$\[/-]|-(?!-)|/(?!\*)|'[^'\\]*'|"[^"\\]*")*""").fullmatch
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""").sub
_PARENTHESES = re.compile(r"[()]").findall


@dataclass(frozen=True, slots=True)
class SqlCheck:
    """A statement to prepare, and where it stands.

    Where the place `rows` cannot be had at all, nothing else is asked about it.
    """

    place: Place
    rows: Place
    statement: Executable
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _SqlChecks:
    """Checks, and one that only prepares where each of theirs does, if there is one."""

    each: Sequence[SqlCheck]
    together: SqlCheck | None = None


@dataclass(frozen=True, slots=True)
class SchemaMismatch:
    """What is wrong at a place of the mapping; `denied` where a grant is missing.

    `only_sampled` where it is said of one row, and not of what the database knows.
    """

    place: Place
    text: str
    denied: bool = False
    only_sampled: bool = False


def found_in(
    connection: Connection, mapping: MappingFile, document: Document, speech: Speech, ids: Ids
) -> Iterator[Found]:
    """What the database does not know of the mapping, each at its place in the file."""
    for mismatch in mismatches_in(connection, mapping, speech, ids):
        place = mismatch.place
        problem = document.problem(place, mismatch.text + cut_short(document, place))
        yield Found(problem, mismatch.only_sampled)


def cut_short(document: Document, place: Place) -> str:
    """The likely cause where a blank and a # ended the SQL at a place; "" where they did not.

    That is where what stands before them has a quote or a parenthesis that is never closed.
    """
    line = document.line_from((*place, "source")) or document.line_from(place)
    before, sign, _ = line.partition(" #")
    unclosed = any(before.count(quote) % 2 for quote in "'\"")
    unclosed = unclosed or before.count("(") > before.count(")")
    if not sign or before[:1] in ("'", '"', "|", ">") or not unclosed:
        return ""
    return "; in YAML ` #` begins a comment, which cuts the text here: put the whole in quotes"


def mismatches_in(
    connection: Connection, mapping: MappingFile, speech: Speech, ids: Ids
) -> Iterator[SchemaMismatch]:
    """The same, by their places in the mapping."""
    lost: set[Place] = set()
    for check in _doubtful(connection, mapping, speech):
        error = None if _is_lost(check.rows, lost) else _refusal(connection, check, speech)
        if error is not None:
            said = speech.complaint(error)
            if said is None:  # not about the statement
                raise error
            if check.place[-1] in _SOURCES:
                lost.add(check.rows)
            denied = speech.kind(error) is ErrorKind.DENIED
            yield SchemaMismatch(check.place, f"the database says: {said}", denied)
    for name, rows in mapping.resources.items():
        if not _is_lost(("resources", name), lost):
            yield from _key(connection, name, rows, ids)
    yield from _without_transactions(connection, mapping, speech)


def _is_lost(rows: Place, lost: set[Place]) -> bool:
    return any(rows[: len(place)] == place for place in lost)


def _doubtful(connection: Connection, mapping: MappingFile, speech: Speech) -> Iterator[SqlCheck]:
    """Every piece of SQL of the mapping, without those that are fine together."""
    for checks in _all_checks(mapping):
        if checks.together is None or _refusal(connection, checks.together, speech) is not None:
            yield from checks.each


def _refusal(connection: Connection, check: SqlCheck, speech: Speech) -> DBAPIError | None:
    """What the database says against it."""
    try:
        speech.explain(connection, check.statement, check.parameters)
    except DBAPIError as error:
        return error
    return None


def _key(
    connection: Connection, name: str, rows: ResourceMap, ids: Ids
) -> Iterator[SchemaMismatch]:
    """Whether an id can be made of the first row's key."""
    key = Columns(rows.key.source)
    try:
        with connection.begin_nested():
            statement = rows_of(rows, *key.labelled("row_key")).limit(1)
            first = connection.execute(statement).first()
    except DBAPIError:  # said already
        return
    if first is None or any(part is None for part in first):
        return
    try:
        ids(name).shown(key.take(first, 0))
    except Unreadable:
        text = "the key of a row here is longer than 8 bytes; write {source: ..., as: hashed id}"
        if rows.key.ids == NATIVE:
            text = "the key of a row here is no UUID, which `as: native id` says it is"
        yield SchemaMismatch(("resources", name, "key"), text, only_sampled=True)


def _without_transactions(
    connection: Connection, mapping: MappingFile, speech: Speech
) -> Iterator[SchemaMismatch]:
    """The tables that a booking writes without being able to undo it."""
    tables = [write.table for write in mapping.booking.steps if write.table]
    unsafe = set(speech.transactional(connection, tables))
    unsafe -= set(mapping.booking.without_transactions)
    for number, write in enumerate(mapping.booking.steps):
        if write.table in unsafe:
            text = f"{write.table} has no transactions: what a booking writes there cannot be"
            text += " undone; change its engine, or name it in booking.without_transactions"
            yield SchemaMismatch(("booking", "steps", number), text)


def checks_of(mapping: MappingFile) -> Iterator[SqlCheck]:
    """Every piece of SQL of the mapping."""
    return (check for checks in _all_checks(mapping) for check in checks.each)


def _all_checks(mapping: MappingFile) -> Iterator[_SqlChecks]:
    for name, rows in mapping.resources.items():
        place: Place = ("resources", name)
        yield _rows(place, rows, [*_pieces("key", rows.key), *_fields(rows)])
        for inner, nested in rows.lists.items():
            keys = [*_pieces("parent", nested.parent), *_pieces("key", nested.key)]
            yield _rows((*place, "lists", inner), nested, [*keys, *_fields(nested)])
    diary = mapping.diary
    sources: list[tuple[Place, RowSource]] = [
        (("diary", name, number), rows)
        for name in ("hours", "busy", "slots", "durations")
        for number, rows in enumerate(getattr(diary, name))
        if rows.is_rows
    ]
    if diary.schedules is not None:
        sources.append((("diary", "schedules"), diary.schedules))
    for place, source in sources:
        pieces = [each for name in _OF_DIARY for each in _pieces(name, getattr(source, name, None))]
        yield _rows(place, source, pieces)
    for number, write in enumerate(mapping.booking.steps):
        yield from _write(("booking", "steps", number), write)
    if mapping.booking.reference is not None:
        statement = rows_of(mapping.resources["appointments"], sql(mapping.booking.reference))
        appointments: Place = ("resources", "appointments")
        yield _SqlChecks([SqlCheck(("booking", "reference"), appointments, statement)])


def _fields(rows: ResourceMap | ListMap) -> Iterator[Piece]:
    for name, value in rows.fields.items():
        yield from ((("fields", name), each) for each in value.expressions)


def _pieces(name: str, value: ValueSource | Iterable[str] | str | None) -> Iterator[Piece]:
    """The expressions of a value, each at its name."""
    if isinstance(value, ValueSource):
        value = value.expressions
    return (((name,), each) for each in ((value,) if isinstance(value, str) else value or ()))


def _rows(place: Place, rows: Rows, pieces: Sequence[Piece]) -> _SqlChecks:
    bare = rows.model_copy(update={"where": None})
    each = [SqlCheck((*place, "from"), place, rows_of(bare, _ONE))]
    if rows.where is not None:
        each.append(SqlCheck((*place, "where"), place, rows_of(rows, _ONE)))
    each += [SqlCheck((*place, *inner), place, rows_of(bare, sql(one))) for inner, one in pieces]
    texts = [rows.from_ or "", rows.where or "", *(one for _, one in pieces)]
    if not all(map(_is_closed, texts)):
        return _SqlChecks(each)
    together = rows_of(rows, _ONE, *(sql(one) for _, one in pieces))
    return _SqlChecks(each, SqlCheck(place, place, together))


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


def _write(place: Place, write: StepMap) -> Iterator[_SqlChecks]:
    if write.sequence is not None:
        yield _SqlChecks([SqlCheck((*place, "sequence"), place, following(write.sequence))])
        return
    yield _SqlChecks(list(_row_written(place, write)))
    if write.values:
        into = [_into((*place, "values", name), place, write, [name]) for name in write.values]
        yield _SqlChecks(into, _into(place, place, write, list(write.values)))
    yield _SqlChecks(list(_values_written(place, write)))


def _row_written(place: Place, write: StepMap) -> Iterator[SqlCheck]:
    kind = next(each for each in ("insert", "update", "counter") if getattr(write, each))
    bare = named_table(write.table, ())
    yield SqlCheck((*place, kind), place, select(_ONE).select_from(bare))
    for name, each in [*(("key", key) for key in write.keys), ("column", write.column)]:
        if each is not None:
            # with its table's name: SQLite takes a lone "name" that is none for a text
            column = named_table(write.table, [each]).c[each]
            yield SqlCheck((*place, name), place, select(column))
    if write.where is not None:
        # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
        which = select(_ONE).select_from(bare).where(text(f"({write.where})"))
        yield SqlCheck((*place, "where"), place, which, dict.fromkeys(NAMED(write.where)))


def _values_written(place: Place, write: StepMap) -> Iterator[SqlCheck]:
    for name, value in write.values.items():
        if value.sql is not None:
            names = NAMED(value.sql)
            typed = [bindparam(each, type_=String()) for each in names if each in AS_TEXT]
            # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
            statement = text(f"SELECT ({value.sql})").bindparams(*typed)
            yield SqlCheck((*place, "values", name, "sql"), place, statement, dict.fromkeys(names))


def _into(place: Place, rows: Place, write: StepMap, names: Sequence[str]) -> SqlCheck:
    """What writes these columns: each kind of step needs a right of its own."""
    written = named_table(write.table, names)
    if write.insert is not None:
        return SqlCheck(place, rows, insert(written), dict.fromkeys(names))
    return SqlCheck(place, rows, update(written).values(dict.fromkeys(names, null())))
