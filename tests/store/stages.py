"""Stores on their way: brought to some version, or stopped half way."""

import sys
from pathlib import Path

from alembic import command

from gateway.store import Store
from gateway.store.migrations import configuration


async def bring_to(store: Store, version: str) -> None:
    """All migrations up to that one, as older versions of the gateway went through them."""
    if store.engine.dialect.name == "sqlite":
        Path(store.place).touch()  # noqa: ASYNC240
    async with store.alone() as connection:
        await connection.run_sync(lambda it: command.upgrade(configuration(it), version))


def stop_half_way(*_: object, **__: object) -> None:
    """In the place of what makes a table or an index."""
    sys.exit("stopped half way")
