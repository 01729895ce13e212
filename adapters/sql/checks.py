"""Prepares each piece of a mapping's SQL, to learn what the database does not have.

Only a query for one row's key is run. Pieces about the same rows are first prepared together.
Where that fails, each is prepared by itself, so that a problem has its line.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from adapters.documents.document import Document, Place
from adapters.ids.seal import NATIVE, PublicIds
from adapters.mapping.expressions import CLOCK
from adapters.mapping.models import (
    NAMED,
    MappingFile,
    ResourceMap,
    StepMap,
    ValueSource,
    WrittenValue,
)
from adapters.sql.booking import following, named_table, names_its_row, truth
from adapters.sql.clock import moment
from adapters.sql.columns import Columns, Rows, directed, rows_of, sql
from adapters.sql.engines.base import ErrorKind, Expression, Speech
from adapters.sql.locks import NO_LOCK, NO_LOCK_ALONE, BookingLock, written
from adapters.values.convert import Unreadable

Ids = Callable[[str], PublicIds]
_ONE: Expression = sa.literal_column("1")
# The values of a draft that are texts in an expression, and those that are numbers.
_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(
        ("scheduledAt", "endTime", "createdAt", "reason", "reference", "uuid"), sa.String()
    ),
    **dict.fromkeys(("minutes", "isUrgent"), sa.BigInteger()),
}
_SOURCES = frozenset({"from", "insert", "update", "counter", "sequence"})
# The attributes of rows, beside their fields, that hold one expression or several.
_READ = ["parent", "order", "key", "vet", "schedule", "weekday", "day", "start", "end", "minutes"]
_READ += ["type", "step", "duration", "default_type"]
_PLAIN = re.compile(r"""(?:[^'"`\\#$\[/-]|-(?!-)|/(?!\*)|'[^'\\]*'|"[^"\\]*")*""").fullmatch
_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""").sub
_PARENTHESES = re.compile(r"[()]").findall


@dataclass(frozen=True, slots=True)
class SqlCheck:
    """A statement to prepare, and its place in the mapping.

    `rows` is the place of its rows. Once these cannot be read at all, they are not checked again.
    `otherwise` is what may be prepared as well, where nobody knows the types of its parameters.
    """

    place: Place
    rows: Place
    statement: sa.Executable
    parameters: dict[str, Any] = field(default_factory=dict)
    otherwise: sa.Executable | None = None


# Checks, and perhaps one that the database prepares only if it prepares each of them.
_Group = tuple[list[SqlCheck], SqlCheck | None]


@dataclass(frozen=True, slots=True)
class SchemaMismatch:
    """Something wrong at a place of the mapping, and the code of the check that it fails."""

    place: Place
    code: str
    text: str


def _cut_short(document: Document, place: Place) -> str:
    """Returns a hint where a ` #` cuts the SQL off inside a quote or parenthesis; else ""."""
    line = document.line_from((*place, "source")) or document.line_from(place)
    before, sign, _ = line.partition(" #")
    unclosed = any(before.count(quote) % 2 for quote in "'\"")
    unclosed = unclosed or before.count("(") > before.count(")")
    if not sign or before[:1] in ("'", '"', "|", ">") or not unclosed:
        return ""
    return "; in YAML ` #` begins a comment, which cuts the text here: put the whole in quotes"


def mismatches_in(
    connection: sa.Connection, mapping: MappingFile, document: Document, speech: Speech, ids: Ids
) -> Iterator[SchemaMismatch]:
    """Yields what is wrong between mapping and database, each at its place in the file."""
    lost: set[Place] = set()
    yield from unknown_in(connection, mapping, document, speech, lost)
    for name, rows in mapping.resources.items():
        if ("resources", name) not in lost and (wrong := _wrong_key(connection, rows, ids(name))):
            yield SchemaMismatch(("resources", name, "key"), "unfit-key", wrong)
    yield from _lock(connection, mapping, speech)
    steps = mapping.booking.steps
    unsafe = set(speech.unsafe_tables(connection, [step.table for step in steps if step.table]))
    for number, step in enumerate(steps):
        if step.table in unsafe - set(mapping.booking.without_transactions):
            text = f"{step.table} has no transactions: what a booking writes there cannot be"
            text += " undone; change its engine, or name it in booking.without_transactions"
            yield SchemaMismatch(("booking", "steps", number), "no-transactions", text)


def _hint(place: Place, statement: str | None) -> str:
    """Returns what to do where a row cannot be locked, beside the mapping's own statement."""
    if statement is None:
        return "; a booking locks this row: say how in booking.lock"
    return f"; {NO_LOCK_ALONE}" if place == ("resources", "vets") else ""


def _lock(
    connection: sa.Connection, mapping: MappingFile, speech: Speech
) -> Iterator[SchemaMismatch]:
    """Yields why two bookings would not be kept apart."""
    place: Place = ("booking", "lock")
    statement, locks = mapping.booking.lock, BookingLock(mapping, speech)
    if not mapping.offers("booking"):
        return
    if locks.is_missing:
        yield SchemaMismatch(("booking",), "no-lock", NO_LOCK)
    if locks.omits_vets:
        yield SchemaMismatch(place, "no-lock", NO_LOCK_ALONE)
    checks = [
        SqlCheck(("resources", name) if name == "vets" else ("diary", name), place, rows)
        for name, rows in locks.derived().items()
    ]
    if statement is not None:
        values = dict.fromkeys(("vet", "schedule"))
        checks.append(SqlCheck(place, place, written(statement, values)))
    for check in checks:
        if error := _refusal(connection, speech, set(), check):
            complaint = speech.complaint(error)
            if complaint is None:
                raise error
            text = f"the database says: {complaint}{_hint(check.place, statement)}"
            yield SchemaMismatch(check.place, "no-lock", text)


def unknown_in(
    connection: sa.Connection,
    mapping: MappingFile,
    document: Document,
    speech: Speech,
    lost: set[Place] | None = None,
) -> Iterator[SchemaMismatch]:
    """Yields what the database does not know; rows that cannot be read are added to `lost`."""
    for mismatch in _unknown(connection, mapping, speech, set() if lost is None else lost):
        yield replace(mismatch, text=mismatch.text + _cut_short(document, mismatch.place))


def _refusal(
    connection: sa.Connection, speech: Speech, lost: set[Place], check: SqlCheck
) -> DBAPIError | None:
    """Returns the database's error about a check; None also for rows that are lost."""
    if any(check.rows[: len(place)] == place for place in lost):
        return None
    first = None
    for statement in (check.statement, *(() if check.otherwise is None else (check.otherwise,))):
        try:
            speech.explain(connection, statement, check.parameters)
        except DBAPIError as error:
            first = first or error
        else:
            return None
    return first


def _unknown(
    connection: sa.Connection, mapping: MappingFile, speech: Speech, lost: set[Place]
) -> Iterator[SchemaMismatch]:
    """Yields what the database does not know. Rows that cannot be read are added to `lost`."""
    refusal = partial(_refusal, connection, speech, lost)
    for checks, combined in _groups(mapping):
        if combined is not None and refusal(combined) is None:
            continue
        for check in checks:
            if (error := refusal(check)) is None:
                continue
            complaint = speech.complaint(error)
            if complaint is None:  # not about the statement
                raise error
            if check.place[-1] in _SOURCES:
                lost.add(check.rows)
            is_denied = speech.kind(error) is ErrorKind.DENIED
            code = "missing-right" if is_denied else "not-in-database"
            if check.parameters and "determine data type" in complaint:
                complaint += f"; say it: CAST(:{next(iter(check.parameters))} AS text)"
            yield SchemaMismatch(check.place, code, f"the database says: {complaint}")


def _wrong_key(connection: sa.Connection, rows: ResourceMap, ids: PublicIds) -> str:
    """Returns why the first row's key makes no id; "" where it makes one."""
    key = Columns(rows.key.source)
    key_in = key.getter(0)
    try:
        with connection.begin_nested():
            statement = rows_of(rows, *key.labelled("row_key")).limit(1)
            first = connection.execute(statement).first()
    except DBAPIError:  # another check reports it
        return ""
    try:
        if first is not None and None not in first:
            ids.shown(key_in(first))
    except Unreadable:
        if rows.key.ids == NATIVE:
            return "the key of a row here is no UUID, which `as: native id` says it is"
        return "the key of a row here is longer than 8 bytes; write {source: ..., as: hashed id}"
    return ""


def checks_of(mapping: MappingFile) -> Iterator[SqlCheck]:
    """Yields the checks of every piece of SQL of the mapping."""
    return (check for checks, _ in _groups(mapping) for check in checks)


def _sources(mapping: MappingFile) -> Iterator[tuple[Place, Rows]]:
    for name, rows in mapping.resources.items():
        yield ("resources", name), rows
        for inner, inner_rows in rows.lists.items():
            yield ("resources", name, "lists", inner), inner_rows
    diary = mapping.diary
    for name in ("hours", "busy", "slots", "durations"):
        every = enumerate(getattr(diary, name))
        yield from ((("diary", name, number), source) for number, source in every if source.is_rows)
    if diary.schedules is not None:
        yield ("diary", "schedules"), diary.schedules


def _groups(mapping: MappingFile) -> Iterator[_Group]:
    booking = mapping.booking
    yield from starmap(_rows, _sources(mapping))
    numbers = [step.name for step in booking.steps if step.counter or step.sequence]
    types = {**_TYPES, **dict.fromkeys(filter(None, numbers), sa.BigInteger())}
    for number, step in enumerate(booking.steps):
        yield from _step(("booking", "steps", number), step, types)
    if booking.reference is not None and "appointments" in mapping.resources:
        statement = rows_of(mapping.resources["appointments"], sql(booking.reference))
        appointments: Place = ("resources", "appointments")
        yield [SqlCheck(("booking", "reference"), appointments, statement)], None


def _rows(place: Place, rows: Rows) -> _Group:
    values: dict[Place, Any] = {(name,): getattr(rows, name, None) for name in _READ}
    values |= {("fields", name): value for name, value in getattr(rows, "fields", {}).items()}
    pieces: list[tuple[Place, str]] = []
    for inner, value in values.items():
        several = value.expressions if isinstance(value, ValueSource) else value or ()
        every = (several,) if isinstance(several, str) else several
        pieces += [(inner, directed(one)[0] if inner == ("order",) else one) for one in every]
    bare = rows.model_copy(update={"where": None})
    checks = [SqlCheck((*place, "from"), place, rows_of(bare, _ONE))]
    if rows.where is not None:
        checks.append(SqlCheck((*place, "where"), place, rows_of(rows, _ONE)))
    checks += [SqlCheck((*place, *inner), place, rows_of(bare, sql(one))) for inner, one in pieces]
    if not all(map(_is_closed, (rows.from_ or "", rows.where or "", *(one for _, one in pieces)))):
        return checks, None
    together = rows_of(rows, _ONE, *(sql(one) for _, one in pieces))
    return checks, SqlCheck(place, place, together)


def _is_closed(expression: str) -> bool:
    """Returns whether it surely closes all that it opens, whichever database reads it."""
    if not _PLAIN(expression):
        return False
    depth = 0
    for sign in _PARENTHESES(_QUOTED("", expression)):
        depth += 1 if sign == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def _prepared(sql: str, types: Mapping[str, Any], kind: Any = None) -> sa.TextClause:
    """Returns a text whose names are parameters of these types, those without one of a kind."""
    names = [name for name in NAMED(sql) if name not in CLOCK]
    typed = {name: types.get(name, kind) for name in names}
    # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
    return sa.text(sql).bindparams(
        *(sa.bindparam(name, type_=kind) for name, kind in typed.items() if kind is not None),
        *(moment(name, "UTC") for name in CLOCK if name in NAMED(sql)),
    )


def _names(sql: str) -> dict[str, None]:
    return dict.fromkeys(name for name in NAMED(sql) if name not in CLOCK)


def _computed(step: StepMap) -> Iterator[tuple[Place, str]]:
    """Yields the SQL that a step computes values and conditions by, each with its place in it."""
    groups: list[tuple[Place, Mapping[str, WrittenValue]]] = [(("values",), step.values)]
    groups += [(("each", number), item) for number, item in enumerate(step.items)]
    for place, values in groups:
        for name, value in values.items():
            if value.sql is not None:
                is_condition = place[0] == "each" and name == "if"
                yield (*place, name, "sql"), truth(value.sql) if is_condition else value.sql
    if step.if_ is not None and step.if_.sql is not None:
        yield ("if", "sql"), truth(step.if_.sql)


def _step(place: Place, step: StepMap, types: Mapping[str, Any]) -> Iterator[_Group]:
    if step.sequence is not None:
        yield [SqlCheck((*place, "sequence"), place, following(step.sequence))], None
        return
    kind = next(kind for kind in ("insert", "update", "counter") if getattr(step, kind))
    bare = sa.select(_ONE).select_from(named_table(step.table, ()))
    checks = [SqlCheck((*place, kind), place, bare)]
    for name, column in [*(("key", key) for key in step.keys), ("column", step.column)]:
        if column is not None:
            # with its table's name, as SQLite takes a lone "name" that is no column for a text
            statement = sa.select(named_table(step.table, [column]).c[column])
            checks.append(SqlCheck((*place, name), place, statement))
    if step.where is not None:
        which = bare.where(_prepared(f"({step.where})", {}))
        checks.append(SqlCheck((*place, "where"), place, which, _names(step.where)))
    for at, expression in _computed(step):
        names = _names(expression)
        made = _worked_out(step, at, expression, types)
        # keys may be texts
        otherwise = _worked_out(step, at, expression, types, sa.String())
        unknown = otherwise if names.keys() - types.keys() else None
        checks.append(SqlCheck((*place, *at), place, made, names, unknown))
    yield checks, None
    if step.values:
        into = [_into((*place, "values", name), place, step, [name]) for name in step.values]
        yield into, _into(place, place, step, list(step.values))


def _worked_out(
    step: StepMap, at: Place, expression: str, types: Mapping[str, Any], kind: Any = None
) -> sa.Executable:
    """Returns the statement that works out SQL of a step, at that place in it."""
    value = _prepared(f"({expression})", types, kind)
    if at[0] == "values" and names_its_row(step, expression):
        column = str(at[1])
        return sa.update(named_table(step.table, [column])).values({column: value})
    return sa.select(value)


def _into(place: Place, rows: Place, step: StepMap, names: Sequence[str]) -> SqlCheck:
    """Returns a check that writes these columns, as each kind of step needs a right of its own."""
    written = named_table(step.table, names)
    if step.insert is not None:
        return SqlCheck(place, rows, sa.insert(written), dict.fromkeys(names))
    return SqlCheck(place, rows, sa.update(written).values(dict.fromkeys(names, sa.null())))
