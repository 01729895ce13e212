"""How SQL Server (2017 and later) spells what the adapter needs."""

import re
import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Executable,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.mssql.base import MSDialect, MSSQLCompiler
from sqlalchemy.exc import DBAPIError

from adapters.base import BackendUnavailable
from adapters.sql.engines.base import SAID, UNTIL, Clock, Kind, Step, one_line
from adapters.values.convert import LONGEST_FOLDED, WHOLE_LETTERS

# It knows letters with and without their accents, and in both cases, as the same.
COLLATION = "Latin1_General_CI_AI"
PUNCTUATION = "'\"-.,;:/\\()[]_&+*!?#@%=<>|~^`´’‘“”–—«»"  # noqa: RUF001 - they are meant
CONTROLS = (9, 10, 11, 12, 13, 160)
# In us_english, which every session sets; the first that fits holds.
SENTENCES = (
    ("deadlock", Kind.AGAIN),
    ("snapshot isolation transaction aborted", Kind.AGAIN),
    ("lock request time out", Kind.BUSY),
    ("timeout expired", Kind.TIMEOUT),
    ("query timeout", Kind.TIMEOUT),
    ("duplicate key", Kind.DUPLICATE),
    ("violation of unique", Kind.DUPLICATE),
    ("violation of primary", Kind.DUPLICATE),
    ("conflicted with the", Kind.REFUSED),
    ("cannot insert the value null", Kind.REFUSED),
    ("permission was denied", Kind.DENIED),
    ("invalid column name", Kind.STATEMENT),
    ("invalid object name", Kind.STATEMENT),
    ("incorrect syntax", Kind.STATEMENT),
    ("could not be bound", Kind.STATEMENT),
    ("is not a recognized", Kind.STATEMENT),
    ("cannot find either column", Kind.STATEMENT),
    ("could not find stored procedure", Kind.STATEMENT),
    ("ambiguous column name", Kind.STATEMENT),
    ("communication link", Kind.DOWN),
    ("connection", Kind.DOWN),
    ("login failed", Kind.DOWN),
    ("cannot open database", Kind.DOWN),
    ("disconnect", Kind.DOWN),
)
_LOCK = text(
    "DECLARE @got int; EXEC @got = sp_getapplock @Resource = :name, @LockMode = 'Exclusive',"
    " @LockOwner = 'Transaction', @LockTimeout = :wait; SELECT @got"
)
_CLOCK = text(
    "SELECT CONVERT(varchar(19), SYSDATETIME(), 120), CONVERT(varchar(19), SYSUTCDATETIME(), 120),"
    " DATENAME(tz, SYSDATETIMEOFFSET())"
)
_ROLES = text(
    "SELECT r FROM (VALUES ('db_owner'), ('db_ddladmin'), ('db_datawriter')) AS all_roles(r)"
    " WHERE IS_ROLEMEMBER(r) = 1 UNION ALL SELECT 'sysadmin' WHERE IS_SRVROLEMEMBER('sysadmin') = 1"
)
_RIGHTS = text(
    "SELECT DISTINCT permission_name FROM fn_my_permissions(NULL, 'DATABASE')"
    " WHERE permission_name IN ('CONTROL', 'ALTER', 'DELETE', 'CREATE TABLE') ORDER BY 1"
)
_SOURCES = re.compile(r"^(?:\[[^\]]*\])+").sub


class MssqlSpeech:
    """SQL Server's spelling."""

    loose_types = False
    times_as_text = False
    bits_are_letters = False
    first_day = "1753-01-01"  # of its older kind of times

    def searchable(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        raw = func.left(func.coalesce(_text(expression), _quoted("")), LONGEST_FOLDED)
        plain: ColumnElement[Any] = raw.collate(COLLATION)
        for letter, several in WHOLE_LETTERS.items():
            plain = func.replace(plain, _quoted(letter), _quoted(several))
        marks = [_quoted(mark) for mark in PUNCTUATION]
        # nosemgrep: sql-is-never-put-together-as-text - constants of ours
        for mark in [*marks, *(literal_column(f"NCHAR({code})") for code in CONTROLS)]:
            plain = func.replace(plain, mark, _quoted(" "))
        return func.concat(_quoted(" "), plain).collate(COLLATION)

    def trimmed(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        controls = ", ".join(f"NCHAR({code})" for code in CONTROLS)
        # nosemgrep: sql-is-never-put-together-as-text - constants of ours
        blanks: ColumnElement[Any] = literal_column(f"CONCAT(N' ', {controls})")
        return func.trim(blanks.op("FROM")(_text(expression)))

    def exact(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        return text.collate("Latin1_General_BIN2")

    def number(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        bare = _text(expression)
        for mark in (_quoted(" "), _quoted("'")):
            bare = func.replace(bare, mark, _quoted(""))
        pointed = func.nullif(func.replace(bare, _quoted(","), _quoted(".")), _quoted(""))
        return func.try_convert(literal_column("DECIMAL(38, 15)"), pointed)

    def undated(self, expression: ColumnElement[Any]) -> ColumnElement[bool]:
        digits = "[0-9][0-9]"
        return _text(expression).not_like(_quoted(f"{digits}{digits}-{digits}-{digits}%"))

    def explain(
        self, connection: Connection, statement: Executable, parameters: dict[str, Any]
    ) -> tuple[Step, ...]:
        """Only whether everything in it is known: a plan is not to be had beside other work."""
        shown = without_parameters(statement, list(parameters))
        connection.exec_driver_sql("EXEC sp_describe_first_result_set @tsql = ?", (shown,)).all()
        return ()

    def kind(self, error: DBAPIError) -> Kind:
        said = str(error.orig).lower()
        return next((kind for words, kind in SENTENCES if words in said), Kind.OTHER)

    def code(self, error: DBAPIError) -> str:
        """The driver's own fixed words for the SQLSTATE."""
        return str(getattr(error.orig, "driver_error", "") or type(error.orig).__name__)

    def complaint(self, error: DBAPIError) -> str | None:
        if self.kind(error) not in (Kind.STATEMENT, Kind.DENIED):
            return None
        said = getattr(error.orig, "ddbc_error", "") or error.orig
        return one_line(_SOURCES("", str(said)))

    def lock(self, connection: Connection, name: str) -> None:
        left = max(0.0, connection.info.get(UNTIL, 0.0) - time.monotonic())
        values = {"name": f"clinic-gateway:{name}"[:255], "wait": int(left * 1000)}
        if connection.execute(_LOCK, values).scalar_one() < 0:
            raise BackendUnavailable(SAID[Kind.BUSY])

    def rights(self, connection: Connection) -> Sequence[str]:
        roles = connection.execute(_ROLES).scalars().all()
        rights = connection.execute(_RIGHTS).scalars().all()
        said = [f"the account has the role {each}" for each in roles]
        return [*said, *(f"the account has {each} on the whole database" for each in rights)]

    def clock(self, connection: Connection) -> Clock:
        return Clock(*connection.execute(_CLOCK).one())

    def transactional(self, connection: Connection, tables: Sequence[str]) -> Sequence[str]:
        return []


class _Bare(MSSQLCompiler):
    """Numbers as they are, as TOP wants them, and NULL for every other parameter."""

    def visit_bindparam(self, bindparam: BindParameter[Any], *_: Any, **__: Any) -> str:
        value = bindparam.effective_value
        return str(value) if type(value) is int else "NULL"


def without_parameters(statement: Executable, names: list[str]) -> str:
    """The statement as a text that can be looked at by itself."""
    dialect = MSDialect()  # type: ignore[no-untyped-call]  # it has no types
    dialect.statement_compiler = _Bare
    return str(statement.compile(dialect=dialect, column_keys=names or None))  # type: ignore[attr-defined]


def _text(expression: ColumnElement[Any]) -> ColumnElement[Any]:
    # 121: dates as YYYY-MM-DD HH:MM:SS
    return func.convert(literal_column("NVARCHAR(4000)"), expression, literal_column("121"))


def _quoted(value: str) -> ColumnElement[Any]:
    doubled = value.replace("'", "''")
    # nosemgrep: sql-is-never-put-together-as-text - constants of ours, quoted
    return literal_column(f"N'{doubled}'")
