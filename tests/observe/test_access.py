"""The access line's durations, and what never stands in it."""

import asyncio
import json

import pytest

from adapters.base import Draft, Query, Record
from gateway.contract.access import AccessLevel
from gateway.contract.resources import RESOURCES
from gateway.observe.metrics import exposition
from gateway.settings import CacheSettings
from tests.conftest import Begin
from tests.partner import Partner
from tests.web.test_observers import lines_of
from tests.world import SOME_ID, World, WorldAdapter


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A practice system that takes 50 ms for everything."""

    async def read_one(self: WorldAdapter, query: Query) -> Record:
        await asyncio.sleep(0.05)
        return self._records[query.resource]

    async def create(self: WorldAdapter, draft: Draft) -> Record:
        await asyncio.sleep(0.05)
        return self._records["appointments"]

    monkeypatch.setattr(WorldAdapter, "read_one", read_one)
    monkeypatch.setattr(WorldAdapter, "create_appointment", create)


async def spent(partner: Partner) -> dict[str, float]:
    line = (await lines_of(partner))[-1]
    assert line["backendMs"] + line["waitedMs"] <= line["ms"] + 1
    return line


async def test_a_read_and_a_booking_say_how_long_the_practice_system_took(
    partner_of: Begin, slow: None
) -> None:
    partner = await partner_of(World())
    await partner.get(f"/clients/{SOME_ID}")
    line = await spent(partner)
    assert 45 < line["backendMs"] < line["ms"]
    assert line["waitedMs"] == 0
    draft = {"clientId": SOME_ID, "patientId": SOME_ID, "vetId": SOME_ID}
    await partner.post("/appointments", draft | {"scheduledAt": "2099-01-01T09:00:00Z"})
    line = await spent(partner)
    assert (line["operation"], line["status"]) == ("create_appointment", 201)
    assert 45 < line["backendMs"] < line["ms"]
    await partner.get("/nowhere")
    assert (await spent(partner))["backendMs"] == 0


async def test_who_waits_for_room_or_for_the_answer_of_another_says_so(
    partner_of: Begin, slow: None
) -> None:
    partner = await partner_of(World(), backend={"in_flight": 1})
    await asyncio.gather(*(partner.get(f"/clients/{SOME_ID}") for _ in range(2)))
    first, second = await lines_of(partner)
    assert first["waitedMs"] < 5
    assert second["waitedMs"] > 40
    assert second["backendMs"] < second["ms"] - 40
    remembered = await partner_of(World(), cache=CacheSettings(get_client=60))
    await asyncio.gather(*(remembered.get(f"/clients/{SOME_ID}") for _ in range(2)))
    await remembered.get(f"/clients/{SOME_ID}")
    one, joined, hit = await lines_of(remembered)
    assert min(one["backendMs"], joined["backendMs"]) > 40
    assert hit["backendMs"] == 0
    handler = remembered.gateway.gateway.public.runner.server.request_handler
    text = exposition(handler.observers.metrics.snapshot())
    for outcome in ("hit", "joined", "miss"):
        assert f'gateway_cache_reads_total{{outcome="{outcome}"}} 1.0' in text.decode()
    assert "gateway_cache_entries 1.0" in text.decode()


async def test_no_address_query_secret_or_value_stands_in_the_line(partner: Partner) -> None:
    known = await partner.gateway.ids()
    await partner.get("/clients?search=Renaudxyz&limit=2")
    await partner.get(f"/clients/{known['clients']}")
    lines = await lines_of(partner)
    text = json.dumps(lines)
    for word in ("127.0.0.1", "Renaudxyz", "limit", "vk_", known["clients"]):
        assert word not in text
    assert "traceId" not in lines[0]


async def test_what_the_policy_withheld_is_counted_by_resource_and_level(
    partner_of: Begin,
) -> None:
    partner = await partner_of(World())
    policy = partner.gateway.gateway.keeper.policy()
    metrics = partner.gateway.gateway.public.runner.server.request_handler.observers.metrics
    basic = await partner.with_key(level="BASIC")
    for caller in (basic, basic, partner):
        await caller.get(f"/clients/{SOME_ID}")
    await basic.get("/clients")
    await basic.get(f"/clients/{SOME_ID}?unknown=1")
    [clients] = [each for each in RESOURCES if each.name == "clients"]
    withheld = len(clients.paths) - len(policy.redactor("clients", AccessLevel.BASIC).visible)
    assert withheld >= 5
    for _ in range(2):  # reading changes nothing
        snapshot = metrics.snapshot()
        records = {each.labels: each.value for each in snapshot["gateway_records_shown_total"]}
        fields = {each.labels: each.value for each in snapshot["gateway_fields_hidden_total"]}
        assert records == {("clients", "BASIC"): 3, ("clients", "FULL"): 1}
        assert fields == {("clients", "BASIC"): 3 * withheld, ("clients", "FULL"): 0}
