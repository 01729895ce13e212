"""Opens a practice database for one look: read-only, with deadlines, and closed again."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from adapters.base import BackendUnavailable
from adapters.draft.database import Database
from adapters.wrappers.unreachable import reason

# Seconds of one statement, and of all the looking at rows.
PATIENCE = 5.0
PATIENCE_IN_ALL = 120.0
# What PostgreSQL says of a setting that it does not know, or whose value it does not take.
NO_SUCH_SETTING = ("42704", "22023")

DRIVERS = {
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
    "mysql": "mysql+asyncmy",
    "mariadb": "mysql+asyncmy",
    "mssql": "mssql+mssqlpython",
    "sqlite": "sqlite",
}
Look = Callable[[Connection], Database]


async def looked_into(url: str, look: Look) -> Database:
    """What the look finds; BackendUnavailable, without its words, where it can't be had.

    ValueError, in a sentence, for what is no address of a database that is known here, and for an
    option behind its `?` that cannot be taken.
    """
    address = _address(url)
    try:
        if address.drivername in ("sqlite", "mssql+mssqlpython"):
            return await asyncio.to_thread(_look_in_thread, address, look)
        return await _look_async(address, look)
    except Exception as error:
        said = _said(address, error)
        if said is None:
            raise
        raise said from error


def _said(address: URL, error: Exception) -> Exception | None:
    """What is to be told of it; None where it is no trouble of the database's."""
    if isinstance(error, ImportError):
        extra = {"p": "postgres", "m": "mysql"}[address.drivername[0]]
        extra = "mssql" if address.drivername.startswith("mssql") else extra
        return BackendUnavailable(
            f"the driver is not installed: pip install 'clinic-gateway[{extra}]'"
        )
    refusals = [each for each in _causes(error) if _refuses_a_setting(each)]
    if refusals and (named := _named(address, refusals)):
        return _untaken(address, named)
    # drivers say by errors of their own that they were not let in
    own = type(error).__module__.split(".")[0] in {"asyncpg", "asyncmy", "pymysql"}
    if own or isinstance(error, SQLAlchemyError | OSError | TimeoutError):
        return _unavailable(address, error)
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _refuses_a_setting(error: BaseException) -> bool:
    """Whether it may be about an option; what can't be decoded is about what was read."""
    said = isinstance(error, TypeError | ValueError) and not isinstance(error, UnicodeError)
    return said or getattr(error, "sqlstate", "") in NO_SUCH_SETTING


def _named(address: URL, refusals: Sequence[BaseException]) -> list[str]:
    """The options that are spoken of, by name or value; all where the server names none."""
    said = " ".join(map(str, refusals))
    named = [name for name, value in address.query.items() if name in said or repr(value) in said]
    is_servers = any(getattr(each, "sqlstate", "") in NO_SUCH_SETTING for each in refusals)
    return named or ([*address.query] if is_servers else [])


def _untaken(address: URL, named: list[str]) -> ValueError:
    """An option, or one of several, that the driver or the server would not take."""
    which = f"the option {named[0]}" if len(named) == 1 else f"the options {', '.join(named)}"
    return ValueError(
        f"{address.get_backend_name()} does not take {which} as it is written:"
        " mend it, or take it away from behind the ? of the address"
    )


def _unavailable(address: URL, error: Exception) -> BackendUnavailable:
    place = address.host or address.database or ""
    why = reason(error)
    if why is not None:
        port = f", port {address.port}," if address.port else ""
        return BackendUnavailable(f"the database on {place}{port} can't be reached: {why}")
    said = type(getattr(error, "orig", None) or error).__name__
    return BackendUnavailable(
        f"{place} does not answer as a {address.get_backend_name()} database ({said});"
        " look at its address, and whether the account may read"
    )


def _address(url: str) -> URL:
    known = ", ".join(name for name in DRIVERS if name != "postgres")
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError(f"this is no address of a database: it begins with {known}") from None
    name = address.get_backend_name()
    if name not in DRIVERS:
        raise ValueError(f"{name} is no database that is known here: use one of {known}")
    if name == "sqlite" and address.query:
        raise ValueError(
            f"sqlite takes no options: take away ?{'&'.join(address.query)} behind the file's name;"
            " a ? in a path is written %3F"
        )
    return address.set(drivername=DRIVERS[name])


async def _look_async(address: URL, look: Look) -> Database:
    is_postgres = address.drivername.startswith("postgresql")
    engine = create_async_engine(
        URL.create(address.drivername) if is_postgres else address,
        isolation_level="AUTOCOMMIT",
        connect_args=_postgres(address) if is_postgres else {"connect_timeout": PATIENCE},
        hide_parameters=True,
    )
    try:
        async with engine.connect() as connection:
            if not is_postgres:
                await connection.run_sync(_limit_mysql)
            return await connection.run_sync(look)
    finally:
        await engine.dispose()


def _postgres(address: URL) -> dict[str, Any]:
    """The address as asyncpg itself reads it, as the gateway does: ?sslmode=require and so on."""
    dsn = address.set(drivername="postgresql").render_as_string(hide_password=False)
    timeout = str(int(PATIENCE * 1000))
    session = {"default_transaction_read_only": "on", "statement_timeout": timeout}
    return {"dsn": dsn, "timeout": PATIENCE, "server_settings": session}


def _limit_mysql(connection: Connection) -> None:
    connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
    version = connection.exec_driver_sql("SELECT VERSION()").scalar() or ""
    is_mariadb = "mariadb" in str(version).lower()
    limit = (
        f"max_statement_time = {PATIENCE}"
        if is_mariadb
        else f"max_execution_time = {int(PATIENCE * 1000)}"
    )
    # nosemgrep: sql-is-never-put-together-as-text - a number of ours
    connection.exec_driver_sql(f"SET SESSION {limit}")


def _look_in_thread(address: URL, look: Look) -> Database:
    if address.drivername == "sqlite":
        path = Path(address.database or "")
        if not path.is_file():
            raise BackendUnavailable(f"{path} does not exist; name the file of the database")
        engine = create_engine("sqlite://", creator=lambda: _open_sqlite(path))
    else:
        engine = create_engine(address, isolation_level="AUTOCOMMIT", hide_parameters=True)
    try:
        with engine.connect() as connection:
            return look(connection)
    finally:
        engine.dispose()


def _open_sqlite(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    connection.execute("PRAGMA query_only = 1")
    until = time.monotonic() + PATIENCE_IN_ALL
    connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    return connection
