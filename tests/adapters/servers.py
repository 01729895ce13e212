"""Databases of a test's own on the servers that the environment names: made, and dropped again."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.engine import URL, make_url

NEEDS = {
    "postgresql": ("TEST_POSTGRES_URL", "postgresql://user:password@127.0.0.1/postgres"),
    "mysql": ("TEST_MARIADB_URL", "mysql://user:password@127.0.0.1/"),
}


def server(kind: str) -> URL:
    """The server's address; skips the test where none is given."""
    variable, example = NEEDS[kind]
    url = os.environ.get(variable)
    if not url:
        pytest.skip(f"set {variable}={example} (an account that may create databases)")
    return make_url(url)


@contextmanager
def postgres_database(*statements: str, options: str = "") -> Iterator[str]:
    """The address of a new database in which the statements were run."""
    yield from _database("postgresql", "DROP DATABASE {} WITH (FORCE)", statements, options)


@contextmanager
def mariadb_database(*statements: str) -> Iterator[str]:
    """The same on MariaDB or MySQL."""
    yield from _database("mysql", "DROP DATABASE {}", statements)


def _database(
    kind: str, drop: str, statements: tuple[str, ...], options: str = ""
) -> Iterator[str]:
    address, name = server(kind), f"clinic_test_{uuid4().hex[:12]}"
    outside = address.render_as_string(hide_password=False)
    inside = address.set(database=name).render_as_string(hide_password=False)
    execute(outside, f"CREATE DATABASE {name} {options}")
    if kind == "postgresql":  # no test pulls the plug: none waits for the disk
        execute(outside, f"ALTER DATABASE {name} SET synchronous_commit = off")
    try:
        if statements:
            execute(inside, *statements)
        yield inside
    finally:
        execute(outside, drop.format(name))


def execute(url: str, *statements: str) -> list[Any]:
    """Run statements outside of any engine, as the clinic's own desk would; the last one's rows."""
    return _run(lambda: execute_async(url, *statements))


async def execute_async(url: str, *statements: str) -> list[Any]:
    """The same inside a running loop."""
    address = make_url(url)
    kind = _postgres if address.get_backend_name() == "postgresql" else _mysql
    return await kind(address, statements)


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


def _run(work: Callable[[], Awaitable[Any]]) -> Any:
    """To its end in a loop of its own; in a thread where this one has a loop already."""
    from concurrent.futures import ThreadPoolExecutor

    async def main() -> Any:
        return await work()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, main()).result()
