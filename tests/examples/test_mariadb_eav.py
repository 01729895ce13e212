"""The MariaDB practice through the gateway: each numbered fact is undone by a line of its mapping.

Each test's first line says what a partner would see without that line.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio

from examples.mariadb_eav.__main__ import EXAMPLE
from examples.mariadb_eav.bills import key_of
from examples.mariadb_eav.values import Ids
from examples.records import Animal, Bill, Client, Visit
from tests.examples.clinic import (
    Clinic,
    an_owned_animal,
    every_operation,
    everything,
    free_times,
    made,
    started,
    troubles,
    vets,
)
from tests.partner import Partner

ZONE = ZoneInfo("Europe/Brussels")
# One gateway for all: what it is made of, it reads once.
pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    with made(EXAMPLE, "mysql", tmp_path_factory.mktemp("eav") / "state") as clinic:
        yield clinic


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def partner(clinic: Clinic) -> AsyncIterator[Partner]:
    async with clinic.served() as partner:
        yield partner


@pytest.fixture
def ids(clinic: Clinic) -> Ids:
    return Ids(clinic.practice)


def shown(local: datetime) -> str:
    """A moment of the clinic's wall clock as the gateway shows it."""
    return f"{local.replace(tzinfo=ZONE).astimezone(UTC).replace(tzinfo=None).isoformat()}Z"


def client_of(clinic: Clinic, wanted: Any) -> Client:
    return next(each for each in clinic.practice.clients if not each.gone and wanted(each))


def animal_of(clinic: Clinic, wanted: Any) -> Animal:
    return next(each for each in clinic.practice.animals if not each.deleted and wanted(each))


def visit_of(clinic: Clinic, wanted: Any) -> Visit:
    return next(each for each in clinic.practice.visits() if wanted(each))


def bill_of(clinic: Clinic, wanted: Any) -> Bill:
    return next(each for each in clinic.practice.bills() if wanted(each))


async def get_client(partner: Partner, clinic: Clinic, client: Client) -> Any:
    key = Ids(clinic.practice).client(client.id)
    answer = await partner.get(f"/clients/{clinic.sealed('clients', key)}")
    assert answer.status == 200, answer.text
    return answer.data


async def get_patient(partner: Partner, clinic: Clinic, animal: Animal) -> Any:
    key = Ids(clinic.practice).pet(animal.id)
    answer = await partner.get(f"/patients/{clinic.sealed('patients', key)}")
    assert answer.status == 200, answer.text
    return answer.data


async def get_appointment(partner: Partner, clinic: Clinic, visit: Visit) -> Any:
    found = await clinic.rows(
        "SELECT a.act_id FROM acts a JOIN participations p ON p.act_id = a.act_id AND role = 'PET'"
        " WHERE a.type = 'appointment' AND a.day = %s AND a.time = %s AND p.party_id = %s",
        visit.start.date(), visit.start.time(), Ids(clinic.practice).pet(visit.animal.id),
    )  # fmt: skip
    answer = await partner.get(f"/appointments/{clinic.sealed('appointments', found[0]['act_id'])}")
    assert answer.status == 200, answer.text
    return answer.data


async def get_bill(partner: Partner, clinic: Clinic, bill: Bill) -> Any:
    client = clinic.sealed("clients", Ids(clinic.practice).client(bill.client))
    number = "/".join(map(str, key_of(bill)))
    bills = await everything(partner, f"/invoices/client/{client}")
    return next(each for each in bills if each["number"] == number)


async def a_consultation(clinic: Clinic) -> str:
    found = await clinic.rows("SELECT act_id FROM acts WHERE type = 'visit' AND active = 1 LIMIT 1")
    return clinic.sealed("consultations", found[0]["act_id"])


def present(clinic: Clinic) -> Any:
    """Whether a bill is of a client who is still there."""
    gone = {each.id for each in clinic.practice.clients if each.gone}
    return lambda bill: bill.client not in gone


async def test_all_operations_answer(partner: Partner, clinic: Clinic) -> None:
    bill = await get_bill(partner, clinic, bill_of(clinic, present(clinic)))
    known = {"consultations": await a_consultation(clinic), "invoices": bill["id"]}
    answers = await every_operation(partner, known)
    assert {name: each.status for name, each in answers.items() if each.status != 200} == {
        "create_appointment": 201
    }
    assert all(each.data for each in answers.values())
    assert answers["get_appointment"].data == answers["create_appointment"].data
    assert answers["create_appointment"].data["reason"] == "Café, à voir"


async def test_what_the_practice_keeps_is_read_without_a_value_that_cannot_be_used(
    partner: Partner, clinic: Clinic
) -> None:
    for path in ("/clients", "/patients", "/stock", "/appointments/types"):
        answer = await partner.get(path, **({} if "types" in path else {"limit": "200"}))
        assert answer.status == 200
        assert "X-Skipped-Records" not in answer.headers
    assert await troubles(partner) == []


async def test_fact_01_two_sites_number_their_invoices_each_for_itself(
    partner: Partner, clinic: Clinic
) -> None:
    """By the number alone, ANT/1005 and GNT/1005 would be one invoice with the lines of both."""
    here = present(clinic)
    bills = {key_of(each): each for each in clinic.practice.bills()}
    pair = next(
        (bills[key], bills[("GNT", key[1])])
        for key in bills
        if key[0] == "ANT" and ("GNT", key[1]) in bills
        and here(bills[key]) and here(bills[("GNT", key[1])])
    )  # fmt: skip
    one, other = [await get_bill(partner, clinic, each) for each in pair]
    assert one["id"] != other["id"]
    for record, bill in zip((one, other), pair, strict=True):
        assert len(record["lines"]) == len(bill.lines)
        again = await partner.get(f"/invoices/{record['id']}")
        assert again.data == record


async def test_fact_01_a_text_code_of_eight_bytes_is_an_id_that_round_trips(
    partner: Partner,
) -> None:
    """As a whole number the key of a product could not be read at all."""
    for item in (await partner.get("/stock", limit="200")).data[:5]:
        again = await partner.get(f"/stock/{item['id']}")
        assert again.data == item
        assert item["reference"].encode().hex() not in item["id"].replace("-", "")


async def test_fact_02_only_clients_are_clients_though_all_parties_share_a_table(
    partner: Partner, clinic: Clinic, ids: Ids
) -> None:
    """Without the filter on `kind`, homes, pets, vets and kinds of visit would be clients."""
    there = sum(not each.gone for each in clinic.practice.clients)
    assert len(await everything(partner, "/clients")) == there
    for key in (ids.type(1), ids.vet(1), ids.home(1), ids.pet(1)):
        assert (await partner.get(f"/clients/{clinic.sealed('clients', key)}")).status == 404


async def test_fact_03_low_stock_is_compared_as_numbers(partner: Partner, clinic: Clinic) -> None:
    """Compared as text, a third of what is low would be missing."""
    rows = await clinic.rows(
        "SELECT p.code, f.value, COALESCE((SELECT SUM(`left`) FROM batches WHERE product = p.code),"
        " 0) AS quantity FROM products p JOIN product_fields f ON f.code = p.code"
        " AND f.`key` = 'MIN' WHERE p.active = 1"
    )
    low = {
        each["code"] for each in rows if each["quantity"] <= float(each["value"].replace(",", "."))
    }
    as_text = {each["code"] for each in rows if str(each["quantity"]) <= each["value"]}
    shown_low = {each["reference"] for each in await everything(partner, "/stock/low")}
    assert shown_low == low != as_text
    all_items = await everything(partner, "/stock")
    assert {each["reference"] for each in all_items if each["isLow"]} == low


async def test_fact_03_a_value_is_read_by_its_type_tag(partner: Partner, clinic: Clinic) -> None:
    """Without the tag 640 grams would be 640 kilograms, and 31/12/2020 no day."""
    light = animal_of(clinic, lambda each: each.grams and each.grams < 1_000)
    heavy = animal_of(clinic, lambda each: each.grams and each.grams > 1_000)
    old = animal_of(clinic, lambda each: each.born and each.id % 3 == 0)
    assert (await get_patient(partner, clinic, light))["weightKg"] == light.grams / 1000
    assert (await get_patient(partner, clinic, heavy))["weightKg"] == round(heavy.grams / 1000, 1)
    assert (await get_patient(partner, clinic, old))["birthDate"] == old.born.isoformat()


async def test_fact_03_a_value_that_is_missing_has_no_row(partner: Partner, clinic: Clinic) -> None:
    """Joined plainly, an animal without a chip would not be listed at all."""
    bare = animal_of(clinic, lambda each: each.chip is None and not each.alerts)
    record = await get_patient(partner, clinic, bare)
    assert record["microchip"] is None
    assert record["alerts"] is None or record["alerts"] == []
    warned = animal_of(clinic, lambda each: len(each.alerts) == 2)
    assert (await get_patient(partner, clinic, warned))["alerts"] == list(warned.alerts)


async def test_fact_04_the_owner_heads_the_home_of_the_animal(
    partner: Partner, clinic: Clinic, ids: Ids
) -> None:
    """Without the role a neighbour who may fetch the animal would own it too."""
    owners = {
        clinic.sealed("patients", ids.pet(each.id)): each.owner
        and clinic.sealed("clients", ids.client(each.owner))
        for each in clinic.practice.animals
        if not each.deleted
    }
    found = await everything(partner, "/patients")
    assert {each["id"]: each["clientId"] for each in found} == owners
    assert None in owners.values()


async def test_fact_04_an_appointment_is_of_who_owned_the_animal_that_day(
    partner: Partner, clinic: Clinic, ids: Ids
) -> None:
    """By today's owner, the visits of years ago would be told to somebody else."""
    moved = clinic.practice.sold

    def then(visit: Visit) -> bool:
        animal = visit.animal
        return bool(
            animal.former and animal.owner and animal.former != animal.owner
            and animal.created.date() <= visit.start.date() < moved
        )  # fmt: skip

    visit = visit_of(clinic, then)
    record = await get_appointment(partner, clinic, visit)
    assert record["clientId"] == clinic.sealed("clients", ids.client(visit.animal.former))


async def test_fact_04_the_vet_of_an_appointment_may_be_nobody(
    partner: Partner, clinic: Clinic
) -> None:
    """With a plain join the appointment would not exist."""
    visit = visit_of(clinic, lambda each: each.state == "done" and each.id % 90 == 4)
    assert (await get_appointment(partner, clinic, visit))["vetId"] is None


@pytest.mark.parametrize("rest", [0, 1], ids=["preferred", "newest"])
async def test_fact_05_the_phone_is_the_preferred_else_the_newest_active_one(
    partner: Partner, clinic: Clinic, rest: int
) -> None:
    """The first row is a number that no longer holds, the second one a fax."""
    client = client_of(
        clinic, lambda each: each.id % 15 == 0 and each.id % 2 == rest and each.id % 10 != 1
    )
    assert (await get_client(partner, clinic, client))["phone"] == client.phone


async def test_fact_05_a_vet_with_two_specialties_is_one_vet(
    partner: Partner, clinic: Clinic
) -> None:
    """Joined to the specialties, two vets would be five."""
    assert len(await vets(partner, limit=clinic.practice.vets)) == clinic.practice.vets
    assert len(await clinic.rows("SELECT 1 FROM party_fields WHERE `key` = 'SPECIALTY'")) > 3


async def test_fact_07_a_booking_is_whole_in_every_table(
    partner: Partner, clinic: Clinic, ids: Ids
) -> None:
    """By the table's own defaults the act would be a deleted one, made in the year 1000."""
    before = (await clinic.rows("SELECT `last` FROM numbers WHERE `key` = 'APPT'"))[0]["last"]
    vet = (await vets(partner))["Ruben Claes"]
    kind = clinic.sealed("appointmentTypes", ids.type(3))
    slot = (await free_times(partner, vet, kind))[-1]
    body = (await an_owned_animal(partner)) | {"vetId": vet, "appointmentTypeId": kind}
    body |= {"scheduledAt": slot["startTime"], "isUrgent": True, "reason": "Boite à gauche"}
    booked = await partner.post("/appointments", body)
    assert booked.status == 201, booked.text
    assert booked.data["endTime"] == slot["endTime"]
    number = f"A-{before + 1:06d}"
    (act,) = await clinic.rows("SELECT * FROM acts WHERE number = %s", number)
    local = datetime.fromisoformat(slot["startTime"]).astimezone(ZONE).replace(tzinfo=None)
    assert (act["day"], act["time"]) == (local.date(), local - at_midnight(local))
    assert (act["length"], act["status"], act["active"]) == ("01:00:00", None, b"\x01")
    assert (act["urgent"], act["title"], act["type"]) == (b"\x01", "Boite à gauche", "appointment")
    assert act["date-created"] > clinic.practice.now - timedelta(days=1)
    parts = await clinic.rows("SELECT * FROM participations WHERE act_id = %s", act["act_id"])
    assert {each["role"] for each in parts} == {"PET", "VET", "TYPE"}
    assert {each["party_id"] for each in parts} >= {ids.vet(3), ids.type(3)}
    assert {(each["act-start"], each["act-end"], each["active"]) for each in parts} == {
        (local, local + timedelta(hours=1), b"\x01")
    }
    (box,) = await clinic.rows("SELECT * FROM calendar WHERE act_id = %s", act["act_id"])
    assert (box["party_id"], box["day"]) == (ids.vet(3), local.date())
    assert box["right"] - box["left"] == timedelta(hours=1)


def at_midnight(local: datetime) -> datetime:
    return datetime.combine(local.date(), datetime.min.time())


async def test_fact_07_a_booking_without_a_kind_has_no_participation_of_one(
    partner: Partner, clinic: Clinic
) -> None:
    """Written as NULL the database would refuse it, as 0 it would be the kind of nobody."""
    vet = (await vets(partner))["Ruben Claes"]
    slot = (await free_times(partner, vet))[0]
    body = (await an_owned_animal(partner)) | {"vetId": vet, "scheduledAt": slot["startTime"]}
    booked = await partner.post("/appointments", body)
    assert booked.status == 201, booked.text
    rows = await clinic.rows(
        "SELECT p.role FROM participations p JOIN acts a ON a.act_id = p.act_id"
        " WHERE a.number = (SELECT CONCAT('A-', LPAD(`last`, 6, '0')) FROM numbers)"
    )
    assert sorted(each["role"] for each in rows) == ["PET", "VET"]


async def test_fact_14_a_reason_is_kept_as_far_as_the_column_has_its_letters(
    partner: Partner,
) -> None:
    """Written as it came, a letter that latin1 lacks would fail the whole booking."""
    vet = (await vets(partner))["Ruben Claes"]
    slot = (await free_times(partner, vet))[-1]
    body = (await an_owned_animal(partner)) | {"vetId": vet, "scheduledAt": slot["startTime"]}
    booked = await partner.post("/appointments", body | {"reason": "Boite → gauche, 5 €"})
    assert booked.status == 201, booked.text
    assert booked.data["reason"] == "Boite ? gauche, 5 €"


async def test_fact_08_a_time_is_given_once_whoever_races(
    partner: Partner, clinic: Clinic, ids: Ids
) -> None:
    """The tables forbid nothing: two bookings at one time would both be written."""
    vet = (await vets(partner))["Joris Maes"]
    kind = clinic.sealed("appointmentTypes", ids.type(1))
    slot = (await free_times(partner, vet, kind))[0]
    body = (await an_owned_animal(partner)) | {"vetId": vet, "appointmentTypeId": kind}
    body |= {"scheduledAt": slot["startTime"]}
    answers = await asyncio.gather(*(partner.post("/appointments", body) for _ in range(5)))
    assert sorted(each.status for each in answers) == [201, 409, 409, 409, 409]
    lost = next(each for each in answers if each.status == 409)
    assert lost.data == {"message": "Time slot conflict"}
    again = await partner.get(
        "/appointments/available-slots", vetId=vet, date=partner_day(slot["startTime"])
    )
    assert slot not in again.data


def partner_day(moment: str) -> str:
    return datetime.fromisoformat(moment).astimezone(ZONE).date().isoformat()


async def test_fact_08_what_the_desk_writes_is_taken(
    partner: Partner, clinic: Clinic, ids: Ids
) -> None:
    """The desk takes no lock and asks nobody: its rows alone say that a time is gone."""
    vet = (await vets(partner))["Lotte Jacobs"]
    slot = (await free_times(partner, vet))[0]
    local = datetime.fromisoformat(slot["startTime"]).astimezone(ZONE).replace(tzinfo=None)
    act = 900_001
    await clinic.rows("INSERT INTO acts (act_id, type, day, time, length, active)"
                      " VALUES (%s, 'appointment', %s, %s, '00:15:00', 1)",
                      act, local.date(), local.time())  # fmt: skip
    await clinic.rows("INSERT INTO participations (act_id, role, party_id, `act-start`, active)"
                      " VALUES (%s, 'VET', %s, %s, 1)", act, ids.vet(4), local)  # fmt: skip
    body = (await an_owned_animal(partner)) | {"vetId": vet, "scheduledAt": slot["startTime"]}
    assert (await partner.post("/appointments", body)).status == 409


async def test_fact_10_the_duration_and_the_colour_are_fields_of_the_kind(
    partner: Partner,
) -> None:
    """Without the joins every visit would last half an hour, and have no colour."""
    kinds = {each["name"]: each for each in (await partner.get("/appointments/types")).data}
    assert kinds["Surgery"]["durationMinutes"] == 60
    assert kinds["Vaccination"]["color"] == "#28B463"


async def test_fact_11_a_visit_without_a_length_lasts_as_long_as_its_kind(
    partner: Partner, clinic: Clinic
) -> None:
    """Without the fallback it would have no end, and would block the default half hour."""
    visit = visit_of(clinic, lambda each: each.id % 6 == 2 and each.minutes == 60)
    record = await get_appointment(partner, clinic, visit)
    assert record["endTime"] == shown(visit.start + timedelta(hours=1))
    written = visit_of(clinic, lambda each: each.id % 6 != 2 and each.minutes == 15)
    record = await get_appointment(partner, clinic, written)
    assert record["endTime"] == shown(written.start + timedelta(minutes=15))


async def test_fact_12_date_and_time_are_the_clinics_wall_clock_on_that_day(
    partner: Partner, clinic: Clinic
) -> None:
    """As the server's zone, UTC, every visit would be an hour or two late."""
    visit = visit_of(clinic, lambda each: each.start < clinic.practice.now)
    record = await get_appointment(partner, clinic, visit)
    assert record["scheduledAt"] == shown(visit.start) != f"{visit.start.isoformat()}Z"
    assert record["createdAt"] == shown(visit.created)


async def test_fact_12_a_zero_date_is_no_date(partner: Partner, clinic: Clinic) -> None:
    """A draft would have been issued in the year 1000, an invoice be due in the year 0."""
    here = present(clinic)
    draft = bill_of(clinic, lambda each: each.state == "draft" and here(each))
    undated = bill_of(clinic, lambda each: each.id % 5 == 0 and each.id % 7 and here(each))
    assert (await get_bill(partner, clinic, draft))["issuedAt"] is None
    assert (await get_bill(partner, clinic, undated))["dueAt"] is None
    alive = animal_of(clinic, lambda each: each.died is None)
    assert (await get_patient(partner, clinic, alive))["status"] == "ACTIVE"
    dead = animal_of(clinic, lambda each: each.died is not None)
    assert (await get_patient(partner, clinic, dead))["status"] == "DECEASED"


async def test_fact_13_what_was_never_changed_is_as_new_as_its_creation(
    partner: Partner, clinic: Clinic
) -> None:
    """By the bare column, half of the clients would never show in updatedSince."""
    client = client_of(clinic, lambda each: each.changed is None and each.id % 2 == 0)
    record = await get_client(partner, clinic, client)
    assert record["updatedAt"] == record["createdAt"] == shown(client.created)
    since = shown(clinic.practice.now - timedelta(days=200))
    found = {each["id"] for each in await everything(partner, "/clients", updatedSince=since)}
    recent = {
        clinic.sealed("clients", Ids(clinic.practice).client(each.id))
        for each in clinic.practice.clients
        if not each.gone and shown(each.changed or each.created) >= since
    }
    assert found == recent
    assert found


async def test_fact_14_last_and_first_name_stand_in_one_column(
    partner: Partner, clinic: Clinic
) -> None:
    """A partner would greet 'Lefèvre,Éléonore '; a company would have half its name."""
    person = client_of(clinic, lambda each: each.first and not each.last.isascii())
    record = await get_client(partner, clinic, person)
    assert (record["lastName"], record["firstName"]) == (person.last, person.first)
    company = client_of(clinic, lambda each: each.first is None)
    record = await get_client(partner, clinic, company)
    assert (record["lastName"], record["firstName"]) == (company.last, None)
    found = await everything(partner, "/clients", search=person.last.split("-")[0].lower())
    assert person.email in {each["email"] for each in found} or person.id % 10 == 1


async def test_fact_15_no_status_means_planned(partner: Partner, clinic: Clinic) -> None:
    """NULL <> 'CANC' is not true: planned visits would be free times."""
    visit = visit_of(clinic, lambda each: each.state == "planned" and each.vet == 1)
    record = await get_appointment(partner, clinic, visit)
    assert (record["status"], record["displayStatus"]) == ("SCHEDULED", "Gepland")
    day = visit.start.date().isoformat()
    free = await partner.get("/appointments/available-slots", vetId=record["vetId"], date=day)
    assert record["scheduledAt"] not in {each["startTime"] for each in free.data}


async def test_fact_15_a_flag_of_one_bit_is_a_boolean(partner: Partner, clinic: Clinic) -> None:
    """NULL would be null; and COALESCE with b'0' makes bytes that no filter compares rightly."""
    urgent = visit_of(clinic, lambda each: each.urgent)
    calm = visit_of(clinic, lambda each: not each.urgent and each.id % 2 == 0)
    unset = visit_of(clinic, lambda each: not each.urgent and each.id % 2 == 1)
    records = [await get_appointment(partner, clinic, each) for each in (urgent, calm, unset)]
    assert [each["isUrgent"] for each in records] == [True, False, False]


async def test_fact_16_amounts_are_text_with_a_comma(partner: Partner, clinic: Clinic) -> None:
    """SUM of '1.234,50' is 1.234 to the database."""
    here = present(clinic)
    bill = bill_of(clinic, lambda each: each.state == "part" and each.net > 40_000 and here(each))
    record = await get_bill(partner, clinic, bill)
    gross = bill.net + bill.tax
    assert record["total"] == f"{gross / 100:.2f}"
    assert record["amountPaid"] == f"{bill.paid / 100:.2f}"
    assert record["balance"] == f"{(gross - bill.paid) / 100:.2f}"
    assert sum(round(float(each["amount"]) * 100) for each in record["payments"]) == bill.paid
    credit = bill_of(clinic, lambda each: each.net < 0 and here(each))
    assert (await get_bill(partner, clinic, credit))["total"].startswith("-")


async def test_fact_16_when_it_is_due_stands_in_another_table(
    partner: Partner, clinic: Clinic
) -> None:
    """Without the join no invoice would ever be due; with a plain one some would be missing."""
    here = present(clinic)
    dated = bill_of(clinic, lambda each: each.id % 5 and each.id % 7 and here(each))
    bare = bill_of(clinic, lambda each: each.id % 7 == 0 and here(each))
    due = (dated.issued.date() + timedelta(days=30)).isoformat()
    assert (await get_bill(partner, clinic, dated))["dueAt"] == due
    assert (await get_bill(partner, clinic, bare))["dueAt"] is None


async def test_fact_17_the_quantity_is_the_sum_of_the_batches(
    partner: Partner, clinic: Clinic
) -> None:
    """Joined plainly, a product of three batches would be three, one without any none."""
    items = await everything(partner, "/stock")
    assert len(items) == len({each["reference"] for each in items}) == 57
    sums = {
        each["product"]: each["total"]
        for each in await clinic.rows(
            "SELECT product, SUM(`left`) AS total FROM batches GROUP BY 1"
        )
    }
    assert {each["reference"]: each["quantity"] for each in items} == {
        each["reference"]: sums.get(each["reference"], 0) for each in items
    }
    assert any(each["reference"] not in sums for each in items)


async def test_fact_18_what_is_not_active_is_gone_but_stands_on_what_was(
    partner: Partner, clinic: Clinic, ids: Ids
) -> None:
    """A deleted client would still be called; a vet who left would vanish from past visits."""
    gone = next(each for each in clinic.practice.clients if each.gone)
    key = clinic.sealed("clients", ids.client(gone.id))
    assert (await partner.get(f"/clients/{key}")).status == 404
    deleted = next(each for each in clinic.practice.animals if each.deleted)
    key = clinic.sealed("patients", ids.pet(deleted.id))
    assert (await partner.get(f"/patients/{key}")).status == 404
    former = clinic.sealed("vets", ids.former_vet)
    assert former not in (await vets(partner)).values()
    visit = visit_of(clinic, lambda each: each.state == "done" and each.id % 90 == 34)
    assert (await get_appointment(partner, clinic, visit))["vetId"] == former


async def test_fact_19_reserved_words_and_hyphens_are_only_names(
    partner: Partner, clinic: Clinic
) -> None:
    """Unquoted, `left` is a function and date-created a subtraction."""
    client = client_of(clinic, lambda each: each.id % 40 == 3)
    record = await get_client(partner, clinic, client)
    assert record["createdAt"] == shown(client.created)
    street = (await clinic.rows(
        "SELECT `line-2` FROM contacts WHERE kind = 'ADDR' AND party_id = %s",
        Ids(clinic.practice).client(client.id)))[0]["line-2"]  # fmt: skip
    parts = [client.street, street, f"{client.zip} {client.town}"]
    assert record["address"] == ", ".join(each for each in parts if each)


async def test_an_absence_closes_a_vets_day_and_a_holiday_the_house(
    partner: Partner, clinic: Clinic, ids: Ids
) -> None:
    away = await clinic.rows("SELECT * FROM absences WHERE party_id = %s", ids.vet(2))
    closed = await clinic.rows("SELECT * FROM absences WHERE party_id IS NULL")
    for vet, row in ((2, away[0]), (1, closed[0]), (3, closed[0])):
        answer = await partner.get(
            "/appointments/available-slots",
            vetId=clinic.sealed("vets", ids.vet(vet)),
            date=row["first-day"].isoformat(),
        )
        assert answer.data == []
        assert answer.status == 200


async def test_the_account_may_write_nothing_but_a_booking(clinic: Clinic) -> None:
    name = clinic.url.rsplit("/", 1)[1]
    rows = await clinic.rows(f"SHOW GRANTS FOR `{name}_gateway`@`%`")
    text = "\n".join(str(value) for row in rows for value in row.values())
    assert text.count("INSERT") == 3
    assert text.count("UPDATE") == 1
    assert "ALL PRIVILEGES" not in text
    assert "DELETE" not in text


async def test_one_command_makes_it_and_serves_it(tmp_path: Path) -> None:
    shown = await asyncio.to_thread(started, "examples.mariadb_eav", "mysql", tmp_path / "state")
    assert shown["ids"].keys() == {"CLIENT", "PATIENT", "VET", "DAY", "SLOT"}
    assert shown["status"] == 200
    assert shown["private"]
    assert shown["ids"]["SLOT"] == shown["first"]
