"""Stores that several open at once: a file, or a database on PostgreSQL."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from gateway.store import Store, open_store


@asynccontextmanager
async def postgres() -> AsyncIterator[Callable[[], Store]]:
    """Opens a store in a database of its own."""
    url = os.environ.get("TEST_POSTGRES_URL", "").replace("postgresql:", "postgresql+asyncpg:")
    if not url:
        pytest.skip("TEST_POSTGRES_URL is not set")
    server, name = url.rpartition("/")[0], f"audit_{uuid4().hex}"
    admin = create_async_engine(url, isolation_level="AUTOCOMMIT")
    async with admin.connect() as connection:
        await connection.execute(text(f"CREATE DATABASE {name}"))
    yield lambda: Store(create_async_engine(f"{server}/{name}"), name)
    async with admin.connect() as connection:
        await connection.execute(text(f"DROP DATABASE {name}"))
    await admin.dispose()


@asynccontextmanager
async def sqlite(folder: Path) -> AsyncIterator[Callable[[], Store]]:
    """The same in a file."""
    yield lambda: open_store(folder / "gateway.db")
