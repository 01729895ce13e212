"""Databases of a test's own on the servers that the environment names: made, and dropped again."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.engine import URL, make_url

NEEDS = {
    "postgresql": ("TEST_POSTGRES_URL", "postgresql://user:password@127.0.0.1/postgres"),
    "mysql": ("TEST_MARIADB_URL", "mysql://user:password@127.0.0.1/"),
    "firebird": ("TEST_FIREBIRD_URL", "firebird://sysdba:password@127.0.0.1:3050//folder"),
}


def server(kind: str) -> URL:
    """The server's address; skips the test where none is given."""
    variable, example = NEEDS[kind]
    url = os.environ.get(variable)
    if not url:
        pytest.skip(f"set {variable}={example} (an account that may create databases)")
    return make_url(url)


# PostgreSQL's that are empty again: to make one and drop it takes longer than most tests do.
_EMPTY: list[str] = []
_DROP = {"postgresql": "DROP DATABASE {} WITH (FORCE)", "mysql": "DROP DATABASE {}"}
_TO_EMPTY = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "DO $$ DECLARE name text; BEGIN"
    " FOR name IN SELECT nspname FROM pg_namespace"
    " WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' LOOP"
    " EXECUTE format('DROP SCHEMA %I CASCADE', name); END LOOP; END $$",
    "CREATE SCHEMA public",
    "GRANT USAGE ON SCHEMA public TO public",
    "ALTER DATABASE {} RESET ALL",
)
# no test pulls the plug: none waits for the disk
_HURRIED = "ALTER DATABASE {} SET synchronous_commit = off"


@contextmanager
def postgres_database(*statements: str, options: str = "") -> Iterator[str]:
    """The address of an empty database in which the statements were run."""
    yield from _database("postgresql", statements, options)


@contextmanager
def mariadb_database(*statements: str) -> Iterator[str]:
    """The same on MariaDB or MySQL."""
    yield from _database("mysql", statements)


@contextmanager
def firebird_database(*statements: str, charset: str = "UTF8") -> Iterator[str]:
    """The same on Firebird, in a file of its own; its texts have that character set."""
    from firebird.driver import create_database

    address = server("firebird")
    address = address.set(database=f"{address.database}/clinic_test_{uuid4().hex[:12]}.fdb")
    user, password = address.username, address.password
    create_database(_dsn(address), user=user, password=password, charset=charset).close()
    inside = address.render_as_string(hide_password=False)
    try:
        if statements:
            execute(inside, *statements)
        yield inside
    finally:
        execute(inside, *ALONE)
        firebird_connection(address).drop_database()


# Who else is connected is sent away.
ALONE = ("DELETE FROM MON$ATTACHMENTS WHERE MON$ATTACHMENT_ID <> CURRENT_CONNECTION",)


def _dsn(address: URL) -> str:
    return f"inet://{address.host}:{address.port or 3050}/{address.database}"


def firebird_connection(address: URL) -> Any:
    """A connection of the driver's own."""
    from firebird.driver import connect

    user, password = address.username, address.password
    charset = str(address.query.get("charset", "UTF8"))
    return connect(_dsn(address), user=user, password=password, charset=charset)


def _database(kind: str, statements: tuple[str, ...], options: str = "") -> Iterator[str]:
    address, may_stay = server(kind), kind == "postgresql" and not options
    name = _EMPTY.pop() if may_stay and _EMPTY else _new_database(kind, options)
    inside = address.set(database=name).render_as_string(hide_password=False)
    try:
        if statements:
            execute(inside, *statements)
        yield inside
    finally:
        if may_stay:
            execute(inside, *(each.replace("{}", name) for each in (*_TO_EMPTY, _HURRIED)))
            _EMPTY.append(name)
        else:
            _drop(kind, name)


def _new_database(kind: str, options: str) -> str:
    name = f"clinic_test_{uuid4().hex[:12]}"
    outside = server(kind).render_as_string(hide_password=False)
    execute(outside, f"CREATE DATABASE {name} {options}")
    if kind == "postgresql":
        execute(outside, _HURRIED.format(name))
    return name


def _drop(kind: str, name: str) -> None:
    execute(server(kind).render_as_string(hide_password=False), _DROP[kind].format(name))


def drop_empty_databases() -> None:
    """Leave nothing on the server, once no test wants a database any more."""
    while _EMPTY:
        _drop("postgresql", _EMPTY.pop())


def execute(url: str, *statements: str) -> list[Any]:
    """Run statements outside of any engine, as the clinic's own desk would; the last one's rows."""
    return _run(lambda: execute_async(url, *statements))


async def execute_async(url: str, *statements: str) -> list[Any]:
    """The same inside a running loop."""
    address = make_url(url)
    if address.get_backend_name() == "firebird":
        return await asyncio.to_thread(_firebird, address, statements)
    if address.get_backend_name() == "mssql":
        return await asyncio.to_thread(_mssql, address, statements)
    kind = _postgres if address.get_backend_name() == "postgresql" else _mysql
    return await kind(address, statements)


def _firebird(address: URL, statements: tuple[str, ...]) -> list[Any]:
    """Commits each statement, or those between BEGIN and COMMIT together."""
    connection, together = firebird_connection(address), False
    rows: list[Any] = []
    try:
        for statement in statements:
            if statement.startswith(("BEGIN", "START")):
                together = True
                continue
            for single in [] if statement == "COMMIT" else one_row_each(statement):
                with closing(connection.cursor()) as cursor:
                    cursor.execute(single)
                    rows = cursor.fetchall() if cursor.description else []
            if statement == "COMMIT" or not together:
                connection.commit()
                together = False
        return rows
    finally:
        connection.close()


def _mssql(address: URL, statements: tuple[str, ...]) -> list[Any]:
    """As `_firebird` does, on SQL Server, which no test of ours can reach."""
    from sqlalchemy import create_engine

    engine = create_engine(
        address.set(drivername="mssql+mssqlpython"), isolation_level="AUTOCOMMIT"
    )
    rows: list[Any] = []
    try:
        with engine.connect() as connection:
            for statement in statements:
                result = connection.exec_driver_sql(in_tsql(statement))
                rows = [tuple(row) for row in result] if result.returns_rows else []
        return rows
    finally:
        engine.dispose()


def in_tsql(statement: str) -> str:
    """A statement of the tests' practices as SQL Server has it."""
    if statement.startswith(("START", "BEGIN")):
        return "BEGIN TRANSACTION"
    parts = re.split(r"('(?:[^']|'')*')", statement)
    words = {"BOOLEAN": "BIT", "TRUE": "1", "FALSE": "0"}
    pattern = re.compile(rf"\b({'|'.join(words)})\b")
    parts[::2] = [pattern.sub(lambda found: words[found[1]], part) for part in parts[::2]]
    made = "".join(parts)
    made = re.sub(r"(?s)\) VALUES (.*) RETURNING (\w+)$", r") OUTPUT inserted.\2 VALUES \1", made)
    found = re.match(r"INSERT INTO (\w+) \(id,", made)
    if found is None:
        return made
    switch = f"SET IDENTITY_INSERT {found[1]}"
    return f"{switch} ON; {made}; {switch} OFF"


_SEVERAL_ROWS = re.compile(r"(INSERT INTO [^']*?\bVALUES\s*)(\(.*)", re.DOTALL)
_ROW = re.compile(r"\((?:[^'()]|'(?:[^']|'')*'|\([^()]*\))*\)")


def one_row_each(statement: str) -> list[str]:
    """A statement as Firebird knows it: an INSERT of several rows as several of one row each."""
    statement = re.sub(r"\b(ADD|DROP) COLUMN\b", r"\1", statement)
    found = _SEVERAL_ROWS.fullmatch(statement.strip())
    rows = _ROW.findall(found[2]) if found else []
    return [found[1] + row for row in rows] if found and len(rows) > 1 else [statement]


async def _postgres(address: URL, statements: tuple[str, ...]) -> list[Any]:
    import asyncpg

    connection = await asyncpg.connect(address.render_as_string(hide_password=False))
    try:
        rows: list[Any] = []
        for statement in statements:
            rows = [tuple(row) for row in await connection.fetch(statement)]
        return rows
    finally:
        await connection.close()


async def _mysql(address: URL, statements: tuple[str, ...]) -> list[Any]:
    import asyncmy

    connection = await asyncmy.connect(
        host=address.host,
        port=address.port or 3306,
        user=address.username,
        password=address.password or "",
        db=address.database or None,
        autocommit=True,
    )
    try:
        async with connection.cursor() as cursor:
            for statement in statements:
                await cursor.execute(statement)
            return list(await cursor.fetchall())
    finally:
        await connection.ensure_closed()


_DRIVERS = {"postgresql": "PostgreSQL Unicode", "mysql": "MariaDB Unicode", "sqlite": "SQLite3"}


def by_odbc(url: str, **more: str) -> str:
    """The same database through an ODBC driver; skips the test where it is not installed."""
    import pyodbc

    address = make_url(url)
    kind = address.get_backend_name()
    if _DRIVERS[kind] not in pyodbc.drivers():
        pytest.skip(f"install the ODBC driver {_DRIVERS[kind]}")
    query = {"driver": _DRIVERS[kind], "dialect": kind, **more}
    if kind == "sqlite":
        query["Database"] = str(address.database)
        address = address.set(database=None)
    shown = address.set(drivername="odbc", query=query)
    return shown.render_as_string(hide_password=False)


def _run(work: Callable[[], Awaitable[Any]]) -> Any:
    """To its end in a loop of its own; in a thread where this one has a loop already."""
    from concurrent.futures import ThreadPoolExecutor

    async def main() -> Any:
        return await work()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, main()).result()
