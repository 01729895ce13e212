"""Bookings in each of two hours in which the clinic's clock shows the same."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.base import Adapter, BackendUnavailable, Draft, OutcomeUnknown, SlotTaken
from adapters.rest.adapter import RestAdapter
from adapters.sql.adapter import SqlAdapter
from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import (
    NOW,
    WITHOUT_REFERENCE,
    ask,
    connect,
    mapping_without,
    run,
    slots,
)
from tests.adapters.rest.cloud import connect as connect_cloud
from tests.adapters.rest.cloud import listening, new_cloud
from tests.adapters.shelf import Times

DAY = date(2026, 10, 25)
QUARTER = timedelta(minutes=15)
FIRST = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # 02:30, and once more
SECOND = FIRST + timedelta(hours=1)


class Night:
    """A practice with a vet who works through that night; `open` is another process's adapter."""

    # how far two starts must lie apart on the wall
    apart = timedelta()

    def __init__(self, times: Times) -> None:
        self.times = times
        self.vet = ""

    def open(self, times: Times | None) -> Adapter:
        raise NotImplementedError

    def kept(self) -> list[str]:
        """What the desk sees of the bookings: when they begin by its clock."""
        raise NotImplementedError

    def enter(self, start: str, end: str) -> None:
        """What the desk enters."""
        raise NotImplementedError

    def move(self, old: str, start: str, end: str) -> None:
        """Where the desk puts the one that begins at `old`."""
        raise NotImplementedError


class SqlNight(Night):
    """The sample clinic's."""

    def __init__(self, times: Times, database: Path) -> None:
        super().__init__(times)
        self._database = database
        self._key = run(database, "SELECT MIN(ID_VETO) FROM HORAIRES")[0][0]
        run(database, "DELETE FROM HORAIRES")
        run(database, "INSERT INTO HORAIRES VALUES (NULL, ?, 6, '22:00', '06:00')", self._key)
        run(database, "DELETE FROM RDV WHERE ID_VETO = ?", self._key)

    def open(self, times: Times | None) -> SqlAdapter:
        adapter = connect(self._database, times=times)
        self.vet = str(adapter.readers["vets"].table.ids.shown(self._key))
        return adapter

    def kept(self) -> list[str]:
        rows = run(self._database, "SELECT D_DEBUT FROM RDV WHERE ID_VETO = ?", self._key)
        return sorted(each[0][11:16] for each in rows)

    def enter(self, start: str, end: str) -> None:
        run(
            self._database,
            "INSERT INTO RDV (ID_ANIMAL, ID_VETO, D_DEBUT, D_FIN, STATUT) VALUES (1, ?, ?, ?, 'P')",
            *(self._key, f"{DAY} {start}:00", f"{DAY} {end}:00"),
        )

    def move(self, old: str, start: str, end: str) -> None:
        run(
            self._database,
            "UPDATE RDV SET D_DEBUT = ?, D_FIN = ? WHERE ID_VETO = ? AND D_DEBUT = ?",
            *(f"{DAY} {start}:00", f"{DAY} {end}:00", self._key, f"{DAY} {old}:00"),
        )


class CloudNight(Night):
    """The cloud's, which takes one visit of a vet at a wall-clock time."""

    apart = QUARTER

    def __init__(self, times: Times, cloud: Cloud, url: str, folder: Path) -> None:
        super().__init__(times)
        self._cloud, self._url, self._folder = cloud, url, folder
        self._key = next(iter(cloud.records.vets))
        self.vet = self._key.lower()
        self._first = next(iter(cloud.records.visits.values()))
        cloud.records.visits.clear()
        cloud.records.visits[1] = {**self._first, "id": 1, "state": "cancelled"}
        shift = {"day": "sat", "open": "22:00", "close": "06:00"}
        for vet in cloud.records.vets.values():
            vet["week"] = [shift]

    def open(self, times: Times | None) -> RestAdapter:
        return connect_cloud(self._url, self._folder, times=times)

    def kept(self) -> list[str]:
        standing = self._cloud.records.visits.values()
        return sorted(each["starts_at"][11:16] for each in standing if each["state"] == "booked")

    def enter(self, start: str, end: str) -> None:
        number = max(self._cloud.records.visits) + 1
        own = {"id": number, "vet": self._key, "state": "booked", "ext_ref": None}
        times = {"starts_at": f"{DAY} {start}:00", "ends_at": f"{DAY} {end}:00"}
        self._cloud.records.visits[number] = {**self._first, **own, **times}

    def move(self, old: str, start: str, end: str) -> None:
        [visit] = [
            each
            for each in self._cloud.records.visits.values()
            if each["state"] == "booked" and each["starts_at"][11:16] == old
        ]
        old_start, old_end = visit["starts_at"], visit["ends_at"]
        visit["starts_at"] = old_start[:11] + start + old_start[16:]
        visit["ends_at"] = old_end[:11] + end + old_end[16:]


@pytest.fixture(params=["sql", "json"])
async def night(
    request: pytest.FixtureRequest, database: Path, tmp_path: Path
) -> AsyncIterator[Night]:
    if request.param == "sql":
        yield SqlNight(Times(), database)
        return
    cloud = new_cloud()
    async with listening(cloud) as url:
        yield CloudNight(Times(), cloud, url, tmp_path)


@pytest.fixture
async def adapter(night: Night) -> AsyncIterator[Adapter]:
    opened = night.open(night.times)
    yield opened
    await opened.aclose()


async def starts(adapter: Adapter, vet: str) -> list[datetime]:
    return [datetime.fromisoformat(each["startTime"]) for each in await slots(adapter, vet, DAY)]


async def draft_at(adapter: Adapter, night: Night, moment: datetime, **more: Any) -> Draft:
    patients = (await adapter.read_many(ask("patients", limit=200))).records
    clients = {each["id"] for each in (await adapter.read_many(ask("clients", limit=200))).records}
    own = next(each for each in patients if each["clientId"] in clients)
    draft = Draft(
        client_id=own["clientId"],
        patient_id=own["id"],
        vet_id=night.vet,
        scheduled_at=moment,
        appointment_type_id=None,
        reason=None,
        is_urgent=False,
        now=NOW,
        reference="a1b2c3",
    )
    return replace(draft, **more)


def text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


async def test_both_hours_are_offered_whole(adapter: Adapter, night: Night) -> None:
    first = datetime(2026, 10, 24, 22, 0, tzinfo=UTC)  # midnight
    last = datetime(2026, 10, 25, 4, 30, tzinfo=UTC)  # 05:30: a booking lasts 30 minutes
    every = [first + number * QUARTER for number in range((last - first) // QUARTER + 1)]
    assert await starts(adapter, night.vet) == every


@pytest.mark.parametrize("moment", [FIRST, SECOND, FIRST + QUARTER, SECOND + QUARTER])
async def test_a_booking_in_either_hour_is_told_as_it_was_booked(
    adapter: Adapter, night: Night, moment: datetime
) -> None:
    free = await starts(adapter, night.vet)
    draft = await draft_at(adapter, night, moment)
    made = await adapter.create_appointment(draft)
    length = timedelta(minutes=30)
    assert (made["scheduledAt"], made["endTime"]) == (text(moment), text(moment + length))
    assert night.kept() == [f"02:{moment:%M}"]  # the desk sees one of the two, and not which
    other = night.open(night.times)
    for each in (adapter, other):
        assert await each.read_one(ask("appointments", id=made["id"])) == made
        assert list(await each.find_appointments(draft, NOW)) == [made]
        assert not (await each.find_overwritten([made["id"]])).overwritten
    await other.aclose()
    taken = [each for each in free if each < moment + length and moment < each + length]
    assert set(await starts(adapter, night.vet)) == set(free) - set(taken)


@pytest.mark.parametrize("moment", [FIRST, SECOND, FIRST + QUARTER, SECOND + QUARTER])
async def test_a_booking_leaves_the_other_hour_free(
    adapter: Adapter, night: Night, moment: datetime
) -> None:
    draft = await draft_at(adapter, night, moment)
    made = [await adapter.create_appointment(draft)]
    hour = timedelta(hours=1)
    twin = (moment + hour if moment < SECOND else moment - hour) - night.apart
    other = replace(draft, scheduled_at=twin, reference="d4e5f6")
    made.append(await adapter.create_appointment(other))
    assert night.kept() == sorted([f"02:{moment:%M}", f"02:{twin:%M}"])
    for each, at in zip(made, (moment, twin), strict=True):
        assert each["scheduledAt"] == text(at)
        assert await adapter.read_one(ask("appointments", id=each["id"])) == each
    assert not (await adapter.find_overwritten([each["id"] for each in made])).overwritten
    left = await starts(adapter, night.vet)
    for at in (moment, twin):
        assert not [each for each in left if each < at + 2 * QUARTER and at < each + 2 * QUARTER]
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(replace(draft, scheduled_at=at, reference="g7h8i9"))


async def test_a_row_that_the_desk_moves_blocks_both_hours_again(
    adapter: Adapter, night: Night
) -> None:
    free = await starts(adapter, night.vet)
    await adapter.create_appointment(await draft_at(adapter, night, SECOND - QUARTER))
    assert FIRST - QUARTER in await starts(adapter, night.vet)
    night.move("02:15", "02:20", "02:40")
    left = await starts(adapter, night.vet)
    quarters = {FIRST - QUARTER, FIRST, SECOND - QUARTER, SECOND}
    assert quarters <= set(free)
    assert not quarters & set(left)


async def test_the_store_is_asked_only_where_a_row_may_mean_several_times(
    adapter: Adapter, night: Night
) -> None:
    draft = await draft_at(adapter, night, FIRST - timedelta(hours=2))
    made = await adapter.create_appointment(draft)
    await starts(adapter, night.vet)
    with pytest.raises(SlotTaken):
        await adapter.create_appointment(replace(draft, reference="d4e5f6"))
    assert not (await adapter.find_overwritten([made["id"]])).overwritten
    assert night.times.questions == 0
    later = replace(draft, scheduled_at=SECOND, reference="d4e5f6")
    await adapter.create_appointment(later)
    await starts(adapter, night.vet)
    assert night.times.questions > 0


async def test_a_slot_in_each_of_the_two_hours_can_be_booked(
    adapter: Adapter, night: Night
) -> None:
    two = await draft_at(adapter, night, FIRST - 2 * QUARTER)
    made = [await adapter.create_appointment(two)]
    free = await starts(adapter, night.vet)
    # 02:30 the second time is no longer what 02:00 may mean
    later = replace(two, scheduled_at=SECOND, reference="d4e5f6")
    assert later.scheduled_at in free
    made.append(await adapter.create_appointment(later))
    assert [each["scheduledAt"] for each in made] == [text(FIRST - 2 * QUARTER), text(SECOND)]
    for each in made:
        assert await adapter.read_one(ask("appointments", id=each["id"])) == each
    seen = await adapter.find_overwritten([each["id"] for each in made])
    assert not seen.overwritten
    assert night.kept() == ["02:00", "02:30"]


async def test_what_the_desk_enters_in_the_equal_hours_blocks_both(
    adapter: Adapter, night: Night
) -> None:
    night.enter("02:15", "02:30")
    left = await starts(adapter, night.vet)
    for moment in (FIRST - QUARTER, SECOND - QUARTER):
        assert moment not in left
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(await draft_at(adapter, night, moment))
    assert FIRST - 3 * QUARTER in left
    assert SECOND in left


async def test_what_the_desk_writes_over_either_is_reported(adapter: Adapter, night: Night) -> None:
    two = SECOND - 2 * QUARTER
    made = await adapter.create_appointment(await draft_at(adapter, night, two))
    night.enter("02:30", "02:45")
    night.enter("03:00", "03:15")
    assert not (await adapter.find_overwritten([made["id"]])).overwritten
    night.enter("02:15", "02:30")
    assert (await adapter.find_overwritten([made["id"]])).overwritten == {made["id"]}


async def test_what_the_desk_moves_is_told_as_the_desk_wrote_it(database: Path) -> None:
    night = SqlNight(Times(), database)
    adapter = night.open(night.times)
    made = await adapter.create_appointment(await draft_at(adapter, night, SECOND))
    moved = ("2026-10-25 04:30:00", "2026-10-25 05:00:00")
    run(database, "UPDATE RDV SET D_DEBUT = ?, D_FIN = ? WHERE REF_EXT = 'a1b2c3'", *moved)
    record = await adapter.read_one(ask("appointments", id=made["id"]))
    assert record["scheduledAt"] == "2026-10-25T03:30:00Z"
    assert record["endTime"] == "2026-10-25T04:00:00Z"
    await adapter.aclose()


async def test_an_end_before_its_start_is_in_the_second_of_the_two_hours(database: Path) -> None:
    night = SqlNight(Times(), database)
    adapter = night.open(night.times)
    night.enter("02:45", "02:15")
    [[key]] = run(database, "SELECT ID_RDV FROM RDV WHERE D_DEBUT = ?", f"{DAY} 02:45:00")
    public_id = adapter.readers["appointments"].table.ids.shown(key)
    record = await adapter.read_one(ask("appointments", id=public_id))
    assert record["scheduledAt"] == text(FIRST + QUARTER)
    assert record["endTime"] == text(FIRST + 3 * QUARTER)
    await adapter.aclose()


async def test_without_a_reference_it_is_found_by_what_was_asked_and_when(database: Path) -> None:
    night = SqlNight(Times(), database)
    adapter = connect(database, mapping=mapping_without(*WITHOUT_REFERENCE), times=night.times)
    night.vet = str(adapter.readers["vets"].table.ids.shown(night._key))
    draft = await draft_at(adapter, night, SECOND)
    assert await adapter.find_appointments(draft, NOW) == []
    made = await adapter.create_appointment(draft)
    assert await adapter.find_appointments(draft, NOW) == [made]
    assert await adapter.find_appointments(draft, NOW + timedelta(seconds=1)) == []
    await adapter.aclose()


class Lost(Times):
    """Cannot keep anything while `is_down`."""

    is_down = True

    async def remember(self, appointment: str, begins: datetime, ends: datetime) -> None:
        if self.is_down:
            raise BackendUnavailable("the store is down")
        await super().remember(appointment, begins, ends)


async def test_a_booking_whose_time_cannot_be_kept_is_looked_for_until_it_can(
    night: Night,
) -> None:
    shelf = Lost()
    adapter = night.open(shelf)
    draft = await draft_at(adapter, night, SECOND)
    with pytest.raises(OutcomeUnknown, match="its time could not be kept"):
        await adapter.create_appointment(draft)
    with pytest.raises(OutcomeUnknown):
        await adapter.find_appointments(draft, NOW)
    shelf.is_down = False
    [found] = await adapter.find_appointments(draft, NOW)
    assert found["scheduledAt"] == text(SECOND)
    assert await adapter.read_one(ask("appointments", id=found["id"])) == found
    await adapter.aclose()


async def test_nothing_is_kept_of_any_other_booking(adapter: Adapter, night: Night) -> None:
    await adapter.create_appointment(await draft_at(adapter, night, FIRST - timedelta(hours=2)))
    assert night.times.kept == {}


async def test_without_a_shelf_it_is_read_as_in_the_first_hour(night: Night) -> None:
    adapter = night.open(None)
    made = await adapter.create_appointment(await draft_at(adapter, night, SECOND))
    assert made["scheduledAt"] == text(SECOND)
    record = await adapter.read_one(ask("appointments", id=made["id"]))
    assert record["scheduledAt"] == text(FIRST)
    await adapter.aclose()
