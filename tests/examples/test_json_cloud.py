"""The cloud example: its backend for real, the gateway in front of it, and all operations."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import aiohttp
import pytest

from examples.json_cloud.backend import PASSWORD, USER, Cloud
from examples.json_cloud.records import made
from gateway.contract.operations import OPERATIONS
from gateway.settings import BackendSettings, load_settings
from tests.adapters.rest.cloud import FOLDER, MAPPING, listening
from tests.conftest import Start
from tests.examples.clinic import paths_without_ids
from tests.partner import Partner

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cloud() -> Cloud:
    return Cloud(made(datetime.now(ZoneInfo("Europe/Paris")).date()))


@pytest.fixture
async def partner(
    cloud: Cloud, start_gateway: Start, session: aiohttp.ClientSession
) -> AsyncIterator[Partner]:
    async with listening(cloud) as url:
        backend = {"adapter": "rest", "url": url, "mapping": MAPPING}
        backend |= {"user": USER, "password": PASSWORD}
        gateway = await start_gateway(backend=BackendSettings.model_validate(backend))
        yield await Partner(gateway, session, None).with_key()
        await gateway.gateway.aclose()


async def _vet_and_time(partner: Partner, kind: str | None = None) -> tuple[str, str]:
    """A vet who has a free time in the coming days, and that time."""
    from adapters.base import Query

    now = datetime.now(UTC)
    vets = await partner.gateway.gateway.adapter.read_many(Query(resource="vets", now=now))
    for ahead in range(1, 8):
        day = (datetime.now(ZoneInfo("Europe/Paris")) + timedelta(days=ahead)).date().isoformat()
        query = {"vetId": vets.records[0]["id"], "date": day}
        more = {} if kind is None else {"appointmentTypeId": kind}
        free = await partner.get("/appointments/available-slots", **query, **more)
        assert free.status == 200
        if free.data:
            return vets.records[0]["id"], free.data[0]["startTime"]
    raise LookupError("no free time in a week")


async def test_it_starts_where_the_first_records_lack_a_member_and_says_so(
    cloud: Cloud, start_gateway: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(MAPPING.read_text().replace("location: shelf", "location: shelves"))
    list(cloud.records.stock.values())[-1]["shelves"] = "B2"
    async with listening(cloud) as url:
        backend = {"adapter": "rest", "url": url, "mapping": mapping}
        backend |= {"user": USER, "password": PASSWORD}
        running = await start_gateway(backend=BackendSettings.model_validate(backend))
        [warned] = [
            json.loads(line) for line in capsys.readouterr().err.splitlines() if "shelves" in line
        ]
        assert warned["level"] == "warning"
        assert warned["said"].startswith("no record of the backend has shelves")
        line = mapping.read_text()[: mapping.read_text().index("location: ")].count("\n") + 1
        assert warned["place"].startswith(f"{mapping}:{line}:")
        await running.gateway.aclose()


async def test_all_operations_answer(partner: Partner) -> None:
    done = set()

    async def get(operation: str, path: str, **query: str) -> object:
        answer = await partner.get(path, **query)
        assert answer.status == 200, (operation, answer.text)
        done.add(operation)
        return answer.data

    clients = await get("list_clients", "/clients", limit="200")
    patients = await get("list_patients", "/patients")
    kinds = await get("list_appointment_types", "/appointments/types")
    stock = await get("list_stock", "/stock")
    low = await get("list_low_stock", "/stock/low")
    assert len(clients) == 200
    assert {each["id"] for each in low} == {each["id"] for each in stock if each["isLow"]} != set()
    await get("get_client", f"/clients/{clients[0]['id']}")
    await get("get_patient", f"/patients/{patients[0]['id']}")
    await get("get_stock_item", f"/stock/{stock[0]['id']}")
    bills = await get("list_client_invoices", f"/invoices/client/{clients[3]['id']}")
    assert {each["clientId"] for each in bills} == {clients[3]["id"]}
    await get("get_invoice", f"/invoices/{bills[0]['id']}")
    vet, start = await _vet_and_time(partner, kinds[2]["id"])
    done.add("list_available_slots")
    made = await partner.post(
        "/appointments",
        {
            "clientId": patients[0]["clientId"],
            "patientId": patients[0]["id"],
            "vetId": vet,
            "scheduledAt": start,
            "appointmentTypeId": kinds[2]["id"],
            "reason": "Boite à gauche",
            "isUrgent": True,
        },
    )
    assert made.status == 201, made.text
    done.add("create_appointment")
    length = datetime.fromisoformat(made.data["endTime"]) - datetime.fromisoformat(start)
    assert length == timedelta(minutes=kinds[2]["durationMinutes"])
    assert await get("get_appointment", f"/appointments/{made.data['id']}") == made.data
    from adapters.base import Query

    reports = Query(resource="consultations", now=datetime.now(UTC), limit=1)
    report = (await partner.gateway.gateway.adapter.read_many(reports)).records[0]["id"]
    await get("get_consultation", f"/consultations/{report}")
    for operation, path in paths_without_ids(done).items():
        await get(operation, path)
    assert done == {each.id for each in OPERATIONS}


async def test_a_time_that_was_booked_is_a_conflict_and_a_repeated_call_is_not(
    partner: Partner, cloud: Cloud
) -> None:
    patient = (await partner.get("/patients")).data[0]
    vet, start = await _vet_and_time(partner)
    draft = {
        "clientId": patient["clientId"],
        "patientId": patient["id"],
        "vetId": vet,
        "scheduledAt": start,
    }
    before = len(cloud.records.visits)
    first = await partner.post("/appointments", draft, Idempotency_Key="one")
    again = await partner.post("/appointments", draft, Idempotency_Key="one")
    other = await partner.post("/appointments", draft, Idempotency_Key="two")
    assert [first.status, again.status, other.status] == [201, 201, 409]
    assert again.data == first.data
    assert len(cloud.records.visits) == before + 1


async def test_a_booking_whose_answer_is_lost_is_found_and_told(
    partner: Partner, cloud: Cloud
) -> None:
    patient = (await partner.get("/patients")).data[0]
    vet, start = await _vet_and_time(partner)
    draft = {
        "clientId": patient["clientId"],
        "patientId": patient["id"],
        "vetId": vet,
        "scheduledAt": start,
    }

    def lose(visit: object) -> None:
        raise ConnectionResetError

    cloud.after_booking = lose
    before = len(cloud.records.visits)
    first = await partner.post("/appointments", draft, Idempotency_Key="one")
    assert (first.status, len(cloud.records.visits)) == (201, before + 1)
    again = await partner.post("/appointments", draft, Idempotency_Key="one")
    assert (again.status, len(cloud.records.visits)) == (201, before + 1)
    assert again.data == first.data


async def test_fact_20_pages_hold_every_client_once(partner: Partner, cloud: Cloud) -> None:
    ids: list[str] = []
    answer = await partner.get("/clients", limit="70")
    while True:
        ids += [each["id"] for each in answer.data]
        found = re.search(r"cursor=([^&>]+)", answer.headers.get("Link", ""))
        if found is None:
            break
        answer = await partner.get("/clients", limit="70", cursor=found[1])
    shown = [each for each in cloud.records.owners.values() if not each["archived"]]
    assert len(ids) == len(set(ids)) == len(shown)


async def test_fact_20_what_no_field_names_never_gets_out(partner: Partner, cloud: Cloud) -> None:
    passports = [each["passport"] for each in cloud.records.owners.values()]
    for path in ("/clients", "/patients"):
        text = (await partner.get(path, limit="200")).text
        assert not any(each in text for each in passports)
        assert "passport" not in text
        assert "tracking" not in text


async def test_a_filter_that_the_cloud_lacks_is_no_parameter(partner: Partner) -> None:
    schema = (await partner.get("/openapi.json")).data
    named = {each["name"] for each in schema["paths"]["/stock"]["get"]["parameters"]}
    assert {"category", "search"} <= named
    assert (await partner.get("/clients", search="gar")).status == 200


def test_the_configuration_is_the_one_that_the_example_starts_with() -> None:
    backend = load_settings(FOLDER / "gateway.yaml", {}).backend
    assert backend.password is not None
    assert (backend.adapter, backend.password.get_secret_value()) == ("rest", PASSWORD)
    assert backend.mapping == MAPPING


def test_one_command_starts_the_example(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.json_cloud", "--port", "0", "--operations-port", "0"]
    command += ["--cloud-port", "0", "--state", str(tmp_path), "--json"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = next(each for each in process.stdout if '"base"' in each or "cannot" in each)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert '"keys"' in line
    assert '"SLOT"' in line
