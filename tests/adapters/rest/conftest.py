"""The example's cloud for the tests of this folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import Cloud
from tests.adapters.rest.cloud import connect, listening, new_cloud


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
