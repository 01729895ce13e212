"""How databases behind an ODBC driver spell and complain: as by their own drivers, in other codes.

A database without a speech of its own is asked in plain SQL-92.
"""

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import ceil
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy import Connection, Executable, case, func, literal_column, text
from sqlalchemy.exc import DBAPIError

from adapters.base import BackendUnavailable
from adapters.sql.engines import base
from adapters.sql.engines.base import Criterion, ErrorKind, Expression, Plan, Speech, quoted
from adapters.sql.engines.mssql import MssqlSpeech
from adapters.sql.engines.mysql import LOCKS, MysqlSpeech
from adapters.sql.engines.postgres import PostgresSpeech
from adapters.sql.engines.sqlite import SqliteSpeech
from adapters.values.convert import LONGEST_FOLDED

# Classes of SQLSTATE, as the standard has them; drivers add HYT00 and HYT01 for time that is over.
STATES = {
    "08": ErrorKind.DOWN,
    "HYT": ErrorKind.TIMEOUT,
    "HY008": ErrorKind.TIMEOUT,
    "40": ErrorKind.AGAIN,
    "40003": ErrorKind.OTHER,
    "23": ErrorKind.REFUSED,
    "23505": ErrorKind.DUPLICATE,
    "28": ErrorKind.DOWN,
    "42501": ErrorKind.DENIED,
    **dict.fromkeys(("22003", "22007", "22008", "22018", "22021", "22P"), ErrorKind.UNFIT),
    "22001": ErrorKind.LONG,
    **dict.fromkeys(("07", "22", "42", "37", "S0"), ErrorKind.STATEMENT),
}
# What drivers put around the database's own words.
_AROUND = re.compile(
    r"^(?:\[[^\]]*\]\s*)+(?:ERROR:\s*)?"
    r"|;?\s*Error while executing the query|(?:\s*\((?:-?\d+|SQL\w+)\))+$"
)
_NUMBER = re.compile(r"\((\d+)\) \(SQL\w+\)$").search
# Letters of western languages that a search of SQLite takes for plain ones: as many as its parser
# can hold in one expression.
_FOLDED = {
    **dict.fromkeys("éèêëÉ", "e"),
    **dict.fromkeys("àâä", "a"),
    **dict.fromkeys("öôø", "o"),
    **dict.fromkeys("üÜ", "u"),
    "ç": "c",
    "ß": "ss",
}
_MARKS = "'-.,"
_LITE_CODES = {
    "5": "SQLITE_BUSY",
    "6": "SQLITE_LOCKED",
    "8": "SQLITE_READONLY",
    "9": "SQLITE_INTERRUPT",
    "10": "SQLITE_IOERR",
    "11": "SQLITE_CORRUPT",
    "14": "SQLITE_CANTOPEN",
    "19": "SQLITE_CONSTRAINT",
    "26": "SQLITE_NOTADB",
    "1": "SQLITE_ERROR",
}


def state_of(error: DBAPIError) -> str:
    """Returns the SQLSTATE that the driver reports."""
    first = next(iter(getattr(error.orig, "args", ())), "")
    return first if isinstance(first, str) and len(first) == 5 else type(error.orig).__name__


def words_of(error: DBAPIError) -> str:
    """Returns the database's own words, without what the driver puts around them."""
    said = " ".join(str(getattr(error.orig, "args", ("",))[-1]).split())
    return _AROUND.sub("", said).strip()


class OdbcPostgresSpeech(PostgresSpeech):
    """PostgreSQL; its driver reports the server's SQLSTATE."""

    def code(self, error: DBAPIError) -> str:
        state = state_of(error)
        return {"HYT00": "57014", "HYT01": "08006", "HY008": "57014"}.get(state, state)

    def sentence(self, error: DBAPIError) -> object:
        return words_of(error)


class OdbcMysqlSpeech(MysqlSpeech):
    """MySQL and MariaDB; their drivers report the server's number behind its words."""

    def code(self, error: DBAPIError) -> str:
        state = state_of(error)
        number = _NUMBER(str(error.orig.args[-1])) if error.orig and error.orig.args else None
        return state if number is None else number[1]

    def kind(self, error: DBAPIError) -> ErrorKind:
        known = super().kind(error)
        return by_state(state_of(error)) if known is ErrorKind.OTHER else known

    def sentence(self, error: DBAPIError) -> object:
        return words_of(error)

    def lock(self, connection: Connection, name: str) -> None:
        database = connection.scalar(text("SELECT DATABASE()"))
        digest = blake2b(f"{database}:{name}".encode(), digest_size=16).hexdigest()
        full, seconds = f"clinic-gateway:{digest}", ceil(base.seconds_left(connection))
        taken = text("SELECT GET_LOCK(:name, :seconds)")
        if connection.scalar(taken, {"name": full, "seconds": seconds}) != 1:
            raise BackendUnavailable(ErrorKind.BUSY)
        connection.info.setdefault(LOCKS, []).append(full)


class OdbcSqliteSpeech(SqliteSpeech):
    """SQLite without functions of ours: a search knows the accents of western Europe alone."""

    def code(self, error: DBAPIError) -> str:
        said = str(getattr(error.orig, "args", ("",))[-1])
        number = _NUMBER(said)
        if "UNIQUE constraint" in said or "PRIMARY KEY must be unique" in said:
            return "SQLITE_CONSTRAINT_UNIQUE"
        return _LITE_CODES.get(number[1], state_of(error)) if number else state_of(error)

    def kind(self, error: DBAPIError) -> ErrorKind:
        known = super().kind(error)
        return by_state(state_of(error)) if known is ErrorKind.OTHER else known

    def sentence(self, error: DBAPIError) -> object:
        return words_of(error)

    def searchable(self, expression: Expression) -> Expression:
        plain = func.substr(func.coalesce(expression, quoted("")), 1, LONGEST_FOLDED)
        for letter, several in _FOLDED.items():
            plain = func.replace(plain, quoted(letter), quoted(several))
        for mark in _MARKS:
            plain = func.replace(plain, quoted(mark), quoted(" "))
        return quoted(" ").op("||")(func.lower(plain))

    def number(self, expression: Expression) -> Expression:
        """Returns numbers alone: texts are compared when they were read."""
        is_number = func.typeof(expression).in_((quoted("integer"), quoted("real")))
        return case((is_number, expression))


class OdbcMssqlSpeech(MssqlSpeech):
    """SQL Server, through its maker's ODBC driver or FreeTDS."""

    def code(self, error: DBAPIError) -> str:
        return state_of(error)

    def sentence(self, error: DBAPIError) -> object:
        return words_of(error)


class PlainSpeech(Speech):
    """SQL-92 and nothing else: no locks, no plans, and a search for letters as they are kept."""

    binary = ""
    kinds: ClassVar[Mapping[str, ErrorKind]] = STATES
    now = text("SELECT CURRENT_TIMESTAMP")
    columns = base.columns_beside("INFORMATION_SCHEMA", "information_schema")
    unknown_table = "(?:table|object|relation)\\W+(\\w+)"
    unknown_column = "column\\W+(\\w+)"
    misfits = frozenset({"22003", "22018", "22001", "22007"})
    locks_names = False
    tries_all = has_plans = False
    limits_by_top = True

    def searchable(self, expression: Expression) -> Expression:
        return quoted(" ").op("||")(func.lower(func.coalesce(expression, quoted(""))))

    def trimmed(self, expression: Expression) -> Expression:
        return func.trim(expression)

    def exact(self, text: Expression) -> Expression:
        return text

    def number(self, expression: Expression) -> Expression:
        """Returns NULL: whether a column has numbers is not known, so the gateway compares them."""
        return sa.cast(sa.null(), sa.Numeric(18, 4))

    def undated(self, expression: Expression) -> Criterion:
        return func.trim(expression).not_like(quoted("____-__-__%"))

    def explain(self, connection: Connection, statement: Executable, bound: dict[str, Any]) -> Plan:
        """Runs it without any row, where it reads or changes; of an INSERT it reads the columns."""
        never: Criterion = literal_column("1 = 0")
        if isinstance(statement, sa.Insert):
            connection.execute(sa.select(*statement.table.columns).where(never))
        elif isinstance(statement, sa.Select | sa.Update | sa.Delete):
            connection.execute(statement.where(never), bound)
        return ()

    def code(self, error: DBAPIError) -> str:
        return state_of(error)

    def sentence(self, error: DBAPIError) -> object:
        return words_of(error)

    def lock(self, connection: Connection, name: str) -> None:
        """Does nothing: the mapping says how a booking locks."""

    def clock(self, connection: Connection) -> None:
        """Returns None, as there is no standard way to ask for UTC."""

    def rights(self, connection: Connection) -> None:
        """Returns None, as there is no standard way to ask."""

    def writable(self, connection: Connection) -> None:
        """Returns None, for the same reason."""

    def schemas(self, inspector: sa.Inspector) -> Sequence[str]:
        return []


def by_state(state: str) -> ErrorKind:
    """Returns the kind of an error by the class of its SQLSTATE."""
    fitting = filter(state.startswith, STATES)
    return STATES.get(max(fitting, key=len, default=""), ErrorKind.OTHER)
