"""A key with bounds of its own: the networks it may be used from, and its bookings a day."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4
from zoneinfo import ZoneInfo

import aiohttp
import pytest

from adapters.base import Draft, OutcomeUnknown, Record, SlotTaken
from gateway.contract.fields import write_instant
from gateway.contract.resources import APPOINTMENT
from tests.conftest import Begin, Start
from tests.partner import Answer, Partner
from tests.pipeline.test_answers import DRAFT, raising
from tests.world import World, record_of

HERE, ELSEWHERE = ("127.0.0.0/8",), ("192.0.2.0/24", "2001:db8::/32")
# What differs from one answer to the next, whoever asks.
OWN = {"date", "x-request-id"}


def of(answer: Answer) -> tuple[int, str, dict[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name.lower() not in OWN}
    return answer.status, answer.text, headers


@pytest.mark.parametrize("path", ["/clients", "/nothing", "/openapi.json", "/docs"])
async def test_from_elsewhere_a_key_is_like_any_other_unusable_one(
    partner: Partner, path: str
) -> None:
    bound = await partner.with_key(networks=ELSEWHERE)
    unknown = partner.as_key("vk_" + "A" * 48)
    assert of(await bound.get(path)) == of(await unknown.get(path))
    assert (await bound.get(path)).status == 401
    assert (await (await partner.with_key(networks=HERE)).get("/clients")).status == 200


async def told(capfd: pytest.CaptureFixture[str], event: str) -> list[dict[str, object]]:
    """The lines of that event, once there is one."""
    said = ""
    async with asyncio.timeout(10):
        while event not in said:
            said += capfd.readouterr().err
            await asyncio.sleep(0.01)
    lines = [json.loads(line) for line in said.splitlines()]
    return [line for line in lines if line["event"] == event]


async def test_the_operator_is_told_once_a_minute(
    start_gateway: Start, capfd: pytest.CaptureFixture[str], session: aiohttp.ClientSession
) -> None:
    gateway = await start_gateway()
    bound = await Partner(gateway, session, None).with_key(networks=ELSEWHERE)
    for _ in range(3):
        await bound.get("/clients")
    [event] = await told(capfd, "key used from outside its networks")
    assert (event["key"], event["most_from"], event["times"]) == (bound._key_id, "127.0.0.1", 1)
    async with session.get(f"{gateway.operations}/metrics") as answer:
        text = await answer.text()
    assert 'authentication_failures_total{reason="KeyUsedElsewhere"} 3.0' in text


async def test_behind_a_trusted_proxy_the_callers_own_address_counts(
    start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    gateway = await start_gateway(trusted_proxies="127.0.0.1")
    partner = await Partner(gateway, session, None).with_key(networks=ELSEWHERE)
    for address, status in (
        ("192.0.2.9", 200),
        ("::ffff:192.0.2.9", 200),
        ("2001:db8::1", 200),
        ("198.51.100.9", 401),
    ):
        answer = await partner.send("GET", "/clients", headers={"X-Forwarded-For": address})
        assert answer.status == status, address
    assert (await partner.get("/clients")).status == 401


async def test_who_is_no_trusted_proxy_cannot_choose_an_address(partner: Partner) -> None:
    bound = await partner.with_key(networks=ELSEWHERE)
    answer = await bound.send("GET", "/clients", headers={"X-Forwarded-For": "192.0.2.9"})
    assert answer.status == 401


def at(hours: int) -> dict[str, object]:
    start = datetime.now(UTC) + timedelta(days=2, hours=hours)
    return DRAFT | {"scheduledAt": write_instant(start)}


def booked(draft: Draft) -> Record:
    """An appointment of its own."""
    return record_of(APPOINTMENT) | {"id": str(uuid4())}


async def test_beyond_its_bookings_of_the_day_a_key_is_429(partner_of: Begin) -> None:
    world = World()
    partner = await (await partner_of(world, zone="Europe/Paris")).with_key(bookings_per_day=2)
    world.create = raising(SlotTaken())
    assert (await partner.post("/appointments", at(0))).status == 409
    world.create = booked
    first = await partner.post("/appointments", at(1), Idempotency_Key="k")
    assert first.status == 201
    assert (await partner.post("/appointments", at(2))).status == 201
    refused = await partner.post("/appointments", at(3), Idempotency_Key="l")
    message = "Rate limit exceeded. Please try again later."
    assert (refused.status, refused.data["message"]) == (429, message)
    now = datetime.now(ZoneInfo("Europe/Paris"))
    midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), now.tzinfo)
    left = (midnight.astimezone(UTC) - now.astimezone(UTC)).total_seconds()
    assert 0 <= refused.data["retryAfter"] - left <= 30
    assert refused.headers["Retry-After"] == str(refused.data["retryAfter"])
    # the hour is another matter
    assert refused.headers["X-RateLimit-Limit"] == "100000"
    assert int(refused.headers["X-RateLimit-Remaining"]) > 99_000
    assert (await partner.get("/clients")).status == 200
    again = await partner.post("/appointments", at(1) | {"scheduledAt": "x"}, Idempotency_Key="k")
    assert again.status == 400
    assert (await (await partner.with_key()).post("/appointments", at(5))).status == 201


async def test_a_replay_is_told_and_without_a_key_nothing_is_looked_at(partner_of: Begin) -> None:
    partner = await (await partner_of(World())).with_key(bookings_per_day=1)
    body = at(1)
    first = await partner.post("/appointments", body, Idempotency_Key="k")
    again = await partner.post("/appointments", body, Idempotency_Key="k")
    assert (first.status, again.status, again.text) == (201, 201, first.text)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (await partner.send("POST", "/appointments", body=b"{")).status == 429
    wrong = await partner.post("/appointments", {}, Idempotency_Key="new")
    assert wrong.status == 400


async def test_bookings_that_fail_together_use_up_nothing(partner_of: Begin) -> None:
    world = World(create=raising(SlotTaken()))
    partner = await (await partner_of(world)).with_key(bookings_per_day=1)
    calls = (partner.post("/appointments", at(n), Idempotency_Key=f"k{n}") for n in range(8))
    ends = {answer.status: answer.headers for answer in await asyncio.gather(*calls)}
    assert set(ends) <= {409, 503}
    assert 503 not in ends or ends[503]["Retry-After"] == "1"
    world.create = booked
    assert (await partner.post("/appointments", at(9))).status == 201
    assert (await partner.post("/appointments", at(10))).status == 429


async def test_an_unknown_outcome_is_503_until_it_is_known(partner_of: Begin) -> None:
    world = World(create=raising(OutcomeUnknown()))
    partner = await (await partner_of(world)).with_key(bookings_per_day=1)
    assert (await partner.post("/appointments", at(1))).status == 504
    world.create, world.find = booked, raising(OutcomeUnknown())
    refused = await partner.post("/appointments", at(9))
    assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
    world.find = lambda draft: [record_of(APPOINTMENT)]
    assert (await partner.post("/appointments", at(9))).status == 429


@pytest.mark.parametrize("settled", [False, True])
async def test_a_retry_without_a_key_gets_its_own_unknown_booking(
    partner_of: Begin, settled: bool
) -> None:
    world = World(create=raising(OutcomeUnknown()))
    partner = await (await partner_of(world)).with_key(bookings_per_day=1)
    body = at(1)
    assert (await partner.post("/appointments", body)).status == 504
    world.create = booked
    world.find = lambda draft: [record_of(APPOINTMENT)]
    if settled:
        assert (await partner.post("/appointments", at(9))).status == 429
    own = await partner.post("/appointments", body)
    assert (own.status, own.data["id"]) == (201, record_of(APPOINTMENT)["id"])
    assert (await partner.send("POST", "/appointments", body=b"{")).status == 429


async def test_its_documents_tell_a_key_of_its_bounds(partner: Partner) -> None:
    bound = await partner.with_key(networks=HERE, bookings_per_day=12)
    told = (await bound.get("/openapi.json")).data
    assert "accepted from these networks only: 127.0.0.0/8." in told["info"]["description"]
    about = told["paths"]["/appointments"]["post"]["description"]
    assert "This key may book 12 a day, by the clinic's calendar" in about
    other = (await partner.get("/openapi.json")).data
    assert "networks" not in other["info"]["description"]
    assert "This key may book" not in other["paths"]["/appointments"]["post"]["description"]
