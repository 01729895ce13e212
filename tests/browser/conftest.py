"""A browser for a module's tests, and a page for each of them."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.browser import Look, Watched, launched, opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with launched() as started:
        yield started


@pytest.fixture
def look() -> Look:
    """How the page is shown; `@pytest.mark.parametrize("look", LOOKS, ids=str)` says otherwise."""
    return Look()


@pytest_asyncio.fixture(loop_scope="module")
async def watched(browser: Browser, look: Look, base: str) -> AsyncIterator[Watched]:
    """An empty page that may ask the host of `base`, a module's own fixture, and nobody else."""
    async with opened(browser, look, base) as page:
        yield page
