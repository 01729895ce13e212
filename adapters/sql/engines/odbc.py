"""Whatever has an ODBC driver, through pyodbc: threads, each with a connection.

The address names a data source or a driver, and the dialect that its database speaks:

    odbc://user:password@/?dsn=clinic&dialect=postgresql
    odbc://user:password@host:5432/clinic?driver=PostgreSQL+Unicode

What else stands behind the `?` is handed to the driver. A dialect that is not named is asked for,
once, by `spoken`. Rights are as for the database's own driver.
"""

import datetime as dt
import math
import threading
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from decimal import Decimal
from typing import Any

import pyodbc
import sqlalchemy as sa
from sqlalchemy import Connection, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from adapters.base import BackendUnavailable
from adapters.sql.engines import base, mysql
from adapters.sql.engines.connection import OpenConnection
from adapters.sql.engines.odbc_dialects import LEVELS, MANNERS, dialect_on_odbc, is_lost
from adapters.sql.engines.threads import ThreadLane
from adapters.wrappers.connection_errors import reason

# How a driver that has many connections of its own may not keep ours for another.
pyodbc.pooling = False
# Seconds for a database to say which one it is, where the address does not.
ASKING = 5.0
OWN_OPTIONS = ("dialect", "limit")
# What a driver manager says of what it does not know.
_UNKNOWN = ("IM002", "IM003", "01000")
_TIMES = (dt.datetime, dt.date, dt.time)


# The beginnings of the names that databases give themselves.
_NAMES = {
    "postgresql": "postgresql",
    "mariadb": "mariadb",
    "mysql": "mysql",
    "sqlite": "sqlite",
    "microsoft sql server": "mssql",
}
_NOT_KNOWN = (
    "the driver manager does not know the data source or the driver of backend.url:"
    " odbcinst -q -s, odbcinst -q -d list them"
)


def connection_string(address: URL) -> str:
    """Returns what the driver manager takes; a word of the address comes before the manner's."""
    dialect = str(address.query.get("dialect", ""))
    words: dict[str, Any] = {
        "Server": address.host,
        "Port": address.port,
        "Database": address.database,
        "UID": address.username,
        "PWD": address.password,
    }
    words |= {name: value for name, value in address.query.items() if name not in OWN_OPTIONS}
    given = {name.lower() for name, value in words.items() if value}
    own = MANNERS[dialect].options if dialect in MANNERS else ()
    words |= {name: value for name, value in own if name.lower() not in given}
    parts = (f"{name}={_word(str(value))}" for name, value in words.items() if value)
    return ";".join(parts)


def _word(value: str) -> str:
    if value.strip() == value and not set(value) & set(";{}[]()?*=!@,"):
        return value
    return "{" + value.replace("}", "}}") + "}"


def spoken(address: URL) -> URL:
    """Returns the address with the dialect that the database speaks, by its own name.

    Raises ValueError, with a sentence, where it does not answer in time.
    """
    names, errors = list[str](), list[pyodbc.Error]()
    asked = connection_string(address), names, errors
    thread = threading.Thread(target=_ask, args=asked, name="odbc", daemon=True)
    thread.start()
    thread.join(ASKING)
    if not names:
        raise ValueError(_unasked(next(iter(errors), None)))
    name = names[0].lower()
    fitting = (known for begin, known in _NAMES.items() if name.startswith(begin))
    return address.update_query_dict({"dialect": next(fitting, "plain")})


def _ask(words: str, names: list[str], errors: list[pyodbc.Error]) -> None:
    try:
        with closing(pyodbc.connect(words, autocommit=True, timeout=math.ceil(ASKING))) as opened:
            names.append(str(opened.getinfo(pyodbc.SQL_DBMS_NAME)))
    except pyodbc.Error as error:
        errors.append(error)


def _unasked(error: pyodbc.Error | None) -> str:
    """Returns why a database could not be asked, never in the driver's words."""
    state = _state_of(error)
    if state in _UNKNOWN:
        return _NOT_KNOWN
    if error is not None and (why := reason(error)):
        return f"the database can't be reached: {why}; see backend.url"
    code = f" ({state})" if state else ""
    return (
        f"the database cannot be asked now which one it is{code}: name it in backend.url, as"
        f" ?dialect= and one of {', '.join(MANNERS)}"
    )


def _state_of(error: pyodbc.Error | None) -> str:
    return str(next(iter(error.args), "")) if error is not None else ""


class OdbcLane(ThreadLane):
    """A connection for each thread, spoken to in the manner of its dialect."""

    errors = (pyodbc.Error,)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        name = str(self.address.query["dialect"])
        self._manner = manner = MANNERS[name]
        self._levels = LEVELS.get(name, ("", ""))
        self.speech = manner.speech()
        self.begin_read = manner.begin_read or "BEGIN READING"
        self.begin_booking = manner.begin_booking or "BEGIN BOOKING"
        self.end_read, self.rollback = manner.end_read, manner.rollback
        dialect = dialect_on_odbc(name, str(self.address.query.get("limit", "fetch")))
        pool = NullPool(self._connect, dialect=dialect)
        self._engine = sa.Engine(pool, dialect, self.address)
        event.listen(self._engine, "before_cursor_execute", self._prepared, retval=True)

    def _connect(self) -> Any:
        words, is_ours = connection_string(self.address), bool(self._manner.begin_read)
        try:
            made = pyodbc.connect(words, autocommit=is_ours, timeout=math.ceil(self.patience))
        except pyodbc.Error as error:
            if _state_of(error) in _UNKNOWN:
                raise BackendUnavailable(_NOT_KNOWN) from error
            raise
        if self._manner.in_utf8:
            made.setencoding(encoding="utf-8", ctype=pyodbc.SQL_CHAR)
            made.setdecoding(pyodbc.SQL_WCHAR, encoding="utf-8", ctype=pyodbc.SQL_CHAR)
        return made

    def connect(self) -> Connection:
        connection = self._engine.connect()
        if self._manner.session:
            # nosemgrep: sql-is-never-put-together-as-text - constants of ours
            level = self._manner.session.format(self._levels[self.booking])
            connection.exec_driver_sql(level)
        return connection

    def _prepared(self, *call: Any) -> tuple[str, Any]:
        """Makes the parameters of SQLAlchemy the driver's."""
        connection, _, statement, parameters, *_ = call
        self._in_time(connection.info)
        return statement, tuple(map(self._given, parameters or ()))

    def _in_time(self, info: dict[Any, Any]) -> None:
        """Raises what a driver does whose time is over, as not all can be stopped."""
        if time.monotonic() > info.get(base.UNTIL, math.inf):
            raise DBAPIError(None, None, pyodbc.OperationalError("HYT00", "timeout expired"))

    def _given(self, value: Any) -> Any:
        if isinstance(value, bool):
            value = int(value)
        if value is None or isinstance(value, str | bytes):
            return value
        if not self._manner.as_texts and isinstance(value, int) and abs(value) < 1 << 63:
            return value
        return str(value) if not isinstance(value, float) or self._manner.as_texts else value

    def fetch(
        self, opened: OpenConnection, text: str, bound: Sequence[Any] | None
    ) -> Sequence[Any]:
        raw = opened.raw
        if bound is None and not self._manner.begin_read:
            (raw.commit if text == "COMMIT" else raw.rollback)()
            return ()
        if bound is not None:
            self._in_time(opened.info)
        with closing(raw.cursor()) as cursor:
            cursor.execute(text, *map(self._given, bound or ()))
            if bound is None or cursor.description is None:
                return ()
            return [tuple(map(_plain, row)) for row in cursor.fetchall()]

    def is_lost(self, opened: OpenConnection, error: Exception) -> bool:
        return is_lost(error)

    async def limit(self, opened: OpenConnection, tenths: int) -> None:
        """Has the server stop a late statement, or the driver.

        It is never cancelled from another thread, which not all drivers survive.
        """
        seconds = math.ceil(tenths / 10)
        if self._manner.limits_by_driver:
            with suppress(pyodbc.Error):  # it has no such limit: then the thread is left alone
                opened.raw.timeout = seconds
        for each in filter(None, self._manner.limit.split("; ")):
            # nosemgrep: sql-is-never-put-together-as-text - numbers of ours
            await opened.run(each.format(short=tenths / 10, seconds=seconds, ms=tenths * 100))

    async def settle(self, opened: OpenConnection) -> None:
        """Releases the named locks, which are the session's and outlive the transaction."""
        names = opened.info.get(mysql.LOCKS, [])
        while names:
            await opened.run("DO RELEASE_LOCK(?)", (names[-1],))
            names.pop()


def _plain(value: Any) -> Any:
    if isinstance(value, _TIMES):
        return str(value)
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return base.plain_number(f"{value:f}")
    return value
