"""Rooms of a JSON product with grids, lengths and types of their own."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.base import BackendNonsense, SlotTaken
from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import BASE
from examples.json_cloud.records import made
from tests.adapters.clinic import TODAY, a_draft, ask, slots
from tests.adapters.rest.cloud import connect, listening, replaced
from tests.adapters.rest.test_rest_diary import BY_ROOM, DIARY, SENT, RoomsKept, times

TOMORROW = TODAY + timedelta(days=1)
ROOMS = """\
    - {days: [mon-fri], times: ["08:00-10:00"], schedules: [A]}
    - {days: [mon-fri], times: ["14:00-16:00"], schedules: [B]}
    - get: /vets/{vet}/week
      weekday: day
      start: open
      end: close
  schedules:
    get: /vets/{vet}/rooms
    items: rooms
    key: name
    step: grid
    duration: lasts
    default_type: usual
  durations:
    - {get: /lengths, items: lengths, type: kind, schedule: room, minutes: lasts, only: true}"""


class CloudOfGrids(RoomsKept):
    """The example's cloud, with rooms for the first vet."""

    rooms: list[dict[str, Any]]
    lengths: list[dict[str, Any]]
    is_shared = False

    def app(self) -> web.Application:
        app = super().app()
        app.add_routes(
            [
                web.get(f"{BASE}/vets/{{id}}/rooms", self.rooms_of),
                web.get(f"{BASE}/lengths", self.lengths_there),
            ]
        )
        return app

    without_rooms = False

    async def rooms_of(self, request: web.Request) -> web.Response:
        if self.without_rooms:
            return web.json_response({}, status=404)
        is_first = request.match_info["id"].upper() == next(iter(self.records.vets))
        return web.json_response({"rooms": self.rooms if is_first or self.is_shared else []})

    async def lengths_there(self, request: web.Request) -> web.Response:
        return web.json_response({"lengths": self.lengths})


@pytest.fixture
def cloud() -> CloudOfGrids:
    cloud = CloudOfGrids(made(TODAY))
    cloud.records.absences, cloud.records.visits = [], {}
    next(iter(cloud.records.vets.values()))["week"] = []
    cloud.rooms = [
        {"name": "A", "grid": 20, "lasts": "00:20"},
        {"name": "B", "grid": "01:00:00", "lasts": 10, "usual": 1},
    ]
    cloud.lengths = [{"kind": 1, "room": "B", "lasts": 45}, {"kind": 2, "room": "A", "lasts": 40}]
    return cloud


@pytest.fixture
async def adapter(cloud: CloudOfGrids, tmp_path: Path) -> AsyncIterator[RestAdapter]:
    async with listening(cloud) as url:
        opened = connect(url, tmp_path, replaced((DIARY, ROOMS), SENT, ("  busy:\n", BY_ROOM)))
        yield opened
        await opened.aclose()


async def vet_at(adapter: RestAdapter, number: int, cloud: CloudOfGrids) -> str:
    """The public id of a vet by its place in the cloud; it is spelt in lower case."""
    return list(cloud.records.vets)[number].lower()


async def free(adapter: RestAdapter, vet: str, kind: int | None = None) -> list[tuple[str, int]]:
    return times(await slots(adapter, vet, TOMORROW, await type_of(adapter, kind)))


async def type_of(adapter: RestAdapter, kind: int | None) -> str | None:
    types = (await adapter.read_many(ask("appointmentTypes"))).records
    made_of = {adapter.readers["appointmentTypes"].key.converter.decode(n): n for n in (1, 2, 3)}
    return next((each["id"] for each in types if made_of.get(each["id"]) == kind), None)


async def test_fact_24_each_room_has_its_own_grid_length_and_types(
    adapter: RestAdapter, cloud: CloudOfGrids
) -> None:
    vet = await vet_at(adapter, 0, cloud)
    morning = [("07:00", 20), ("07:20", 20), ("07:40", 20), ("08:00", 20), ("08:20", 20)]
    afternoon = [("13:00", 45), ("14:00", 45)]
    assert await free(adapter, vet) == [*morning, ("08:40", 20), *afternoon]
    assert await free(adapter, vet, 1) == afternoon
    assert await free(adapter, vet, 2) == [(begins, 40) for begins, _ in morning]
    assert await free(adapter, vet, 3) == []
    cloud.lengths[1]["lasts"] = 5_000
    assert await free(adapter, vet, 2) == []
    cloud.lengths[1] = {"kind": {"of": "nobody knows"}, "room": "B", "lasts": 10}
    assert await free(adapter, vet, 1) == []
    cloud.rooms[0]["grid"] = "often"
    del cloud.lengths[1]
    assert await free(adapter, vet) == afternoon


async def test_fact_27_where_no_type_is_asked_for_the_rooms_own_is_booked_and_told(
    adapter: RestAdapter, cloud: CloudOfGrids
) -> None:
    vet = await vet_at(adapter, 0, cloud)
    at = datetime.fromisoformat(f"{TOMORROW}T13:00:00+00:00")
    draft = await a_draft(adapter, vet_id=vet, scheduled_at=at)
    booked = await adapter.create_appointment(draft)
    assert booked["appointmentTypeId"] == await type_of(adapter, 1)
    [visit] = cloud.records.visits.values()
    assert (visit["kind"], visit["room"]) == (1, "B")
    assert booked["endTime"] == f"{TOMORROW}T13:45:00Z"
    assert (await free(adapter, vet))[-1] == ("14:00", 45)
    with pytest.raises(SlotTaken):
        await adapter.create_appointment(draft)


async def test_a_vet_without_a_room_keeps_hours_and_what_blocks(
    adapter: RestAdapter, cloud: CloudOfGrids
) -> None:
    vet = await vet_at(adapter, 1, cloud)
    shown = await free(adapter, vet)
    assert len(shown) > 3
    assert {minutes for _, minutes in shown} == {30}
    at = datetime.fromisoformat(f"{TOMORROW}T{shown[0][0]}:00+00:00")
    await adapter.create_appointment(await a_draft(adapter, vet_id=vet, scheduled_at=at))
    assert (await free(adapter, vet))[0] == shown[2]


async def test_schedules_of_one_vet_each_need_no_source_of_their_own(
    cloud: CloudOfGrids, tmp_path: Path
) -> None:
    unshared = ROOMS.replace("    key: name\n", "    key: name\n    shared: false\n")
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, replaced((DIARY, unshared), SENT))
        vet = await vet_at(adapter, 0, cloud)
        at = datetime.fromisoformat(f"{TOMORROW}T13:00:00+00:00")
        draft = await a_draft(adapter, vet_id=vet, scheduled_at=at)
        await adapter.create_appointment(draft)
        assert await free(adapter, vet, 1) == [("14:00", 45)]
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(draft)
        await adapter.aclose()


async def test_fact_24_a_booking_that_leaves_its_room_free_is_withdrawn_and_said(
    adapter: RestAdapter, cloud: CloudOfGrids
) -> None:
    vet = await vet_at(adapter, 0, cloud)
    at = datetime.fromisoformat(f"{TOMORROW}T07:00:00+00:00")
    draft = await a_draft(adapter, vet_id=vet, scheduled_at=at)
    cloud.ignored = {"room"}
    with pytest.raises(BackendNonsense, match="does not block its schedule"):
        await adapter.create_appointment(draft)
    [visit] = cloud.records.visits.values()
    assert visit["state"] == "cancelled"


async def test_a_booking_is_looked_for_though_the_rooms_of_its_vet_are_not_told(
    adapter: RestAdapter, cloud: CloudOfGrids
) -> None:
    vet = await vet_at(adapter, 0, cloud)
    at = datetime.fromisoformat(f"{TOMORROW}T07:00:00+00:00")
    draft = await a_draft(adapter, vet_id=vet, scheduled_at=at)
    booked = await adapter.create_appointment(draft)
    cloud.without_rooms = True
    found = await adapter.find_appointments(draft, draft.now)
    assert [each["id"] for each in found] == [booked["id"]]
