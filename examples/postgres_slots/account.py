"""The account that the gateway gets on a PostgreSQL server; whether the practice is there yet."""

import asyncio
import re
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from examples.loading import address

GRANTS = Path(__file__).with_name("grants.sql")


def exists(url: str) -> bool:
    """Whether the database that `url` names is there, whole or not."""
    return asyncio.run(_exists(url))


async def _exists(url: str) -> bool:
    where = address(url)
    server = await asyncpg.connect(**{**where, "database": "postgres"})
    try:
        query = "SELECT true FROM pg_database WHERE datname = $1"
        return bool(await server.fetchval(query, where["database"]))
    finally:
        await server.close()


def admit(url: str, account: str, password: str) -> None:
    """Make the account, or give it this password; grant it what the gateway needs."""
    asyncio.run(_admit(url, account, password))


async def _admit(url: str, account: str, password: str) -> None:
    connection = await asyncpg.connect(**address(url))
    try:
        await give_account(connection, account, password)
        for statement in granted():
            await connection.execute(statement.replace("ACCOUNT", f'"{account}"'))
    finally:
        await connection.close()


async def give_account(connection: Any, account: str, password: str) -> None:
    """Make the account, or give it this password."""
    known = "SELECT true FROM pg_roles WHERE rolname = $1"
    verb = "ALTER" if await connection.fetchval(known, account) else "CREATE"
    quoted = await connection.fetchval("SELECT quote_literal($1)", password)
    await connection.execute(f'{verb} ROLE "{account}" LOGIN PASSWORD {quoted}')


def granted() -> list[str]:
    """The statements of grants.sql."""
    text = re.sub("--.*", "", GRANTS.read_text("utf-8"))
    return [each.strip() for each in text.split(";") if each.strip()]
