"""A booking in an hour that the clinic's clock shows twice, from the request to a later start."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import aiohttp
import pytest

from adapters.base import Query
from gateway.app import build
from gateway.contract.fields import write_instant
from tests.adapters.clinic import run
from tests.conftest import Start
from tests.partner import Partner

DAY, MINUTE, PARIS = timedelta(days=1), timedelta(minutes=1), ZoneInfo("Europe/Paris")
_TODAY = datetime.combine(datetime.now(UTC), time(), UTC)
# The next day, but not too near, on which the clinic's clock goes back: at one o'clock in UTC.
SUNDAY = next(
    day
    for day in (_TODAY + number * DAY for number in range(2, 400))
    if day.astimezone(PARIS).hour > (day + DAY).astimezone(PARIS).hour
)
THEN = SUNDAY - DAY
FIRST, SECOND = (write_instant(SUNDAY + each * MINUTE) for each in (30, 90))


def then() -> datetime:
    return THEN


@pytest.mark.parametrize("moment", [FIRST, SECOND])
async def test_the_booked_hour_is_told_now_and_by_every_later_gateway(
    start_gateway: Start, session: aiohttp.ClientSession, moment: str
) -> None:
    gateway = await start_gateway(now=then)
    database = gateway.folder / "clinic.db"
    key = run(database, "SELECT MIN(ID_VETO) FROM HORAIRES")[0][0]
    run(database, "DELETE FROM HORAIRES")
    run(database, "INSERT INTO HORAIRES VALUES (NULL, ?, 6, '22:00', '06:00')", key)
    partner = await Partner(gateway, session, None).with_key()
    vets = await gateway.gateway.adapter.read_many(Query(resource="vets", now=THEN))
    free = {}
    for vet in vets.records:
        asked = {"vetId": vet["id"], "date": SUNDAY.date().isoformat()}
        answer = await partner.get("/appointments/available-slots", **asked)
        free[vet["id"]] = [each["startTime"] for each in answer.data]
    [vet_id] = [vet for vet, starts in free.items() if starts]
    assert {FIRST, SECOND} < set(free[vet_id])
    client = (await partner.ids())["clients"]
    [patient, *_] = (await partner.get("/patients", clientId=client)).data
    body = {"clientId": client, "patientId": patient["id"], "vetId": vet_id, "scheduledAt": moment}
    booked = await partner.post("/appointments", body, **{"Idempotency-Key": "night"})
    assert (booked.status, booked.data["scheduledAt"]) == (201, moment)
    again = await partner.post("/appointments", body, **{"Idempotency-Key": "night"})
    assert again.data == booked.data
    path = f"/appointments/{booked.data['id']}"
    assert (await partner.get(path)).data == booked.data
    other = dict(body, scheduledAt=SECOND if moment == FIRST else FIRST)
    twin = await partner.post("/appointments", other)
    assert (twin.status, twin.data["scheduledAt"]) == (201, other["scheduledAt"])
    await gateway.gateway.aclose()
    later = await build(gateway.gateway.settings, now=then)
    query = Query(resource="appointments", id=booked.data["id"], now=THEN)
    assert (await later.adapter.read_one(query))["scheduledAt"] == moment
    await later.aclose()
