"""Booking in the sample clinic: only what is offered, whole or not at all, never twice."""

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from adapters.base import (
    BackendNonsense,
    BackendUnavailable,
    Draft,
    NotFound,
    OutcomeUnknown,
    Record,
    SlotTaken,
    Trouble,
)
from adapters.sample import MAPPING
from adapters.sql.adapter import SqlAdapter
from adapters.sql.engines.connection import OpenConnection
from adapters.sql.engines.sqlite import SqliteLane
from tests.adapters.asked import asked
from tests.adapters.clinic import (
    NOW,
    WITHOUT_REFERENCE,
    a_draft,
    ask,
    connect,
    mapping_without,
    run,
    slots,
)


async def test_a_booking_reads_back_as_asked_and_takes_its_slot(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    made = await adapter.create_appointment(draft)
    assert made == await adapter.read_one(ask("appointments", id=made["id"]))
    assert (made["status"], made["isUrgent"], made["reason"]) == (
        "SCHEDULED",
        True,
        "Boite depuis hier\nà gauche",
    )
    assert (made["clientId"], made["patientId"], made["vetId"]) == (
        draft.client_id,
        draft.patient_id,
        draft.vet_id,
    )
    starts = [each["startTime"] for each in await slots(adapter, draft.vet_id, _day(draft))]
    assert made["scheduledAt"] not in starts
    with pytest.raises(SlotTaken):
        await adapter.create_appointment(draft)


async def test_a_booking_writes_every_row_that_the_product_would(
    adapter: SqlAdapter, database: Path
) -> None:
    number = run(database, "SELECT VALEUR FROM COMPTEURS WHERE NOM = 'RDV'")[0][0] + 1
    await adapter.create_appointment(await a_draft(adapter))
    row = run(database, "SELECT ID_RDV, NUM_RDV, STATUT FROM RDV ORDER BY ID_RDV DESC LIMIT 1")[0]
    assert row[1].endswith(f"-{number:06d}")
    assert row[2] == "P"
    journal = run(database, "SELECT ACTION, QUI FROM RDV_JOURNAL WHERE ID_RDV = ?", row[0])
    assert journal == [("C", "PASSERELLE")]


@pytest.mark.parametrize("broken", ["RDV_JOURNAL", "COMPTEURS"])
async def test_a_booking_that_cannot_be_written_whole_is_not_written_at_all(
    adapter: SqlAdapter, database: Path, broken: str
) -> None:
    draft = await a_draft(adapter)
    run(database, f"ALTER TABLE {broken} RENAME TO AWAY")
    with pytest.raises((BackendNonsense, BackendUnavailable)):
        await adapter.create_appointment(draft)
    assert run(database, "SELECT count(*) FROM RDV") == [(2_500,)]
    run(database, f"ALTER TABLE AWAY RENAME TO {broken}")
    assert await adapter.create_appointment(draft)


async def test_a_booking_that_reads_back_differently_is_withdrawn(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    run(database, "CREATE TRIGGER MOVED AFTER INSERT ON RDV BEGIN UPDATE RDV"
        " SET D_DEBUT = '2026-01-01 10:00:00' WHERE ID_RDV = NEW.ID_RDV; END")  # fmt: skip
    with pytest.raises(BackendNonsense):
        await adapter.create_appointment(draft)
    assert run(database, "SELECT count(*) FROM RDV") == [(2_500,)]


async def test_who_is_not_there_or_not_the_owner_is_not_found(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    others = (await adapter.read_many(ask("clients", limit=10))).records
    other = next(each["id"] for each in others if each["id"] != draft.client_id)
    kind = (await adapter.read_many(ask("appointmentTypes"))).records[0]["id"]
    wrong = [
        replace(draft, client_id=other),
        replace(draft, client_id=draft.patient_id),
        replace(draft, patient_id=kind),
        replace(draft, vet_id=draft.client_id),
        replace(draft, appointment_type_id=draft.vet_id),
    ]
    for each in wrong:
        with pytest.raises(NotFound):
            await adapter.create_appointment(each)
    assert run(database, "SELECT count(*) FROM RDV") == [(2_500,)]


async def test_what_is_not_offered_is_taken(adapter: SqlAdapter) -> None:
    draft = await a_draft(adapter)
    night = datetime.combine(_day(draft), datetime.min.time(), UTC) + timedelta(hours=2)
    for start in (
        draft.scheduled_at + timedelta(minutes=1),
        draft.scheduled_at + timedelta(microseconds=1),
        night,
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ):
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(replace(draft, scheduled_at=start))
    later = draft.scheduled_at + timedelta(minutes=30)
    with pytest.raises(SlotTaken):
        await adapter.create_appointment(replace(draft, now=later))


async def test_a_cancelled_or_missed_appointment_frees_its_slot(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    for status in "AN":
        await adapter.create_appointment(draft)
        run(
            database,
            "UPDATE RDV SET STATUT = ? WHERE ID_RDV = (SELECT MAX(ID_RDV) FROM RDV)",
            status,
        )
    run(database, "UPDATE RDV SET STATUT = NULL WHERE ID_RDV = (SELECT MAX(ID_RDV) FROM RDV)")
    with pytest.raises(SlotTaken):
        await adapter.create_appointment(draft)


async def test_an_absence_and_an_appointment_without_end_block(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    day = _day(draft)
    whole = await slots(adapter, draft.vet_id, day)
    made = await adapter.create_appointment(draft)
    run(database, "UPDATE RDV SET D_FIN = '0000-00-00 00:00:00'"
        " WHERE ID_RDV = (SELECT MAX(ID_RDV) FROM RDV)")  # fmt: skip
    left = await slots(adapter, draft.vet_id, day)
    assert made["scheduledAt"] not in [each["startTime"] for each in left]
    assert 0 < len(left) < len(whole)
    vet = run(database, "SELECT ID_VETO FROM RDV ORDER BY ID_RDV DESC LIMIT 1")[0][0]
    start, end = f"{day - timedelta(days=40)} 00:00:00", f"{day + timedelta(days=1)} 00:00:00"
    run(
        database, "INSERT INTO ABSENCES (ID_VETO, D_DEBUT, D_FIN) VALUES (?, ?, ?)", vet, start, end
    )
    assert await slots(adapter, draft.vet_id, day) == []


async def test_two_hundred_racing_bookings_leave_no_overlap(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    kinds = [None, *(e["id"] for e in (await adapter.read_many(ask("appointmentTypes"))).records)]
    chance = random.Random(7)
    other = connect(database)  # a second process would hold the file just so

    async def attempt() -> Record | None:
        start = draft.scheduled_at + chance.randrange(16) * timedelta(minutes=15)
        wanted = replace(draft, scheduled_at=start, appointment_type_id=chance.choice(kinds))
        try:
            return await chance.choice((adapter, other)).create_appointment(wanted)
        except SlotTaken:
            return None

    made = [each for each in await asyncio.gather(*(attempt() for _ in range(200))) if each]
    await other.aclose()
    assert len(made) > 1
    assert run(database, "SELECT count(*) FROM RDV") == [(2_500 + len(made),)]
    busy = sorted((each["scheduledAt"], each["endTime"]) for each in made)
    assert all(first[1] <= second[0] for first, second in pairwise(busy))
    vet = run(database, "SELECT ID_VETO FROM RDV ORDER BY ID_RDV DESC LIMIT 1")[0][0]
    overlaps = run(
        database,
        "SELECT a.ID_RDV, b.ID_RDV FROM RDV a JOIN RDV b ON a.ID_VETO = b.ID_VETO"
        " AND a.ID_RDV < b.ID_RDV AND a.D_DEBUT < b.D_FIN AND b.D_DEBUT < a.D_FIN"
        " WHERE a.ID_VETO = ? AND COALESCE(a.STATUT, 'P') NOT IN ('A', 'N')"
        " AND COALESCE(b.STATUT, 'P') NOT IN ('A', 'N')",
        vet,
    )
    assert overlaps == []


async def test_a_booking_waits_for_the_desk_and_gives_way_to_it(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    start = draft.scheduled_at.astimezone(adapter.converters.zone).strftime("%Y-%m-%d %H:%M:%S")
    vet = adapter.readers["vets"].keys_of(draft.vet_id)[0]
    desk = sqlite3.connect(database, isolation_level=None)
    desk.execute("BEGIN IMMEDIATE")
    attempt = asyncio.create_task(adapter.create_appointment(draft))
    await asyncio.sleep(0)  # it is on its way to the lock that the desk holds
    desk.execute(
        "INSERT INTO RDV (ID_VETO, D_DEBUT, D_FIN, STATUT) VALUES (?, ?, NULL, 'P')", (vet, start)
    )
    desk.execute("COMMIT")
    desk.close()
    with pytest.raises(SlotTaken):
        await attempt


async def test_a_desk_that_never_lets_go_leaves_nothing_booked(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    hurried = connect(database, booking_timeout=0.01)
    desk = sqlite3.connect(database, isolation_level=None)
    desk.execute("BEGIN IMMEDIATE")
    with pytest.raises(BackendUnavailable):
        await hurried.create_appointment(draft)
    desk.execute("ROLLBACK")
    desk.close()
    await hurried.aclose()
    assert run(database, "SELECT count(*) FROM RDV") == [(2_500,)]


async def test_a_booking_that_takes_too_long_is_undone_and_certainly_not_made(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    run(database, "CREATE TRIGGER SLOW AFTER INSERT ON RDV BEGIN UPDATE RDV SET MOTIF = ("
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)"
        " SELECT count(*) FROM n); END")  # fmt: skip
    hurried = connect(database, booking_timeout=0.05)
    with pytest.raises(BackendUnavailable):
        await hurried.create_appointment(draft)
    await hurried.aclose()
    assert run(database, "SELECT count(*) FROM RDV") == [(2_500,)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("SQLITE_IOERR_WRITE", OutcomeUnknown), ("SQLITE_BUSY_SNAPSHOT", BackendUnavailable)],
)
async def test_a_commit_that_fails_is_of_unknown_outcome_unless_the_error_says_otherwise(
    adapter: SqlAdapter, monkeypatch: pytest.MonkeyPatch, name: str, expected: type[Exception]
) -> None:
    draft = await a_draft(adapter)
    fetch = SqliteLane.fetch

    def fail(self: SqliteLane, opened: OpenConnection, text: str, bound: Any) -> Any:
        if text == "COMMIT" and self.booking:
            error = sqlite3.OperationalError("no")
            error.sqlite_errorname = name
            raise error
        return fetch(self, opened, text, bound)

    monkeypatch.setattr(SqliteLane, "fetch", fail)
    with pytest.raises(expected):
        await adapter.create_appointment(draft)


async def test_who_has_left_is_not_found_though_the_id_was_once_good(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    client = adapter.readers["clients"].keys_of(draft.client_id)[0]
    vet = adapter.readers["vets"].keys_of(draft.vet_id)[0]
    run(database, "UPDATE PERSONNES SET ACTIF = 'N' WHERE ID_PERS = ?", client)
    with pytest.raises(NotFound):
        await adapter.create_appointment(draft)
    with pytest.raises(NotFound):
        await adapter.read_many(ask("invoices", within=("clients", draft.client_id)))
    run(database, "UPDATE PERSONNES SET ACTIF = 'O' WHERE ID_PERS = ?", client)
    run(database, "UPDATE PERSONNES SET ACTIF = 'N' WHERE ID_PERS = ?", vet)
    with pytest.raises(NotFound):
        await slots(adapter, draft.vet_id, _day(draft))
    with pytest.raises(NotFound):
        await adapter.create_appointment(draft)


async def test_every_slot_of_a_night_of_25_hours_is_offered(
    adapter: SqlAdapter, database: Path
) -> None:
    vet = run(database, "SELECT ID_VETO FROM HORAIRES WHERE H_FIN <= H_DEBUT AND JOUR = 6")[0][0]
    public = adapter.readers["vets"].table.ids.shown(vet)
    free = await slots(adapter, public, date(2026, 10, 25))
    starts = [datetime.fromisoformat(each["startTime"]) for each in free]
    assert starts[0] == datetime(2026, 10, 24, 22, tzinfo=UTC)  # midnight
    quarter = timedelta(minutes=15)
    assert starts == [starts[0] + number * quarter for number in range(len(starts))]
    walls = [f"{each.astimezone(ZoneInfo('Europe/Paris')):%H:%M}" for each in starts]
    assert walls.count("02:30") == 2
    assert walls.count("03:30") == 1


@pytest.fixture
async def plain(database: Path) -> AsyncIterator[SqlAdapter]:
    """The same practice system, did it keep no reference of the gateway's."""
    opened = connect(database, mapping=mapping_without(*WITHOUT_REFERENCE))
    yield opened
    await opened.aclose()


async def test_without_a_reference_a_lost_booking_is_found_by_what_was_asked_and_when(
    plain: SqlAdapter,
) -> None:
    draft = await a_draft(plain)
    assert await plain.find_appointments(draft, NOW) == []
    made = await plain.create_appointment(draft)
    assert await plain.find_appointments(draft, NOW) == [made]
    assert await plain.find_appointments(draft, NOW + timedelta(seconds=1)) == []


async def test_what_the_desk_gave_to_another_animal_is_not_shown_to_who_booked_it(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    await adapter.create_appointment(draft)
    run(database, "UPDATE RDV SET ID_ANIMAL = ID_ANIMAL + 1 WHERE REF_EXT = ?", draft.reference)
    assert await adapter.find_appointments(draft, NOW) == []


async def test_with_a_reference_it_is_found_whatever_the_desk_made_of_it_and_no_other(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    twin = replace(draft, reference="fedcba9876543210")
    made = await adapter.create_appointment(draft)
    assert await adapter.find_appointments(twin, NOW - timedelta(days=1)) == []
    run(database, "UPDATE RDV SET MOTIF = 'x', ID_TYPE = 2, D_DEBUT = '2026-01-01 10:00:00',"
        " DT_SAISIE = NULL WHERE REF_EXT = ?", draft.reference)  # fmt: skip
    [found] = await adapter.find_appointments(draft, NOW + timedelta(days=1))
    assert (found["id"], found["reason"]) == (made["id"], "x")


async def test_in_the_hour_that_comes_twice_ones_own_booking_is_found(plain: SqlAdapter) -> None:
    second_time = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)  # 02:30, shown for the second time
    draft = await a_draft(plain, now=second_time)
    free = await slots(plain, draft.vet_id, date(2026, 10, 27), now=second_time)
    draft = replace(draft, scheduled_at=datetime.fromisoformat(free[0]["startTime"]))
    made = await plain.create_appointment(draft)
    assert await plain.find_appointments(draft, second_time) == [made]


def _day(draft: Draft) -> date:
    return draft.scheduled_at.date()


# what stands in a row of absences on the draft's day, and which of the day's starts are left
DOUBTS = [
    ("2026-00-00 09:00:00", "{day} 23:00:00", "none"),
    ("{first}", "soon", "but two"),  # half an hour, the default, overlaps two starts of the grid
    ("{french}", "{french}", "none"),
    ("{bare}", "{bare}", "none"),
    ("{first}+01:00", "{first}+01:00", "none"),
    ("1789000000", None, "none"),
    (1789000000, 1789003600, "none"),
    (b"\xa0{day}", None, "none"),
    (None, "{day} 23:00:00", "none"),
    ("0000-00-00", "{day} 23:00:00", "none"),
    ("", "soon", "none"),
    (None, None, "all"),
    ("0000-00-00", "0000-00-00", "all"),
    (None, "2020-01-01 10:00:00", "all"),
    ("{day}", "{day}", "none"),  # a day is whole
    ("2026-01-01 08:00:00", None, "none"),  # nobody has written when the vet is back
    ("2026-01-01 08:00:00", "0000-00-00 00:00:00", "none"),
]


@pytest.mark.parametrize("longest", [None, 2])
@pytest.mark.parametrize(("start", "end", "left"), DOUBTS)
async def test_in_doubt_a_row_of_the_diary_blocks(
    database: Path, start: Any, end: Any, left: str, longest: int | None
) -> None:
    mapping = MAPPING.read_text()
    assert "endless: true" in mapping
    if longest is not None:
        mapping = mapping.replace("endless: true", f"endless: true\n      longest: {longest}")
    troubles: list[Trouble] = []
    adapter = connect(database, troubles, mapping=mapping)
    draft = await a_draft(adapter)
    vet = adapter.readers["vets"].keys_of(draft.vet_id)[0]
    day = _day(draft)
    before = await slots(adapter, draft.vet_id, day)
    first = datetime.fromisoformat(before[0]["startTime"]).astimezone(ZoneInfo("Europe/Paris"))
    shown = {"day": day, "first": f"{first:%Y-%m-%d %H:%M:%S}", "french": f"{day:%d/%m/%Y}",
             "bare": f"{day:%Y%m%d}"}  # fmt: skip

    def written(value: Any) -> Any:
        return value.format_map(shown) if isinstance(value, str) else value

    run(database, "INSERT INTO ABSENCES (ID_VETO, D_DEBUT, D_FIN) VALUES (?, ?, ?)",
        vet, written(start), written(end))  # fmt: skip
    troubles.clear()
    after = await slots(adapter, draft.vet_id, day)
    await adapter.aclose()
    assert after == {"none": [], "but two": before[2:], "all": before}[left]
    unreadable = Trouble("unreadable", "slots", "diary.busy", "")
    assert set(troubles) <= {unreadable}
    if start not in (None, "") and not str(start).startswith(("0000", "2026-01", "{day}")):
        assert troubles


@pytest.mark.parametrize(
    "other",
    [{"reason": "another partner's"}, {"is_urgent": False}, {"appointment_type_id": "kind"}],
)
async def test_the_booking_of_somebody_else_is_not_found_as_ones_own(
    plain: SqlAdapter, other: dict[str, Any]
) -> None:
    draft = await a_draft(plain)
    if "appointment_type_id" in other:
        kinds = (await plain.read_many(ask("appointmentTypes"))).records
        other = {"appointment_type_id": next(k["id"] for k in kinds if k["durationMinutes"] == 30)}
    await plain.create_appointment(replace(draft, **other))
    assert await plain.find_appointments(draft, NOW) == []


@pytest.mark.parametrize("reason", [None, "", "  ", "cough"])
async def test_a_booking_is_found_as_ones_own_whatever_became_of_it(
    plain: SqlAdapter, database: Path, reason: str | None
) -> None:
    draft = await a_draft(plain, reason=reason)
    made = await plain.create_appointment(draft)
    assert await plain.find_appointments(draft, NOW) == [made]
    run(database, "UPDATE RDV SET STATUT = 'A' WHERE ID_RDV = (SELECT MAX(ID_RDV) FROM RDV)")
    [found] = await plain.find_appointments(draft, NOW)
    assert (found["id"], found["status"]) == (made["id"], "CANCELLED")


async def test_a_booking_that_the_mapping_does_not_show_is_withdrawn_and_no_404(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    run(database, "CREATE TRIGGER GONE AFTER INSERT ON RDV BEGIN"
        " DELETE FROM RDV WHERE ID_RDV = NEW.ID_RDV; END")  # fmt: skip
    with pytest.raises(BackendNonsense):
        await adapter.create_appointment(draft)


async def test_a_booking_that_the_diary_does_not_see_is_withdrawn(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    seen = "where: TRIM(COALESCE(r.STATUT, 'P')) NOT IN ('A', 'N')"
    assert seen in MAPPING.read_text()
    blind = MAPPING.read_text().replace(seen, "where: r.STATUT = 'C'")
    other = connect(database, mapping=blind)
    with pytest.raises(BackendNonsense, match="blocks nothing"):
        await other.create_appointment(draft)
    await other.aclose()
    assert run(database, "SELECT count(*) FROM RDV") == [(2_500,)]


@pytest.mark.parametrize(
    ("start", "end"),
    [("\n {start}", None), (" {start}", " {end} "), ("{start}", "\t{end}"), ("{iso}", "{end}")],
)
async def test_blanks_round_a_time_and_a_t_inside_it_hide_nothing_from_the_diary(
    adapter: SqlAdapter, database: Path, start: str, end: str | None
) -> None:
    draft = await a_draft(adapter)
    paris = draft.scheduled_at.astimezone(ZoneInfo("Europe/Paris"))
    shown = {
        "start": f"{paris:%Y-%m-%d %H:%M:%S}",
        "iso": f"{paris:%Y-%m-%dT%H:%M:%S}",
        "end": f"{paris + timedelta(minutes=30):%Y-%m-%d %H:%M:%S}",
    }
    vet = adapter.readers["vets"].keys_of(draft.vet_id)[0]
    run(database, "INSERT INTO RDV (ID_VETO, D_DEBUT, D_FIN, STATUT) VALUES (?, ?, ?, 'P')",
        vet, start.format_map(shown), end and end.format_map(shown))  # fmt: skip
    with pytest.raises(SlotTaken):
        await adapter.create_appointment(draft)


async def test_at_midnight_too_a_t_between_day_and_time_hides_nothing(
    adapter: SqlAdapter, database: Path
) -> None:
    vet = run(database, "SELECT ID_VETO FROM HORAIRES WHERE H_FIN <= H_DEBUT AND JOUR = 6")[0][0]
    public = adapter.readers["vets"].table.ids.shown(vet)
    last = "2026-03-07T22:45:00Z"  # 23:45 on the Saturday, until 00:15 on the Sunday
    saturday = date(2026, 3, 7)
    assert last in [each["startTime"] for each in await slots(adapter, public, saturday)]
    run(database, "INSERT INTO ABSENCES (ID_VETO, D_DEBUT, D_FIN) VALUES (?, ?, ?)",
        vet, "2026-03-08T00:10:00", "2026-03-08T00:20:00")  # fmt: skip
    assert last not in [each["startTime"] for each in await slots(adapter, public, saturday)]


@pytest.mark.parametrize("end", ["??", "00:30:00", "1789"])
async def test_an_end_that_cannot_be_read_leaves_the_minutes_to_say_how_long(
    adapter: SqlAdapter, database: Path, end: str
) -> None:
    draft = await a_draft(adapter)
    vet = adapter.readers["vets"].keys_of(draft.vet_id)[0]
    [(kind, minutes)] = run(
        database, "SELECT ID_TYPE, MAX(DUREE_MIN) FROM TYPES_RDV WHERE ACTIF = 'O'"
    )
    paris = draft.scheduled_at.astimezone(ZoneInfo("Europe/Paris"))
    run(database, "INSERT INTO RDV (ID_VETO, ID_TYPE, D_DEBUT, D_FIN, STATUT)"
        " VALUES (?, ?, ?, ?, 'P')", vet, kind, f"{paris:%Y-%m-%d %H:%M:%S}", end)  # fmt: skip
    assert minutes > 30
    free = await slots(adapter, draft.vet_id, _day(draft))
    over = draft.scheduled_at + timedelta(minutes=minutes)
    starts = [datetime.fromisoformat(each["startTime"]) for each in free]
    assert min(starts) >= over


async def test_in_the_night_that_loses_an_hour_an_absence_lasts_to_its_end(
    adapter: SqlAdapter, database: Path
) -> None:
    vet = run(database, "SELECT ID_VETO FROM HORAIRES WHERE H_FIN <= H_DEBUT AND JOUR = 6")[0][0]
    public = adapter.readers["vets"].table.ids.shown(vet)
    run(database, "INSERT INTO ABSENCES (ID_VETO, D_DEBUT, D_FIN) VALUES (?, ?, ?)",
        vet, "2026-03-28 20:00:00", "2026-03-29 02:30:00")  # fmt: skip
    free = await slots(adapter, public, date(2026, 3, 29))
    # 02:30 does not exist: it is 03:30, which is 01:30 in UTC
    assert min(each["startTime"] for each in free) == "2026-03-29T01:30:00Z"


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("STATUT: P", "STATUT: C", "another status"),
        ("STATUT: P", "STATUT: Z", "another status"),
        ("URGENT: {draft: isUrgent, yes: [O], no: [N]}", "URGENT: N", "another isUrgent"),
        ("MOTIF: {draft: reason}", "MOTIF: x", "another reason"),
        ("reference: r.REF_EXT", "reference: r.MOTIF", "is not found by its reference"),
    ],
)
async def test_a_mapping_that_writes_something_else_books_nothing(
    adapter: SqlAdapter, database: Path, right: str, wrong: str, said: str
) -> None:
    draft = await a_draft(adapter)
    text = MAPPING.read_text()
    assert right in text
    other = connect(database, mapping=text.replace(right, wrong, 1))
    with pytest.raises(BackendNonsense, match=said):
        await other.create_appointment(draft)
    await other.aclose()
    assert run(database, "SELECT count(*) FROM RDV") == [(2_500,)]


async def test_what_no_code_stands_for_is_not_written_and_the_outcome_is_known(
    adapter: SqlAdapter, database: Path
) -> None:
    draft = await a_draft(adapter)
    text = MAPPING.read_text()
    coded = text.replace("MOTIF: {draft: reason}", "MOTIF: {draft: reason, codes: {T: cough}}")
    other = connect(database, mapping=coded)
    with pytest.raises(BackendNonsense, match="no way to write this reason"):
        await other.create_appointment(draft)
    await other.aclose()


async def test_the_diary_is_read_by_its_index_and_not_whole(
    adapter: SqlAdapter, database: Path
) -> None:
    vet = run(database, "SELECT ID_VETO FROM HORAIRES LIMIT 1")[0][0]
    public = adapter.readers["vets"].table.ids.shown(vet)
    with asked() as said:
        await slots(adapter, public, date(2026, 3, 9))
    diary = [each for each in said if "RDV r" in each[0]]
    assert len(diary) == 2
    with closing(sqlite3.connect(database)) as connection:
        plans = [
            str(connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall())
            for statement, values in diary
        ]
    assert "IX_RDV_VETO (ID_VETO=? AND D_DEBUT>? AND D_DEBUT<?)" in plans[0]
    assert "IX_RDV_VETO (ID_VETO=?" in plans[1]


@pytest.mark.parametrize(
    ("column", "value"), [("H_DEBUT", "08:00+02:00"), ("JOUR", 9e999), ("JOUR", 8), ("H_FIN", "x")]
)
async def test_a_shift_that_cannot_be_read_opens_nothing_harms_no_other_and_is_reported(
    adapter: SqlAdapter, database: Path, troubles: list[Trouble], column: str, value: object
) -> None:
    draft = await a_draft(adapter)
    before = await slots(adapter, draft.vet_id, _day(draft))
    vet = adapter.readers["vets"].keys_of(draft.vet_id)[0]
    broken = {"ID_VETO": vet, "JOUR": 1, "H_DEBUT": "08:00", "H_FIN": "20:00"} | {column: value}
    columns, marks = ", ".join(broken), ", ".join("?" * len(broken))
    run(database, f"INSERT INTO HORAIRES ({columns}) VALUES ({marks})", *broken.values())
    troubles.clear()
    assert await slots(adapter, draft.vet_id, _day(draft)) == before
    assert set(troubles) == {Trouble("unreadable", "slots", "diary.hours", "")}
