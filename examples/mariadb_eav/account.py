"""The account that the gateway gets on a MariaDB server, and whether the practice is there yet."""

import asyncio
import re
from pathlib import Path

from examples.loading import address
from examples.mariadb_eav.generate import connected

GRANTS = Path(__file__).with_name("grants.sql")


def exists(url: str) -> bool:
    """Whether the database that `url` names is there, whole or not."""
    return asyncio.run(_exists(url))


async def _exists(url: str) -> bool:
    async with connected(url, database=None) as cursor:
        name = address(url)["database"]
        await cursor.execute("SELECT 1 FROM information_schema.schemata"
                             " WHERE schema_name = %s", (name,))  # fmt: skip
        return await cursor.fetchone() is not None


def admit(url: str, account: str, password: str) -> None:
    """Make the account, or give it this password; grant it what the gateway needs."""
    asyncio.run(_admit(url, account, password))


async def _admit(url: str, account: str, password: str) -> None:
    name = address(url)["database"]
    async with connected(url) as cursor:
        who = f"`{account}`@`%`"
        made = "CREATE OR REPLACE USER %s@'%%' IDENTIFIED BY %s"
        await cursor.execute(made, (account, password))
        for statement in granted():
            named = statement.replace("DATABASE", f"`{name}`").replace("ACCOUNT", who)
            await cursor.execute(named)


def granted() -> list[str]:
    """The statements of grants.sql."""
    text = re.sub("--.*", "", GRANTS.read_text("utf-8"))
    return [each.strip() for each in text.split(";") if each.strip()]
