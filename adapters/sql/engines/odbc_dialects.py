"""How each dialect is spoken through ODBC, and SQLAlchemy's dialects on pyodbc."""

from dataclasses import dataclass
from typing import Any, NoReturn

import pyodbc
import sqlalchemy as sa
from sqlalchemy.dialects.mssql.base import MSDialect
from sqlalchemy.dialects.mysql.base import MySQLDialect
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine import Dialect
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler

from adapters.base import BackendNonsense
from adapters.sql.engines import mssql, mysql
from adapters.sql.engines.base import Speech
from adapters.sql.engines.odbc_speech import (
    OdbcMssqlSpeech,
    OdbcMysqlSpeech,
    OdbcPostgresSpeech,
    OdbcSqliteSpeech,
    PlainSpeech,
)

_LOST = ("08", "HYT01")


@dataclass(frozen=True)
class Manner:
    """How one dialect is spoken through ODBC.

    `options` are handed to the driver unless the address has its own. `limit` is a statement for
    so much time ({short} and {seconds}, {ms}). `limits_by_driver`: whether the driver is asked,
    too. `in_utf8`: whether texts cross as UTF-8: as wide letters, MariaDB's driver writes and reads
    other texts than it is given. `as_texts`: whether every parameter is a text, whose type the
    database infers. Without `begin_read` the driver itself begins and ends.
    """

    dialect: type[Dialect]
    speech: type[Speech]
    options: tuple[tuple[str, str], ...] = ()
    begin_read: str = ""
    begin_booking: str = ""
    end_read: str = "COMMIT"
    rollback: str = "ROLLBACK"
    session: str = ""
    limit: str = ""
    limits_by_driver: bool = False
    in_utf8: bool = False
    as_texts: bool = True


MANNERS = {
    "postgresql": Manner(
        PGDialect,
        OdbcPostgresSpeech,
        # parameters as texts without a type, no savepoints of the driver's own, truths as such
        (("UseServerSidePrepare", "0"), ("Protocol", "7.4-0"), ("BoolsAsChar", "0")),
        begin_read="BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        begin_booking="BEGIN ISOLATION LEVEL READ COMMITTED",
        limit="SET statement_timeout = {ms}; SET lock_timeout = {ms}",
    ),
    "mysql": Manner(
        MySQLDialect,
        OdbcMysqlSpeech,
        # an update counts the rows that it finds, also those that it leaves as they were
        (("charset", "utf8mb4"), ("OPTION", "2")),
        in_utf8=True,
        begin_read=mysql.BEGIN_READ,
        begin_booking=mysql.BEGIN_BOOKING,
        session="SET SESSION TRANSACTION ISOLATION LEVEL {}",
        # MariaDB reads the first comment, MySQL the second
        limit="SET SESSION innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}"
        " /*M!100100 , max_statement_time = {short} */ /*!50708 , max_execution_time = {ms} */",
    ),
    "sqlite": Manner(
        SQLiteDialect,
        OdbcSqliteSpeech,
        begin_read="BEGIN",
        begin_booking="BEGIN IMMEDIATE",
        session="PRAGMA query_only = {}",
        limit="PRAGMA busy_timeout = {ms}",
        as_texts=False,
    ),
    "mssql": Manner(
        MSDialect,
        OdbcMssqlSpeech,
        begin_read="BEGIN TRANSACTION",
        begin_booking="BEGIN TRANSACTION",
        end_read="ROLLBACK",
        rollback=mssql.MssqlLane.rollback,
        session=mssql.SESSION,
        limit="SET LOCK_TIMEOUT {ms}",
        limits_by_driver=True,
        as_texts=False,
    ),
    "plain": Manner(
        DefaultDialect, PlainSpeech, end_read="ROLLBACK", limits_by_driver=True, as_texts=False
    ),
}
MANNERS["mariadb"] = MANNERS["mysql"]
# The levels of isolation, or the like, of sessions for reads and for bookings.
LEVELS = {
    "mysql": ("REPEATABLE READ, READ ONLY", "READ COMMITTED, READ WRITE"),
    "mariadb": ("REPEATABLE READ, READ ONLY", "READ COMMITTED, READ WRITE"),
    "sqlite": ("1", "0"),
    "mssql": ("READ COMMITTED", "READ COMMITTED"),
}
_LAST_KEY = {
    "mysql": "SELECT LAST_INSERT_ID()",
    "mariadb": "SELECT LAST_INSERT_ID()",
    "sqlite": "SELECT last_insert_rowid()",
}


def is_lost(error: BaseException | None) -> bool:
    """Returns whether the error says that the connection is lost."""
    state = next(iter(getattr(error, "args", ())), "")
    return isinstance(state, str) and state.startswith(_LOST)


class _Plain(SQLCompiler):
    """Writes limits as the dialect's `limits` says, as SQL-92 has none."""

    def get_select_precolumns(self, select: Any, **kw: Any) -> str:
        before = super().get_select_precolumns(select, **kw)
        size = select._limit_clause  # noqa: SLF001 - compilers are given nothing else
        if size is None or self.dialect.limits != "top":  # type: ignore[attr-defined]
            return before
        return f"{before}TOP {self._size(size)} "

    def limit_clause(self, select: Any, **kw: Any) -> str:
        size = select._limit_clause  # noqa: SLF001 - compilers are given nothing else
        limits = self.dialect.limits  # type: ignore[attr-defined]
        if size is None or limits == "top":
            return ""
        number = self._size(size)
        return f" LIMIT {number}" if limits == "limit" else f" FETCH FIRST {number} ROWS ONLY"

    def visit_sequence(self, *_: Any, **__: Any) -> NoReturn:
        """Raises what a database says that has no sequences, as each spells them its own way."""
        said = "no sequence can be asked for without a dialect: draw the number from a counter"
        raise DBAPIError(None, None, pyodbc.ProgrammingError("42000", said))

    def _size(self, size: Any) -> int:
        return int(size.effective_value)


class _OnOdbc:
    """What each of SQLAlchemy's dialects has to do otherwise on this driver."""

    driver, default_paramstyle = "pyodbc", "qmark"
    limits = "fetch"

    def on_connect(self) -> None:
        return None

    def is_disconnect(self, error: Any, *_: Any) -> bool:
        return is_lost(error)

    def get_isolation_level(self, *_: Any) -> str:
        return "AUTOCOMMIT"

    get_default_isolation_level = get_isolation_level

    def _detect_charset(self, connection: sa.Connection) -> str:
        return "utf8mb4"


def _cannot_tell(*_: Any, **__: Any) -> list[str]:
    """Raises NotImplementedError: the driver hands the arrays over as text that tell of keys."""
    raise NotImplementedError


def _sqlite_version(dialect: Dialect, connection: sa.Connection) -> tuple[int, ...]:
    version = str(connection.exec_driver_sql("SELECT sqlite_version()").scalar())
    return tuple(map(int, version.split(".")))


def dialect_on_odbc(name: str, limits: str) -> Dialect:
    """Returns SQLAlchemy's dialect of that name for pyodbc."""
    manner, last_key = MANNERS[name], _LAST_KEY.get(name)

    class Context(manner.dialect.execution_ctx_cls):  # type: ignore[name-defined,misc]
        """Asks for the key that the last row got, as this driver has no such number."""

        def get_lastrowid(self) -> Any:
            if last_key is None:
                raise BackendNonsense(
                    "this database does not tell which key a new row got: let booking.steps write"
                    " it, or draw it from a sequence or a counter"
                )
            cursor = self.create_cursor()
            try:
                return cursor.execute(last_key).fetchone()[0]
            finally:
                cursor.close()

    own: dict[str, Any] = {
        "execution_ctx_cls": Context,
        "limits": limits,
        "supports_statement_cache": True,
    }
    if name == "plain":
        own["statement_compiler"] = _Plain
    if name == "postgresql":
        own["get_table_names"] = _cannot_tell
    if name == "sqlite":
        own["_get_server_version_info"] = _sqlite_version
    if last_key is not None or name == "plain":
        own["insert_returning"] = False
    kind: Any = type("OdbcDialect", (_OnOdbc, manner.dialect), own)
    dialect: Any = kind(paramstyle="qmark")
    dialect.dbapi = pyodbc  # afterwards, as a dialect looks for its own driver's version
    return dialect  # type: ignore[no-any-return]
