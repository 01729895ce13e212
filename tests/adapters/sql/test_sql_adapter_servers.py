"""The sql adapter over servers whose columns have types of their own: read, searched, booked."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.base import AdapterOptions, Draft, Filter, Record, SlotTaken
from adapters.documents.problems import DocumentErrors
from adapters.sql.adapter import SqlAdapter
from gateway.backend import shapes
from tests.adapters.clinic import NOW, SECRET, ask, everything, slots
from tests.adapters.servers import execute_async, mariadb_database, postgres_database

SCHEMA = (
    "CREATE TABLE vet (id INTEGER PRIMARY KEY, name VARCHAR(40))",
    "INSERT INTO vet VALUES (1, 'Dr Ünal'), (2, 'Dr Beck')",
    "CREATE TABLE owner (id INTEGER PRIMARY KEY, first VARCHAR(40), last VARCHAR(40),"
    " changed {stamp})",
    "INSERT INTO owner VALUES (1, 'Élodie', ' Müller ', '2026-02-01 10:00:00'),"
    " (2, NULL, 'O''Brien', '2026-02-02 10:00:00')",
    "CREATE TABLE animal (id INTEGER PRIMARY KEY, owner INTEGER, name VARCHAR(40), fixed BOOLEAN)",
    "INSERT INTO animal VALUES (1, 1, 'Rex', TRUE), (2, 2, 'Tom', FALSE)",
    "CREATE TABLE visit (id {serial}, vet INTEGER, animal INTEGER, owner INTEGER, starts {stamp},"
    " ends {stamp}, urgent BOOLEAN, state VARCHAR(9), note VARCHAR(500), reference VARCHAR(16))",
    "CREATE INDEX visit_starts ON visit (vet, starts)",
    "CREATE TABLE hours (vet INTEGER, weekday INTEGER, opens TIME, closes TIME)",
    "INSERT INTO hours SELECT v.id, d.n, '09:00', '12:00' FROM vet v, (SELECT 1 AS n UNION SELECT 2"
    " UNION SELECT 3 UNION SELECT 4 UNION SELECT 5) d",
    "INSERT INTO visit (vet, animal, owner, starts, ends, urgent, state)"
    " VALUES (1, 1, 1, '2026-03-05 09:00:00', '2026-03-05 10:00:00', FALSE, 'S')",
)
MAPPING = """
version: 2
zone: Europe/Paris
resources:
  vets: {from: vet, key: id, fields: {name: name}}
  clients:
    from: owner
    key: id
    fields: {firstName: first, lastName: last, updatedAt: changed}
  patients:
    from: animal
    key: id
    fields: {clientId: owner, name: name, neutered: fixed}
  appointmentTypes: {from: vet, key: id, fields: {name: name}}
  appointments:
    from: visit
    key: id
    fields:
      clientId: owner
      patientId: animal
      vetId: vet
      scheduledAt: starts
      endTime: ends
      isUrgent: urgent
      status: {source: state, codes: {S: SCHEDULED}}
      reason: note
  consultations: {from: visit, key: id, fields: {}}
  invoices: {from: visit, key: id, fields: {}}
  stock: {from: vet, key: id, fields: {name: name}}
diary:
  hours: [{from: hours, vet: vet, weekday: weekday, start: opens, end: closes}]
  busy:
    - {from: visit, vet: vet, key: id, start: starts, end: ends, longest: 2}
booking:
  appointment: visit
  reference: reference
  steps:
    - insert: visit
      name: visit
      key: id
      values:
        vet: {draft: vetId}
        animal: {draft: patientId}
        owner: {draft: clientId}
        starts: {draft: scheduledAt}
        ends: {draft: endTime}
        urgent: {draft: isUrgent}
        state: S
        note: {draft: reason}
        reference: {draft: reference}
"""


@pytest.fixture(params=["postgresql", "mariadb"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "postgresql":
        words = {"stamp": "timestamp", "serial": "serial PRIMARY KEY"}
        with postgres_database(*(each.format(**words) for each in SCHEMA)) as made:
            yield made
    else:
        words = {"stamp": "datetime", "serial": "INTEGER AUTO_INCREMENT PRIMARY KEY"}
        with mariadb_database(*(each.format(**words) for each in SCHEMA)) as made:
            yield made


def connect(url: str, folder: Path, mapping: str = MAPPING) -> SqlAdapter:
    file = folder / "clinic.yaml"
    file.write_text(mapping)
    options = AdapterOptions(
        url=url, mapping=file, secret=SECRET, shapes=shapes(), report=lambda _: None
    )
    return SqlAdapter(options)


@pytest.fixture
async def adapter(url: str, tmp_path: Path) -> AsyncIterator[SqlAdapter]:
    opened = connect(url, tmp_path)
    yield opened
    await opened.aclose()


async def _draft(adapter: SqlAdapter) -> Draft:
    patient = (await everything(adapter, "patients"))[0]
    vet = (await everything(adapter, "vets"))[0]
    return Draft(
        client_id=patient["clientId"],
        patient_id=patient["id"],
        vet_id=vet["id"],
        scheduled_at=datetime(2026, 3, 5, 9, 30, tzinfo=UTC),
        appointment_type_id=None,
        reason="10:30 %s 50%",
        is_urgent=True,
        now=NOW,
        reference="0123456789abcdef",
    )


async def test_the_mapping_is_checked_against_the_database(
    adapter: SqlAdapter, url: str, tmp_path: Path
) -> None:
    await adapter.check()
    wrong = MAPPING.replace("reason: note", "reason: remark").replace("from: owner", "from: owners")
    broken = connect(url, tmp_path, wrong)
    with pytest.raises(DocumentErrors) as raised:
        await broken.check()
    await broken.aclose()
    assert len(raised.value.problems) == 2
    assert "remark" in str(raised.value)
    assert "owners" in str(raised.value)


async def test_records_pages_and_filters(adapter: SqlAdapter) -> None:
    clients = await everything(adapter, "clients", limit=1)
    assert [each["lastName"] for each in clients] == ["Müller", "O'Brien"]
    assert clients[0]["updatedAt"] == "2026-02-01T09:00:00Z"
    for client in clients:
        assert await adapter.read_one(ask("clients", id=client["id"])) == client
    names = ("firstName", "lastName")

    async def found(match: str, fields: tuple[str, ...], value: object) -> list[Record]:
        resource = "patients" if fields[0] in ("clientId", "neutered") else "clients"
        return await everything(adapter, resource, Filter(match, fields, value))

    assert await found("search", names, "mull elo") == [clients[0]]
    assert await found("search", names, "brien") == [clients[1]]
    assert await found("equals", ("lastName",), "Müller") == [clients[0]]
    since = datetime(2026, 2, 2, 9, 0, tzinfo=UTC)
    assert await found("since", ("updatedAt",), since) == [clients[1]]
    assert [each["name"] for each in await found("equals", ("neutered",), True)] == ["Rex"]
    assert [each["name"] for each in await found("equals", ("clientId",), clients[1]["id"])] == [
        "Tom"
    ]


async def test_of_many_who_book_one_time_through_two_gateways_one_gets_it(
    adapter: SqlAdapter, url: str, tmp_path: Path
) -> None:
    other = connect(url, tmp_path)
    draft = await _draft(adapter)
    drafts = [replace(draft, reference=f"{number:016d}") for number in range(20)]
    ends = await asyncio.gather(
        *(
            (adapter, other)[number % 2].create_appointment(each)
            for number, each in enumerate(drafts)
        ),
        return_exceptions=True,
    )
    await other.aclose()
    made = [each for each in ends if isinstance(each, dict)]
    assert len(made) == 1
    assert {type(each) for each in ends if not isinstance(each, dict)} == {SlotTaken}
    assert made[0]["scheduledAt"] == "2026-03-05T09:30:00Z"
    assert made[0]["reason"] == "10:30 %s 50%"
    assert await execute_async(url, "SELECT count(*) FROM visit") == [(2,)]
    winner = drafts[ends.index(made[0])]
    assert list(await adapter.find_appointments(winner, NOW)) == made
    assert list(await adapter.find_appointments(replace(winner, reference="other"), NOW)) == []
    free = await slots(adapter, draft.vet_id, draft.scheduled_at.date())
    assert "2026-03-05T09:30:00Z" not in {each["startTime"] for each in free}
    assert {each["startTime"] for each in free} == {
        f"2026-03-05T{shown}:00Z" for shown in ("09:00", "10:00", "10:15", "10:30")
    }
