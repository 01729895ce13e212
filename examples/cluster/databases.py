"""Makes what a cluster's gateway.yaml names: the practice, and the store of the gateways."""

import asyncio
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
from pydantic import SecretStr

from examples.launch import with_database
from examples.loading import address
from examples.postgres_slots.account import admit, exists, give_account
from examples.postgres_slots.generate import generate
from gateway.settings import load_settings

# What a practice is called until it is whole.
UNFINISHED = "_unfinished"


def make(configuration: Path, server: str, *, scale: float = 1.0) -> None:
    """Both databases and their accounts, each made where it is not there yet.

    `server` is the address of an account that may make databases and accounts.
    """
    settings = load_settings(configuration, {})
    clinic, store = _named(settings.backend.url), _named(settings.store)
    _make_practice(with_database(server, clinic["database"]), scale)
    admit(with_database(server, clinic["database"]), clinic["user"], clinic["password"])
    asyncio.run(_make_store(server, store))


def _named(url: SecretStr | None) -> dict[str, Any]:
    """The account and the database of an address."""
    return address("" if url is None else url.get_secret_value())


def _make_practice(url: str, scale: float) -> None:
    """Under its name stands only a whole one, whenever this is interrupted."""
    if exists(url):
        return
    if exists(url + UNFINISHED):
        asyncio.run(_run(url, 'DROP DATABASE "{}' + UNFINISHED + '"'))
    generate(url + UNFINISHED, scale=scale)
    asyncio.run(_run(url, 'ALTER DATABASE "{0}' + UNFINISHED + '" RENAME TO "{0}"'))


async def _run(url: str, statement: str) -> None:
    """A statement about the database that `url` names."""
    where = address(url)
    connection = await asyncpg.connect(**{**where, "database": "postgres"})
    try:
        await connection.execute(statement.format(where["database"]))
    finally:
        await connection.close()


async def _make_store(server: str, store: dict[str, Any]) -> None:
    """An account and a database that it owns, to which no other account is let in."""
    name, account = store["database"], store["user"]
    connection = await asyncpg.connect(**{**address(server), "database": "postgres"})
    try:
        await give_account(connection, account, store["password"])
        known = "SELECT true FROM pg_database WHERE datname = $1"
        if not await connection.fetchval(known, name):
            await connection.execute(f'CREATE DATABASE "{name}" OWNER "{account}"')
        await connection.execute(f'REVOKE CONNECT ON DATABASE "{name}" FROM PUBLIC')
    finally:
        await connection.close()
