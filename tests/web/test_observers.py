"""What is left of a call when it has ended, and what must not be."""

import asyncio
import io
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from adapters.base import BackendUnavailable, OutcomeUnknown, Query, Record, SlotTaken
from gateway.contract.errors import (
    BackendTooSlow,
    BookingUnknown,
    BookingUnknownWithoutKey,
    InternalError,
    NotFound,
)
from gateway.contract.resources import RESOURCES
from gateway.lifecycle import Faults
from gateway.observe.event_log import EventLog
from gateway.web.observers import outcome
from tests.conftest import Begin
from tests.heard import Heard
from tests.partner import Partner
from tests.world import SOME_ID, World, record_of


async def flush(partner: Partner) -> None:
    await partner.gateway.gateway.public.runner.server.request_handler.observers.flush()


async def lines_of(partner: Partner) -> list[dict[str, Any]]:
    """The access log."""
    await flush(partner)
    return [json.loads(line) for line in partner.gateway.lines("access.jsonl")]


async def entries_of(partner: Partner) -> list[dict[str, Any]]:
    """The audit."""
    await flush(partner)
    entries: list[dict[str, Any]] = partner.gateway.entries()
    return entries


async def test_each_call_leaves_one_access_and_one_audit_line(partner_of: Begin) -> None:
    partner = await partner_of(World())
    asked = {"X-Request-Id": "partner-call-1"}
    answer = await partner.send("GET", f"/clients/{SOME_ID}", headers=asked)
    assert answer.headers["X-Request-Id"] == "partner-call-1"
    await partner.anonymous().get("/nowhere?name=Renaud")
    first, second = await lines_of(partner)
    assert first.keys() == {
        "time", "requestId", "keyId", "operation", "method", "status", "ms", "backendMs", "waitedMs"
    }  # fmt: skip
    assert (first["operation"], first["method"], first["status"]) == ("get_client", "GET", 200)
    assert (first["requestId"], first["keyId"]) == ("partner-call-1", partner._key_id)
    assert (second["operation"], second["keyId"], second["status"]) == ("", None, 401)
    shown, refused = await entries_of(partner)
    assert shown["recordIds"] == [SOME_ID]
    assert (shown["level"], shown["outcome"], shown["reason"]) == ("FULL", "answered", None)
    assert shown["policy"] == partner.gateway.gateway.keeper.policy().hash[:12]
    assert (refused["outcome"], refused["reason"]) == ("refused", "KeyMissing")


async def test_the_audit_tells_whose_fault_it_was_that_a_call_did_not_end_well(
    partner_of: Begin,
) -> None:
    def fails(error: Exception) -> Callable[[object], object]:
        def fail(_: object) -> object:
            raise error

        return fail

    draft = {"clientId": SOME_ID, "patientId": SOME_ID, "vetId": SOME_ID}
    draft["scheduledAt"] = "2099-01-01T09:00:00Z"
    for world, status, ended, reason in (
        (World(create=fails(OutcomeUnknown("cut off"))), 504, "unknown", "BookingUnknown"),
        (World(create=fails(BackendUnavailable("down"))), 503, "failed", "Unavailable"),
        (World(create=fails(SlotTaken("taken"))), 409, "refused", "TimeSlotConflict"),
    ):
        partner = await partner_of(world)
        answer = await partner.post("/appointments", draft)
        assert answer.status == status
        begun, line = await entries_of(partner)
        assert (begun["outcome"], begun["operation"]) == ("begun", "create_appointment")
        assert line["outcome"] == ended
        assert line["reason"].startswith(reason)


def test_what_is_no_request_is_said_once_a_minute_with_how_often() -> None:
    said, now = io.StringIO(), [0.0]
    events = EventLog(said, clock=lambda: now[0])
    for _ in range(500):
        events.report("not_a_request", kind="BadStatusLine")
    now[0] = 60.0
    events.report("not_a_request", kind="LineTooLong")
    first, second = map(json.loads, said.getvalue().splitlines())
    assert (first["event"], first["BadStatusLine"]) == ("not a request", 1)
    assert (second["BadStatusLine"], second["LineTooLong"]) == (499, 1)


def test_every_error_has_an_outcome() -> None:
    for kind, ended in (
        (BackendTooSlow, "failed"),
        (BookingUnknown, "unknown"),
        (BookingUnknownWithoutKey, "unknown"),
        (InternalError, "failed"),
        (NotFound, "refused"),
    ):
        assert outcome(kind()) == ended


async def test_a_booking_is_in_the_audit_when_its_partner_is_told(partner: Partner) -> None:
    made = await partner.post("/appointments", await partner.draft())
    written = partner.gateway.entries()
    assert written[-1]["operation"] == "create_appointment"
    assert written[-1]["recordIds"] == [made.data["id"]]


async def test_a_call_that_is_cut_off_is_in_the_audit_as_what_may_have_happened(
    partner_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await partner_of(World())
    front = partner.gateway.gateway.public.front
    inside = asyncio.Event()

    async def never(call: object) -> None:
        inside.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(front.pipeline, "run", never)
    for method, path, ended in (
        ("POST", "/appointments", "unknown"),
        ("GET", "/stock", "failed"),
    ):
        inside.clear()
        raw = make_mocked_request(method, f"/api/v1{path}")
        task = asyncio.create_task(front(raw))
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await entries_of(partner))[-1]["outcome"] == ended


async def test_a_call_that_runs_when_the_end_begins_is_the_last_on_its_connection(
    partner_of: Begin,
) -> None:
    world = World()
    partner = await partner_of(world)

    def leaves(query: Query) -> Record:
        partner.gateway.gateway.public.front.leaving = True
        return record_of(RESOURCES[0])

    world.one = leaves
    answer = await partner.get(f"/{RESOURCES[0].name}/{SOME_ID}")
    assert answer.status == 200
    assert answer.headers["Connection"] == "close"


def test_the_same_fault_is_said_once_a_second_and_counted() -> None:
    clock = [100.0]
    loop = SimpleNamespace(time=lambda: clock[0])
    heard = Heard()
    said = Faults(heard)
    for _ in range(50):
        said(loop, {"exception": OSError("too many open files")})  # type: ignore[arg-type]
    clock[0] += 1.0
    said(loop, {"message": "again"})  # type: ignore[arg-type]
    assert heard.details == [{"times": 1}, {"times": 50}]


async def test_only_a_well_formed_request_id_is_taken_over(partner: Partner) -> None:
    key = partner.secret
    odd = ("short", "a" * 65, "with blank", 'quote"quote', "é" * 10)
    for given in (*odd, key, f"mine-{key}", f"{key}.1"):
        answer = await partner.send("GET", "/nowhere", headers={"X-Request-Id": given})
        assert answer.headers["X-Request-Id"] != given
        assert len(answer.headers["X-Request-Id"]) == 32


async def test_every_answer_carries_the_common_headers(partner: Partner) -> None:
    for caller, path in (
        (partner, "/clients"),
        (partner, "/nowhere"),
        (partner, "/../x"),
        (partner.anonymous(), "/clients"),
        (partner.anonymous(), "/docs"),
    ):
        headers = (await caller.get(path)).headers
        assert headers["Cache-Control"] == "private, no-store"
        assert headers["Vary"] == "X-API-Key"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Server"] == "clinic-gateway"
        assert headers.getall("Date")  # type: ignore[attr-defined]
