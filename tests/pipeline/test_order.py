"""The order of the checks: what is wrong twice is told by the check that comes first."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from adapters.base import Query, Record
from adapters.call_notes import CALL_NOTES
from gateway.contract.errors import KeyInvalid, Unavailable
from gateway.keys.ring import KNOWN_FOR, UNKNOWN_FOR
from gateway.limits.base import Quota
from gateway.pipeline import shedder
from tests.conftest import Begin
from tests.partner import Partner
from tests.readiness import forget_answers
from tests.waiting import until
from tests.web.wire import head, say
from tests.world import SOME_ID, World


def left(answer: object) -> int:
    return int(answer.headers["X-RateLimit-Remaining"])  # type: ignore[attr-defined]


async def test_the_key_comes_before_the_path(partner: Partner) -> None:
    for caller, message in (
        (partner.anonymous(), "Authentication required"),
        (partner.as_key("vk_nonsense"), "Invalid or expired API key"),
    ):
        for method, path in (("GET", "/nowhere"), ("DELETE", "/clients"), ("GET", "/clients/%00")):
            answer = await caller.send(method, path)
            assert (answer.status, answer.data) == (401, {"message": message})
            assert answer.headers["WWW-Authenticate"] == 'ApiKey header="X-API-Key"'


async def test_the_path_comes_before_the_permission_and_is_not_counted(partner: Partner) -> None:
    nobody = await partner.with_key(permissions=[], limit=1)
    for _ in range(3):
        assert (await nobody.get("/nowhere")).status == 404
        answer = await nobody.send("PUT", "/stock/low")
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
        assert "X-RateLimit-Limit" not in answer.headers


async def test_the_permission_comes_before_the_limit_and_every_look_at_the_request(
    partner_of: Begin,
) -> None:
    world = World()
    partner = await partner_of(world)
    reader = await partner.with_key(permissions=["APPOINTMENT_READ"], limit=1)
    for method, path in (("GET", "/clients/nonsense?x=1"), ("POST", "/appointments")):
        answer = await reader.send(method, path, body=b"nonsense" if method == "POST" else None)
        assert answer.status == 403
        assert "X-RateLimit-Limit" not in answer.headers
    assert left(await reader.get("/appointments/types")) == 0
    assert [query.resource for query in world.asked] == ["appointmentTypes"]


async def test_every_call_counts_from_the_limit_on_however_it_ends(partner_of: Begin) -> None:
    partner = await (await partner_of(World())).with_key(limit=6)
    sent = [
        ("GET", "/clients/nonsense", None, 400),
        ("GET", f"/clients/{SOME_ID}", None, 200),
        ("POST", "/appointments", b"{}", 415),
        ("POST", "/appointments", {}, 400),
        ("POST", "/appointments", b" " * 70_000, 415),
        ("GET", "/clients?limit=0", None, 400),
    ]
    for rest, (method, path, body, status) in zip(range(5, -1, -1), sent, strict=True):
        answer = await partner.send(method, path, body=body)
        assert (answer.status, left(answer)) == (status, rest)
    for method, path in (("GET", "/clients/nonsense"), ("POST", "/appointments")):
        answer = await partner.send(method, path)
        assert (answer.status, left(answer)) == (429, 0)
        assert answer.headers["Retry-After"] == str(answer.data["retryAfter"])


async def test_what_would_be_too_much_at_once_is_turned_away_uncounted(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await partner_of(World(), in_flight=2)
    other = await partner.with_key(permissions=["STOCK_READ"], limit=5)
    pipeline = partner.gateway.gateway.public.front.pipeline
    pipeline.shedder._patience = 0.02
    hit, inside, go = pipeline.limiter.hit, asyncio.Semaphore(0), asyncio.Event()

    async def slow(key_id: str, limit: int) -> Quota:
        inside.release()
        await go.wait()
        return await hit(key_id, limit)

    monkeypatch.setattr(pipeline.limiter, "hit", slow)
    monkeypatch.setattr(pipeline, "admit", lambda call: None)
    calls = [asyncio.create_task(other.get("/stock")) for _ in range(2)]
    for _ in calls:
        await inside.acquire()
    answer = await other.get("/stock")
    assert (answer.status, answer.data) == (503, {"message": Unavailable.message})
    told = partner.gateway.gateway.public.front.observers.metrics.snapshot()
    [away] = told["gateway_calls_turned_away_total"]
    assert (away.labels, away.value) == (("process",), 1)
    assert answer.headers["Retry-After"] == "1"
    assert "X-RateLimit-Limit" not in answer.headers
    assert (await other.get("/clients")).status == 403  # what comes before needs no room
    go.set()
    assert sorted(left(each) for each in await asyncio.gather(*calls)) == [3, 4]
    assert left(await other.get("/stock")) == 2


async def test_one_key_takes_no_more_than_its_share_of_what_may_be_under_way(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await partner_of(World(), in_flight_per_key=2)
    greedy, other = await partner.with_key(), await partner.with_key()
    pipeline = partner.gateway.gateway.public.front.pipeline
    pipeline.shedder._patience = 0.02
    hit, inside, go = pipeline.limiter.hit, asyncio.Semaphore(0), asyncio.Event()

    async def slow(key_id: str, limit: int) -> Quota:
        inside.release()
        if key_id == greedy._key_id:
            await go.wait()
        return await hit(key_id, limit)

    monkeypatch.setattr(pipeline.limiter, "hit", slow)
    monkeypatch.setattr(pipeline, "admit", lambda call: None)
    calls = [asyncio.create_task(greedy.get("/stock")) for _ in range(2)]
    for _ in calls:
        await inside.acquire()
    assert (await greedy.get("/stock")).status == 503
    assert (await other.get("/stock")).status == 200
    go.set()
    assert {each.status for each in await asyncio.gather(*calls)} == {200}
    assert (await greedy.get("/stock")).status == 200
    assert pipeline.shedder.inside == set()


async def test_the_adapters_know_whose_call_it_is_so_that_partners_have_their_turns(
    partner_of: Begin,
) -> None:
    whose: list[str] = []

    def one(query: Query) -> Record:
        whose.append(CALL_NOTES.get().partner)
        return {"id": SOME_ID}

    first = await (await partner_of(World(one=one))).with_key()
    second = await first.with_key()
    for each in (first, second):
        assert (await each.get(f"/clients/{SOME_ID}")).status == 200
    assert whose == [first._key_id, second._key_id]


async def test_while_the_event_loop_comes_late_keys_have_fewer_places_and_it_is_told(
    partner_of: Begin,
    session: aiohttp.ClientSession,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    partner = await partner_of(World(), in_flight_per_key=8)
    gateway = partner.gateway

    async def seen(most: int) -> tuple[bool, Any]:
        """What /metrics and /readyz say once a key has so many places."""
        await until(lambda: gateway.gateway.public.front.pipeline.shedder.places.now == most, 10.0)
        forget_answers(gateway.gateway)
        async with session.get(f"{gateway.operations}/metrics") as answer:
            told = f"\ngateway_places_per_key {most}.0\n" in await answer.text()
        async with session.get(f"{gateway.operations}/readyz") as answer:
            part = (await answer.json())["parts"]["loop"]
        part.pop("for")
        return told and part.pop("ready") and part.pop("lag") >= 0, part

    with monkeypatch.context() as late:
        late.setattr(shedder, "LATE", 0.0)  # however soon it comes back
        assert await seen(shedder.FEWEST) == (True, {"placesPerKey": shedder.FEWEST})
    monkeypatch.setattr(shedder, "CALM", 1)
    monkeypatch.setattr(shedder, "LATE", 5.0)
    assert await seen(8) == (True, {})
    said = [line for line in capfd.readouterr().err.splitlines() if "event loop" in line]
    assert [json.loads(line)["event"] for line in said] == [
        "the event loop comes late: each key has fewer calls at once",
        "the event loop comes in time: each key has all of its calls again",
    ]


async def test_a_hundred_short_calls_of_one_key_at_once_all_have_their_turn(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await partner_of(World())
    pipeline = partner.gateway.gateway.public.front.pipeline
    pipeline.shedder._patience = 30.0  # a busy machine may need more than the usual second
    hit, most = pipeline.limiter.hit, 0

    async def slow(key_id: str, limit: int) -> Quota:
        nonlocal most
        most = max(most, len(pipeline.shedder.inside))
        await asyncio.sleep(0.01)
        return await hit(key_id, limit)

    monkeypatch.setattr(pipeline.limiter, "hit", slow)
    monkeypatch.setattr(pipeline, "admit", lambda call: None)
    answers = await asyncio.gather(*(partner.get("/stock") for _ in range(100)))
    assert {each.status for each in answers} == {200}
    assert most == 20
    assert pipeline.shedder.inside == set()


async def test_bookings_wait_for_each_other_where_their_bodies_are_many(
    partner_of: Begin,
) -> None:
    partner = await partner_of(World(), in_flight_bytes=65_536)
    gate = partner.gateway.gateway.public.front.pipeline.shedder
    gate._patience = 0.02
    port = partner.gateway.port
    lines = ("Content-Type: application/json", "Content-Length: 40000")
    sent = head(partner, "POST", "/api/v1/appointments", *lines)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    await until(lambda: bool(gate.inside))
    heard = await say(port, sent, until=b"}")
    [(status, headers, _)] = heard.answers
    assert (status, headers["retry-after"]) == (503, "1")
    assert "x-ratelimit-limit" not in headers
    assert (await partner.get("/stock")).status == 200
    writer.write(b" " * 40_000)
    assert (await reader.readline()).startswith(b"HTTP/1.1 400")
    writer.close()
    heard = await say(port, sent, b" " * 40_000, until=b"}")
    assert heard.statuses == [400]


async def test_after_a_pause_a_key_that_was_revoked_meanwhile_is_refused(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await partner_of(World())
    ring = partner.gateway.gateway.ring
    other = await partner.with_key()
    read_at, clock = ring._read_at, ring.clock
    with monkeypatch.context() as paused:  # the process stands still while the key is revoked
        await partner.gateway.gateway.keys.revoke(other._key_id, datetime.now(UTC))
        paused.setattr(ring, "clock", lambda: max(clock(), read_at + 2))
        assert (await other.get("/stock")).status == 401


async def test_while_the_keys_cannot_be_read_nobody_is_told_that_a_key_is_wrong(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await partner_of(World())
    ring, gateway = partner.gateway.gateway.ring, partner.gateway
    monkeypatch.setattr(ring, "refresh", lambda: asyncio.sleep(0))  # nothing is read any more
    monkeypatch.setattr(ring, "clock", lambda: ring._read_at + UNKNOWN_FOR + 1)
    for path in ("/clients", "/nowhere", "/openapi.json"):
        answer = await partner.as_key("vk_nonsense").get(path)
        assert (answer.status, answer.data) == (503, {"message": Unavailable.message})
    assert (await partner.get("/clients")).status == 200
    async with partner._session.get(
        f"http://127.0.0.1:{gateway.gateway.system.port}/readyz"
    ) as ready:
        assert ready.status == 503
        reason = (await ready.json())["parts"]["keys"]["reason"]
        assert reason == "the keys were last read 6 seconds ago"
    monkeypatch.setattr(ring, "clock", lambda: ring._read_at + KNOWN_FOR + 1)
    assert (await partner.get("/clients")).status == 503


async def test_nothing_is_asked_of_the_practice_system_before_the_request_is_sound(
    partner_of: Begin,
) -> None:
    world = World()
    partner = await partner_of(world)
    for path in ("/clients/nonsense", "/clients?limit=0", "/clients?cursor=x", "/stock?nme=1"):
        assert (await partner.get(path)).status == 400
    assert world.asked == []


async def test_a_key_revoked_while_the_body_arrives_books_nothing(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    booked = []
    partner = await partner_of(World(create=lambda draft: booked.append(draft) or {}))
    gateway = partner.gateway
    revoked = []
    find = gateway.gateway.ring.find

    def found_once(digest: bytes, now: object, **more: object) -> object:
        revoked.append(digest)
        return find(digest, now, **more) if len(revoked) == 1 else None

    monkeypatch.setattr(gateway.gateway.ring, "find", found_once)
    draft = {"clientId": SOME_ID, "patientId": SOME_ID, "vetId": SOME_ID}
    answer = await partner.post("/appointments", draft | {"scheduledAt": "2099-01-01T09:00:00Z"})
    assert answer.data == {"message": KeyInvalid.message}
    assert booked == []


async def test_documents_need_no_key_but_no_wrong_one_and_count_for_nothing(
    partner: Partner,
) -> None:
    limited = await partner.with_key(permissions=["STOCK_READ"], level="BASIC", limit=1)
    for path in ("/openapi.json", "/docs/reference", "/docs", "/docs/docs.js"):
        whole = await partner.anonymous().get(path)
        assert whole.status == 200
        assert (await partner.as_key("vk_nonsense").get(path)).status == 401
        assert (await partner.anonymous().send("POST", path)).status == 405
        seen = await limited.get(path)
        assert seen.status == 200
        assert "X-RateLimit-Limit" not in seen.headers
        assert "/clients" not in seen.text
        if path in {"/openapi.json", "/docs/reference"}:
            assert "purchasePrice" in whole.text
            assert "purchasePrice" not in seen.text
    assert left(await limited.get("/stock")) == 0
    for path in (f"/openapi.json/{uuid4()}", "/docs/", "/docs/docs.py", "/docs/vendor"):
        assert (await partner.anonymous().get(path)).status == 401
