"""SQL Server, through Microsoft's own blocking driver: a few threads, each with a connection.

The smallest rights that an account needs, in the clinic's database:

    GRANT SELECT ON every table that the mapping reads TO gateway;
    GRANT INSERT ON the tables that a booking inserts into TO gateway;
    GRANT UPDATE ON the tables that a booking updates TO gateway;

A read is one snapshot where the database allows it:
ALTER DATABASE clinic SET ALLOW_SNAPSHOT_ISOLATION ON. SQL Server has no read-only transactions,
so a read is always rolled back.
"""

import re
from collections.abc import Sequence
from functools import partial
from math import ceil
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Executable, func, literal_column, text
from sqlalchemy.dialects.mssql.base import MSDialect, MSSQLCompiler
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from adapters.base import BackendUnavailable
from adapters.sql.engines import base
from adapters.sql.engines.base import Criterion, ErrorKind, Expression, Plan, Speech, quoted
from adapters.sql.engines.connection import OpenConnection
from adapters.sql.engines.threads import ThreadLane
from adapters.values.convert import LONGEST_FOLDED, WHOLE_LETTERS

# It takes letters with and without their accents, and in both cases, for the same.
COLLATION = "Latin1_General_CI_AI"
CONTROLS = tuple(map(ord, base.CONTROLS))
# Parts of messages in us_english, which every session sets; the first match holds.
SENTENCES = {
    ErrorKind.AGAIN: ("deadlock", "snapshot isolation transaction aborted"),
    ErrorKind.BUSY: ("lock request time out",),
    ErrorKind.TIMEOUT: ("timeout expired", "query timeout"),
    ErrorKind.DUPLICATE: ("duplicate key", "violation of unique", "violation of primary"),
    ErrorKind.REFUSED: ("conflicted with the", "cannot insert the value null"),
    ErrorKind.DENIED: ("permission was denied",),
    ErrorKind.UNFIT: ("conversion failed", "error converting data type", "out-of-range value"),
    ErrorKind.LONG: ("would be truncated",),
    ErrorKind.STATEMENT: (
        *("invalid column name", "invalid object name", "incorrect syntax", "could not be bound"),
        *("is not a recognized", "cannot find either column", "could not find stored procedure"),
        "ambiguous column name",
    ),
    ErrorKind.DOWN: (
        *("communication link", "connection", "login failed", "cannot open database"),
        "disconnect",
    ),
}
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
_quoted = partial(quoted, prefix="N")
_SOURCES = re.compile(r"^(?:\[[^\]]*\])+").sub
# Messages in words that are known, dates year first, no counts between the results.
SESSION = (
    "SET LANGUAGE us_english; SET DATEFORMAT ymd; SET NOCOUNT ON; SET XACT_ABORT ON;"
    " SET TRANSACTION ISOLATION LEVEL {}"
)
_SNAPSHOTS = text("SELECT snapshot_isolation_state FROM sys.databases WHERE database_id = DB_ID()")


class MssqlSpeech(Speech):
    """SQL Server's spelling."""

    spelling = base.Spelling(joined="CONCAT({}, {})")
    grants = ("GRANT SELECT ON SCHEMA::dbo TO {account};",)
    kinds = {}  # noqa: RUF012 - the driver has no codes
    binary, now = "Latin1_General_BIN2", _CLOCK
    first_day = "1753-01-01"  # of its older kind of times
    columns = base.columns_beside("INFORMATION_SCHEMA", "sys")
    unknown_table = "Invalid object name '([^']+)'"
    unknown_column = "Invalid column name '([^']+)'"
    first_row, limits_by_top = "TOP 1", True

    def searchable(self, expression: Expression) -> Expression:
        raw = func.left(func.coalesce(_text(expression), _quoted("")), LONGEST_FOLDED)
        plain: Expression = raw.collate(COLLATION)
        for letter, several in WHOLE_LETTERS.items():
            plain = func.replace(plain, _quoted(letter), _quoted(several))
        marks = [_quoted(mark) for mark in base.PUNCTUATION]
        # nosemgrep: sql-is-never-put-together-as-text - constants of ours
        for mark in [*marks, *(literal_column(f"NCHAR({code})") for code in CONTROLS)]:
            plain = func.replace(plain, mark, _quoted(" "))
        return func.concat(_quoted(" "), plain).collate(COLLATION)

    def trimmed(self, expression: Expression) -> Expression:
        controls = ", ".join(f"NCHAR({code})" for code in CONTROLS)
        # nosemgrep: sql-is-never-put-together-as-text - constants of ours
        blanks: Expression = literal_column(f"CONCAT(N' ', {controls})")
        return func.trim(blanks.op("FROM")(_text(expression)))

    def number(self, expression: Expression) -> Expression:
        bare = _text(expression)
        for mark in (_quoted(" "), _quoted("'")):
            bare = func.replace(bare, mark, _quoted(""))
        pointed = func.nullif(func.replace(bare, _quoted(","), _quoted(".")), _quoted(""))
        return func.try_convert(literal_column("DECIMAL(38, 15)"), pointed)

    def undated(self, expression: Expression) -> Criterion:
        digits = "[0-9][0-9]"
        return _text(expression).not_like(_quoted(f"{digits}{digits}-{digits}-{digits}%"))

    has_plans = False

    def explain(self, connection: Connection, statement: Executable, bound: dict[str, Any]) -> Plan:
        """Checks that everything in it is known. The plan is empty: none can be had beside work."""
        shown = without_parameters(statement, list(bound))
        connection.exec_driver_sql("EXEC sp_describe_first_result_set @tsql = ?", (shown,)).all()
        return ()

    def kind(self, error: DBAPIError) -> ErrorKind:
        text = str(error.orig).lower()
        kinds = (kind for kind, parts in SENTENCES.items() if any(part in text for part in parts))
        return next(kinds, ErrorKind.OTHER)

    def code(self, error: DBAPIError) -> str:
        """Returns the driver's own fixed words for the SQLSTATE."""
        return str(getattr(error.orig, "driver_error", "") or type(error.orig).__name__)

    def sentence(self, error: DBAPIError) -> object:
        return _SOURCES("", str(getattr(error.orig, "ddbc_error", "") or error.orig))

    def lock(self, connection: Connection, name: str) -> None:
        wait = int(base.seconds_left(connection) * 1000)
        values = {"name": f"clinic-gateway:{name}"[:255], "wait": wait}
        if connection.execute(_LOCK, values).scalar_one() < 0:
            raise BackendUnavailable(ErrorKind.BUSY)

    def rights(self, connection: Connection) -> Sequence[str]:
        roles = connection.execute(_ROLES).scalars().all()
        rights = connection.execute(_RIGHTS).scalars().all()
        excess = [f"the account has the role {role}" for role in roles]
        return [*excess, *(f"the account has {right} on the whole database" for right in rights)]

    def writable(self, connection: Connection) -> None:
        """Returns None, as a right may come from a schema or from a role."""

    def schemas(self, inspector: sa.Inspector) -> Sequence[str]:
        others = {*inspector.get_schema_names()} - {"INFORMATION_SCHEMA", "sys", "guest"}
        return sorted(name for name in others if not name.startswith("db_"))


class _Bare(MSSQLCompiler):
    """Writes numbers as they are, as TOP wants them, and NULL for every other parameter."""

    def visit_bindparam(self, bindparam: sa.BindParameter[Any], *_: Any, **__: Any) -> str:
        value = bindparam.effective_value
        return str(value) if type(value) is int else "NULL"


def without_parameters(statement: Executable, names: list[str]) -> str:
    """Returns the statement as a text that can be prepared by itself."""
    dialect = MSDialect()  # type: ignore[no-untyped-call]  # it has no types
    dialect.statement_compiler = _Bare
    return str(statement.compile(dialect=dialect, column_keys=names or None))  # type: ignore[attr-defined]


def _text(expression: Expression) -> Expression:
    # 121: dates as YYYY-MM-DD HH:MM:SS
    return func.convert(literal_column("NVARCHAR(4000)"), expression, literal_column("121"))


class MssqlLane(ThreadLane):
    """A connection for each thread; the driver stops a statement that takes too long."""

    speech = MssqlSpeech()
    begin_read = begin_booking = "BEGIN TRANSACTION"
    end_read = "ROLLBACK"
    rollback = "IF @@TRANCOUNT > 0 ROLLBACK"

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._engine = sa.create_engine(
            self.address.set(drivername="mssql+mssqlpython"),
            isolation_level="AUTOCOMMIT",
            poolclass=NullPool,
        )
        driver: Any = self._engine.dialect.loaded_dbapi
        self.errors = (driver.Error,)

    def connect(self) -> Connection:
        connection = self._engine.connect()
        # nosemgrep: sql-is-never-put-together-as-text - constants of ours
        connection.exec_driver_sql(SESSION.format("READ COMMITTED"))
        if not self.booking and connection.execute(_SNAPSHOTS).scalar() == 1:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL SNAPSHOT")
        return connection

    def fetch(
        self, opened: OpenConnection, text: str, bound: Sequence[Any] | None
    ) -> Sequence[Any]:
        cursor = opened.raw.cursor()
        try:
            cursor.execute(text, *(bound or ()))
            return [] if bound is None else list(map(tuple, cursor.fetchall()))
        finally:
            cursor.close()

    async def limit(self, opened: OpenConnection, tenths: int) -> None:
        opened.raw.timeout = ceil(tenths / 10)
        # nosemgrep: sql-is-never-put-together-as-text - a number of ours
        await opened.run(f"SET LOCK_TIMEOUT {tenths * 100}")
