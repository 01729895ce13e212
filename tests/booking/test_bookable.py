"""The booking window, as partners meet it: free times left out, bookings refused."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from adapters.base import Draft, Page, Record
from gateway.contract.fields import write_instant
from gateway.settings import BookingSettings
from tests.conftest import Begin
from tests.pipeline.test_answers import DRAFT
from tests.world import SOME_ID, World

NOW = datetime(2031, 3, 4, 10, tzinfo=UTC)
BOOKED = {"id": SOME_ID}


def times(*starts: datetime) -> Page:
    minute = timedelta(minutes=30)
    return Page(
        records=[
            {"startTime": write_instant(each), "endTime": write_instant(each + minute)}
            for each in starts
        ]
    )


async def test_of_a_day_beyond_the_horizon_the_practice_is_not_asked(partner_of: Begin) -> None:
    today = datetime.now(ZoneInfo("UTC")).date()
    world = World(many=lambda query: times(datetime.now(UTC) + timedelta(days=9, hours=23)))
    partner = await partner_of(world, booking=BookingSettings(horizon=10))

    async def slots(day: date) -> list[Record]:
        answer = await partner.get(
            "/appointments/available-slots", vetId=SOME_ID, date=day.isoformat()
        )
        assert answer.status == 200
        found: list[Record] = answer.data
        return found

    assert len(await slots(today + timedelta(days=10))) == 1
    asked = len(world.asked)
    assert await slots(today + timedelta(days=12)) == []
    assert await slots(date.max) == []
    assert len(world.asked) == asked


async def test_times_within_the_lead_time_are_left_out(partner_of: Begin) -> None:
    now = datetime.now(UTC)
    near, far = now + timedelta(minutes=50), now + timedelta(minutes=70)
    world = World(many=lambda query: times(near, far))
    partner = await partner_of(world, booking=BookingSettings(lead_time=60))
    query = {"vetId": SOME_ID, "date": now.date().isoformat()}
    free = (await partner.get("/appointments/available-slots", **query)).data
    assert [each["startTime"] for each in free] == [write_instant(far)]
    for start, status in ((near, 400), (far, 201)):
        body = DRAFT | {"scheduledAt": write_instant(start)}
        assert (await partner.post("/appointments", body)).status == status


async def test_a_booking_outside_the_window_is_told_the_bound(partner_of: Begin) -> None:
    asked: list[Draft] = []

    def create(draft: Draft) -> Record:
        asked.append(draft)
        return BOOKED

    partner = await partner_of(World(create=create), booking=BookingSettings(horizon=10))
    body = DRAFT | {"scheduledAt": write_instant(datetime.now(UTC) + timedelta(days=12))}
    answer = await partner.post("/appointments", body, Idempotency_Key="k")
    problem = {"field": "scheduledAt", "problem": "must be at most 10 days ahead"}
    assert (answer.status, answer.data["errors"]) == (400, [problem])
    assert asked == []
    # it took no key
    body |= {"scheduledAt": write_instant(datetime.now(UTC) + timedelta(days=5))}
    assert (await partner.post("/appointments", body, Idempotency_Key="k")).status == 201


async def test_a_replay_comes_before_the_look_at_the_clock(partner_of: Begin) -> None:
    now = NOW
    partner = await partner_of(
        World(create=lambda draft: BOOKED), now=lambda: now, booking=BookingSettings(horizon=10)
    )
    body = DRAFT | {"scheduledAt": write_instant(NOW + timedelta(hours=2))}
    assert (await partner.post("/appointments", body, Idempotency_Key="k")).status == 201
    now += timedelta(hours=3)
    again = await partner.post("/appointments", body, Idempotency_Key="k")
    assert (again.status, again.headers["Idempotent-Replayed"]) == (201, "true")
    assert (await partner.post("/appointments", body, Idempotency_Key="l")).status == 400


@pytest.mark.parametrize("path", ["/openapi.json", "/docs/reference"])
async def test_the_documents_tell_it(partner_of: Begin, path: str) -> None:
    partner = await partner_of(World(), booking=BookingSettings(horizon=17, lead_time=45))
    text = (await partner.get(path)).text
    assert "At least 45 minutes from now, at most 17 days ahead." in text
