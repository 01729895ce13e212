"""The sample clinic's adapter, over a database of the test's own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.base import Trouble
from adapters.sql.adapter import SqlAdapter
from tests.adapters.clinic import connect, copy_to


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
