"""The directory in the panel: public ids to hand out, and how the practice system is connected."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.base import BackendUnavailable, NotFound, Page, Query, Record
from adapters.examination import Finding, Verdict
from gateway.admin.views import directory
from gateway.administrators.administrator import Role
from gateway.administrators.log import FAILED, DeedLog
from gateway.contract.resources import RESOURCES
from gateway.store import open_store
from tests.admin.manager import Manager, after, manager_of
from tests.admin.test_audit_pages import LONG, NASTY
from tests.conftest import Begin, RunningGateway, Template, begun
from tests.world import SOME_ID, World, record_of

RECORDS = {each.name: record_of(each) for each in RESOURCES}


@pytest.fixture
async def manager(running_gateway: RunningGateway, session: aiohttp.ClientSession) -> Manager:
    return await manager_of(running_gateway, session)


async def test_vets_and_types_stand_there_with_what_a_partner_needs(
    manager: Manager, running_gateway: RunningGateway
) -> None:
    ids = running_gateway._known
    page = await manager.get("/directory")
    for name in ("vets", "appointmentTypes"):
        assert f'data-copy="{ids[name]}"' in page.text
    assert '<rect width="16" height="16" rx="3" fill="#' in page.text
    assert "style=" not in page.text
    example = page.text.split("<pre")[1].split("</pre>")[0]
    assert "/appointments/available-slots?vetId=" in example
    assert "type=" not in page.text.split("<main")[1].split("<h2")[0]  # so few need no search


async def test_many_are_searched_and_every_text_of_theirs_is_only_text(
    partner_of: Begin, session: aiohttp.ClientSession
) -> None:
    def many(query: Query) -> Page:
        one = RECORDS[query.resource]
        number = 30 if query.resource == "vets" else 1
        names = [NASTY if each == 7 else f"Dr {each:02d}" for each in range(number)]
        found: list[Record] = [{**one, "name": name} for name in names]
        return Page(records=found[: query.limit])

    partner = await partner_of(World(many=many))
    manager = await manager_of(partner.gateway, session)
    page = await manager.get("/directory")
    assert "Dr 29" in page.plain
    assert NASTY in page.plain
    assert NASTY not in page.text
    found = await manager.get("/directory?q=dr+1")
    assert "Dr 13" in found.plain
    assert "Dr 29" not in found.plain
    assert "None has that in its name" in (await manager.get("/directory?q=zzz")).plain


async def test_without_the_practice_system_the_rest_of_the_page_stays(
    partner_of: Begin, session: aiohttp.ClientSession
) -> None:
    def many(query: Query) -> Page:
        raise BackendUnavailable(f"it refuses connections {NASTY}")

    partner = await partner_of(World(many=many))
    manager = await manager_of(partner.gateway, session, language="fr")
    page = await manager.get("/directory")
    assert page.status == 200
    assert "Le logiciel de la clinique ne répond pas" in page.plain
    assert "backend.url" in page.plain
    assert NASTY not in page.text
    assert "Contrôler maintenant" in page.plain


async def test_a_check_tells_what_failed_first_and_outlasts_the_process(
    partner_of: Begin, session: aiohttp.ClientSession
) -> None:
    def nobody(query: Query) -> Record:
        if query.resource == "clients":
            raise NotFound(NASTY)
        return RECORDS[query.resource]

    def broken() -> None:
        raise BackendUnavailable(f"gone: {NASTY}")

    world = World(one=nobody)
    partner = await partner_of(world)
    auditor = await manager_of(partner.gateway, session, role=Role.AUDITOR, name="Denis")
    assert "Check now" not in (await auditor.get("/directory")).plain
    manager = await manager_of(partner.gateway, session, role=Role.OPERATOR, name="Olga")
    assert (await manager.fill("/directory", {}, "/directory/check")).status == 303
    page = await after(manager, "/directory", "Being checked")
    assert "by Olga" in page.plain
    assert "Partners would get errors" in page.plain
    assert page.text.index('mark bad">') < page.text.index('mark whole">')
    assert "get_client" in page.text.split('mark bad">')[1].split("</details>")[0]
    kept = await partner.gateway.gateway.store.meta(directory.KEPT)
    assert kept is not None
    assert '"who": "Olga"' in kept
    world.ping, world.many = broken, lambda query: broken() or Page(records=[])
    await manager.fill("/directory", {}, "/directory/check")
    page = await after(manager, "/directory", "Being checked")
    assert NASTY in page.plain
    assert NASTY not in page.text


async def test_one_check_runs_at_a_time_and_no_more_findings_are_kept_than_may_be(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "MOST_FINDINGS", 3)
    waits, goes_on = asyncio.Event(), asyncio.Event()
    examine = directory.examine

    async def slow(*args: Any) -> Any:
        waits.set()
        async with asyncio.timeout(LONG):
            await goes_on.wait()
        async for each in examine(*args):
            yield each

    monkeypatch.setattr(directory, "examine", slow)
    await manager.fill("/directory", {}, "/directory/check")
    await waits.wait()
    page = await manager.get("/directory")
    assert "Being checked since" in page.plain
    assert 'hx-get="/directory/checked" hx-trigger="every 5s"' in page.text
    assert "Check now" not in page.plain
    again = await manager.send("/directory/check", {"csrf": page.csrf})
    assert again.status == 303
    assert "It is being checked already" in (await manager.get("/directory")).plain
    goes_on.set()
    page = await after(manager, "/directory", "Being checked since")
    assert "more findings are not kept" in page.plain
    assert page.text.split("findings")[-1].count("<li>") <= 3
    assert SOME_ID not in page.text


async def test_what_goes_on_as_the_gateway_stops_is_cut_off_and_noted_so(
    template: Template,
    tmp_path: Path,
    session: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = asyncio.Event()

    async def endless(*args: Any) -> Any:
        waits.set()
        await asyncio.sleep(LONG)
        yield args

    monkeypatch.setattr(directory, "examine", endless)
    async with begun(template, tmp_path / "state") as running:
        manager = await manager_of(running, session)
        await manager.fill("/directory", {}, "/directory/check")
        await waits.wait()
    files = (tmp_path / "state" / "audit").glob("*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_bytes().splitlines()]
    results = [each["result"] for each in lines if each.get("deed") == directory.DEED]
    assert results == ["begun", "failed"]
    async with asyncio.timeout(LONG):
        store = open_store(tmp_path / "state" / "gateway.db")
        [deed] = await DeedLog(store).last(1, deeds=(directory.DEED,))
        await store.aclose()
    assert deed.outcome == FAILED


def test_what_is_kept_of_a_finding_has_no_value_of_a_record() -> None:
    about = {"check": "laws", "subject": "total-is-net-plus-tax", "text": "1 row of 20"}
    finding = Finding(**about, verdict=Verdict.FAILED, examples=("key 7: total 48.40",))
    kept = directory.without_values(finding)
    assert "48.40" not in str(kept)
    assert kept.items() >= about.items()
