"""The sample clinic's adapter, over a database of the test's own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.base import Trouble
from adapters.rest import client, reader
from adapters.sql.adapter import SqlAdapter
from tests.adapters.clinic import connect, copy_to
from tests.adapters.rest.cloud import CONNECTED


@pytest.fixture(autouse=True)
async def patient(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Lets a connection take long, as on a busy machine, and closes what a failed test left."""
    for module in (client, reader):
        monkeypatch.setattr(module, "CONNECT_PATIENCE", 30.0)
    yield
    for each in list(CONNECTED):
        await each.aclose()
    CONNECTED.clear()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return copy_to(tmp_path)


@pytest.fixture
def troubles() -> list[Trouble]:
    return []


@pytest.fixture
async def adapter(database: Path, troubles: list[Trouble]) -> AsyncIterator[SqlAdapter]:
    opened = connect(database, troubles)
    yield opened
    await opened.aclose()
