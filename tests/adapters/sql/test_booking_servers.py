"""Bookings on servers whose desk takes no lock of ours: in between, in the way, and afterwards."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.engine import make_url

import gateway.booking.reconcile
from adapters.base import (
    Adapter,
    BackendNonsense,
    BackendUnavailable,
    Draft,
    OutcomeUnknown,
    Query,
    SlotTaken,
)
from adapters.documents.problems import DocumentErrors
from adapters.sql.adapter import SqlAdapter
from gateway.settings import BackendSettings
from tests.adapters.servers import execute
from tests.conftest import Start
from tests.partner import Partner
from tests.races.desk import open_till
from tests.races.practice import KINDS, ZONE, Practice, at, practice, working_days

pytestmark = pytest.mark.long

SERVERS = ("postgresql", "mariadb")
DAY = working_days(1, datetime.now(UTC).date())[0]
TEN = at(DAY, 10)
DESKS = (
    "INSERT INTO appointment (vet, kind, starts, ends, state, note, source) VALUES"
    f" (1, 2, '{TEN - timedelta(minutes=15)}', '{TEN + timedelta(minutes=15)}', 'BOOKED', 'desk',"
    " 'desk')"
)
AT_TEN = DESKS.replace(str(TEN - timedelta(minutes=15)), str(TEN))
OF_US = (
    "SELECT (SELECT count(*) FROM appointment WHERE source = 'gateway'),"
    " (SELECT count(*) FROM attendance) - 1, (SELECT count(*) FROM journal)"
)
ONCE = "CREATE UNIQUE INDEX appointment_once ON appointment (vet, starts)"
NOTHING, WHOLE = [(0, 0, 0)], [(1, 1, 1)]


async def a_draft(adapter: Adapter, vet: int = 1) -> Draft:
    """Half an hour at ten."""
    now = datetime.now(UTC).replace(microsecond=0)
    first = {
        name: (await adapter.read_many(Query(resource=name, now=now))).records
        for name in ("vets", "clients", "patients", "appointmentTypes")
    }
    return Draft(
        client_id=first["clients"][0]["id"],
        patient_id=first["patients"][0]["id"],
        vet_id=first["vets"][vet - 1]["id"],
        scheduled_at=TEN.replace(tzinfo=ZONE).astimezone(UTC),
        appointment_type_id=first["appointmentTypes"][1]["id"],
        reason="a test",
        is_urgent=False,
        now=now,
    )


@contextmanager
def before(adapter: SqlAdapter, part: str, act: Callable[[], object]) -> Iterator[list[str]]:
    """Act once, when a booking is about to run a statement with this in it; its statements."""
    engine: Any = adapter.engine.booker._engine  # type: ignore[attr-defined]
    pool = getattr(engine, "sync_engine", engine)
    said: list[str] = []

    def look(*call: Any) -> None:
        first = not any(part in each for each in said)
        said.append(call[2].lower())
        if first and part in said[-1]:
            act()

    event.listen(pool, "before_cursor_execute", look)
    try:
        yield said
    finally:
        event.remove(pool, "before_cursor_execute", look)


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("moment", ["insert into appointment", "insert into journal"])
async def test_what_the_desk_commits_between_check_and_commit_withdraws_the_booking(
    kind: str, moment: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path) as made:
        adapter = made.open(tmp_path)
        draft = await a_draft(adapter)
        with before(adapter, moment, lambda: execute(made.url, DESKS)), pytest.raises(SlotTaken):
            await adapter.create_appointment(draft)
        assert await made.run(OF_US) == NOTHING
        await made.run("UPDATE appointment SET state = 'GONE' WHERE source = 'desk'")
        assert await adapter.create_appointment(draft)
        assert await made.run(OF_US) == WHOLE
        await adapter.aclose()


@pytest.mark.parametrize("kind", SERVERS)
async def test_where_the_tables_themselves_forbid_two_the_second_is_told_that_it_is_taken(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path, ONCE) as made:
        adapter = made.open(tmp_path)
        draft = await a_draft(adapter)
        desk_is_quicker = before(
            adapter, "insert into appointment", lambda: execute(made.url, AT_TEN)
        )
        with desk_is_quicker, pytest.raises(SlotTaken, match="free slots"):
            await adapter.create_appointment(draft)
        assert await made.run(OF_US) == NOTHING
        await adapter.aclose()


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_rule_that_refuses_a_booking_for_good_is_no_conflict_and_does_not_go_on_for_ever(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path, "CREATE UNIQUE INDEX u ON appointment (source)") as made:
        adapter = made.open(tmp_path)
        draft = await a_draft(adapter)
        await adapter.create_appointment(draft)
        next_hour = replace(draft, scheduled_at=draft.scheduled_at + timedelta(hours=1))
        with pytest.raises(BackendNonsense, match="such a row already"):
            await adapter.create_appointment(next_hour)
        assert await made.run(OF_US) == WHOLE
        await adapter.aclose()


COUNTED = """\
    - {counter: numbers, column: value, name: number}
    - insert: journal"""


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_deadlock_with_the_desk_leaves_no_half_booking_and_ends_in_a_plain_answer(
    kind: str, tmp_path: Path
) -> None:
    numbers = ("CREATE TABLE numbers (value INTEGER)", "INSERT INTO numbers VALUES (0)")
    with practice(kind, tmp_path, *numbers, ONCE, pause=0.3) as made:
        quick = "ALTER DATABASE {} SET deadlock_timeout = '50ms'"
        if kind == "postgresql":
            await made.run(quick.format(make_url(made.url).database))
        adapter = made.open(tmp_path, made.mapping.replace("    - insert: journal", COUNTED))
        draft = await a_draft(adapter)
        desk, _ = await open_till(make_url(made.url))
        await desk.run("BEGIN")
        await _be_the_stronger(kind, desk)
        await desk.run("UPDATE numbers SET value = value + 1")
        arrived = asyncio.Event()
        with before(adapter, "sleep(", arrived.set) as said:
            booking = asyncio.create_task(adapter.create_appointment(draft))
            await arrived.wait()
            # waits for the row of the booking, which then waits for the number that the desk holds
            await desk.run(AT_TEN)
            await desk.run("COMMIT")
            with pytest.raises(SlotTaken):
                await booking
        assert sum("_lock(" in each for each in said) > 1
        assert await made.run(OF_US) == NOTHING
        assert await made.run("SELECT value FROM numbers") == [(1,)]
        await desk.aclose()
        await adapter.aclose()


async def _be_the_stronger(kind: str, desk: Any) -> None:
    """So that in a deadlock the other one is undone."""
    if kind == "postgresql":
        await desk.run("SET LOCAL deadlock_timeout = '20s'")
        return
    rows = ", ".join(["('Gauze', 1, 1)"] * 50)
    await desk.run(f"INSERT INTO stock (name, quantity, least) VALUES {rows}")


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_lock_that_is_not_to_be_had_in_time_books_nothing(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path) as made:
        adapter = made.open(tmp_path, booking_timeout=0.3)
        draft = await a_draft(adapter)
        holder = made.open(tmp_path)
        begun = asyncio.Event()
        holding = asyncio.create_task(holder.engine.book(_holds(holder, made, begun)))
        await begun.wait()
        with pytest.raises(BackendUnavailable):
            await adapter.create_appointment(draft)
        assert await made.run(OF_US) == NOTHING
        await holding
        await holder.aclose()
        await adapter.aclose()


def _holds(
    holder: SqlAdapter, made: Practice, begun: asyncio.Event
) -> Callable[[Connection], None]:
    sleep = "SELECT pg_sleep(0.8)" if made.kind == "postgresql" else "SELECT SLEEP(0.8)"

    def work(connection: Connection) -> None:
        holder.engine.speech.lock(connection, "vet:1")
        begun.set()
        connection.execute(text(sleep))

    return work


@pytest.mark.parametrize("kind", SERVERS)
async def test_that_nothing_was_booked_is_said_only_when_no_booking_of_the_vet_is_under_way(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path, pause=0.5) as made:
        adapter, other = made.open(tmp_path), made.open(tmp_path)
        draft, of_another_vet = await a_draft(adapter), await a_draft(adapter, vet=2)
        writing = asyncio.Event()
        assert await other.find_appointments(draft, draft.now) == []
        with before(adapter, "sleep(", writing.set):
            booking = asyncio.create_task(adapter.create_appointment(draft))
            await writing.wait()
            assert await other.find_appointments(of_another_vet, draft.now) == []
            assert not booking.done()
            found = await other.find_appointments(draft, draft.now)
        assert [await booking] == found
        await adapter.aclose()
        await other.aclose()


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Practice]:
    with practice(request.param, tmp_path) as made:
        yield made


async def test_what_the_desk_writes_over_a_booking_is_reported_until_it_is_gone_again(
    kept: Practice,
    start_gateway: Start,
    session: aiohttp.ClientSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(gateway.booking.reconcile, "WATCH_EVERY", 0.05)
    running = await start_gateway(backend=_backend(kept, tmp_path))
    partner = await Partner(running, session, None).with_key()
    draft = await a_draft(running.gateway.adapter)
    booked = await partner.post(
        "/appointments",
        {
            "clientId": draft.client_id,
            "patientId": draft.patient_id,
            "vetId": draft.vet_id,
            "scheduledAt": draft.scheduled_at.isoformat(),
        },
    )
    assert booked.status == 201, booked

    async def overwritten() -> str:
        async with session.get(f"{running.operations}/metrics") as response:
            lines = (await response.text()).splitlines()
        [line] = [each for each in lines if each.startswith("gateway_bookings_overwritten ")]
        return line.split()[1]

    async def becomes(number: str) -> None:
        async with asyncio.timeout(5):
            while float(await overwritten()) != float(number):  # noqa: ASYNC110 - it is a page
                await asyncio.sleep(0.02)

    await becomes("0")
    await kept.run(DESKS)
    await becomes("1")
    said = capfd.readouterr().err
    assert said.count("the practice's desk has written over a booking of a partner's") == 1
    assert booked.data["id"] in said
    moved = f"starts = '{at(DAY, 15)}', ends = '{at(DAY, 16)}'"
    await kept.run(f"UPDATE appointment SET {moved} WHERE note = 'desk'")
    await becomes("0")


def _backend(made: Practice, folder: Path, mapping: str = "") -> BackendSettings:
    file = folder / "mapping.yaml"
    file.write_text(mapping or made.mapping)
    return BackendSettings(url=made.url, mapping=file)  # type: ignore[arg-type]


MYISAM = tuple(f"ALTER TABLE {name} ENGINE = MyISAM" for name in ("appointment", "attendance"))
ALLOWED = "  without_transactions: [appointment, attendance]\n"


async def test_a_table_without_transactions_keeps_the_gateway_from_starting_with_the_line(
    start_gateway: Start, tmp_path: Path
) -> None:
    with practice("mariadb", tmp_path, *MYISAM) as made:
        with pytest.raises(DocumentErrors) as raised:
            await start_gateway("refused", backend=_backend(made, tmp_path))
        lines = made.mapping.splitlines()
        expected = [
            lines.index(f"    - insert: {name}") + 1 for name in ("appointment", "attendance")
        ]
        assert [each.line for each in raised.value.problems] == expected
        assert all("without_transactions" in each.text for each in raised.value.problems)
        await start_gateway("allowed", backend=_backend(made, tmp_path, made.mapping + ALLOWED))


FAILS = (
    "CREATE TRIGGER full BEFORE INSERT ON journal FOR EACH ROW"
    " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'full'"
)


async def test_without_transactions_a_booking_that_fails_half_way_is_taken_back(
    tmp_path: Path,
) -> None:
    with practice("mariadb", tmp_path, *MYISAM) as made:
        adapter = made.open(tmp_path, made.mapping + ALLOWED)
        draft = await a_draft(adapter)
        with (
            before(adapter, "insert into journal", lambda: execute(made.url, DESKS)),
            pytest.raises(SlotTaken),
        ):
            await adapter.create_appointment(draft)
        assert await made.run(OF_US) == NOTHING
        await made.run("DELETE FROM appointment WHERE source = 'desk'", FAILS)
        with pytest.raises(BackendNonsense, match="a rule of the database"):
            await adapter.create_appointment(draft)
        assert await made.run(OF_US) == NOTHING
        await adapter.aclose()


async def test_without_transactions_what_cannot_be_taken_back_is_of_unknown_outcome(
    tmp_path: Path,
) -> None:
    with practice("mariadb", tmp_path, *MYISAM) as made:
        adapter = made.open(tmp_path, made.mapping + ALLOWED)
        draft = await a_draft(adapter)

        def gives_up() -> None:
            others = execute(
                made.url,
                "SELECT id FROM information_schema.processlist WHERE db = database()"
                " AND id <> connection_id()",
            )
            execute(made.url, *(f"KILL {number}" for (number,) in others))

        with (
            before(adapter, "insert into journal", gives_up),
            pytest.raises(OutcomeUnknown),
        ):
            await adapter.create_appointment(draft)
        assert await made.run(OF_US) == [(1, 1, 0)]
        found = await adapter.find_appointments(draft, draft.now)
        assert [each["scheduledAt"] for each in found] == [
            draft.scheduled_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        ]
        await adapter.aclose()


ROW = "INSERT INTO appointment (vet, starts, ends, state) VALUES (1, '{}', '{}', 'FREE')"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_slot_row_that_lasts_longer_than_the_type_is_taken_as_a_whole(
    kind: str, tmp_path: Path
) -> None:
    hour = timedelta(hours=1)
    with practice(kind, tmp_path, slots_on=(DAY,)) as made:
        await made.run("DELETE FROM appointment WHERE state = 'FREE'", ROW.format(TEN, TEN + hour))
        adapter = made.open(tmp_path)
        draft = await a_draft(adapter)  # of half an hour
        quarter_to = TEN + timedelta(minutes=45)
        late = DESKS.replace(str(TEN + timedelta(minutes=15)), str(quarter_to + hour))
        late = late.replace(str(TEN - timedelta(minutes=15)), str(quarter_to))
        if kind != "sqlite":  # where the desk cannot get in between
            with (
                before(adapter, "update appointment", lambda: execute(made.url, late)),
                pytest.raises(SlotTaken, match="in between"),
            ):
                await adapter.create_appointment(draft)
            await made.run("UPDATE appointment SET state = 'GONE' WHERE source = 'desk'")
        assert await _offered(adapter, draft) == [TEN]
        await made.run(late)
        assert await _offered(adapter, draft) == []
        shortened = made.mapping.replace(
            "        state: BOOKED", "        ends: {draft: endTime}\n        state: BOOKED"
        )
        shortening = made.open(tmp_path, shortened)
        assert await _offered(shortening, draft) == [TEN]
        booked = await shortening.create_appointment(draft)
        assert datetime.fromisoformat(booked["endTime"]) - draft.scheduled_at == hour / 2
        await adapter.aclose()
        await shortening.aclose()


async def _offered(adapter: SqlAdapter, draft: Draft) -> list[datetime]:
    values = {
        "vetId": draft.vet_id,
        "date": DAY,
        "appointmentTypeId": draft.appointment_type_id,
    }
    page = await adapter.read_many(Query(resource="slots", now=draft.now, values=values))
    starts = (datetime.fromisoformat(each["startTime"]) for each in page.records)
    return [each.astimezone(ZONE).replace(tzinfo=None) for each in starts]


OWN = """\
    - update: appointment
      where: id = :appointment AND vet = :vetId
      values:
        source: {sql: "(SELECT CASE v.id WHEN :vetId THEN 'own' END FROM vet v
          WHERE v.id = appointment.vet AND appointment.id = :appointment)"}
    - insert: attendance
"""


@pytest.mark.parametrize("kind", KINDS)
async def test_an_update_may_name_the_columns_of_its_own_row(kind: str, tmp_path: Path) -> None:
    with practice(kind, tmp_path) as made:
        text = made.mapping.replace("    - insert: attendance\n", OWN)
        adapter = made.open(tmp_path, text)
        await adapter.check()
        await adapter.create_appointment(await a_draft(adapter))
        assert await made.run("SELECT MAX(source) FROM appointment WHERE source <> 'old'") == [
            ("own",)
        ]
        await adapter.aclose()
        unknown = text.replace("v.id = appointment.vet", "v.id = appointment.veto")
        adapter = made.open(tmp_path, unknown)
        with pytest.raises(DocumentErrors, match=r"(?i)veto"):
            await adapter.check()
        await adapter.aclose()
