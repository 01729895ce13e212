"""The page for partners in a browser: what is shown of a key's view, and that nothing gets out."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from gateway.contract.operations import OPERATIONS
from tests.browser.browser import LOOKS, Look, Watched, opened
from tests.conftest import RunningGateway, Template, begun
from tests.partner import Partner

pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="module")]
# An address that leads nowhere here: what the page calls must be where it came from.
PUBLIC = "https://gateway.clinic.example"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(
    template: Template, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("docs") / "state"
    async with begun(template, folder, public_url=PUBLIC) as running:
        yield running


@pytest.fixture
def base(gateway: RunningGateway) -> str:
    return gateway.base


@pytest_asyncio.fixture(loop_scope="module")
async def partner(gateway: RunningGateway) -> AsyncIterator[Partner]:
    async with aiohttp.ClientSession() as session:
        yield await Partner(gateway, session, None).with_key()


async def enter(watched: Watched, secret: str) -> None:
    await watched.page.fill("#key", secret)
    await watched.page.press("#key", "Enter")


def operation(watched: Watched, operation_id: str) -> Locator:
    return watched.page.locator(f".opblock[id$='-{operation_id}']")


async def open_up(watched: Watched, operation_id: str) -> Locator:
    """The operation, unfolded."""
    shown = operation(watched, operation_id)
    await shown.locator(".opblock-summary-control").click()
    await shown.locator(".opblock-body").wait_for()
    return shown


async def test_what_a_page_must_not_do_is_heard(browser: Browser, base: str) -> None:
    page = opened(browser, Look(), base)
    watched = await page.__aenter__()
    await watched.page.goto(f"{base}/docs/reference")
    await watched.page.evaluate(
        "document.body.setAttribute('style', 'color: red');"
        "fetch('https://127.0.0.1:1/elsewhere').catch(() => 0)"
    )
    watched.requests.append("https://127.0.0.1:2/elsewhere")
    with pytest.raises(pytest.fail.Exception) as told:
        await page.__aexit__(None, None, None)
    for what in (
        "Applying inline style violates",
        "violates the document's Content Security Policy",
        "asked for https://127.0.0.1:2/elsewhere",
    ):
        assert what in str(told.value)


async def test_the_page_shows_every_operation_and_a_link_opens_one(
    watched: Watched, base: str
) -> None:
    await watched.page.goto(f"{base}/docs#/clients/get_client")
    for each in OPERATIONS:
        path = operation(watched, each.id).locator(".opblock-summary-path")
        await expect(path).to_have_text(each.path)
    assert await watched.page.locator(".opblock").count() == len(OPERATIONS)
    await expect(operation(watched, "get_client").locator(".opblock-body")).to_be_visible()
    assert await watched.page.locator(".opblock-body").count() == 1
    # the page has one place for a key, and asks no judge of documents
    assert await watched.page.locator(".authorize, .authorization__btn").count() == 0
    assert {each.rpartition("/")[0] for each in watched.requests} == {base, f"{base}/docs"}


async def test_a_key_narrows_the_document_until_it_is_forgotten(
    watched: Watched, base: str, partner: Partner
) -> None:
    page = watched.page
    basic = await partner.with_key(level="BASIC", permissions=["CLIENT_READ"])
    await page.goto(f"{base}/docs")
    await expect(page.locator(".opblock")).to_have_count(len(OPERATIONS))
    await enter(watched, basic.secret)
    await expect(page.locator("#key-state")).to_have_text(
        f"The key is good: it reaches 2 of {len(OPERATIONS)} operations."
    )
    await expect(page.locator("#key-view dt")).to_have_text("BASIC")
    await expect(page.locator("#key-view dd")).to_have_text("Clients of the clinic · One client")
    await expect(page.locator(".opblock")).to_have_count(2)
    shown = await open_up(watched, "get_client")
    await expect(shown).to_contain_text("firstName")
    await expect(shown).not_to_contain_text("phone")
    assert basic.secret not in page.url
    assert await page.input_value("#key") == ""
    kept = await page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]")
    assert kept == [0, 0, ""]
    await page.click("#forget")
    await expect(page.locator("#key-state")).to_have_text("The key is forgotten.")
    await expect(page.locator(".opblock")).to_have_count(len(OPERATIONS))
    # the address of the page still names it
    await expect(operation(watched, "get_client")).to_contain_text("phone")
    assert basic.secret not in await page.content()


async def test_a_key_that_is_not_good_is_told_in_the_gateways_words(
    watched: Watched, base: str, partner: Partner
) -> None:
    gone = await partner.with_key()
    await gone.revoke()
    await watched.page.goto(f"{base}/docs")
    watched.expect("status of 401")
    for secret in ("vk_nonsense", gone.secret):
        await enter(watched, secret)
        await expect(watched.page.locator("#key-state")).to_have_text(
            "The key was not taken: 401 Invalid or expired API key"
        )
    asked = len(watched.requests)
    for secret in ("vk_né", "vk_→", "vk_ x"):
        await enter(watched, secret)
        await expect(watched.page.locator("#key-state")).to_have_text(
            "The key was not taken: a key has no spaces, accents or signs like these."
        )
        await enter(watched, "")
    assert len(watched.requests) == asked
    await expect(watched.page.locator(".opblock")).to_have_count(len(OPERATIONS))


async def test_a_call_is_made_where_the_page_came_from_and_shown_as_a_partner_makes_it(
    watched: Watched, base: str, partner: Partner
) -> None:
    client = (await partner.ids())["clients"]
    await watched.page.goto(f"{base}/docs")
    await enter(watched, partner.secret)
    await expect(watched.page.locator("#key-state")).to_have_class("good")
    shown = await open_up(watched, "get_client")
    await shown.get_by_placeholder("id").fill(client)
    await shown.locator(".execute").click()
    answer = shown.locator(".live-responses-table .response")
    await expect(answer.locator(".response-col_status")).to_contain_text("200")
    record = (await partner.get(f"/clients/{client}")).data
    for value in (client, record["lastName"], record["address"]):
        await expect(answer.locator(".response-col_description")).to_contain_text(value)
    curl = await shown.locator(".curl-command .curl").inner_text()
    assert f"'{PUBLIC}/api/v1/clients/{client}'" in curl
    assert f"'X-API-Key: {partner.secret}'" in curl
    assert watched.requests[-1] == f"{base}/clients/{client}"
    await watched.page.click("#forget")
    await expect(answer).to_have_count(0)
    left = await watched.page.content()
    assert partner.secret not in left
    assert record["address"] not in left
    watched.expect("status of 401")
    await shown.locator(".execute").click()
    await expect(answer).to_contain_text("Authentication required")


async def test_nobody_is_left_out_by_the_page(
    watched: Watched, base: str, partner: Partner
) -> None:
    """In both themes and at both widths; what hangs on the theme alone is colours."""
    page = watched.page
    await page.goto(f"{base}/docs")
    await enter(watched, partner.secret)
    await expect(page.locator("#key-state")).to_have_class("good")
    booking = await open_up(watched, "create_appointment")
    await booking.locator(".tablinks", has_text="Schema").first.click()
    listed = await open_up(watched, "list_stock")
    await listed.locator(".execute").click()
    await listed.locator(".live-responses-table .response").wait_for()
    await page.locator(".models .json-schema-2020-12-accordion").first.click()
    await page.locator(".models .json-schema-2020-12-property").first.wait_for()
    found = await watched.violations_in_looks()
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("look", [Look("dark", 360)], ids=str)
async def test_nobody_is_left_out_by_the_reference(watched: Watched, look: Look, base: str) -> None:
    await watched.page.goto(f"{base}/docs/reference")
    found = await watched.violations()
    assert found == [], "\n".join(found)
    assert await watched.page.evaluate("document.documentElement.scrollWidth") == look.width


@pytest.mark.parametrize("look", LOOKS[1:3], ids=str)
async def test_without_scripts_the_pages_are_whole(browser: Browser, look: Look, base: str) -> None:
    async with opened(browser, look, base, scripts=False) as watched:
        page = watched.page
        await page.goto(f"{base}/docs")
        assert await page.locator("main > section:visible").count() == 8
        await expect(page.locator("svg.sequence")).to_be_visible()
        await expect(page.locator("#key-box")).to_be_hidden()
        await page.locator("noscript a").click()
        for each in OPERATIONS:
            await expect(page.locator(f"#{each.id}")).to_contain_text(each.path)
        assert page.url == f"{base}/docs/reference"
