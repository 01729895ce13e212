"""What the examples' own desks write is learnt, and the learnt booking rehearses green."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from adapters.base import AdapterOptions
from adapters.doctor.learning import booking_of
from adapters.doctor.sql import examine
from adapters.examination import Examination, Finding, Verdict
from adapters.sql.adapter import SqlAdapter
from examples.mariadb_eav.__main__ import EXAMPLE
from gateway.backend import shapes
from gateway.cli.command import now
from gateway.settings import load_settings
from tests.adapters.clinic import SECRET
from tests.examples.clinic import ROOT, Clinic, made

pytestmark = pytest.mark.long
EXAMPLE_MAPPING = (ROOT / "examples" / "mariadb_eav" / "mapping.yaml").read_text()
ROLES = ("PET", "VET", "TYPE")


async def book(clinic: Clinic, number: int, pet: int, vet: int, kind: int) -> str:
    """Writes an appointment as the product's desk does."""
    await clinic.rows(f"UPDATE numbers SET last = {number} WHERE `key` = 'APPT'")
    minute = number % 40 + 10
    begins, ends = f"2027-01-0{number % 5 + 4} 09:{minute}:00", f"09:{minute + 15}:00"
    await clinic.rows(
        "INSERT INTO acts (type, number, day, time, length, urgent, active, title, `date-created`)"
        f" VALUES ('appointment', 'A-{number:06}', '{begins[:10]}', '{begins[11:]}', '00:15:00',"
        f" {number % 2}, 1, 'limps {number}', NOW() + INTERVAL {number % 100} MINUTE)"
    )
    [row] = await clinic.rows("SELECT MAX(act_id) AS act FROM acts")
    act = row["act"]
    for role, party in zip(ROLES, (pet, vet, kind), strict=True):
        await clinic.rows(
            "INSERT INTO participations (act_id, role, party_id, `act-start`, `act-end`, active)"
            f" VALUES ({act}, '{role}', {party}, '{begins}', '{begins[:10]} {ends}', 1)"
        )
    await clinic.rows(
        "INSERT INTO calendar (act_id, party_id, `left`, `right`, day)"
        f" VALUES ({act}, {vet}, '{begins[11:]}', '{ends}', '{begins[:10]}')"
    )
    return str(act)


def opened(clinic: Clinic, mapping: Path) -> SqlAdapter:
    options = AdapterOptions(
        url=clinic.url,
        mapping=mapping,
        secret=SECRET,
        shapes=shapes(),
        report=lambda trouble: None,
    )
    return SqlAdapter(options)


async def parties(clinic: Clinic, role: str) -> list[int]:
    found = await clinic.rows(
        f"SELECT DISTINCT party_id AS party FROM participations WHERE role = '{role}' LIMIT 3"
    )
    return [row["party"] for row in found]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    with made(EXAMPLE, "mysql", tmp_path_factory.mktemp("eav") / "state") as clinic:
        yield clinic


async def test_a_booking_of_many_rows_is_learnt(clinic: Clinic, tmp_path: Path) -> None:
    file = Path(str(load_settings(clinic.folder / "gateway.yaml", {}).backend.mapping))
    several = [await parties(clinic, role) for role in ROLES]
    [row] = await clinic.rows("SELECT last FROM numbers WHERE `key` = 'APPT'")
    chosen = zip(*several, strict=True)
    keys = [await book(clinic, row["last"] + at + 1, *of) for at, of in enumerate(chosen)]
    adapter = opened(clinic, file)
    booking, _ = await booking_of(adapter, keys, 3)
    await adapter.aclose()
    steps = yaml.safe_load(booking)["booking"]["steps"]
    written = {step["insert"]: step for step in steps if "insert" in step}
    assert [group["role"] for group in written["participations"]["each"]] == [*ROLES]
    assert "calendar" in written
    [counter] = [step for step in steps if "counter" in step]
    assert counter["counter"] == "numbers"
    assert "limps" not in booking
    text = EXAMPLE_MAPPING[: EXAMPLE_MAPPING.index("\nbooking:")]
    learnt = tmp_path / "learnt.yaml"
    learnt.write_text(f"{text}\n{with_condition(booking)}")
    found = await rehearsed(opened(clinic, learnt))
    assert [each for each in found if each.verdict is Verdict.FAILED] == []
    assert [each for each in found if "rehearsed and undone" in each.text]


def with_condition(booking: str) -> str:
    """What no example tells: a row of the type only where one is asked for."""
    data = yaml.safe_load(booking)
    for step in data["booking"]["steps"]:
        for group in step.get("each", ()):
            if group["role"] == "TYPE":
                group["if"] = "appointmentTypeId"
    acts = next(step for step in data["booking"]["steps"] if step.get("insert") == "acts")
    acts["values"]["title"] = {"draft": "reason", "encoding": "cp1252"}
    acts["values"]["length"] = {
        "sql": "TIME_FORMAT(SEC_TO_TIME(:minutes * 60), '%H:%i:%s')",
    }
    return str(yaml.safe_dump(data, sort_keys=False))


async def rehearsed(adapter: SqlAdapter) -> list[Finding]:
    try:
        looks = examine(adapter, Examination(now=now(), rows=100, booking=True))
        return [each async for each in looks if each.check == "booking"]
    finally:
        await adapter.aclose()
