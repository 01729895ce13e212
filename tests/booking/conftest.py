"""A world of bookings on each database that may hold a ledger."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gateway.booking.takeover import Owners
from gateway.store import base, open_store
from tests.adapters.servers import execute
from tests.booking.clinic import World


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the tables, of which each test's own is a copy."""
    file = tmp_path_factory.mktemp("tables") / "gateway.db"
    asyncio.run(_migrated(file))
    return file


async def _migrated(file: Path) -> None:
    made = open_store(file)
    await made.migrate()
    await made.aclose()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_place(request: pytest.FixtureRequest, tmp_path: Path, unhurried: None) -> str:
    """Where a test's own store is, on each database that may hold one; its tables are empty."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_file"), tmp_path / "gateway.db")
        return f"sqlite:///{tmp_path}/gateway.db"
    place: str = request.getfixturevalue("postgres_place")
    execute(place, "TRUNCATE bookings, resolved_bookings, presence, turns")
    return place


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets how many seconds the store has for a transaction."""

    def last(seconds: float) -> None:
        monkeypatch.setattr(base, "PATIENCE", seconds)

    return last


@pytest.fixture
async def world(
    store_place: str, tmp_path: Path, patience: Callable[[float], None]
) -> AsyncIterator[World]:
    """On each database that may hold a ledger; a disk that is slow for once is no fault."""
    patience(30.0)
    store = open_store(store_place)
    owners = Owners(store, tmp_path)
    await owners.start()
    yield World(store, tmp_path, owners)
    await owners.aclose()
    await store.aclose()
