"""The practice system behind a running gateway: remembered, guarded, and watched."""

import asyncio
import json
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from pydantic import ValidationError

from adapters.base import BackendUnavailable, Query, Record
from adapters.doctor.sql.rows import SqlCase
from adapters.examination import Examination
from adapters.sample import MAPPING
from adapters.sql import engines
from adapters.sql.adapter import SqlAdapter
from adapters.wrappers.cache import SLOTS_AT_MOST, Cached
from adapters.wrappers.guard import Guarded
from gateway.app import utc_now
from gateway.backend import FACTS, VERBS, bare_adapter_of, remembered, wrapped
from gateway.contract.operations import OPERATIONS
from gateway.keys.key import DEFAULT_LIMIT
from gateway.settings import CacheSettings, Settings, StartRefused
from tests.conftest import Begin, Start
from tests.partner import Partner
from tests.policies import TEXT
from tests.world import SOME_ID, WORLDS, World, record_of

BOTH = {"for": ["reads", "bookings"]}
TYPES = "/appointments/types"
SLOTS = "/appointments/available-slots"


def remembering(**seconds: float) -> Any:
    return CacheSettings(**seconds)


async def figures(session: aiohttp.ClientSession, partner: Partner) -> list[str]:
    async with session.get(partner.gateway.operations + "/metrics") as response:
        return (await response.text()).splitlines()


async def backend(session: aiohttp.ClientSession, partner: Partner) -> Any:
    async with session.get(partner.gateway.operations + "/readyz") as response:
        return json.loads(await response.text())["parts"]["backend"]


async def test_types_of_appointment_are_read_once_for_many_partners(partner_of: Begin) -> None:
    world = World()
    partner = await partner_of(world)
    other = await partner.with_key(level="BASIC")
    answers = [await each.get(TYPES) for each in (partner, other, partner)]
    assert len({each.text for each in answers}) == 1
    assert [query.resource for query in world.asked] == ["appointmentTypes"]
    for _ in range(2):
        assert (await partner.get(f"/clients/{SOME_ID}")).status == 200
    assert [query.resource for query in world.asked] == ["appointmentTypes", "clients", "clients"]


async def test_levels_share_what_is_remembered_and_see_each_its_own_of_it(
    partner_of: Begin, tmp_path: Path
) -> None:
    world, policy = World(), tmp_path / "own.yaml"
    policy.write_text(TEXT)
    cache = remembering(get_client=60, list_clients=60)
    full = await partner_of(world, cache=cache, policy=policy)
    basic = await full.with_key(level="BASIC")
    for path, shown in (
        (f"/clients/{SOME_ID}", lambda data: data),
        ("/clients", lambda data: data[0]),
    ):
        for _ in range(2):
            for partner, fields in (
                (basic, {"id", "firstName", "lastName"}),
                (full, {"id", "firstName", "lastName", "phone", "email", "address", "createdAt",
                        "updatedAt"}),
            ):  # fmt: skip
                assert shown((await partner.get(path)).data).keys() == fields
    assert len(world.asked) == 2


async def test_an_answer_that_is_remembered_still_needs_the_permission(partner_of: Begin) -> None:
    partner = await partner_of(World(), cache=remembering(get_client=60))
    assert (await partner.get(f"/clients/{SOME_ID}")).status == 200
    stranger = await partner.with_key(permissions=["STOCK_READ"])
    assert (await stranger.get(f"/clients/{SOME_ID}")).status == 403


async def test_a_free_time_is_gone_and_the_appointment_there_as_soon_as_it_is_booked(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    gateway = await start_gateway(cache=remembering(list_available_slots=5, get_appointment=60))
    partner = await Partner(gateway, session, None).with_key()
    for _ in range(3):
        draft = await partner.draft()
        day = partner.local_day(draft["scheduledAt"])
        query = {"vetId": draft["vetId"], "date": day}
        free = (await partner.get(SLOTS, **query)).data
        assert draft["scheduledAt"] in [each["startTime"] for each in free]
        made = await partner.post("/appointments", draft)
        assert made.status == 201
        left = (await partner.get(SLOTS, **query)).data
        assert draft["scheduledAt"] not in [each["startTime"] for each in left]
        for _ in range(2):
            assert (await partner.get(f"/appointments/{made.data['id']}")).data == made.data
    told = 'outcome="answered",resource="appointments",verb="create_appointment"'
    assert f"gateway_backend_calls_total{{{told}}} 3.0" in await figures(session, partner)


async def test_a_practice_system_that_keeps_failing_is_left_alone_and_everybody_is_told(
    partner_of: Begin,
    session: aiohttp.ClientSession,
    capsys: pytest.CaptureFixture[str],
) -> None:
    down = [True]

    def one(query: Query) -> Record:
        if down[0]:
            raise BackendUnavailable("the line is cut")
        return record_of(next(each.returns for each in OPERATIONS if each.id == "get_client"))

    def ping() -> None:
        if down[0]:
            raise BackendUnavailable("the line is cut")

    world = World(one=one)
    changes = {"breaker_failures": 3, "breaker_pause": 0.2}
    partner = await partner_of(world, backend=changes)
    assert (await backend(session, partner)) == {"ready": True, **BOTH, "breaker": "closed"}
    assert "gateway_backend_breaker 0.0" in await figures(session, partner)
    world.ping = ping
    for _ in range(6):
        answer = await partner.get(f"/clients/{SOME_ID}")
        assert (answer.status, answer.data["message"]) == (503, "Service temporarily unavailable")
    asked = len(world.asked)
    assert asked == 6  # three calls, each tried twice
    assert "gateway_backend_breaker 2.0" in await figures(session, partner)
    await asyncio.sleep(0.25)
    assert (await partner.get(f"/clients/{SOME_ID}")).status == 503
    assert len(world.asked) == asked + 1
    down[0] = False
    await asyncio.sleep(0.25)
    assert (await partner.get(f"/clients/{SOME_ID}")).status == 200
    assert "gateway_backend_breaker 0.0" in await figures(session, partner)
    said = capsys.readouterr().err
    assert said.count("failed too often in a row: it is left alone") == 1
    assert said.count("answers again") == 1
    assert said.count('"call failed"') == 1, "of calls for which it was not asked none"


async def test_readiness_tells_the_truth_while_the_practice_system_is_left_alone(
    partner_of: Begin, session: aiohttp.ClientSession
) -> None:
    def one(query: Query) -> Record:
        raise BackendUnavailable("busy")

    partner = await partner_of(World(one=one), backend={"breaker_failures": 1})
    assert (await partner.get(f"/clients/{SOME_ID}")).status == 503
    assert await backend(session, partner) == {"ready": True, **BOTH, "breaker": "half-open"}
    assert "gateway_backend_breaker 1.0" in await figures(session, partner)


def test_each_operation_that_reads_is_remembered_for_its_own_time() -> None:
    reads = [each for each in OPERATIONS if not each.creates]
    times = {each.id: number + 1 for number, each in enumerate(reads)}
    times["list_available_slots"] = 5
    settings = Settings(cache=remembering(**times))
    assert [each.seconds for each in remembered(settings)] == list(times.values())
    defaults = {
        each.id: kept.seconds for each, kept in zip(reads, remembered(Settings()), strict=True)
    }
    assert {name: each for name, each in defaults.items() if each} == {"list_appointment_types": 60}


def test_free_times_cannot_be_set_to_more_than_is_kept_of_them() -> None:
    assert remembering(list_available_slots=SLOTS_AT_MOST)
    for name, seconds in (("list_available_slots", SLOTS_AT_MOST + 0.1), ("get_client", 3601)):
        with pytest.raises(ValidationError, match="less than or equal to"):
            remembering(**{name: seconds})
    with pytest.raises(ValidationError, match="not permitted"):
        remembering(create_appointment=1)


async def test_what_nobody_wants_remembered_costs_nothing() -> None:
    WORLDS["composed"] = World()
    try:
        given = {"adapter": "tests.world:WorldAdapter", "url": "composed"}
        whole = Settings.model_validate({"backend": given})
        none = Settings.model_validate({"backend": given, "cache": {"list_appointment_types": 0}})
        for settings, kind in ((whole, Cached), (none, Guarded)):
            inner = await bare_adapter_of(settings, bytes(32), lambda trouble: None)
            assert isinstance(wrapped(settings, inner, None, bytes(32)), kind)
    finally:
        del WORLDS["composed"]


@pytest.mark.parametrize(
    ("backend", "most"),
    [
        ({"url": "sqlite:///clinic.db"}, 8),
        ({"url": "postgresql://clinic@127.0.0.1/clinic"}, 8),
        ({"adapter": "rest", "url": "https://cloud.example.org"}, 20),
        ({"adapter": "clinic_x:Adapter"}, 20),
        ({"url": "sqlite:///clinic.db", "in_flight": 64}, 64),
    ],
)
def test_how_many_calls_are_under_way_by_default_depends_on_the_kind(
    backend: dict[str, Any], most: int
) -> None:
    assert Settings.model_validate({"backend": backend}).backend.most_calls == most


async def test_a_database_that_is_asked_how_it_speaks_holds_up_nothing_and_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def spoken(url: str) -> str:
        if url.startswith("odbc:"):
            asked.append(threading.current_thread())
            return f"sqlite:///{tmp_path}/clinic.db"
        return url

    monkeypatch.setattr(engines, "spoken", spoken)
    backend = {"url": "odbc:///?dsn=clinic", "mapping": MAPPING}
    settings = Settings.model_validate({"backend": backend})
    inner = await bare_adapter_of(settings, bytes(32), lambda trouble: None)
    assert isinstance(inner, SqlAdapter)
    own = SqlCase(inner, Examination(now=datetime.now(UTC)))  # the panel's doctor has one
    for adapter in (inner, own.adapter):
        await adapter.aclose()
    [thread] = asked
    assert thread is not threading.main_thread()


@pytest.mark.parametrize(("given", "most"), [({}, 8), ({"in_flight": 7}, 7)])
async def test_the_adapter_has_room_for_as_many_calls_as_are_let_in(
    given: dict[str, int], most: int, tmp_path: Path
) -> None:
    backend = {"url": f"sqlite:///{tmp_path}/clinic.db", "mapping": MAPPING, **given}
    settings = Settings.model_validate({"backend": backend})
    inner = await bare_adapter_of(settings, bytes(32), lambda trouble: None)
    guarded = wrapped(settings, inner, None, bytes(32))
    assert isinstance(inner, SqlAdapter)
    assert isinstance(guarded, Cached)
    assert isinstance(guarded._inner, Guarded)
    assert inner.engine.reader.size == guarded._inner.room._most == most
    await guarded.aclose()


@pytest.mark.parametrize("gone", ["books", "read_one"])
async def test_an_adapter_without_one_of_its_members_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    members = dict.fromkeys(FACTS) | dict.fromkeys(VERBS, print)
    del members[gone]
    lacking = type("Adapter", (), {"__init__": lambda self, options: None, **members})
    monkeypatch.setitem(
        sys.modules, "clinic_x", SimpleNamespace(__name__="clinic_x", Adapter=lacking)
    )
    settings = Settings.model_validate({"backend": {"adapter": "clinic_x:Adapter", "url": "x"}})
    with pytest.raises(StartRefused, match=f"has no {gone}: an adapter has all members"):
        await bare_adapter_of(settings, bytes(32), lambda trouble: None)


async def test_the_clock_of_free_times_is_that_of_the_call(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    ahead = [timedelta()]
    gateway = await start_gateway(
        now=lambda: utc_now() + ahead[0], cache=remembering(list_available_slots=5)
    )
    partner = await Partner(gateway, session, None).with_key(limit=DEFAULT_LIMIT)
    draft = await partner.draft()
    query = {"vetId": draft["vetId"], "date": partner.local_day(draft["scheduledAt"])}
    first = (await partner.get(SLOTS, **query)).data
    begun = first[len(first) // 2]["startTime"]
    ahead[0] = datetime.fromisoformat(begun) - utc_now() + timedelta(seconds=1)
    told = [each["startTime"] for each in (await partner.get(SLOTS, **query)).data]
    assert told == [each["startTime"] for each in first if each["startTime"] > begun]
