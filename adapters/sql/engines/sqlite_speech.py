"""How SQLite spells what the adapter needs."""

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    LargeBinary,
    case,
    cast,
    func,
    literal_column,
    text,
)
from sqlalchemy.exc import DBAPIError, OperationalError

from adapters.sql.engines.base import BLANKS, Clock, Kind, Step, one_line
from adapters.sql.engines.explained import explain

DATED = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*"
KINDS = {
    "SQLITE_INTERRUPT": Kind.TIMEOUT,
    "SQLITE_BUSY": Kind.BUSY,
    "SQLITE_LOCKED": Kind.BUSY,
    "SQLITE_CONSTRAINT_UNIQUE": Kind.DUPLICATE,
    "SQLITE_CONSTRAINT_PRIMARYKEY": Kind.DUPLICATE,
    "SQLITE_CONSTRAINT": Kind.REFUSED,
    "SQLITE_ERROR": Kind.STATEMENT,
    "SQLITE_CANTOPEN": Kind.DOWN,
    "SQLITE_IOERR": Kind.DOWN,
    "SQLITE_FULL": Kind.DOWN,
    "SQLITE_CORRUPT": Kind.DOWN,
    "SQLITE_NOTADB": Kind.DOWN,
    "SQLITE_READONLY": Kind.DOWN,
}
_NUMBERS: tuple[ColumnElement[Any], ...] = (literal_column("'integer'"), literal_column("'real'"))
_NOW = text("SELECT datetime('now', 'localtime'), datetime('now')")


class SqliteSpeech:
    """SQLite's spelling; clinic_fold and clinic_number come with the engine's connections."""

    loose_types = True
    times_as_text = True
    bits_are_letters = False
    first_day = "0001-01-01"

    def searchable(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        # as bytes: a text in another encoding must not fail the search for all others
        return func.clinic_fold(cast(expression, LargeBinary))

    def trimmed(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.trim(expression, BLANKS)

    def exact(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        return text.collate("BINARY")

    def number(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        read = func.clinic_number(cast(expression, LargeBinary))
        return case((func.typeof(expression).in_(_NUMBERS), expression), else_=read)

    def undated(self, expression: ColumnElement[Any]) -> ColumnElement[bool]:
        return expression.op("NOT GLOB", is_comparison=True)(DATED)

    def explain(
        self, connection: Connection, statement: Executable, parameters: dict[str, Any]
    ) -> tuple[Step, ...]:
        """Both kinds of EXPLAIN: one shows the plan, the other a name taken for a text."""
        _taken_for_text(connection, statement, parameters)
        plan = explain(connection, "EXPLAIN QUERY PLAN", statement, parameters)
        return tuple(step for row in plan for step in _steps(row[3]))

    def kind(self, error: DBAPIError) -> Kind:
        name = error_name(error)
        return next((kind for each, kind in KINDS.items() if name.startswith(each)), Kind.OTHER)

    def code(self, error: DBAPIError) -> str:
        return error_name(error)

    def complaint(self, error: DBAPIError) -> str | None:
        return one_line(error.orig) if error_name(error) == "SQLITE_ERROR" else None

    def lock(self, connection: Connection, name: str) -> None:
        """Nothing: a booking holds the write lock of the whole file."""

    def rights(self, connection: Connection) -> Sequence[str]:
        return []

    def clock(self, connection: Connection) -> Clock:
        local, utc = connection.execute(_NOW).one()
        return Clock(local, utc, "")

    def transactional(self, connection: Connection, tables: Sequence[str]) -> Sequence[str]:
        return []


def error_name(error: Exception) -> str:
    """SQLite's own name of what went wrong; without one, the class of the error."""
    orig = error.orig if isinstance(error, DBAPIError) else None
    return getattr(orig, "sqlite_errorname", "") or type(orig or error).__name__


def _taken_for_text(connection: Connection, statement: Executable, parameters: Any) -> None:
    """A name in quotes that is none: SQLite prepares the statement and loads the name as a text."""
    compiled = str(statement.compile(connection))  # type: ignore[attr-defined]
    quoted = _QUOTED(_LITERAL("", compiled))
    if not quoted:
        return
    program = explain(connection, "EXPLAIN", statement, parameters)
    texts = {row[5] for row in program if row[1] == "String8"}
    for name in quoted:
        if name in texts:
            lost = sqlite3.OperationalError(f'no such column: "{name}"')
            lost.sqlite_errorname = "SQLITE_ERROR"
            raise OperationalError(compiled, None, lost)


_LITERAL = re.compile("'(?:[^']|'')*'").sub
_QUOTED = re.compile('"([^"]+)"').findall
_STEP = re.compile(
    "(SCAN|SEARCH) (.+?)(?: USING (?:(?:AUTOMATIC )?(?:PARTIAL )?(?:COVERING )?INDEX"
    " ?([^( ]*)|(INTEGER PRIMARY KEY)).*)?"
).fullmatch


def _steps(detail: str) -> list[Step]:
    found = _STEP(detail)
    if found is None or "CONSTANT ROW" in detail:
        return []
    return [Step(found[2], found[1] == "SCAN", found[3] or found[4] or "")]
