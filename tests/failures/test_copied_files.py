"""A practice in files that goes away and comes back: what partners and the operator are told."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from gateway.settings import BackendSettings
from tests.adapters.copies.desktop import MAPPING, as_dbf
from tests.conftest import RunningGateway, Start
from tests.partner import Partner
from tests.readiness import forget_answers
from tests.waiting import until


async def ready(gateway: RunningGateway, session: aiohttp.ClientSession) -> dict[str, Any]:
    """What /readyz says now of the practice system."""
    forget_answers(gateway.gateway)
    async with session.get(f"{gateway.operations}/readyz") as answer:
        part: dict[str, Any] = (await answer.json())["parts"]["backend"]
    return part


def take_away(folder: Path) -> None:
    folder.rename(folder.with_name("away"))


def put_back(folder: Path) -> None:
    folder.with_name("away").rename(folder)


async def test_the_former_copy_serves_until_it_is_too_old_and_each_is_told(
    tmp_path: Path,
    start_gateway: Start,
    session: aiohttp.ClientSession,
    capfd: pytest.CaptureFixture[str],
) -> None:
    url, mapping = as_dbf(tmp_path / "praxis"), tmp_path / "clinic.yaml"
    mapping.write_text(MAPPING)
    backend = BackendSettings(url=SecretStr(url), mapping=mapping, breaker_pause=0.1)
    # shorter than the settings allow, as a test does not wait for hours
    backend = backend.model_copy(update={"refresh": 0.1, "stale_after": 8.0})
    gateway = await start_gateway(backend=backend)
    partner = await Partner(gateway, session, None).with_key()
    said = ""

    async def heard(event: str) -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return event in said

    async def answers(status: int) -> bool:
        return (await partner.get("/clients")).status == status

    assert await answers(200)
    assert (await ready(gateway, session))["ready"]
    take_away(tmp_path / "praxis")
    await until(lambda: heard("the practice's files cannot be copied anew"))
    assert "praxis: No such file or directory" in said
    assert await answers(200)
    await until(lambda: answers(503))
    part = await ready(gateway, session)
    assert not part["ready"]
    async with session.get(f"{gateway.operations}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    [age] = [line for line in lines if line.startswith("gateway_backend_copy_age_seconds ")]
    assert float(age.split()[1]) > 8
    put_back(tmp_path / "praxis")
    await until(lambda: answers(200))
    await until(lambda: heard("the practice's files can be copied again"))
    assert (await ready(gateway, session))["ready"]


async def test_what_is_read_by_a_copy_takes_no_bookings(
    tmp_path: Path, start_gateway: Start, session: aiohttp.ClientSession
) -> None:
    url, mapping = as_dbf(tmp_path / "praxis"), tmp_path / "clinic.yaml"
    mapping.write_text(MAPPING)
    backend = BackendSettings(url=SecretStr(url), mapping=mapping)
    gateway = await start_gateway(backend=backend)
    partner = await Partner(gateway, session, None).with_key()
    booked = await partner.post("/appointments", {})
    assert (booked.status, booked.data) == (404, {"message": "Resource not found"})
