"""Diaries as old systems keep them, on each kind of server: absences for good, rooms, spellings."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from adapters.base import Adapter, Query, Record, Watched
from tests.adapters.asked import asked
from tests.adapters.sql.test_booking_servers import DAY, a_draft
from tests.races.practice import KINDS, ZONE, Practice, practice, working_days

pytestmark = pytest.mark.long

ABSENCES = "- {from: absence, vet: vet, start: starts, end: ends}"
AFTER = datetime.combine(DAY - timedelta(days=10), datetime.min.time(), UTC)


async def slots(adapter: Adapter, vet: int = 0, day: date = DAY) -> Sequence[Record]:
    now = datetime.now(UTC)
    vets = (await adapter.read_many(Query(resource="vets", now=now))).records
    values = {"vetId": vets[vet]["id"], "date": day}
    return (await adapter.read_many(Query(resource="slots", now=now, values=values))).records


def changed(made: Practice, *pairs: tuple[str, str]) -> str:
    """The practice's mapping with other texts in it."""
    text = made.mapping
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


FOR_GOOD = [
    ("mariadb", "date", "local time", "1900-01-01", ""),
    ("postgresql", "date", "local time", "1900-01-01", ""),
    ("postgresql", "timestamp", "local time", "1970-01-01", ", zero: ['1970-01-01']"),
    ("sqlite", "text", "local time", "1970-01-01 00:00:00", ", zero: ['1970-01-01']"),
    ("mariadb", "bigint", "epoch", "0", ""),
    ("sqlite", "integer", "epoch", "0", ""),
    ("postgresql", "timestamp", "local time", "infinity", ""),
    ("postgresql", "timestamptz", "zoned time", "infinity", ""),
    ("mariadb", "datetime", "local time", "9999-12-31 23:59:59", ""),
    ("sqlite", "text", "local time", "9999-12-31 23:59:59", ""),
]


# A far end is one, though: `longest` would say that there is none.
LONGEST = [(*each, ", longest: 2") for each in FOR_GOOD if each[3][0] in "01"]


@pytest.mark.parametrize(
    ("kind", "type_", "how", "end", "zero", "longest"),
    [*((*each, "") for each in FOR_GOOD), *LONGEST],
)
async def test_an_absence_that_ends_never_blocks_however_that_is_written(
    kind: str, type_: str, how: str, end: str, zero: str, longest: str, tmp_path: Path
) -> None:
    start = str(int(AFTER.timestamp())) if how == "epoch" else str(AFTER.date())
    with practice(kind, tmp_path) as made:
        await made.run(
            "DROP TABLE absence",
            f"CREATE TABLE absence (vet INTEGER, starts {type_}, ends {type_})",
            f"INSERT INTO absence VALUES (1, '{start}', '{end}')",
        )
        absences = (
            f"- {{from: absence, vet: vet, start: {{source: starts, as: {how}}},"
            f" end: {{source: ends, as: {how}{zero}}}, endless: true{longest}}}"
        )
        # far in the west the last second of the calendar is no time in UTC
        zone = ("Europe/Paris", "America/New_York")
        adapter = made.open(tmp_path, changed(made, (ABSENCES, absences), zone))
        assert await slots(adapter) == []
        assert await slots(adapter, vet=1)
        await adapter.aclose()


@pytest.mark.parametrize("longest", ["", ", longest: 3"])
@pytest.mark.parametrize("kind", KINDS)
async def test_an_absence_of_days_without_a_time_lasts_until_its_last_day_is_over(
    kind: str, longest: str, tmp_path: Path
) -> None:
    type_ = "text" if kind == "sqlite" else "date"
    with practice(kind, tmp_path) as made:
        await made.run(
            "DROP TABLE absence",
            f"CREATE TABLE absence (vet INTEGER, starts {type_}, ends {type_})",
            f"INSERT INTO absence VALUES (1, '{DAY - timedelta(days=1)}', '{DAY}')",
            f"INSERT INTO absence VALUES (2, '{DAY}', '{DAY}')",
        )
        written = (ABSENCES, ABSENCES.replace("ends}", f"ends{longest}}}"))
        adapter = made.open(tmp_path, changed(made, written))
        week = [DAY + timedelta(days=number) for number in range(-3, 4)]
        first, second, open_ = [
            [day for day in week if await slots(adapter, vet, day)] for vet in (0, 1, 2)
        ]
        assert DAY in open_
        assert first == [day for day in open_ if day not in (DAY, DAY - timedelta(days=1))]
        assert second == [day for day in open_ if day != DAY]
        await adapter.aclose()


async def test_without_an_end_the_minutes_hold_also_where_rows_may_be_endless(
    tmp_path: Path,
) -> None:
    with practice("sqlite", tmp_path) as made:
        await made.run(f"INSERT INTO absence (vet, starts) VALUES (1, '{DAY} 09:00:00')")
        absences = ABSENCES.replace("end: ends", "end: ends, minutes: '60', endless: true")
        adapter = made.open(tmp_path, changed(made, (ABSENCES, absences)))
        assert len(await slots(adapter)) == len(await slots(adapter, vet=1)) - 4
        await adapter.aclose()


async def test_on_a_closed_day_free_rows_are_not_offered_either(tmp_path: Path) -> None:
    with practice("sqlite", tmp_path, slots_on=(DAY,)) as made:
        adapter = made.open(tmp_path)
        assert await slots(adapter)
        await adapter.aclose()
        closed = ("  duration: 30\n", f"  duration: 30\n  closed: ['{DAY}']\n")
        adapter = made.open(tmp_path, changed(made, closed))
        assert await slots(adapter) == []
        await adapter.aclose()


SPELLINGS = [
    ("postgresql", "timestamptz", "as: zoned time"),
    ("postgresql", "timestamp", "as: local time"),
    ("mariadb", "datetime(6)", "as: local time"),
    ("mariadb", "bigint", "as: epoch"),
    ("sqlite", "text", 'pattern: "%Y-%m-%dT%H:%M"'),
]


@pytest.mark.parametrize(("kind", "type_", "how"), SPELLINGS)
async def test_a_lost_booking_is_found_however_its_time_is_kept(
    kind: str, type_: str, how: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path, "DELETE FROM appointment") as made:
        if kind != "sqlite":
            await made.run(
                "ALTER TABLE appointment DROP COLUMN starts, DROP COLUMN ends",
                f"ALTER TABLE appointment ADD COLUMN starts {type_}, ADD COLUMN ends {type_}",
            )
        read = "as: local time" if kind == "sqlite" else how
        mapping = changed(
            made,
            ("scheduledAt: a.starts", f"scheduledAt: {{source: a.starts, {read}}}"),
            ("endTime: a.ends", f"endTime: {{source: a.ends, {read}}}"),
            ("start: b.starts", f"start: {{source: b.starts, {read}}}"),
            ("end: b.ends", f"end: {{source: b.ends, {read}}}"),
            ("{draft: scheduledAt}", f"{{draft: scheduledAt, {how}}}"),
            ("{draft: endTime}", f"{{draft: endTime, {how}}}"),
        )
        adapter = made.open(tmp_path, mapping)
        draft = await a_draft(adapter)
        booked = await adapter.create_appointment(draft)
        assert await adapter.find_appointments(draft, draft.now) == [booked]
        later = replace(draft, scheduled_at=draft.scheduled_at + timedelta(hours=1))
        assert await adapter.find_appointments(later, draft.now) == []
        await adapter.aclose()


AUTUMN = datetime(2026, 10, 25, tzinfo=UTC)  # at 01:00 in UTC the clock goes back to two
ATTEMPTS = [
    # when it was begun, when it was written, whether it can be its
    (timedelta(minutes=55), timedelta(minutes=65), True),
    (timedelta(minutes=55), timedelta(minutes=56), True),
    (timedelta(minutes=65), timedelta(minutes=70), True),
    (timedelta(minutes=119), timedelta(minutes=121), True),
    (timedelta(minutes=121), timedelta(minutes=119), False),
    (timedelta(minutes=121), timedelta(minutes=59), False),
]


@pytest.mark.parametrize(("begun", "wrote", "found"), ATTEMPTS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_lost_booking_is_found_in_the_hour_that_comes_twice(
    kind: str, begun: timedelta, wrote: timedelta, found: bool, tmp_path: Path
) -> None:
    with practice(kind, tmp_path) as made:
        adapter = made.open(tmp_path)
        at = datetime(2026, 10, 26, 9, tzinfo=UTC)
        draft = replace(await a_draft(adapter), scheduled_at=at, now=AUTUMN + wrote)
        booked = await adapter.create_appointment(draft)
        assert await adapter.find_appointments(draft, AUTUMN + begun) == [booked] * found
        await adapter.aclose()


ROOMS = (
    "CREATE TABLE room (vet INTEGER, id INTEGER)",
    "INSERT INTO room VALUES (1, 0), (1, 7), (2, 0), (2, 7)",
    "ALTER TABLE appointment ADD COLUMN room INTEGER",
)
IN_ROOMS = (
    ("    - {from: absence", "    - {from: appointment r, where: r.state = 'BOOKED',"
     " schedule: r.room, key: r.id, start: r.starts, end: r.ends}\n    - {from: absence"),
    ("booking:\n", "  schedules: {from: room, vet: vet, key: id}\nbooking:\n"),
    ("state: BOOKED\n", "state: BOOKED\n        room: {draft: schedule}\n"),
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
async def test_vets_side_by_side_in_two_rooms_are_not_written_over_one_another(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path, *ROOMS) as made:
        adapter = made.open(tmp_path, changed(made, *IN_ROOMS))
        one = await adapter.create_appointment(await a_draft(adapter, vet=1))
        other = await adapter.create_appointment(await a_draft(adapter, vet=2))
        assert await made.run("SELECT count(DISTINCT room) FROM appointment") == [(2,)]
        both = [one["id"], other["id"]]
        assert await adapter.find_overwritten(both) == Watched()
        await made.run("UPDATE appointment SET room = 0 WHERE room = 7")
        assert await adapter.find_overwritten(both) == Watched(overwritten=frozenset(both))
        await adapter.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_look_at_many_bookings_costs_a_few_statements_for_each_vet(
    kind: str, tmp_path: Path
) -> None:
    with practice(kind, tmp_path) as made:
        adapter = made.open(tmp_path)
        drafts = [await a_draft(adapter, vet=vet) for vet in (1, 2)]
        next_day = working_days(2, datetime.now(UTC).date())[1] - DAY
        hours = [timedelta(hours=number) for number in range(4)]
        booked: list[list[str]] = []
        for later in (*hours, next_day, next_day + hours[1]):
            wanted = [replace(each, scheduled_at=each.scheduled_at + later) for each in drafts]
            booked.append([(await adapter.create_appointment(each))["id"] for each in wanted])
        every = [each for two in booked for each in two]
        await adapter.find_overwritten(every)  # what a connection is told first is none of it
        with asked() as few:
            assert await adapter.find_overwritten(booked[0]) == Watched()
        with asked() as many:
            assert await adapter.find_overwritten(every) == Watched()
        assert len(few) == len(many) <= 1 + 2 * 4
        start = (drafts[1].scheduled_at + next_day).astimezone(ZONE)
        await made.run(
            "INSERT INTO appointment (vet, starts, ends, state) VALUES"
            f" (2, '{start:%Y-%m-%d %H:%M:00}', '{start:%Y-%m-%d %H}:10:00', 'BOOKED')"
        )
        assert await adapter.find_overwritten(every) == Watched(
            overwritten=frozenset([booked[4][1]])
        )
        await adapter.aclose()


async def test_a_booking_that_cannot_be_read_is_not_taken_for_removed(tmp_path: Path) -> None:
    with practice("sqlite", tmp_path) as made:
        adapter = made.open(tmp_path)
        booked = (await adapter.create_appointment(await a_draft(adapter)))["id"]
        for desk, seen in [
            ("UPDATE appointment SET starts = 'soon' WHERE note = 'a test'", [booked]),
            ("UPDATE appointment SET starts = NULL WHERE note = 'a test'", []),
            ("DELETE FROM appointment WHERE note = 'a test'", []),
        ]:
            await made.run(desk)
            assert await adapter.find_overwritten([booked]) == Watched(unreadable=frozenset(seen))
        await adapter.aclose()


async def test_a_room_by_the_number_nought_is_locked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with practice("sqlite", tmp_path, *ROOMS) as made:
        adapter = made.open(tmp_path, changed(made, *IN_ROOMS))
        locked: list[str] = []
        speech = type(adapter.engine.speech)
        monkeypatch.setattr(speech, "lock", lambda _self, _connection, name: locked.append(name))
        await adapter.create_appointment(await a_draft(adapter))
        assert locked == ["vet:1", "schedule:0", "schedule:7"]
        await adapter.aclose()


async def test_a_sequence_of_another_schema_is_found_by_the_check_as_by_a_booking(
    tmp_path: Path,
) -> None:
    made_there = ("CREATE SCHEMA other", "CREATE SEQUENCE other.numbers")
    with practice("postgresql", tmp_path, *made_there) as made:
        step = "    - {sequence: other.numbers, name: number}\n    - insert: attendance\n"
        adapter = made.open(tmp_path, changed(made, ("    - insert: attendance\n", step)))
        await adapter.check()
        assert await adapter.create_appointment(await a_draft(adapter))
        await adapter.aclose()
