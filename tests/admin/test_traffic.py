"""Traffic and health in the panel: what came, how each part fares, bookings nobody knows of."""

import asyncio
import html
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from adapters.base import (
    BackendNonsense,
    BackendUnavailable,
    Draft,
    OutcomeUnknown,
    Page,
    Query,
    Record,
)
from gateway.admin.context import Question, Sampler
from gateway.admin.views.traffic import ORDER, part_states
from gateway.admin.visit import PANEL
from gateway.admin.words import words
from gateway.administrators.administrator import Role
from gateway.administrators.sessions import IDLE
from gateway.booking import reconcile
from gateway.inquiries.traffic import KINDS
from gateway.store import StoreError
from tests.admin.manager import Manager, manager_of
from tests.conftest import Begin, RunningGateway, Start
from tests.partner import Partner
from tests.world import OTHER_ID, SOME_ID, World

FAILING = {"text": "1 of its cases fails", "problems": [], "more": 0}
NASTY = "<script>alert(1)</script>\"'&{{7*7}}"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages wait for news: a test has nothing else to do."""
    monkeypatch.setattr("gateway.admin.context.MOMENT", 10.0)


@pytest.fixture
async def manager(running_gateway: RunningGateway, session: aiohttp.ClientSession) -> Manager:
    return await manager_of(running_gateway, session)


def sampler_of(running: Any) -> Sampler:
    sampler: Sampler = running.gateway.panel.runner.app[PANEL].sampler
    return sampler


async def looked(manager: Manager, running: Any, path: str = "/traffic") -> str:
    """The page as of now: what it knew already is forgotten."""
    sampler = sampler_of(running)
    for each in (sampler.figures, sampler.readiness, sampler.keys, sampler.bookings, sampler.vets):
        each._asked = None
    page = await manager.get(path)
    assert page.status == 200, page.plain
    return page.text


def plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def section(text: str, name: str) -> str:
    """What one article says."""
    return plain(text.split(f'<article id="{name}">')[1].split("</article>", maxsplit=1)[0])


def chart(text: str) -> Mapping[str, Any]:
    found = re.search(r'data-chart="([^"]*)"', text)
    assert found is not None
    drawn: Mapping[str, Any] = json.loads(html.unescape(found[1]))
    return drawn


async def test_what_partners_call_is_told_by_how_it_ended_and_by_whom(
    manager: Manager, partner: Partner, running_gateway: RunningGateway
) -> None:
    gateway = running_gateway.gateway
    await gateway.keys.update(partner._key_id, name=NASTY, limit=5)
    await gateway.ring.refresh()
    before = await looked(manager, running_gateway)
    assert "No request has come so far" in section(before, "requests")
    assert "data-chart" not in before
    for path in ("/stock", "/stock", f"/clients/{SOME_ID}", "/stock?limit=none"):
        await partner.get(path)
    await partner.as_key("vk_none").get("/stock")
    await gateway.usage.turn()
    text = await looked(manager, running_gateway)
    drawn = chart(text)
    labels = [each["label"] for each in drawn["series"]]
    assert labels == [
        "answered (2xx)", "no valid key (401)", "not found (404)", "other refusals (4xx)"
    ]  # fmt: skip
    ended = {
        each["label"]: sum(value for value in each["values"] if value is not None)
        for each in drawn["series"]
    }
    assert [*ended.values()] == [2, 1, 1, 1]
    assert len(drawn["times"]) == len(drawn["series"][0]["values"]) == 60
    assert drawn["zone"] == "Europe/Paris"
    assert "list_stock 4" in section(text, "times")
    assert "read_many stock 2" in section(text, "practice")
    assert "asked as usual" in section(text, "practice")
    assert f"{NASTY} 4 2 0" in section(text, "top")
    assert "80% 4 of 5 in 60 minutes" in section(text, "near")
    assert f'href="/keys/{partner._key_id}"' in text
    assert "<script>alert" not in text


async def test_a_key_near_no_limit_is_not_told_and_nobody_knows_where_what_counts_is_down(
    manager: Manager,
    partner: Partner,
    running_gateway: RunningGateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await partner.get("/stock")
    await running_gateway.gateway.usage.turn()
    text = await looked(manager, running_gateway)
    assert "No key is near its limit" in section(text, "near")

    async def nobody(key_ids: Sequence[str]) -> None:
        return None

    context = sampler_of(running_gateway)._panel
    object.__setattr__(context, "used", nobody)
    text = await looked(manager, running_gateway)
    assert "nobody can say how much of its limit" in section(text, "near")
    assert "A test's partner 1 0 0" in section(text, "top")


async def test_that_the_page_asks_for_itself_does_not_keep_a_session_alive(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    later = timedelta()
    running = await start_gateway(now=lambda: datetime.now(UTC) + later)
    manager = await manager_of(running, session)
    part = {"HX-Request": "true"}
    assert (await manager.get("/traffic")).status == 200
    later = IDLE - timedelta(minutes=5)
    live = await manager.get("/traffic/live", **part)
    assert live.status == 200
    assert "<html" not in live.text
    later = IDLE + timedelta(minutes=5)
    over = await manager.get("/traffic/live", **part)
    assert (over.status, over.headers.get("HX-Redirect")) == (401, "/sign-in")


async def test_a_booking_of_which_nobody_knows_is_told_and_then_how_it_ended(
    partner_of: Begin, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "FIRST_PAUSE", 0.1)
    monkeypatch.setattr(reconcile, "LONGEST_PAUSE", 0.1)
    made: list[Record] = []

    def create(draft: Draft) -> Record:
        raise OutcomeUnknown("cut off")

    def many(query: Query) -> Page:
        return Page(records=[{"id": SOME_ID, "name": NASTY}])

    def find(draft: Draft) -> list[Record]:
        """The first day's, once it is there; of the other nobody can tell."""
        if not made or draft.scheduled_at.day != 1:
            raise BackendNonsense("no list of appointments")
        return made

    world = World(create=create, find=find, many=many)
    partner = await partner_of(world)
    running = partner.gateway
    manager = await manager_of(running, session)
    assert "There is none" in section(await looked(manager, running), "bookings")
    sent = {"clientId": SOME_ID, "patientId": SOME_ID, "vetId": SOME_ID}
    for day in ("01", "02"):
        booking = sent | {"scheduledAt": f"2099-01-{day}T09:00:00Z"}
        assert (await partner.post("/appointments", booking)).status == 504
    text = await looked(manager, running)
    told = section(text, "bookings")
    assert f"1 Jan 2099, 09:00 {NASTY} A test's partner" in told
    assert "of unknown outcome 2" in told
    assert "looked up in the practice system at least every 30 seconds" in told
    assert "<script>alert" not in text
    made.append({"id": OTHER_ID, "scheduledAt": "2099-01-01T09:00:00Z"})
    async with asyncio.timeout(10):
        while "made The gateway found it in the practice system" not in told:
            await asyncio.sleep(0.1)
            told = section(await looked(manager, running), "bookings")
    assert f"the partner is told once it asks again. {OTHER_ID}" in told
    # of the other nobody knows so far
    assert "at least every 30 seconds" in told


async def test_a_part_that_is_down_is_told_with_what_to_do(
    partner_of: Begin, session: aiohttp.ClientSession
) -> None:
    def down() -> None:
        raise BackendUnavailable("nothing listens there")

    partner = await partner_of(World(ping=down))
    manager = await manager_of(partner.gateway, session)
    told = section(await looked(manager, partner.gateway), "parts")
    assert "Practice system not ready Partners get 503 or 504" in told
    assert "clinic-gateway backend check says what it sees" in told
    assert "nothing listens there" in told
    assert "Audit ready What is done is written down." in told


async def test_while_the_store_is_down_the_page_says_so_and_keeps_what_it_knew(
    manager: Manager, running_gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise StoreError("is locked")

    await looked(manager, running_gateway)
    monkeypatch.setattr("gateway.booking.rows.LedgerRows.oldest_unknown", fails)
    monkeypatch.setattr("gateway.inquiries.keys.recent", fails)
    text = await looked(manager, running_gateway, "/traffic/live")
    assert "database cannot be read just now" in section(text, "bookings")
    assert "There is none" in section(text, "bookings")
    assert "database cannot be read just now" in section(text, "top")


@pytest.mark.parametrize("role", list(Role))
async def test_everybody_may_look_but_only_who_makes_keys_is_offered_to(
    running_gateway: RunningGateway, session: aiohttp.ClientSession, role: Role
) -> None:
    manager = await manager_of(running_gateway, session, role=role, name=role.value)
    text = await looked(manager, running_gateway)
    assert ("/keys/new" in text) == (role is Role.ADMIN)


async def test_the_page_is_french_for_who_reads_french(
    running_gateway: RunningGateway, session: aiohttp.ClientSession, partner: Partner
) -> None:
    manager = await manager_of(running_gateway, session, language="fr")
    for _ in range(3):
        await partner.get("/stock")
    text = await looked(manager, running_gateway)
    assert "Trafic et santé" in text
    assert [each["label"] for each in chart(text)["series"]] == ["répondues (2xx)"]
    read = plain(text.split("<main")[1])
    assert re.findall(r"\b(the|is|and|of|was|since|made|ready|with|keys)\b", read) == []


async def test_a_page_that_is_held_still_does_not_ask_for_itself(
    manager: Manager, running_gateway: RunningGateway
) -> None:
    assert 'hx-trigger="every 5s"' in await looked(manager, running_gateway)
    still = await looked(manager, running_gateway, "/traffic?still=1")
    assert "hx-trigger" not in still
    assert 'href="/traffic"' in still


PARTS: Mapping[str, Mapping[str, Any]] = {
    "backend": {"breaker": "open"},
    "store": {"unwritten": 2},
    "audit": {"head": "not recorded in the store"},
    "limiter": {"degraded": True},
    "policy": {"state": "held back"},
    "loop": {"placesPerKey": 3},
}


@pytest.mark.parametrize("name", ORDER)
@pytest.mark.parametrize("more", [{"ready": True}, {"ready": False, "reason": "why"}])
def test_every_state_of_every_part_has_its_words(name: str, more: Mapping[str, Any]) -> None:
    said = words("fr")
    for part in (more, {"ready": True, **PARTS.get(name, {})}):
        [told] = part_states({name: part})
        assert said.has(f"traffic.{told.state}_{told.about}")
        assert told.state == "fine" or said.has(f"traffic.do_{told.about}")
        assert said.has(f"traffic.part_{name}")
        assert said.has(f"traffic.is_{told.state}")
        assert (told.state == "down") == (not part["ready"])


@pytest.mark.parametrize(
    ("state", "text"), [("stale", "stale"), ("held back", "held_back"), ("current", None)]
)
def test_a_policy_that_does_not_run_as_it_is_written_is_told(state: str, text: str | None) -> None:
    [told] = part_states({"policy": {"ready": True, "state": state}})
    assert (told.state, told.about) == (("note", text) if text else ("fine", "policy"))


def test_of_the_workers_each_part_is_told_once_and_the_worst_of_them() -> None:
    good = {"store": {"ready": True}, "limiter": {"ready": True, "url": "memory:"}}
    bad = {
        "store": {"ready": False, "reason": "x"},
        "limiter": {"ready": True, "degraded": True},
    }

    def worker(number: int, parts: Mapping[str, Any], **more: Any) -> Mapping[str, Any]:
        is_ready = all(part["ready"] for part in parts.values())
        return {"worker": number, "ready": is_ready, "parts": parts, **more}

    def told(*each: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        parts = {"store": {"ready": True}, "workers": {"ready": True, "each": each}}
        return {part.name: (part.state, part.reason) for part in part_states(parts)}

    assert told(worker(1, good), worker(2, good)) == {
        "store": ("fine", ""), "limiter": ("fine", ""), "workers": ("fine", "")
    }  # fmt: skip
    assert told(worker(1, good), worker(2, bad)) == {
        "store": ("down", "worker 2: x"), "limiter": ("note", ""), "workers": ("fine", "")
    }  # fmt: skip
    silent = worker(2, good) | {"ready": False, "reason": "it does not answer"}
    assert told(worker(1, good), silent)["workers"] == ("down", "worker 2: it does not answer")


def test_every_way_to_end_has_its_words() -> None:
    assert all(words("fr").has(f"traffic.kind_{kind}") for kind in KINDS)


async def test_an_answer_that_takes_long_is_not_waited_for_while_there_is_an_older_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.admin.context.MOMENT", 0.02)
    goes_on, asked, now = asyncio.Event(), 0, 0.0
    goes_on.set()

    async def ask() -> int:
        nonlocal asked
        asked += 1
        number = asked
        await goes_on.wait()
        if number == 3:
            raise StoreError("down")
        return number

    question = Question(ask, lambda: now)
    await question.fresh(5.0)
    assert (question.value, question.has_failed) == (1, False)
    now = 4.9
    await question.fresh(5.0)
    assert question.value == 1
    goes_on.clear()
    now = 5.0
    for _ in range(3):
        await question.fresh(5.0)
    assert (question.value, asked) == (1, 2), "one at a time, and the page shows what was told"
    now = 7.0
    goes_on.set()
    await question.fresh(5.0)
    assert question.value == 2
    now = 44.9
    await question.fresh(5.0)
    assert asked == 2, "what took two seconds rests for forty"
    now = 50.0
    await question.fresh(5.0)
    assert (question.value, question.has_failed) == (2, True)
    await question.aclose()


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"state": "current", "cases": FAILING}, "cases"),
        ({"state": "held back", "waitsFor": "cases", "cases": FAILING}, "cases_wait"),
        ({"state": "held back", "waitsFor": "approval", "cases": None}, "held_back"),
        ({"state": "current", "waitsFor": None, "cases": None}, None),
    ],
)
def test_cases_that_fail_are_told_with_what_to_do(
    more: Mapping[str, Any], text: str | None, language: str
) -> None:
    [told] = part_states({"policy": {"ready": True, **more}})
    assert (told.state, told.about) == (("note", text) if text else ("fine", "policy"))
    said = words(language)
    assert said.has(f"traffic.{told.state}_{told.about}")
    assert told.state == "fine" or said.has(f"traffic.do_{told.about}")
