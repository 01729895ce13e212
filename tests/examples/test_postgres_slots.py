"""The PostgreSQL practice through the gateway: each numbered fact is undone by its mapping.

Each test's first line says what a partner would see without that line.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import asyncpg
import pytest
import pytest_asyncio

from examples.loading import address
from examples.postgres_slots.__main__ import EXAMPLE
from examples.postgres_slots.accounts import code_of
from examples.postgres_slots.values import FORMER_VET, NURSE, SLOT_ROOM, patient_id, utc
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

ZONE = ZoneInfo("Europe/Helsinki")
# One gateway for all: what it is made of, it reads once.
pytestmark = [pytest.mark.long, pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    with made(EXAMPLE, "postgresql", tmp_path_factory.mktemp("slots") / "state") as clinic:
        yield clinic


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def partner(clinic: Clinic) -> AsyncIterator[Partner]:
    async with clinic.served() as partner:
        yield partner


def shown(local: datetime) -> str:
    """A moment of the clinic's wall clock as the gateway shows it."""
    return f"{utc(local).isoformat()}Z"


def client_of(clinic: Clinic, wanted: Any) -> Client:
    return next(each for each in clinic.practice.clients if not each.gone and wanted(each))


def animal_of(clinic: Clinic, wanted: Any) -> Animal:
    return next(each for each in clinic.practice.animals if not each.deleted and wanted(each))


def visit_of(clinic: Clinic, wanted: Any) -> Visit:
    return next(each for each in clinic.practice.visits() if wanted(each))


def bill_of(clinic: Clinic, wanted: Any) -> Bill:
    return next(each for each in clinic.practice.bills() if wanted(each))


async def get(partner: Partner, clinic: Clinic, resource: str, key: int) -> Any:
    answer = await partner.get(f"/{resource}/{clinic.sealed(resource, key)}")
    assert answer.status == 200, answer.text
    return answer.data


async def get_patient(partner: Partner, animal: Animal) -> Any:
    answer = await partner.get(f"/patients/{patient_id(animal.id)}")
    assert answer.status == 200, answer.text
    return answer.data


async def article(partner: Partner, number: int) -> Any:
    found = await everything(partner, "/stock")
    return next((each for each in found if each["reference"] == code_of(number)), None)


async def slots_on(partner: Partner, vet: str, day: date, kind: str | None = None) -> list[str]:
    query = {"vetId": vet, "date": day.isoformat()}
    query |= {} if kind is None else {"appointmentTypeId": kind}
    answer = await partner.get("/appointments/available-slots", **query)
    assert answer.status == 200, answer.text
    return [each["startTime"] for each in answer.data]


def a_weekday(clinic: Clinic, weekday: int) -> date:
    """The first such day that is at least eight days ahead; 1 is Monday."""
    first = clinic.practice.today + timedelta(days=8)
    return first + timedelta(days=(weekday - first.isoweekday()) % 7)


async def test_all_operations_answer(partner: Partner, clinic: Clinic) -> None:
    consultations = await clinic.rows('SELECT "Id" FROM "Consultation" LIMIT 1')
    known = {
        "consultations": clinic.sealed("consultations", consultations[0]["Id"]),
        "invoices": clinic.sealed("invoices", 1),
    }
    answers = await every_operation(partner, known)
    assert {name: each.status for name, each in answers.items() if each.status != 200} == {
        "create_appointment": 201
    }
    empty = {name for name, each in answers.items() if not each.data}
    assert empty <= {"list_client_invoices"}
    assert answers["get_appointment"].data == answers["create_appointment"].data


async def test_what_the_practice_keeps_is_read_without_a_value_that_cannot_be_used(
    partner: Partner,
) -> None:
    for path in ("/clients", "/patients", "/stock"):
        assert await everything(partner, path)
    assert (await partner.get("/appointments/types")).status == 200
    assert await troubles(partner) == []


async def test_fact_01_an_id_that_is_a_uuid_already_stays_what_it_is(
    partner: Partner, clinic: Clinic
) -> None:
    """Sealed or hashed, the animal's own number would be lost to those who know it."""
    animal = animal_of(clinic, lambda each: True)
    assert (await get_patient(partner, animal))["id"] == str(patient_id(animal.id))
    nobody = "00000000-0000-4000-8000-000000000000"
    assert (await partner.get(f"/patients/{nobody}")).status == 404


async def test_fact_01_a_long_code_is_found_again_by_a_hash_of_it(partner: Partner) -> None:
    """Longer than 8 bytes, 'ART-000012-AMOX' does not fit into an id."""
    items = await everything(partner, "/stock")
    assert all(len(each["reference"]) > 8 for each in items)
    assert len({each["id"] for each in items}) == len(items)
    item = items[3]
    assert (await partner.get(f"/stock/{item['id']}")).data == item


async def test_fact_01_what_a_hash_stands_for_survives_a_restart(
    clinic: Clinic, tmp_path: Path
) -> None:
    """Kept in memory only, yesterday's ids would name nothing today."""
    shutil.copyfile(clinic.folder / "gateway.yaml", tmp_path / "gateway.yaml")
    other = replace(clinic, folder=tmp_path)
    async with other.served() as before:
        item = (await everything(before, "/stock"))[0]
    async with other.served() as after:
        assert (await after.get(f"/stock/{item['id']}")).data == item


async def test_fact_04_the_owner_is_who_owns_it_now_not_who_bred_or_cares_for_it(
    partner: Partner, clinic: Clinic
) -> None:
    """Without role and end an animal would stand there once for each of them."""
    owners = {
        str(patient_id(each.id)): each.owner and clinic.sealed("clients", each.owner)
        for each in clinic.practice.animals
        if not each.deleted
    }
    found = await everything(partner, "/patients")
    assert {each["id"]: each["clientId"] for each in found} == owners
    assert None in owners.values()


async def test_fact_04_an_appointment_is_of_who_owned_the_animal_that_day(
    partner: Partner, clinic: Clinic
) -> None:
    """By today's owner, past visits would be told to somebody else."""

    def then(visit: Visit) -> bool:
        animal, day = visit.animal, visit.start.date()
        sold = bool(animal.former and animal.owner and animal.former != animal.owner)
        return sold and animal.created.date() <= day < clinic.practice.sold

    visit = visit_of(clinic, then)
    record = await get(partner, clinic, "appointments", visit.id)
    assert record["clientId"] == clinic.sealed("clients", visit.animal.former)


async def test_fact_04_the_vet_of_an_appointment_may_be_nobody(
    partner: Partner, clinic: Clinic
) -> None:
    """With a plain join the appointment would not exist."""
    visit = visit_of(clinic, lambda each: each.state == "done" and each.id % 90 == 4)
    assert (await get(partner, clinic, "appointments", visit.id))["vetId"] is None


async def test_fact_05_the_phone_is_the_mobile_else_the_one_at_home(
    partner: Partner, clinic: Clinic
) -> None:
    """An empty mobile number is '', which COALESCE alone takes for one; the fax is no phone."""
    mobile = client_of(clinic, lambda each: each.id % 3)
    home = client_of(clinic, lambda each: each.id % 3 == 0 and each.id % 2)
    none = client_of(clinic, lambda each: each.id % 6 == 0)
    records = [await get(partner, clinic, "clients", each.id) for each in (mobile, home, none)]
    assert records[0]["phone"] == mobile.phone
    assert records[1]["phone"].endswith("33 33")
    assert records[2]["phone"] is None


async def test_fact_05_of_several_addresses_in_one_column_the_first_counts(
    partner: Partner, clinic: Clinic
) -> None:
    """'a@x; b@y' is no e-mail address."""
    client = client_of(clinic, lambda each: each.id % 3 == 1)
    assert (await get(partner, clinic, "clients", client.id))["email"] == client.email


async def test_fact_05_a_vet_with_two_functions_is_one_vet(
    partner: Partner, clinic: Clinic
) -> None:
    """Joined to the functions, four vets would be six, and a nurse one of them."""
    directory = await vets(partner, limit=clinic.practice.vets)
    assert len(directory) == clinic.practice.vets
    assert clinic.sealed("vets", NURSE) not in directory.values()


async def test_fact_06_a_free_time_that_is_a_row_is_no_appointment(
    partner: Partner, clinic: Clinic
) -> None:
    """Without the filter a partner would read an appointment of nobody."""
    rows = await clinic.rows('SELECT "Id" FROM "Appointment" WHERE "State" = 0 LIMIT 1')
    public = clinic.sealed("appointments", rows[0]["Id"])
    assert (await partner.get(f"/appointments/{public}")).status == 404


async def test_fact_06_rows_are_offered_beside_what_follows_from_the_roster(
    partner: Partner, clinic: Clinic
) -> None:
    """From the roster alone, noon would be closed; from the rows alone, the rest of the day."""
    day = a_weekday(clinic, 4)
    noon = {shown(datetime.combine(day, datetime.min.time()) + timedelta(minutes=750 + 15 * each))
            for each in range(4)}  # fmt: skip
    first = set(await slots_on(partner, clinic.sealed("vets", 1), day))
    kind = clinic.sealed("appointmentTypes", 2)
    vaccination = set(await slots_on(partner, clinic.sealed("vets", 1), day, kind))
    fourth = set(await slots_on(partner, clinic.sealed("vets", 4), day, kind))
    assert noon <= vaccination
    assert vaccination - noon
    assert not noon & fourth
    assert not noon & first, "half an hour does not fit into a quarter"


async def test_fact_06_booking_a_row_changes_that_row(partner: Partner, clinic: Clinic) -> None:
    """Inserted beside it, the appointment and the free time would both stand there."""
    day = a_weekday(clinic, 5)
    at = datetime.combine(day, datetime.min.time()) + timedelta(hours=12, minutes=45)
    vet, kind = clinic.sealed("vets", 1), clinic.sealed("appointmentTypes", 2)
    query = 'SELECT * FROM "Appointment" WHERE "ScheduleId" = $1 AND "StartsUtc" = $2'
    (free,) = await clinic.rows(query, SLOT_ROOM, utc(at))
    body = (await an_owned_animal(partner)) | {"vetId": vet, "appointmentTypeId": kind}
    body |= {"scheduledAt": shown(at)}
    booked = await partner.post("/appointments", body)
    assert booked.status == 201, booked.text
    (row,) = await clinic.rows(query, SLOT_ROOM, utc(at))
    assert row["Id"] == free["Id"]
    assert booked.data["id"] == clinic.sealed("appointments", free["Id"])
    assert (row["State"], row["StaffId"], row["TypeId"]) == (1, 1, 2)
    assert str(row["PatientId"]) == body["patientId"]
    assert (row["Urgent"], row["No"][:2]) == ("N", "V-")
    log = await clinic.rows('SELECT * FROM "AppointmentLog" WHERE "AppointmentId" = $1', row["Id"])
    assert [each["Event"] for each in log] == ["CREATED"]
    again = await partner.post("/appointments", body | {"vetId": clinic.sealed("vets", 2)})
    assert again.status == 409, "the other vet shares the room, and it is taken"


async def test_fact_06_a_row_that_the_desk_takes_first_is_taken(
    partner: Partner, clinic: Clinic
) -> None:
    """Without the look at its state the desk's own appointment would be written over."""
    day = a_weekday(clinic, 3)
    at = datetime.combine(day, datetime.min.time()) + timedelta(hours=13)
    kind = clinic.sealed("appointmentTypes", 2)
    body = (await an_owned_animal(partner)) | {"vetId": clinic.sealed("vets", 1)}
    body |= {"appointmentTypeId": kind, "scheduledAt": shown(at)}
    desk = await asyncpg.connect(**address(clinic.url))
    transaction = desk.transaction()
    await transaction.start()
    await desk.execute(
        'UPDATE "Appointment" SET "State" = 2 WHERE "ScheduleId" = $1 AND "StartsUtc" = $2',
        SLOT_ROOM,
        utc(at),
    )
    booking = asyncio.create_task(partner.post("/appointments", body))
    await asyncio.sleep(0.5)
    assert not booking.done(), "it has seen a free row, and waits for the desk to let go of it"
    await transaction.commit()
    await desk.close()
    answer = await booking
    assert (answer.status, answer.data) == (409, {"message": "Time slot conflict"})


async def test_fact_07_a_booking_is_whole_in_every_table(partner: Partner, clinic: Clinic) -> None:
    """By the column's defaults it would be urgent, and made at the time of another continent."""
    vet, kind = clinic.sealed("vets", 3), clinic.sealed("appointmentTypes", 3)
    slot = (await free_times(partner, vet, kind))[-1]
    body = (await an_owned_animal(partner)) | {"vetId": vet, "appointmentTypeId": kind}
    body |= {"scheduledAt": slot["startTime"], "reason": "Höyry → nuha"}
    booked = await partner.post("/appointments", body)
    assert booked.status == 201, booked.text
    starts = datetime.fromisoformat(slot["startTime"]).replace(tzinfo=None)
    query = 'SELECT * FROM "Appointment" WHERE "StaffId" = 3 AND "StartsUtc" = $1 AND "State" = 1'
    (row,) = await clinic.rows(query, starts)
    assert (row["Minutes"], row["Urgent"], row["Note"]) == (60, "N", "Höyry → nuha")
    assert row["ScheduleId"] == 3
    assert row["No"] == f"V-{(await clinic.rows(LAST_NUMBER))[0]['last_value']}"
    assert len(row["ForeignRef"]) == 16
    assert abs(row["CreatedUtc"] - datetime.now(UTC).replace(tzinfo=None)) < timedelta(minutes=5)
    (log,) = await clinic.rows(
        'SELECT * FROM "AppointmentLog" WHERE "AppointmentId" = $1', row["Id"]
    )
    assert abs(log["AtEpoch"] - datetime.now(UTC).timestamp()) < 300


LAST_NUMBER = 'SELECT last_value FROM "AppointmentNo"'


async def test_fact_08_a_time_is_given_once_whoever_races(partner: Partner, clinic: Clinic) -> None:
    """The tables forbid nothing: several bookings at one time would all be written."""
    vet = clinic.sealed("vets", 4)
    slot = (await free_times(partner, vet))[0]
    body = (await an_owned_animal(partner)) | {"vetId": vet, "scheduledAt": slot["startTime"]}
    answers = await asyncio.gather(*(partner.post("/appointments", body) for _ in range(5)))
    assert sorted(each.status for each in answers) == [201, 409, 409, 409, 409]


async def test_fact_08_two_vets_who_share_a_row_never_both_get_it(
    partner: Partner, clinic: Clinic
) -> None:
    """Each has a lock of their own; only the row's state is common."""
    day = a_weekday(clinic, 4)
    at = datetime.combine(day, datetime.min.time()) + timedelta(hours=12, minutes=30)
    kind = clinic.sealed("appointmentTypes", 2)
    body = (await an_owned_animal(partner)) | {"appointmentTypeId": kind, "scheduledAt": shown(at)}
    answers = await asyncio.gather(
        *(partner.post("/appointments", body | {"vetId": clinic.sealed("vets", each)})
          for each in (1, 2, 1, 2))
    )  # fmt: skip
    assert sorted(each.status for each in answers) == [201, 409, 409, 409]


async def test_fact_09_a_vet_is_free_where_one_of_their_rooms_is(
    partner: Partner, clinic: Clinic
) -> None:
    """Vet 2 works in three rooms: by one of them alone, Saturday would be closed."""
    day = a_weekday(clinic, 6)  # room 3 is open on Saturdays, room 2 is not
    second = set(await slots_on(partner, clinic.sealed("vets", 2), day))
    third = set(await slots_on(partner, clinic.sealed("vets", 3), day))
    assert second
    assert second == third


async def test_fact_09_a_vet_who_is_busy_in_one_room_is_not_free_in_another(
    partner: Partner, clinic: Clinic
) -> None:
    """By rooms alone, vet 2 could be in two of them at once."""
    vet = clinic.sealed("vets", 2)
    slot = (await free_times(partner, vet))[-1]
    starts = datetime.fromisoformat(slot["startTime"]).replace(tzinfo=None)
    await clinic.rows(
        'INSERT INTO "Appointment" ("State", "ScheduleId", "StaffId", "StartsUtc", "Minutes")'
        " VALUES (2, 1, 2, $1, 30)", starts,
    )  # fmt: skip
    body = (await an_owned_animal(partner)) | {"vetId": vet, "scheduledAt": slot["startTime"]}
    assert (await partner.post("/appointments", body)).status == 409


async def test_fact_10_a_visit_lasts_so_many_slots_of_the_room(
    partner: Partner, clinic: Clinic
) -> None:
    """By the type alone a vaccination would last the default half hour in every room."""
    day, kind = a_weekday(clinic, 4), clinic.sealed("appointmentTypes", 2)
    for vet, minutes in ((1, 15), (4, 20)):
        query = {"vetId": clinic.sealed("vets", vet), "date": day.isoformat()}
        answer = await partner.get("/appointments/available-slots", appointmentTypeId=kind, **query)
        times = [datetime.fromisoformat(answer.data[0][each]) for each in ("startTime", "endTime")]
        assert times[1] - times[0] == timedelta(minutes=minutes)


async def test_fact_10_a_colour_is_a_name_or_missing(partner: Partner) -> None:
    """'Orange' is no #RRGGBB."""
    kinds = {each["name"]: each for each in (await partner.get("/appointments/types")).data}
    assert kinds["Consultation"]["color"] == "#008080"
    assert kinds["Vaccination"]["color"] == "#FFA500"
    assert kinds["Surgery"]["color"] is None


async def test_fact_11_an_appointment_without_minutes_lasts_as_its_type_in_its_room(
    partner: Partner, clinic: Clinic
) -> None:
    """Without the fallback it would have no end."""
    visit = visit_of(clinic, lambda e: e.id % 6 == 2 and e.vet % 2 and e.minutes > 30)
    rows = await clinic.rows('SELECT "Minutes" FROM "Appointment" WHERE "Id" = $1', visit.id)
    assert rows[0]["Minutes"] is None
    record = await get(partner, clinic, "appointments", visit.id)
    assert record["endTime"] == shown(visit.start + timedelta(minutes=visit.minutes))


async def test_fact_12_times_are_utc_whatever_the_server_s_clock_shows(
    partner: Partner, clinic: Clinic
) -> None:
    """As the clinic's own time, or as the server's, every visit would be hours away."""
    zone = await clinic.rows("SHOW timezone")
    assert zone[0]["TimeZone"] == "Asia/Kolkata"
    visit = visit_of(clinic, lambda each: each.start < clinic.practice.now)
    record = await get(partner, clinic, "appointments", visit.id)
    assert record["scheduledAt"] == shown(visit.start)
    assert record["createdAt"] == shown(visit.created)


async def test_fact_12_seconds_since_1970_and_their_zero(partner: Partner, clinic: Clinic) -> None:
    """1795244520 is no date; 0 would be the first of January 1970."""
    animal = animal_of(clinic, lambda each: True)
    assert (await get_patient(partner, animal))["createdAt"] == shown(animal.created)
    rows = await clinic.rows('SELECT "Id", "ValidatedEpoch" FROM "Consultation" ORDER BY 2')
    open_, closed = rows[0], rows[-1]
    assert open_["ValidatedEpoch"] == 0
    record = await get(partner, clinic, "consultations", open_["Id"])
    assert (record["validatedAt"], record["status"]) == (None, "IN_PROGRESS")
    record = await get(partner, clinic, "consultations", closed["Id"])
    when = datetime.fromtimestamp(closed["ValidatedEpoch"], UTC).replace(tzinfo=None)
    assert record["validatedAt"] == f"{when.isoformat()}Z"


async def test_fact_13_what_has_no_time_of_change_says_so(partner: Partner, clinic: Clinic) -> None:
    """Invented, an updatedAt would make partners miss every change."""
    animal = animal_of(clinic, lambda each: True)
    assert (await get_patient(partner, animal))["updatedAt"] is None
    since = shown(clinic.practice.now)
    assert (await partner.get("/patients", updatedSince=since)).status == 400
    assert (await partner.get("/clients", updatedSince=since)).status == 200


async def test_fact_13_a_page_loses_nobody_of_those_who_came_in_one_moment(
    partner: Partner, clinic: Clinic
) -> None:
    """Sorted by their creation alone, clients of the takeover would be lost between two pages."""
    rows = await clinic.rows('SELECT count(*) AS n FROM "Contact" GROUP BY "CreatedUtc" ORDER BY 1')
    assert rows[-1]["n"] > 20
    page = await partner.get("/clients", limit="7")
    found = [each["id"] for each in page.data]
    while link := page.headers.get("Link"):
        page = await partner.send("GET", link[1:].partition(">")[0].partition("/api/v1")[2])
        found += [each["id"] for each in page.data]
    there = sum(not each.gone for each in clinic.practice.clients)
    assert len(found) == len(set(found)) == there


async def test_fact_14_a_company_has_its_name_in_another_column(
    partner: Partner, clinic: Clinic
) -> None:
    """Its last name is '', which is not NULL."""
    company = client_of(clinic, lambda each: each.first is None)
    record = await get(partner, clinic, "clients", company.id)
    assert (record["lastName"], record["firstName"]) == (company.last, None)


async def test_fact_15_codes_are_shown_by_their_labels_in_one_language(
    partner: Partner, clinic: Clinic
) -> None:
    """'felis' is nothing to a partner; joined to every language, an animal would be two."""
    cat = animal_of(clinic, lambda each: each.species == 1)
    assert (await get_patient(partner, cat))["species"] == "Cat"
    labels = {each["species"] for each in await everything(partner, "/patients")}
    assert labels == {"Dog", "Cat", "Rabbit", "Bird"}
    planned = visit_of(clinic, lambda each: each.state == "planned")
    record = await get(partner, clinic, "appointments", planned.id)
    assert (record["status"], record["displayStatus"]) == ("SCHEDULED", "Booked")


async def test_fact_15_minus_one_is_yes(partner: Partner, clinic: Clinic) -> None:
    """-1 is neither 1 nor true."""
    for neutered in (True, False, None):
        animal = animal_of(clinic, lambda each, n=neutered: each.neutered is n)
        assert (await get_patient(partner, animal))["neutered"] is neutered


async def test_fact_16_a_draft_s_totals_are_the_sums_of_its_lines(
    partner: Partner, clinic: Clinic
) -> None:
    """A draft has none of its own: it would come to nothing at all."""
    draft = bill_of(clinic, lambda each: each.state == "draft")
    record = await get(partner, clinic, "invoices", draft.id)
    assert (record["status"], record["number"], record["issuedAt"]) == ("DRAFT", None, None)
    assert record["subtotal"] == f"{draft.net / 100:.2f}"
    assert record["total"] == f"{(draft.net + draft.tax) / 100:.2f}"


async def test_fact_16_paid_is_what_was_allocated_not_what_was_paid(
    partner: Partner, clinic: Clinic
) -> None:
    """Every eighth payment was for more than its invoice: the balance would be below zero."""
    bill = bill_of(clinic, lambda each: each.state == "paid" and each.id % 8 == 0 and each.net > 0)
    record = await get(partner, clinic, "invoices", bill.id)
    assert (record["status"], record["balance"]) == ("PAID", "0.00")
    assert record["amountPaid"] == f"{bill.paid / 100:.2f}"
    assert sum(round(float(each["amount"]) * 100) for each in record["payments"]) == bill.paid
    part = bill_of(clinic, lambda each: each.state == "part" and each.net > 0)
    assert (await get(partner, clinic, "invoices", part.id))["status"] == "PARTIALLY_PAID"
    open_ = bill_of(clinic, lambda each: each.state == "open")
    assert (await get(partner, clinic, "invoices", open_.id))["status"] == "ISSUED"


async def test_fact_16_a_credit_note_is_below_zero_and_may_be_settled(
    partner: Partner, clinic: Clinic
) -> None:
    """-5 < -10 is not true: a settled credit note would be partly paid for good."""
    credit = bill_of(clinic, lambda each: each.net < 0 and each.state == "paid")
    record = await get(partner, clinic, "invoices", credit.id)
    assert record["status"] == "PAID"
    assert record["total"].startswith("-")


async def test_fact_16_the_animal_stands_on_the_line_as_text(
    partner: Partner, clinic: Clinic
) -> None:
    """'contact:12' is no animal; 'patient:4f1c...' is one, behind its first eight letters."""
    bill = bill_of(clinic, lambda each: len({line.animal is None for line in each.lines}) == 2)
    before = await troubles(partner)
    record = await get(partner, clinic, "invoices", bill.id)
    assert await troubles(partner) == before
    wanted = [None if each.animal is None else str(patient_id(each.animal)) for each in bill.lines]
    assert [each["patientId"] for each in record["lines"]] == wanted
    assert {each["taxRate"] for each in record["lines"]} == {"21.00"}


async def test_fact_17_what_there_is_follows_from_the_moves_in_the_tree(
    partner: Partner, clinic: Clinic
) -> None:
    """Summed up without their direction, moves within the clinic would make things more."""
    own = {1, 2, 3, 4, 5}
    there: dict[str, Any] = {}
    for move in await clinic.rows('SELECT * FROM "Move"'):
        sign = (move["To"] in own) - (move["From"] in own)
        code = move["ArticleCode"]
        there[code] = there.get(code, 0) + sign * move["Quantity"]
    items = await everything(partner, "/stock")
    assert {each["reference"]: each["quantity"] for each in items} == {
        each["reference"]: int(there.get(each["reference"], 0)) for each in items
    }
    assert any(each["quantity"] < 0 for each in items)
    least = await clinic.rows(
        'SELECT "ArticleCode", sum("Quantity") AS n FROM "Minimum" GROUP BY 1'
    )
    minimum = {each["ArticleCode"]: int(each["n"]) for each in least}
    assert {each["reference"]: each["reorderThreshold"] for each in items} == {
        each["reference"]: minimum.get(each["reference"]) for each in items
    }
    low = {each["reference"] for each in await everything(partner, "/stock/low")}
    assert low == {code for code, n in minimum.items() if there.get(code, 0) <= n} & {
        each["reference"] for each in items
    }


async def test_fact_18_what_is_hidden_is_gone_but_stands_on_what_was(
    partner: Partner, clinic: Clinic
) -> None:
    """`Hide` is NULL for half of all animals: NOT "Hide" alone would hide those too."""
    hidden = next(each for each in clinic.practice.animals if each.deleted)
    assert (await partner.get(f"/patients/{patient_id(hidden.id)}")).status == 404
    for even in (0, 1):
        there = animal_of(clinic, lambda each, even=even: each.id % 2 == even)
        assert (await get_patient(partner, there))["name"] == there.name
    gone = next(each for each in clinic.practice.clients if each.gone)
    assert (await partner.get(f"/clients/{clinic.sealed('clients', gone.id)}")).status == 404
    assert await article(partner, 20) is None
    former = clinic.sealed("vets", FORMER_VET)
    soon = (clinic.practice.today + timedelta(days=30)).isoformat()
    answer = await partner.get("/appointments/available-slots", vetId=former, date=soon)
    assert answer.status == 404
    visit = visit_of(clinic, lambda each: each.state == "done" and each.id % 90 == 34)
    assert (await get(partner, clinic, "appointments", visit.id))["vetId"] == former


async def test_fact_19_names_are_mixed_in_case_and_have_blanks(
    partner: Partner, clinic: Clinic
) -> None:
    """Unquoted, PostgreSQL knows no PatientUUID, and "Chip No" is two words."""
    chipped = animal_of(clinic, lambda each: each.chip)
    assert (await get_patient(partner, chipped))["microchip"] == chipped.chip


async def test_the_account_may_write_nothing_but_a_booking(clinic: Clinic) -> None:
    name = clinic.url.rsplit("/", 1)[1]
    rows = await clinic.rows(
        "SELECT table_name, privilege_type FROM information_schema.role_table_grants"
        " WHERE grantee = $1 AND privilege_type <> 'SELECT'", f"{name}_gateway",
    )  # fmt: skip
    assert {(each["table_name"], each["privilege_type"]) for each in rows} == {
        ("Appointment", "INSERT"),
        ("Appointment", "UPDATE"),
        ("AppointmentLog", "INSERT"),
    }


async def test_one_command_makes_it_and_serves_it(tmp_path: Path) -> None:
    shown = await asyncio.to_thread(
        started, "examples.postgres_slots", "postgresql", tmp_path / "state"
    )
    assert shown["ids"].keys() == {"CLIENT", "PATIENT", "VET", "DAY", "SLOT"}
    assert shown["status"] == 200
    assert shown["private"]
    assert shown["ids"]["SLOT"] == shown["first"]
