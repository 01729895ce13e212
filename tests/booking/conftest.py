"""A world of bookings on each database that may hold a ledger."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.booking.owners import Owners
from gateway.store import open_store
from tests.booking.clinic import World


@pytest.fixture
async def world(store_place: str, tmp_path: Path) -> AsyncIterator[World]:
    """On each database that may hold a ledger."""
    store = open_store(store_place)
    owners = Owners(store, tmp_path)
    await owners.start()
    yield World(store, tmp_path, owners)
    await owners.aclose()
    await store.aclose()
