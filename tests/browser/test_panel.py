"""The panel in a browser, as those who work with it use it; and each page as everybody meets it."""

import asyncio
import re
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from tests.admin.manager import PASSWORD, Manager, manager_of
from tests.browser.browser import Look, Watched, opened
from tests.conftest import RunningGateway, Template, begun
from tests.policies import TEXT, moved

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(
    template: Template, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningGateway]:
    """One whose policy can be changed, and whose widenings wait."""
    folder = tmp_path_factory.mktemp("panel")
    policy = folder / "policies.yaml"
    policy.write_text(TEXT)
    changes = {"policy": policy, "policy_widening": "approve"}
    async with begun(template, folder / "state", **changes) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def manager(gateway: RunningGateway) -> AsyncIterator[Manager]:
    """Somebody who has signed in already, and whose session pages may have."""
    async with aiohttp.ClientSession() as session:
        yield await manager_of(gateway, session)


@pytest.fixture
def base(manager: Manager) -> str:
    return manager.base


@pytest_asyncio.fixture(loop_scope="module")
async def page(watched: Watched, manager: Manager) -> Page:
    """A page of somebody who is signed in."""
    await enter(watched.page, manager)
    return watched.page


async def enter(page: Page, manager: Manager) -> None:
    for name, value in manager.cookies.items():
        await page.context.add_cookies([{"name": name, "value": value, "url": manager.base}])


async def make_key(page: Page, base: str, name: str) -> str:
    """A new key that reads clients at BASIC; its secret."""
    await page.goto(f"{base}/keys/new")
    await page.get_by_label("Who gets it").fill(name)
    await page.get_by_label("Read clients").check()
    await page.get_by_role("button", name="Make the key").click()
    secret = await page.locator("#secret").inner_text()
    assert re.fullmatch(r"vk_[A-Za-z0-9_-]{48}", secret)
    return secret


async def status_of(gateway: RunningGateway, secret: str, path: str = "/clients") -> int:
    await gateway.gateway.ring.refresh()
    async with (
        aiohttp.ClientSession() as session,
        session.get(gateway.base + path, headers={"X-API-Key": secret}) as answer,
    ):
        return answer.status


async def test_keys_that_are_looked_for_are_dim_and_busy_until_they_are_there(
    page: Page, base: str
) -> None:
    goes_on = asyncio.Event()

    async def late(route: Route) -> None:
        await goes_on.wait()
        await route.fallback()

    await page.goto(f"{base}/keys")
    await page.route(re.compile(r"/keys\?"), late)
    await page.get_by_label("Name, contact").fill("nobody")
    keys = page.locator("#keys")
    await expect(keys).to_have_attribute("aria-busy", "true")
    await expect(keys).to_have_css("opacity", "0.5")
    goes_on.set()
    await expect(keys).not_to_have_attribute("aria-busy", "true")
    await expect(keys).to_have_css("opacity", "1")


async def test_whoever_signs_in_comes_to_the_keys_and_out_again(
    watched: Watched, base: str
) -> None:
    page = watched.page
    await page.goto(base)
    await page.get_by_label("Name").fill("Claire")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Keys")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    await page.go_back()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


async def test_a_key_is_made_handed_over_rotated_and_revoked(
    page: Page, base: str, gateway: RunningGateway
) -> None:
    secret = await make_key(page, base, "Insurer in a browser")
    line = await page.locator("#line").inner_text()
    assert secret in line
    assert line.startswith("curl ")
    assert await status_of(gateway, secret) == 200
    await page.get_by_role("link", name="I have copied it").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Insurer in a browser")
    await page.get_by_label("The old one works for").select_option("none")
    await page.get_by_role("button", name="New secret").click()
    second = await page.locator("#secret").inner_text()
    assert await status_of(gateway, secret) == 401
    assert await status_of(gateway, second) == 200
    await page.get_by_role("link", name="I have copied it").click()
    await page.get_by_label("Type Insurer in a browser to confirm").fill("Insurer in a browser")
    await page.get_by_role("button", name="Revoke this key").click()
    await expect(page.get_by_role("status")).to_contain_text("revoked")
    assert await status_of(gateway, second) == 401


async def test_a_secret_is_gone_after_back_and_after_reloading(page: Page, base: str) -> None:
    secret = await make_key(page, base, "Once")
    await page.get_by_role("link", name="I have copied it").click()
    await page.go_back()
    await page.wait_for_load_state()
    assert secret not in await page.content()
    secret = await make_key(page, base, "Once more")
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Once more")
    assert secret not in await page.content()


async def test_what_the_key_will_see_changes_while_it_is_chosen(page: Page, base: str) -> None:
    await page.goto(f"{base}/keys/new")
    sees = page.locator("#sees")
    await expect(sees).to_contain_text("Choose what the partner may do")
    await page.get_by_label("Read clients").check()
    await expect(sees.get_by_role("heading", name="Clients (owners)")).to_be_visible()
    hidden = sees.locator(".sight", has_text="Clients").locator("div", has_text="Does not see")
    await expect(hidden).to_contain_text("Telephone")
    await page.get_by_role("radio", name="FULL").check()
    await expect(hidden).not_to_contain_text("Telephone")
    await page.get_by_text("Another level for some kinds of records").click()
    await page.get_by_role("combobox", name="Clients (owners)").select_option("BASIC")
    await expect(hidden).to_contain_text("Telephone")


async def test_keys_are_found_while_one_writes(page: Page, base: str) -> None:
    await make_key(page, base, "Pharmacy of the harbour")
    await make_key(page, base, "Laboratory")
    await page.goto(f"{base}/keys")
    await page.get_by_label("Name, contact").press_sequentially("harb")
    await expect(page.get_by_role("link", name="Pharmacy of the harbour")).to_be_visible()
    await expect(page.get_by_role("link", name="Laboratory")).to_have_count(0)


async def test_without_a_script_a_key_is_made_all_the_same(
    browser: Browser, base: str, manager: Manager
) -> None:
    async with opened(browser, Look(), base, scripts=False) as watched:
        page = watched.page
        await enter(page, manager)
        await page.goto(f"{base}/keys/new")
        await page.get_by_label("Who gets it").fill("Without a script")
        await page.get_by_label("Read stock").check()
        await page.get_by_role("button", name="Show what it will see").click()
        await expect(page.locator("#sees")).to_contain_text("Stock")
        await expect(page.get_by_label("Who gets it")).to_have_value("Without a script")
        await page.get_by_role("button", name="Make the key").click()
        await expect(page.locator("#secret")).to_contain_text("vk_")


async def test_a_widening_waits_until_somebody_approves_it(
    page: Page, base: str, gateway: RunningGateway
) -> None:
    secret = await make_key(page, base, "Booking site")
    client = (await gateway.ids())["clients"]
    assert "phone" not in await read(gateway, secret, client)
    gateway.gateway.settings.policy.write_text(moved("clients.phone", "BASIC"))
    for _ in range(40):
        await page.goto(f"{base}/policy")
        if await page.get_by_role("button", name="Approve").count():
            break
        await asyncio.sleep(0.25)
    await expect(page.locator("main")).to_contain_text("clients.phone is shown whole at BASIC")
    await expect(page.locator("main")).to_contain_text(re.compile("gains? it"))
    assert "phone" not in await read(gateway, secret, client)
    await page.get_by_label("Reason").first.fill("The partner calls owners back")
    await page.get_by_role("button", name="Approve").click()
    await expect(page.locator("main")).to_contain_text("The partner calls owners back")
    assert "phone" in await read(gateway, secret, client)


async def read(gateway: RunningGateway, secret: str, client: str) -> str:
    await gateway.gateway.ring.refresh()
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{gateway.base}/clients/{client}", headers={"X-API-Key": secret}) as answer,
    ):
        assert answer.status == 200
        return await answer.text()


async def test_who_has_seen_a_client_is_told(
    page: Page, base: str, gateway: RunningGateway
) -> None:
    secret = await make_key(page, base, "Curious insurer")
    client = (await gateway.ids())["clients"]
    await read(gateway, secret, client)
    for _ in range(40):  # an entry comes to rest within a moment
        await page.goto(f"{base}/audit")
        if await page.get_by_role("link", name="Curious insurer").count():
            break
        await asyncio.sleep(0.25)
    await expect(page.get_by_role("link", name="Curious insurer").first).to_be_visible()
    for _ in range(60):  # on a busy machine the page asks for a moment to take in what is new
        await page.goto(f"{base}/audit/who?resource=clients&id={client}")
        if await page.get_by_text("Curious insurer").count():
            break
        await asyncio.sleep(0.5)
    await expect(page.locator("main")).to_contain_text("Curious insurer")
    await expect(page.locator("main")).to_contain_text("get_client")


async def test_the_chart_of_the_traffic_moves(
    page: Page, base: str, gateway: RunningGateway
) -> None:
    secret = await make_key(page, base, "Busy partner")
    chart = page.locator("figure[data-chart]").first
    assert await status_of(gateway, secret) == 200
    await page.goto(f"{base}/traffic")
    await chart.wait_for(timeout=30_000)
    before = await chart.get_attribute("data-chart")
    assert before is not None
    await page.get_by_text("The same in numbers").click()
    for _ in range(5):
        assert await status_of(gateway, secret) == 200
    await expect(chart).not_to_have_attribute("data-chart", before, timeout=30_000)
    await expect(chart.locator("canvas").first).to_be_visible()
    await expect(chart.locator(".legend")).to_contain_text("answered (2xx)")
    # what its reader has opened, and where the keyboard is, stays
    await expect(page.locator("#requests details")).to_have_attribute("open", "")
    await expect(page.locator("#requests summary")).to_be_focused()


# Every page that there is, but for those that a form alone leads to.
PAGES = (
    "/sign-in",
    "/keys",
    "/keys/new",
    "/keys/KEY",
    "/keys/KEY/edit",
    "/preview?level=BASIC&resource=clients",
    "/policy",
    "/policy/history",
    "/traffic",
    "/audit",
    "/audit/who?resource=clients&id=CLIENT",
    "/audit/deeds",
    "/directory",
    "/people",
    "/account",
    "/nothing",
)


@pytest.mark.parametrize("language", ["en", "fr"])
async def test_every_page_keeps_to_the_rules_for_everybody(
    browser: Browser, base: str, manager: Manager, gateway: RunningGateway, language: str
) -> None:
    """In both themes, on a telephone and on a desk: axe, no sideways scrolling, no error."""
    key = await gateway.mint()
    known = {"KEY": key.id, "CLIENT": (await gateway.ids())["clients"]}
    async with opened(browser, Look(language=language), base) as watched:
        page = watched.page
        watched.expect("404")
        for path in PAGES:
            if path == PAGES[1]:
                await enter(page, manager)
            await page.goto(base + re.sub("KEY|CLIENT", lambda part: known[part[0]], path))
            assert await page.locator("html").get_attribute("lang") == language
            assert (path, await watched.violations_in_looks()) == (path, [])
