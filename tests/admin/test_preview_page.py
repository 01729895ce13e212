"""What a partner sees, in the panel: just what the partner gets, and why; real records audited."""

import html
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest

from gateway.administrators.administrator import Role
from gateway.administrators.log import Deed, DeedLog
from gateway.contract.access import AccessLevel, Permission
from gateway.contract.resources import GOVERNED
from gateway.keys.key import Key
from tests.admin.manager import Manager, Page, manager_of
from tests.conftest import RunningGateway, Start
from tests.policies import TEXT
from tests.waiting import until

NASTY = "<script>alert(1)</script>\"'&{{7*7}}"
MASKED = "  BASIC: [id, firstName, lastName, {phone: last(2), email: domain}]\n"
POLICY = TEXT.replace("  BASIC: [id, firstName, lastName]\n", MASKED).replace(
    "patients:\n", "patients:\n  only: {BASIC: {status: {not: [ACTIVE, DECEASED]}}}\n"
)


@pytest.fixture
async def running(start_gateway: Start, tmp_path: Path) -> RunningGateway:
    policy = tmp_path / "policies.yaml"
    policy.write_text(POLICY)
    return await start_gateway(policy=policy)


@pytest.fixture
async def manager(running: RunningGateway, session: aiohttp.ClientSession) -> Manager:
    return await manager_of(running, session, role=Role.AUDITOR)


async def a_key(running: RunningGateway, name: str = "Insurer X") -> tuple[str, str]:
    """A key's id and secret: it reads clients and patients at BASIC, stock at FULL."""
    key = Key(
        name=name,
        permissions=frozenset([Permission.CLIENT_READ, Permission.PATIENT_READ]),
        level=AccessLevel.BASIC,
        created_at=datetime.now(UTC),
        scopes={"stock": AccessLevel.FULL},
    )
    secret = await running.gateway.keys.add(key)
    await running.gateway.ring.refresh()
    return key.id, secret


def body_of(page: Page) -> str:
    """What the page says that the partner gets."""
    found = re.search(r'<pre class="answer"[^>]*><code>(.*?)</code>', page.text, re.DOTALL)
    assert found is not None, page.plain
    return html.unescape(found[1])


def row_of(page: Page, path: str) -> list[str]:
    """The cells beside a field, as they are read."""
    cell = rf"<code>{re.escape(path)}</code></small></th>(.*?)</tr>"
    found = re.search(cell, page.text, re.DOTALL)
    assert found is not None, path
    parts = re.findall(r"<td>(.*?)</td>", found[1], re.DOTALL)
    return [" ".join(html.unescape(re.sub("<[^>]*>", " ", each)).split()) for each in parts]


async def test_the_answer_is_to_the_letter_what_the_partner_gets(
    running: RunningGateway, manager: Manager
) -> None:
    key_id, secret = await a_key(running)
    ids, answers = await running.ids(), []
    for resource, path in (("clients", "/clients"), ("patients", "/patients"), ("stock", "/stock")):
        form = {"key": key_id, "resource": resource, "id": ids[resource]}
        page = await manager.fill("/preview", form, "/preview/record")
        address = f"{running.base}{path}/{ids[resource]}"
        async with manager.session.get(address, headers={"X-API-Key": secret}) as answer:
            status, body = answer.status, await answer.text()
        assert page.status == 200
        assert body_of(page) == body
        assert f"Status {status}" in page.plain
        answers.append(status)
    assert answers == [200, 404, 403]


async def test_each_field_stands_beside_the_whole_one_with_the_line_that_decides(
    running: RunningGateway, manager: Manager
) -> None:
    page = await manager.get("/preview?level=BASIC&resource=clients")
    line = POLICY.splitlines().index(MASKED.rstrip()) + 1
    assert row_of(page, "phone") == [
        "06 12 34 56 78",
        "***78 in part",
        f"masked from BASIC on, whole from STANDARD on policies.yaml:{line} *** and the last 2"
        " characters, none of a text shorter than twice that",
    ]
    assert row_of(page, "lastName")[1:] == ["Martin whole", f"BASIC opens it policies.yaml:{line}"]
    assert row_of(page, "address")[1] == "hidden"
    assert "12 rue des Lilas" not in body_of(page)
    address = re.search(rf'href="([^"]*)#L{line}"', page.text)
    assert address is not None
    version = await manager.get(address[1])
    assert f'<li id="L{line}"><code>{MASKED.rstrip()}</code></li>' in version.text
    # the file says something else by now that is not in force, so it is no longer named
    running.gateway.settings.policy.write_text("version: 2\n")
    await until(lambda: bool(running.gateway.keeper.status.problems))
    stale = await manager.get("/preview?level=BASIC&resource=clients")
    runs = running.gateway.keeper.policy().short_hash
    assert row_of(stale, "lastName")[2] == f"BASIC opens it {runs}:{line}"


async def test_every_kind_of_record_is_shown_at_every_level(manager: Manager) -> None:
    for level, resource in product(AccessLevel, GOVERNED):
        asked = {"level": "FULL", f"scope.{resource.name}": level, "resource": resource.name}
        page = await manager.get(f"/preview?{urlencode(asked)}")
        assert page.status == 200
        assert all(row_of(page, path) for path in resource.paths)
        assert f"own level for this kind of record decides: {level}" in page.plain


async def test_what_a_key_may_not_ask_for_and_what_does_not_exist_for_it_is_said(
    running: RunningGateway, manager: Manager
) -> None:
    key_id, _ = await a_key(running)
    page = await manager.get(f"/preview?key={key_id}&resource=stock")
    assert "lacks Read stock" in page.plain
    assert body_of(page) == '{"message":"Insufficient permissions"}'
    page = await manager.get(f"/preview?key={key_id}&resource=patients")
    assert "BASIC sees only records whose status is INACTIVE" in page.plain
    assert body_of(page) == '{"message":"Resource not found"}'
    await running.revoke(key_id)
    page = await manager.get(f"/preview?key={key_id}&resource=clients")
    assert body_of(page) == '{"message":"Invalid or expired API key"}'


async def test_looking_at_a_real_record_is_in_the_audit_before_it_is_shown(
    running: RunningGateway, manager: Manager
) -> None:
    client = (await running.ids())["clients"]
    form = {"level": "FULL", "resource": "clients", "id": client}
    page = await manager.fill("/preview", form, "/preview/record")
    assert "Anna" not in page.text
    assert client in body_of(page)
    [deed] = await looks(running)
    assert (deed.who, deed.deed, deed.subject) == ("Claire", "record looked at", client)
    assert deed.details == {"resource": "clients"}
    token = (await manager.get("/preview")).csrf
    folder = running.folder / "audit"
    moved = folder.rename(folder.with_name("gone"))
    folder.touch()
    try:
        unaudited = await manager.send("/preview/record", {"csrf": token, **form})
    finally:
        folder.unlink()
        moved.rename(folder)
    assert unaudited.status == 503
    assert client not in unaudited.text
    by_address = await manager.get(f"/preview?level=FULL&resource=clients&id={client}")
    assert client not in body_of(by_address)
    for wrong in ("x", client.upper(), "0b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b10"):
        page = await manager.send("/preview/record", {"csrf": token, **form, "id": wrong})
        assert page.status == 422


async def looks(running: RunningGateway) -> Sequence[Deed]:
    return await DeedLog(running.gateway.store).last(9, deeds=["record looked at"])


async def test_ids_of_the_clinic_are_offered_and_lead_to_their_records(
    running: RunningGateway, manager: Manager
) -> None:
    page = await manager.get("/preview?level=FULL&resource=clients&ids=1")
    offered = re.findall(r'name="id" value="([0-9a-f-]{36})"', page.text)
    assert len(offered) == 5
    form = {"level": "FULL", "resource": "clients", "id": offered[4]}
    assert offered[4] in body_of(await manager.fill("/preview", form, "/preview/record"))


async def test_a_key_is_meant_by_its_name_its_id_or_how_it_begins(
    running: RunningGateway, manager: Manager
) -> None:
    key_id, secret = await a_key(running, NASTY)
    for text in (key_id, NASTY, NASTY.upper(), secret[:8], "script>alert", secret):
        page = await manager.get(f"/preview?{urlencode({'key': text, 'resource': 'clients'})}")
        assert f"as {NASTY} gets it" in page.plain, text
        assert "<script>alert" not in page.text
        assert secret not in page.text
    part = await manager.get("/preview/keys?key=alert(1)")
    assert "<script>" not in part.text
    assert '<option value="&lt;script&gt;' in part.text
    await a_key(running, "Insurer A")
    await a_key(running, "Insurer B")
    several = await manager.get("/preview?key=insurer")
    assert "2 keys fit; choose one: Insurer A" in several.plain
    assert "No key is called that" in (await manager.get("/preview?key=nobody")).plain


async def test_the_french_page_speaks_french(
    running: RunningGateway, session: aiohttp.ClientSession
) -> None:
    manager = await manager_of(running, session, language="fr")
    key_id, _ = await a_key(running)
    for resource in ("clients", "patients", "stock"):
        page = (await manager.get(f"/preview?key={key_id}&resource={resource}")).plain
        for english in ("whole", "hidden", "record", "opens", "Status", " is ", "Read"):
            assert english not in page
    assert (
        "seulement les fiches dont status est INACTIVE"
        in (await manager.get(f"/preview?key={key_id}&resource=patients")).plain
    )
