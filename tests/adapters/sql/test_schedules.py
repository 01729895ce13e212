"""Rooms with grids, lengths, types and days of their own: what is offered is booked as shown."""

from functools import partial
from pathlib import Path

import pytest

from adapters.base import BackendNonsense, BackendUnavailable, SlotTaken, Trouble
from adapters.doctor.sql import examine
from adapters.documents.problems import DocumentErrors
from adapters.examination import Examination, Verdict
from adapters.sql.engines.sqlite import SqliteSpeech
from tests.adapters.asked import asked
from tests.adapters.sql.rooms import (
    BLOCKED,
    DAY,
    EVERY_KIND,
    HOURS,
    NOW,
    booked,
    draft,
    free,
    ids,
    in_rooms,
    rooms,
)

kinds = pytest.mark.parametrize("kind", EVERY_KIND)
BY_VETS = """\
    - from: appointment b JOIN room r ON r.id = b.room
      where: b.state = 'BOOKED'
      vet: r.vet
      key: b.id
      start: b.starts
      end: b.ends
"""
ENDS = "      key: b.id\n      start: b.starts\n      end: b.ends\n"
SHORT = ENDS.replace("end: b.ends", "minutes: '15'")
OURS = "SELECT kind, room FROM appointment WHERE source = 'gateway' ORDER BY id"


@kinds
async def test_fact_24_each_schedule_has_its_own_grid_and_length(kind: str, tmp_path: Path) -> None:
    grids = ("UPDATE room SET step = '20', lasts = '00:20' WHERE id = 7",
             "UPDATE room SET step = '01:00:00', lasts = '60' WHERE id = 8")  # fmt: skip
    with rooms(kind, tmp_path, *grids) as made:
        adapter = made.open(tmp_path, in_rooms(made))
        shown = [("09:00", 20), ("09:20", 20), ("09:40", 20), ("10:00", 60), ("11:00", 60)]
        assert await free(adapter) == shown
        assert await free(adapter, vet=2) == shown[:3]
        assert adapter.default_length is None
        for begins, minutes in shown[1:4:2]:
            assert (await booked(adapter, begins))[1] == minutes
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(await draft(adapter, "10:15"))
        assert await free(adapter) == [shown[0], shown[2], shown[4]]
        assert await free(adapter, vet=2) == [shown[0], shown[2]]
        assert await made.run(OURS) == [(None, 7), (None, 8)]
        await adapter.aclose()


@kinds
async def test_fact_27_where_no_type_is_asked_for_the_schedules_own_is_booked_and_told(
    kind: str, tmp_path: Path
) -> None:
    usual = "UPDATE room SET kind = 3, lasts = '10' WHERE id = 7"
    in_eight = "INSERT INTO lengths VALUES (3, 7, '20')"
    with rooms(kind, tmp_path, usual, in_eight) as made:
        adapter = made.open(tmp_path, in_rooms(made))
        type_id = (await ids(adapter, "appointmentTypes"))[2]
        # the type's length in the room counts, not the room's for no type
        assert (await free(adapter, vet=2))[:2] == [("09:00", 20), ("09:15", 20)]
        assert await booked(adapter, "09:15", vet=2) == (type_id, 20)
        assert await made.run(OURS) == [(3, 7)]
        asked = await draft(adapter, "09:15", vet=2)
        [found] = await adapter.find_appointments(asked, asked.now)
        assert found["appointmentTypeId"] == type_id
        # in the other room, which has none, there is no type
        assert await booked(adapter, "10:00", vet=1) == (None, 30)
        await adapter.aclose()


@kinds
@pytest.mark.parametrize("wrong", ["kind = 99", "step = '3'", "step = 'often'", "lasts = '100000'"])
async def test_a_schedule_that_cannot_be_read_offers_nothing(
    kind: str, wrong: str, tmp_path: Path
) -> None:
    with rooms(kind, tmp_path, f"UPDATE room SET {wrong} WHERE id = 7") as made:
        troubles: list[Trouble] = []
        adapter = made.open(tmp_path, in_rooms(made))
        adapter.diary._report = troubles.append
        assert await free(adapter, vet=2) == []
        assert [trouble.field for trouble in troubles] == ["diary.schedules"]
        assert {begins[:2] for begins, _ in await free(adapter)} == {"10", "11"}
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(await draft(adapter, "09:00", vet=2))
        await adapter.aclose()


@kinds
async def test_fact_24_a_type_without_a_length_in_a_room_is_not_offered_there(
    kind: str, tmp_path: Path
) -> None:
    offered = "INSERT INTO lengths VALUES (1, 7, '30'), (2, 8, NULL)"
    with rooms(kind, tmp_path, offered, offers_all=False) as made:
        adapter = made.open(tmp_path, in_rooms(made))
        assert await free(adapter, kind=1) == [("09:00", 30), ("09:15", 30), ("09:30", 30)]
        assert {(begins[:2], lasts) for begins, lasts in await free(adapter, kind=2)} == {
            ("10", 30),
            ("11", 30),
        }
        assert await free(adapter, kind=3) == []
        assert await free(adapter, vet=3, kind=3)  # who has no room offers all
        for begins, type_ in (("10:00", 1), ("09:00", 2), ("09:00", 3)):
            with pytest.raises(SlotTaken):
                await adapter.create_appointment(await draft(adapter, begins, kind=type_))
        # of the room's usual type nothing is free either, where it is not offered
        await made.run("UPDATE room SET kind = 3")
        assert await free(adapter) == []
        await adapter.aclose()


@kinds
@pytest.mark.parametrize("written", ["100000", "soon", "-5"])
async def test_a_length_that_cannot_be_read_offers_nothing(
    kind: str, written: str, tmp_path: Path
) -> None:
    lengths = f"INSERT INTO lengths VALUES (1, 7, '{written}'), (1, 8, '30')"
    with rooms(kind, tmp_path, lengths) as made:
        adapter = made.open(tmp_path, in_rooms(made))
        assert {begins[:2] for begins, _ in await free(adapter, kind=1)} == {"10", "11"}
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(await draft(adapter, "09:00", kind=1))
        assert await free(adapter, kind=2, vet=2)
        await adapter.aclose()


async def test_a_types_own_length_that_cannot_be_read_offers_nothing(tmp_path: Path) -> None:
    lengths = ("UPDATE kind SET minutes = 'soon' WHERE id = 1",
               "UPDATE kind SET minutes = NULL WHERE id = 2",
               "INSERT INTO lengths VALUES (1, 8, '20')")  # fmt: skip
    with rooms("sqlite", tmp_path, *lengths) as made:
        adapter = made.open(tmp_path, in_rooms(made))
        assert await free(adapter, vet=2, kind=1) == await free(adapter, vet=3, kind=1) == []
        assert (await free(adapter, vet=2, kind=2))[0] == ("09:00", 30)  # it has none
        assert (await free(adapter, kind=1))[0] == ("10:00", 20)  # the room says it
        await adapter.aclose()


@kinds
async def test_a_vet_without_a_schedule_keeps_hours_and_what_blocks(
    kind: str, tmp_path: Path
) -> None:
    absent = f"INSERT INTO absence (vet, starts, ends) VALUES (3, '{DAY} 09:00', '{DAY} 16:00')"
    with rooms(kind, tmp_path, absent) as made:
        adapter = made.open(tmp_path, in_rooms(made))
        shown = [("16:00", 30), ("16:15", 30), ("16:30", 30)]
        assert await free(adapter, vet=3) == shown
        assert await booked(adapter, "16:00", vet=3) == (None, 30)
        assert await free(adapter, vet=3) == shown[2:]
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(await draft(adapter, "16:15", vet=3))
        await adapter.aclose()


@kinds
@pytest.mark.parametrize("days", ["1-5", "1,2,3,4,5", "1 2 3;4/5", "mon-fri", "0-6", ""])
async def test_fact_24_a_row_of_hours_may_be_for_several_days_or_for_all(
    kind: str, days: str, tmp_path: Path
) -> None:
    with rooms(kind, tmp_path, f"UPDATE opens SET days = '{days}'") as made:
        pairs = [] if days else [("schedule: room, weekday: days, ", "schedule: room, ")]
        adapter = made.open(tmp_path, in_rooms(made, *pairs))
        assert len(await free(adapter, vet=2)) == 3
        await made.run("UPDATE opens SET days = '6,7'")
        assert len(await free(adapter, vet=2)) == (0 if days else 3)
        await adapter.aclose()


async def test_shifts_that_overlap_keep_their_grids_and_a_visit_stays_in_one(
    tmp_path: Path,
) -> None:
    more = "INSERT INTO opens VALUES (7, '1-5', '09:10', '10:10'), (7, '1-5', '09:00', '09:40')"
    with rooms("sqlite", tmp_path, more) as made:
        adapter = made.open(tmp_path, in_rooms(made))
        shown = [begins for begins, _ in await free(adapter, vet=2)]
        assert shown == ["09:00", "09:10", "09:15", "09:25", "09:30", "09:40"]
        await booked(adapter, "09:40", vet=2)  # it ends at 10:10
        assert [begins for begins, _ in await free(adapter, vet=2)] == ["09:00", "09:10"]
        await adapter.aclose()


@kinds
@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("room: {draft: schedule}", "room: 99", "does not block its schedule"),
        ("      schedule: b.room\n", "      schedule: b.room + 1\n", "does not block its schedule"),
        ("      vet: b.vet\n", "      vet: b.vet + 1\n", "does not block its vet"),
        (BLOCKED, "", "does not block its schedule for another vet"),
        (f"b.room\n{ENDS}", f"b.room\n{SHORT}", "blocks its schedule for a part of its time"),
        (f"b.vet\n{ENDS}", f"b.vet\n{SHORT}", "blocks its vet for a part of its time"),
        (BLOCKED, BY_VETS.replace(ENDS, SHORT), "does not block its schedule for another vet"),
    ],
)
async def test_fact_24_a_booking_that_leaves_its_room_free_is_undone_and_said(
    kind: str, right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    with rooms(kind, tmp_path) as made:
        adapter = made.open(tmp_path, in_rooms(made, (right, wrong)))
        with pytest.raises(BackendNonsense, match=said):
            await adapter.create_appointment(await draft(adapter, "09:00"))
        assert await made.run(OURS) == []
        if not wrong:  # a room of one vet need not block by itself
            assert await booked(adapter, "10:00") == (None, 30)
        await adapter.aclose()


@kinds
async def test_without_rows_of_rooms_the_rows_of_all_its_vets_block_them(
    kind: str, tmp_path: Path
) -> None:
    with rooms(kind, tmp_path) as made:
        adapter = made.open(tmp_path, in_rooms(made, (BLOCKED, BY_VETS)))
        assert await booked(adapter, "09:00") == (None, 30)
        assert (await free(adapter, vet=2))[0] == ("09:30", 30)
        await adapter.aclose()


@kinds
async def test_a_rehearsal_books_in_each_room_and_sees_that_it_is_taken(
    kind: str, tmp_path: Path
) -> None:
    with rooms(kind, tmp_path) as made:
        for text, wrong in (
            (in_rooms(made), ""),
            # what blocks the room is sought in another one
            (in_rooms(made, ("schedule: b.room\n", "schedule: b.room - 1\n")), "its schedule"),
        ):
            adapter = made.open(tmp_path, text)
            found = [each async for each in examine(adapter, Examination(now=NOW, booking=True))]
            await adapter.aclose()
            rehearsed = [each for each in found if each.subject == "rehearsal"]
            failed = [each.text for each in rehearsed if each.verdict is Verdict.FAILED]
            if not wrong:
                assert failed == []
                here = [each for each in rehearsed if "in a schedule, no type, no r" in each.text]
                assert len(here) >= 3  # vets 1 and 2 in room 7, vet 1 in room 8
            assert all(wrong in each for each in failed)
            assert bool(failed) is bool(wrong)


OF_ROOMS = "booking:\n", "booking:\n  lock: UPDATE room SET step = step WHERE id = :schedule\n"


async def test_where_nothing_else_locks_a_lock_of_rooms_is_refused_if_a_vet_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteSpeech, "locks_names", False)
    with rooms("sqlite", tmp_path) as made:
        adapter = made.open(tmp_path, in_rooms(made, OF_ROOMS))
        with pytest.raises(DocumentErrors, match="a vet without one can be booked") as raised:
            await adapter.check()
        assert [each.code for each in raised.value.problems] == ["no-lock"]
        with pytest.raises(BackendUnavailable, match="a vet without one can be booked"):
            await booked(adapter, "09:00", vet=3)
        await adapter.aclose()
        rows = HOURS.splitlines()[2]
        for hours in ("", "\n    - {days: [mon-fri], times: [09:00-12:00], schedules: [8]}"):
            adapter = made.open(tmp_path, in_rooms(made, OF_ROOMS, (f"\n{rows}", hours)))
            await adapter.check()
            await adapter.aclose()


async def test_a_vet_without_a_room_is_locked_by_a_row_where_the_lock_is_of_rooms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteSpeech, "locks_names", False)
    monkeypatch.setattr(SqliteSpeech, "locks_rows", True)
    locking = "SELECT /* locks */ 1 \nFROM vet"
    monkeypatch.setattr(SqliteSpeech, "row_lock", lambda _, rows: rows.prefix_with("/* locks */"))
    with rooms("sqlite", tmp_path) as made:
        adapter = made.open(tmp_path, in_rooms(made, OF_ROOMS))
        await adapter.check()
        for vet, at, of_vets, of_rooms in ((3, "09:00", 1, 0), (1, "10:00", 0, 2)):
            wanted = await draft(adapter, at, vet=vet)
            for call in (adapter.create_appointment, partial(adapter.find_appointments, since=NOW)):
                with asked() as said:
                    await call(wanted)
                texts = [each.text for each in said]
                assert sum(locking in each for each in texts) == of_vets
                assert sum("UPDATE room SET step = step" in each for each in texts) == of_rooms
        await adapter.aclose()
