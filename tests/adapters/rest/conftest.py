"""The example's cloud for the tests of this folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.rest import client
from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import Cloud
from tests.adapters.rest.cloud import CONNECTED, connect, listening, new_cloud


@pytest.fixture(autouse=True)
async def patient(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Lets a connection take long, as on a busy machine, and closes what a failed test left."""
    monkeypatch.setattr(client, "CONNECT_PATIENCE", 30.0)
    yield
    for each in list(CONNECTED):
        await each.aclose()
    CONNECTED.clear()


@pytest.fixture
def cloud() -> Cloud:
    return new_cloud()


@pytest.fixture
async def url(cloud: Cloud) -> AsyncIterator[str]:
    async with listening(cloud) as address:
        yield address


@pytest.fixture
async def adapter(url: str, tmp_path: Path) -> AsyncIterator[RestAdapter]:
    opened = connect(url, tmp_path)
    yield opened
    await opened.aclose()
