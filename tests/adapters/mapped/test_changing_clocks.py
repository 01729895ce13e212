"""Free times round changes of the clocks, against a model that counts minutes in UTC."""

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.base import Draft, Query
from adapters.mapped.appointment import DECEASED
from adapters.mapped.slots import working_times
from adapters.mapping.hours import Shift
from adapters.rest.adapter import RestAdapter
from adapters.sample import MAPPING
from adapters.sql.adapter import SqlAdapter
from tests.adapters.clinic import connect as connect_sql
from tests.adapters.clinic import copy_to, run
from tests.adapters.mapped.walls import DAY, MINUTE, Row, Walls, Week
from tests.adapters.rest.cloud import MAPPING as CLOUD_MAPPING
from tests.adapters.rest.cloud import connect as connect_cloud
from tests.adapters.rest.cloud import listening, new_cloud
from tests.adapters.shelf import Times

ZONES = {
    "Europe/Paris": (2024, 2040),
    "America/New_York": (2024, 2040),
    "Australia/Lord_Howe": (2024, 2036),  # half an hour
    "America/Sao_Paulo": (2010, 2018),  # at midnight
    "Africa/Casablanca": (2024, 2036),  # twice a year, round Ramadan
    "Pacific/Apia": (2009, 2014),  # a day that never was
    "America/Havana": (2024, 2036),  # midnight comes twice
    "America/St_Johns": (2006, 2012),  # back over midnight, into the day before
    "Africa/Cairo": (2024, 2036),
    "Antarctica/Troll": (2024, 2036),  # two hours
    "Asia/Kathmandu": (2024, 2036),  # never
}
LONG_AGO = datetime(1990, 1, 1, tzinfo=UTC)
DEFAULT = 30


@cache
def changes(zone: str) -> tuple[date, ...]:
    """The days in whose course a zone's clocks change, and that it leaves out."""
    first, last = ZONES[zone]
    clock = ZoneInfo(zone)
    day, found = date(first, 1, 1), []
    while day < date(last, 1, 1):
        begin = datetime.combine(day, time(), UTC)
        if begin.astimezone(clock).utcoffset() != (begin + DAY).astimezone(clock).utcoffset():
            found += [day - DAY, day, day + DAY]
        day += DAY
    return tuple(found) or (date(first, 6, 1),)


def clocks() -> st.SearchStrategy[time]:
    return st.builds(time, st.integers(0, 23), st.sampled_from([0, 15, 30, 45]))


def early() -> st.SearchStrategy[time]:
    """Mostly the hours in which clocks are changed."""
    return st.builds(
        time, st.sampled_from([0, 1, 1, 2, 2, 3, 23]), st.sampled_from([0, 15, 30, 45])
    )


@st.composite
def nights(draw: st.DrawFn) -> tuple[str, date, list[Week], list[Row], int, int]:
    """A zone and a day near a change, shifts and what blocks in it, a length and a grid."""
    zone = draw(st.sampled_from(sorted(ZONES)))
    day = draw(st.sampled_from(changes(zone)))
    weekday = st.sampled_from([(day - DAY).isoweekday(), day.isoweekday()])
    shift = st.builds(Week, weekday, clocks(), clocks())
    night = st.builds(Week, weekday, st.sampled_from([time(0), time(22)]), st.just(time(6)))
    weeks = draw(st.lists(st.one_of(shift, night), min_size=1, max_size=3, unique_by=repr))
    rows = draw(st.lists(blocking(day), max_size=3))
    return (
        zone,
        day,
        weeks,
        rows,
        draw(st.sampled_from([15, 30, 60, 90])),
        draw(st.sampled_from([15, 20, 60])),
    )


@st.composite
def blocking(draw: st.DrawFn, day: date = date(2027, 10, 31)) -> Row:
    start = datetime.combine(day, draw(st.one_of(clocks(), early())))
    length = draw(st.one_of(st.none(), st.sampled_from([15, 30, 60, 90, 180])))
    end = None if length is None else start + length * MINUTE
    # a length of its own only where no end is: what it decides is looked at by itself
    minutes = draw(st.sampled_from([None, 15, 45, 120])) if end is None else None
    return Row(start, end, minutes)


def text(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


class Practice:
    """The sample clinic with one vet's diary emptied, in any zone."""

    def __init__(self, folder: Path, zone: str) -> None:
        self.database = copy_to(folder)
        mapping = re.sub("zone: .*", f"zone: {zone}", MAPPING.read_text(), count=1)
        self.mapping = mapping.replace("minutes: t.DUREE_MIN", "minutes: r.MOTIF")
        self.vet = run(self.database, "SELECT MIN(ID_VETO) FROM HORAIRES")[0][0]

    def fill(self, weeks: list[Week], rows: list[Row]) -> None:
        with closing(sqlite3.connect(self.database)) as desk, desk:
            for name in ("HORAIRES", "RDV", "ABSENCES"):
                desk.execute(f"DELETE FROM {name}")
            desk.executemany(
                "INSERT INTO HORAIRES VALUES (NULL, ?, ?, ?, ?)",
                [
                    (self.vet, each.weekday, f"{each.start:%H:%M}", f"{each.end:%H:%M}")
                    for each in weeks
                ],
            )
            desk.executemany(
                "INSERT INTO RDV (ID_VETO, D_DEBUT, D_FIN, MOTIF, STATUT) VALUES (?, ?, ?, ?, 'P')",
                [(self.vet, text(each.start), text(each.end), each.minutes) for each in rows],
            )

    def open(self, length: int, step: int, times: Times | None = None) -> SqlAdapter:
        mapping = re.sub("step: [0-9]+", f"step: {step}", self.mapping, count=1)
        mapping = re.sub("duration: [0-9]+", f"duration: {length}", mapping, count=1)
        return connect_sql(self.database, mapping=mapping, times=times)

    async def starts(self, day: date, length: int, step: int) -> list[datetime]:
        adapter = self.open(length, step)
        try:
            return await starts_of(adapter, self.vet_id(adapter), day)
        finally:
            await adapter.aclose()

    def vet_id(self, adapter: SqlAdapter) -> str:
        return str(adapter.readers["vets"].table.ids.shown(self.vet))

    async def booked(
        self, day: date, length: int, step: int, picks: list[int]
    ) -> tuple[list[datetime], list[datetime]]:
        """The starts of bookings that were made one after another, and what is free then."""
        # an appointment's client is who owned the animal on that day
        run(self.database, "DELETE FROM PROPRIETAIRES WHERE DT_FIN <> '0000-00-00'")
        run(self.database, "UPDATE PROPRIETAIRES SET DT_DEBUT = '1990-01-01'")
        adapter, made = self.open(length, step, Times()), []
        try:
            draft = await any_draft(adapter, self.vet_id(adapter), day)
            for number, pick in enumerate(picks):
                free = await starts_of(adapter, draft.vet_id, day)
                if free:
                    made.append(free[pick % len(free)])
                    own = replace(draft, scheduled_at=made[-1], reference=f"reference{number}")
                    await adapter.create_appointment(own)
            return made, await starts_of(adapter, draft.vet_id, day)
        finally:
            await adapter.aclose()


async def any_draft(adapter: SqlAdapter, vet: str, day: date) -> Draft:
    patients = (
        await adapter.read_many(Query(resource="patients", limit=200, now=LONG_AGO))
    ).records
    clients = (await adapter.read_many(Query(resource="clients", limit=200, now=LONG_AGO))).records
    known = {each["id"] for each in clients}
    own = next(
        each for each in patients if each["clientId"] in known and each["status"] != DECEASED
    )
    return Draft(
        client_id=own["clientId"],
        patient_id=own["id"],
        vet_id=vet,
        scheduled_at=datetime.combine(day, time(), UTC),
        appointment_type_id=None,
        reason=None,
        is_urgent=False,
        now=LONG_AGO,
        reference="reference",
    )


async def starts_of(
    adapter: SqlAdapter | RestAdapter, vet: str | None, day: date
) -> list[datetime]:
    values: dict[str, Any] = {"vetId": vet, "date": day}
    page = await adapter.read_many(Query(resource="slots", now=LONG_AGO, values=values))
    return [datetime.fromisoformat(each["startTime"]) for each in page.records]


NIGHT = [Week(6, time(22), time(6))]
PARIS_BACK = date(2027, 10, 31)
TWO = datetime.combine(PARIS_BACK, time(2))  # what the clock shows twice


@pytest.mark.long
@settings(max_examples=60)
@given(nights())
@example(("Europe/Paris", PARIS_BACK, NIGHT, [], 30, 15))
@example(("Europe/Paris", PARIS_BACK, NIGHT, [Row(TWO, None, 15)], 15, 15))
@example(("Pacific/Apia", date(2011, 12, 31), [Week(4, time(22), time(6))], [], 30, 15))
@example(("Pacific/Apia", date(2011, 12, 31), [Week(5, time(9), time(17))], [], 30, 15))
@example(("Europe/Paris", PARIS_BACK, NIGHT, [Row(TWO, TWO + 30 * MINUTE, None)], 15, 15))
@example(("America/St_Johns", date(2010, 11, 6), NIGHT, [], 15, 15))
@example(("America/St_Johns", date(2010, 11, 7), NIGHT, [], 15, 15))
@example(("America/Havana", date(2027, 11, 7), [Week(6, time(22), time(6))], [], 60, 15))
def test_slots_of_a_database_are_those_of_the_minutes_in_utc(
    loop: asyncio.Runner,
    tmp_path_factory: pytest.TempPathFactory,
    night: tuple[str, date, list[Week], list[Row], int, int],
) -> None:
    zone, day, weeks, rows, length, step = night
    practice = Practice(tmp_path_factory.mktemp("night"), zone)
    practice.fill(weeks, rows)
    walls = Walls(ZoneInfo(zone), day)
    taken = [span for row in rows for span in walls.spans(row, length)]
    found = loop.run(practice.starts(day, length, step))
    assert found == walls.slots(weeks, taken, length, step)


@settings(max_examples=15)
@given(night=nights(), picks=st.lists(st.integers(0, 99), min_size=1, max_size=3))
# 02:30 the second time first, then the first time
@pytest.mark.long
@example(night=("Europe/Paris", PARIS_BACK, NIGHT, [], 30, 15), picks=[14, 10])
@example(night=("Europe/Paris", PARIS_BACK, NIGHT, [], 30, 15), picks=[10, 11])
def test_what_was_booked_takes_its_own_time_alone(
    loop: asyncio.Runner,
    tmp_path_factory: pytest.TempPathFactory,
    night: tuple[str, date, list[Week], list[Row], int, int],
    picks: list[int],
) -> None:
    zone, day, weeks, rows, length, step = night
    walls = Walls(ZoneInfo(zone), day)
    practice = Practice(tmp_path_factory.mktemp("night"), zone)
    practice.fill(weeks, rows)
    made, left = loop.run(practice.booked(day, length, step, picks))
    taken = [span for row in rows for span in walls.spans(row, length)]
    own = [(each, each + length * MINUTE) for each in made]
    assert left == walls.slots(weeks, [*taken, *own], length, step)


@pytest.mark.long
@settings(max_examples=30)
@given(nights())
@example(("Europe/Paris", PARIS_BACK, NIGHT, [], 30, 15))
@example(("Europe/Paris", PARIS_BACK, NIGHT, [Row(TWO, None, None)], 15, 15))
@example(("Pacific/Apia", date(2011, 12, 31), [Week(4, time(22), time(6))], [], 30, 15))
def test_slots_of_a_json_backend_are_those_of_the_minutes_in_utc(
    loop: asyncio.Runner,
    tmp_path_factory: pytest.TempPathFactory,
    night: tuple[str, date, list[Week], list[Row], int, int],
) -> None:
    zone, day, weeks, rows, length, step = night
    rows = [Row(each.start, each.end, None) for each in rows]
    walls = Walls(ZoneInfo(zone), day)
    taken = [span for row in rows for span in walls.spans(row, length)]
    found = loop.run(cloud_starts(tmp_path_factory.mktemp("night"), night, rows))
    assert found == walls.slots(weeks, taken, length, step)


async def cloud_starts(
    folder: Path, night: tuple[str, date, list[Week], list[Row], int, int], rows: list[Row]
) -> list[datetime]:
    zone, day, weeks, _, length, step = night
    cloud = new_cloud()
    vet, animal = next(iter(cloud.records.vets)), next(iter(cloud.records.animals))
    names = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    cloud.records.vets[vet]["week"] = [
        {
            "day": names[each.weekday - 1],
            "open": f"{each.start:%H:%M}",
            "close": f"{each.end:%H:%M}",
        }
        for each in weeks
    ]
    cloud.records.absences.clear()
    first = next(iter(cloud.records.visits.values()))
    cloud.records.visits.clear()
    for number, row in enumerate(rows):
        own = {"id": number, "vet": vet, "animal": animal, "state": "booked", "ext_ref": None}
        times = {"starts_at": text(row.start), "ends_at": text(row.end)}
        cloud.records.visits[number] = {**first, **own, **times}

    def changed(mapping: str) -> str:
        assert mapping == CLOUD_MAPPING.read_text()
        for name, value in (("zone", zone), ("step", step), ("duration", length)):
            mapping = re.sub(rf"\b{name}: [\w/]+", f"{name}: {value}", mapping, count=1)
        return mapping

    async with listening(cloud) as url:
        adapter = connect_cloud(url, folder, changed)
        try:
            return await starts_of(adapter, vet.lower(), day)
        finally:
            await adapter.aclose()


@pytest.mark.long
@settings(max_examples=40)
@given(
    night=nights(),
    since=st.integers(0, 60 * 30),
    minutes=st.sampled_from([15, 30, 45, 60, 90, 150]),
    says=st.booleans(),
)
@example(night=("Europe/Paris", PARIS_BACK, NIGHT, [], 15, 15), since=240, minutes=90, says=False)
def test_a_time_that_is_taken_is_never_offered(
    loop: asyncio.Runner,
    tmp_path_factory: pytest.TempPathFactory,
    night: tuple[str, date, list[Week], list[Row], int, int],
    since: int,
    minutes: int,
    says: bool,
) -> None:
    """By whoever knows of the change of the clocks, and writes its end and perhaps its length."""
    zone, day, weeks, _, length, step = night
    clock = ZoneInfo(zone)
    start = datetime.combine(day - DAY, time(20), UTC) + since * MINUTE
    end = start + minutes * MINUTE
    walls = [each.astimezone(clock).replace(tzinfo=None) for each in (start, end)]
    practice = Practice(tmp_path_factory.mktemp("night"), zone)
    practice.fill(weeks, [Row(walls[0], walls[1], minutes if says else None)])
    found = loop.run(practice.starts(day, length, step))
    assert not [each for each in found if each < end and start < each + length * MINUTE]
    model = Walls(clock, day)
    spans = model.spans(Row(walls[0], walls[1], None), length)
    assert set(model.slots(weeks, spans, length, step)) <= set(found)
    assert set(found) <= set(model.slots(weeks, [], length, step))


def test_the_model_and_a_shift_agree_that_a_day_may_be_missing() -> None:
    zone = ZoneInfo("Pacific/Apia")
    friday = Shift(5, time(9), time(17))
    assert list(working_times(date(2011, 12, 30), zone, [friday])) == []
    assert date(2011, 12, 30) not in Walls(zone, date(2011, 12, 29)).days


def test_a_length_by_a_clock_that_knows_of_no_change_decides_nothing(
    loop: asyncio.Runner, tmp_path: Path
) -> None:
    """02:30 to 03:30 and 60 minutes: the desk's program writes so whichever hour is meant."""
    practice = Practice(tmp_path, "Europe/Paris")
    practice.fill(NIGHT, [Row(TWO + 30 * MINUTE, TWO + 90 * MINUTE, 60)])
    found = loop.run(practice.starts(PARIS_BACK, 15, 15))
    taken = datetime(2027, 10, 31, 0, 30, tzinfo=UTC)
    assert not [each for each in found if taken <= each < taken + 120 * MINUTE]
    assert {taken - 15 * MINUTE, taken + 120 * MINUTE} <= set(found)


def test_a_length_that_only_one_reading_has_leaves_the_rest_of_the_night_free(
    loop: asyncio.Runner, tmp_path: Path
) -> None:
    practice = Practice(tmp_path, "Europe/Paris")
    practice.fill(NIGHT, [Row(TWO - 15 * MINUTE, TWO + 15 * MINUTE, 30)])
    found = loop.run(practice.starts(PARIS_BACK, 15, 15))
    first = datetime(2027, 10, 31, 0, 0, tzinfo=UTC)
    missing = {first - 15 * MINUTE, first}
    assert {first - 30 * MINUTE, first + 15 * MINUTE, first + 60 * MINUTE} <= set(found)
    assert not missing & set(found)
    assert timedelta(minutes=15) == found[1] - found[0]
