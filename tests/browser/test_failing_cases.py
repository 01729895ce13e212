"""The page of a policy that waits for its cases, in a browser, in both languages."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.admin.manager import Manager, manager_of
from tests.browser.browser import Look, opened
from tests.conftest import RunningGateway, Template, begun
from tests.policies import TEXT
from tests.policy.test_failing_cases import CASES, MIXED

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(
    template: Template, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningGateway]:
    """One whose policy waits for its cases."""
    folder = tmp_path_factory.mktemp("cases")
    file = folder / "policies.yaml"
    file.write_text(TEXT)
    (folder / "policies.test.yaml").write_text(CASES)
    async with begun(template, folder / "state", policy=file) as running:
        file.write_text(MIXED)
        async with asyncio.timeout(30):
            while running.gateway.keeper.status.waiting is None:  # noqa: ASYNC110 - as told
                await asyncio.sleep(0.05)
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def manager(gateway: RunningGateway) -> AsyncIterator[Manager]:
    async with aiohttp.ClientSession() as session:
        yield await manager_of(gateway, session)


@pytest.mark.long
@pytest.mark.parametrize("language", ["en", "fr"])
async def test_the_cases_that_fail_are_named_and_there_is_nothing_to_approve_so_far(
    browser: Browser, manager: Manager, language: str
) -> None:
    async with opened(browser, Look(language=language), manager.base) as watched:
        page = watched.page
        for name, value in manager.cookies.items():
            await page.context.add_cookies([{"name": name, "value": value, "url": manager.base}])
        await page.goto(f"{manager.base}/policy")
        await expect(page.locator("section[aria-labelledby=cases]")).to_contain_text(
            "policies.test.yaml:"
        )
        await expect(page.locator("#waiting")).to_contain_text("clients.address")
        await expect(page.locator("#waiting form")).to_have_count(0)
        assert await watched.violations_in_looks() == []
        await page.goto(f"{manager.base}/traffic")
        assert await watched.violations_in_looks() == []
