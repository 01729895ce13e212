"""Dates and times at every end of the calendar, wherever one is taken: 400, or a plain answer.

FUZZ_CASES says how many are generated beside the ends that are always tried.
"""

import json
import os
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters.base import Query
from gateway.settings import BackendSettings, BookingSettings
from tests.adapters.rest.cloud import MAPPING
from tests.chaos.grounds import GROUNDS
from tests.conftest import RunningGateway, Start
from tests.partner import Answer, Partner

CASES = int(os.environ.get("FUZZ_CASES", "300"))
DAYS = (
    *("0000-00-00", "0000-01-01", "0001-01-01", "0001-01-02", "0099-12-31", "1582-10-10"),
    *("1899-12-31", "1900-01-01", "1900-02-29", "1969-12-31", "1970-01-01", "2000-02-30"),
    *("2026-03-29", "2027-10-31", "2038-01-19", "2099-12-31", "9998-12-31", "9999-12-30"),
    *(
        "9999-12-31",
        "9999-13-01",
        "10000-01-01",
        "-0001-01-01",
        "\u0662\u0660\u0662\u0666-\u0660\u0661-\u0660\u0661",
    ),
)
CLOCKS = ("00:00:00", "00:30:00", "02:30:00", "23:00:00", "23:59:59", "23:59:60", "24:00:00")
OFFSETS = ("Z", "+00:00", "-00:00", "+14:00", "-12:00", "+23:59", "-23:59", "+24:00", "+99:99")
FRACTIONS = ("", ".0", ".999999", ".999999999")
# As far as a clinic may open its diary, and as a gateway comes.
HORIZONS = (365, 36_500)


def moments() -> Iterator[str]:
    """Every end with every offset, and then some at random."""
    yield from (f"{day}T{clock}{offset}" for day in DAYS for clock in CLOCKS for offset in OFFSETS)
    yield from (f"{day}T23:59:59.999999{offset}" for day in DAYS for offset in OFFSETS)
    chance = random.Random(os.environ.get("FUZZ_SEED", "1"))
    for _ in range(CASES):
        day, clock = chance.choice([*DAYS, _any_day(chance)]), chance.choice(CLOCKS)
        yield f"{day}T{clock}{chance.choice(FRACTIONS)}{chance.choice(OFFSETS)}"


def _any_day(chance: random.Random) -> str:
    return date.fromordinal(chance.randint(1, date.max.toordinal())).isoformat()


def few(chance: random.Random) -> list[str]:
    """Of all moments those that a quick run takes: the outermost, and some of the rest."""
    found = [*moments()]
    outermost = [each for each in found if each[:4] in ("0001", "9999")]
    return [*outermost, *chance.sample(found, min(CASES, len(found)))]


@pytest.mark.fuzz
@pytest.mark.parametrize(
    ("kind", "horizon"),
    [
        ("sqlite", HORIZONS[1]),
        # the same on the other kind, and with the other horizon
        pytest.param("json", HORIZONS[0], marks=pytest.mark.long),
        pytest.param("sqlite", HORIZONS[0], marks=pytest.mark.long),
        pytest.param("json", HORIZONS[1], marks=pytest.mark.long),
    ],
)
async def test_no_time_is_a_fault(
    start_gateway: Start,
    tmp_path: Path,
    session: aiohttp.ClientSession,
    capfd: pytest.CaptureFixture[str],
    kind: str,
    horizon: int,
) -> None:
    booking = BookingSettings(horizon=horizon)
    if kind == "sqlite":
        gateway = await start_gateway(booking=booking)
        await every_time(await Partner(gateway, session, None).with_key(), gateway)
    else:
        with GROUNDS[kind](tmp_path) as ground:
            backend = BackendSettings(mapping=MAPPING, **ground.backend)
            gateway = await start_gateway(booking=booking, backend=backend)
            await every_time(await Partner(gateway, session, None).with_key(), gateway)
    said = capfd.readouterr().err
    for line in said.splitlines():
        assert json.loads(line)["event"] != "call failed", line


async def every_time(partner: Partner, gateway: RunningGateway) -> None:
    """Each moment in each place that takes one."""
    names = {"clientId": "clients", "patientId": "patients", "vetId": "vets"}
    ids = {name: await _first(gateway, resource) for name, resource in names.items()}
    document = (await partner.get("/openapi.json")).data
    since = [path for path, each in document["paths"].items() if _takes_since(each)]
    for moment in few(random.Random(7)):
        body = {**ids, "scheduledAt": moment}
        check(moment, await partner.post("/appointments", body), (201, 400, 404, 409))
        for path in since:
            check(moment, await partner.get(path, updatedSince=moment, limit="1"), (200, 400))
    for day in {each.partition("T")[0] for each in moments()}:
        query = {"vetId": ids["vetId"], "date": day}
        check(day, await partner.get("/appointments/available-slots", **query), (200, 400))


async def _first(gateway: RunningGateway, resource: str) -> str:
    query = Query(resource=resource, now=datetime.now(UTC), limit=1)
    return str((await gateway.gateway.adapter.read_many(query)).records[0]["id"])


def _takes_since(methods: dict[str, Any]) -> bool:
    parameters = methods.get("get", {}).get("parameters", ())
    return any(each["name"] == "updatedSince" for each in parameters)


def check(time: str, answer: Answer, allowed: tuple[int, ...]) -> None:
    """Nothing beside what a call may be answered; no booking outside the horizon."""
    assert answer.status in allowed, f"{time}: {answer.status} {answer.text}"
    if answer.status == 201:
        starts = datetime.fromisoformat(answer.data["scheduledAt"])
        assert starts < datetime.now(UTC) + timedelta(days=HORIZONS[-1] + 1)
