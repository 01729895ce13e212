"""What few or unfit examples teach on the tour's practice, where all ids are alike."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.base import AdapterOptions
from adapters.doctor.learning import booking_of
from adapters.sql.adapter import SqlAdapter
from gateway.backend import shapes
from tests.adapters.clinic import SECRET

TOUR = Path(__file__).resolve().parents[3] / "docs" / "tour.sql"
MAPPING = """
version: 2
zone: Europe/Amsterdam
resources:
  appointments:
    from: visit v
    key: v.id
    fields:
      clientId: SELECT a.owner_id FROM animal a WHERE a.id = v.animal_id
      patientId: v.animal_id
      appointmentTypeId: v.type_id
      vetId: v.doctor_id
      status: {source: v.state, codes: {D: COMPLETED, P: SCHEDULED, C: CONFIRMED, X: CANCELLED}}
      scheduledAt: v.starts
      endTime: v.ends
      createdAt: v.entered
      reason: v.reason
  clients: {from: owner o, key: o.id, fields: {lastName: o.last_name}}
  patients: {from: animal a, key: a.id, fields: {clientId: a.owner_id, name: a.name}}
  appointmentTypes: {from: visit_type t, key: t.id, fields: {name: t.name}}
  vets: {from: doctor d, key: d.id, fields: {name: d.name}}
"""
CONSULTATIONS = (
    "  consultations: {from: treatment t, key: t.id, fields: {patientId: t.animal_id}}\n"
)
UNTOLD = "cannot be told from the desk's"
TOO_LATE = "none of them is still to come"


async def learnt(
    folder: Path, *keys: str, mapping: str = MAPPING, more: str = ""
) -> tuple[str, list[dict[str, Any]]]:
    """What is learnt, its lines of comment as one, and its steps."""
    with closing(sqlite3.connect(folder / "practice.db")) as database:
        database.executescript(TOUR.read_text("utf-8") + more)
    (folder / "clinic.yaml").write_text(mapping, "utf-8")
    options = AdapterOptions(
        url=f"sqlite:///{folder / 'practice.db'}",
        mapping=folder / "clinic.yaml",
        secret=SECRET,
        shapes=shapes(),
        report=lambda trouble: None,
    )
    adapter = SqlAdapter(options)
    try:
        text, _ = await booking_of(adapter, keys, 3)
    finally:
        await adapter.aclose()
    return " ".join(text.replace("#", "").split()), yaml.safe_load(text)["booking"]["steps"]


@pytest.mark.parametrize("keys", [("1",), ("1", "2")])
async def test_a_value_of_the_draft_is_not_taken_for_the_new_key(
    tmp_path: Path, keys: tuple[str, ...]
) -> None:
    _, [_, treatment] = await learnt(tmp_path, *keys)
    assert treatment["insert"] == "treatment"
    assert treatment["values"] | {"treated": ""} == {
        "animal_id": {"draft": "patientId"},
        "doctor_id": {"draft": "vetId"},
        "visit_id": {"made": "appointment"},
        "treated": "",
    }


async def test_a_column_that_is_named_after_a_table_holds_its_keys(tmp_path: Path) -> None:
    column = "ALTER TABLE treatment ADD COLUMN by_doctor INTEGER; UPDATE treatment SET by_doctor=1;"
    _, [_, treatment] = await learnt(tmp_path, "1", more=column)
    assert treatment["values"]["by_doctor"] == {"draft": "vetId"}


async def test_the_column_by_which_rows_were_found_has_the_new_key(tmp_path: Path) -> None:
    log = "CREATE TABLE log (id INTEGER PRIMARY KEY, record INTEGER, what TEXT);"
    log += "INSERT INTO log VALUES (1, 1, 'visit');"
    _, steps = await learnt(tmp_path, "1", more=log)
    assert steps[-1]["values"] == {"record": {"made": "appointment"}, "what": "visit"}


async def test_one_row_tells_no_condition(tmp_path: Path) -> None:
    text, [_, treatment] = await learnt(tmp_path, "1", "2")
    assert "if" not in treatment
    assert "TODO: only 1 of 2 examples have it: when?" in text


WHO = "ALTER TABLE treatment ADD COLUMN who INTEGER; UPDATE treatment SET who = 1;"


async def test_readings_that_one_example_cannot_tell_apart_are_listed(tmp_path: Path) -> None:
    text, [_, treatment] = await learnt(tmp_path, "1", more=WHO)
    assert treatment["values"]["who"] == 1
    readings = "patientId, clientId, vetId, appointmentTypeId, the key of appointment"
    assert f"TODO: one example cannot tell a constant from a value; so is {readings} who" in text


async def test_readings_that_all_examples_have_are_listed(tmp_path: Path) -> None:
    row = "INSERT INTO treatment VALUES (2, 2, 2, 2, '2026-01-13 10:05:00');"
    again = "UPDATE treatment SET who = visit_id; UPDATE visit SET type_id = 3 - type_id;"
    again += "UPDATE visit SET doctor_id = 3 - doctor_id;"
    text, [_, treatment] = await learnt(tmp_path, "1", "2", more=row + WHO + again)
    assert treatment["values"]["who"] == {"draft": "patientId"}
    assert "TODO: patientId in 2 of 2 examples; so is clientId and the key of appointment" in text


async def test_rows_that_the_mapping_serves_are_left_out_with_a_remark(tmp_path: Path) -> None:
    text, steps = await learnt(tmp_path, mapping=MAPPING + CONSULTATIONS)
    assert [step["insert"] for step in steps] == ["visit"]
    assert "treatment has rows about them and is left out: the mapping serves it as" in text


async def test_examples_of_which_none_is_to_come_are_named(tmp_path: Path) -> None:
    text, _ = await learnt(tmp_path)
    assert f"{TOO_LATE} (CANCELLED, COMPLETED): make three at the desk, then run this" in text


@pytest.mark.parametrize("code", ["P", "C"])
async def test_one_that_is_to_come_is_enough(tmp_path: Path, code: str) -> None:
    text, _ = await learnt(tmp_path, more=f"UPDATE visit SET state = '{code}' WHERE id = 1;")
    assert TOO_LATE not in text


OWN = "UPDATE visit SET reason = 'abcdefgh12345678' WHERE id = 2;"
MARKED = """
diary:
  step: 15
  duration: 30
  hours: [{days: [mon-fri], times: ["09:00-17:00"]}]
  busy: [{from: visit v, key: v.id, vet: v.doctor_id, start: v.starts, end: v.ends}]
booking:
  appointment: appointment
  reference: v.reason
  steps:
    - insert: visit
      key: id
      name: appointment
      values: {state: P, reason: {draft: reference}}
"""


async def test_the_gateways_own_bookings_are_told_by_their_reference(tmp_path: Path) -> None:
    text, _ = await learnt(tmp_path, mapping=MAPPING + MARKED, more=OWN)
    assert "Learnt from 1 appointment of the desk: 1." in text
    assert UNTOLD not in text


async def test_the_gateways_own_bookings_are_not_told_without_a_reference(tmp_path: Path) -> None:
    text, _ = await learnt(tmp_path, more=OWN)
    assert "Learnt from 2 appointments of the desk: 2, 1." in text
    assert UNTOLD in text.partition("The rows of each")[0]


async def test_named_appointments_are_taken_for_the_desks(tmp_path: Path) -> None:
    assert UNTOLD not in (await learnt(tmp_path, "1", "2"))[0]
