"""Removes what an example made on a server: its database and the gateway's account."""

import asyncpg  # type: ignore[import-untyped]  # it comes without types
from sqlalchemy.engine import make_url

from examples.launch import with_database
from examples.loading import address
from examples.mariadb_eav.generate import connected


async def drop(server: str, name: str) -> None:
    """Drop the database of that name and its account, where they exist."""
    url = with_database(server, name)
    if make_url(url).get_backend_name() == "mysql":
        async with connected(url, database=None) as cursor:
            await cursor.execute("SET sql_notes = 0")
            await cursor.execute(f"DROP DATABASE IF EXISTS `{name}`")
            await cursor.execute(f"DROP USER IF EXISTS `{name}_gateway`@`%`")
        return
    connection = await asyncpg.connect(**{**address(url), "database": "postgres"})
    try:
        await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        await connection.execute(f'DROP ROLE IF EXISTS "{name}_gateway"')
    finally:
        await connection.close()
