"""What the diary of a database can say a mapping of JSON says too: closed days, rooms, lengths."""

import asyncio
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.base import WATCHED_AT_ONCE, BackendTimeout, SlotTaken, Watched
from adapters.documents.problems import DocumentErrors
from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import BASE, Cloud
from examples.json_cloud.records import made
from tests.adapters.clinic import NOW, TODAY, a_draft, ask, slots
from tests.adapters.rest.cloud import MAPPING, connect, listening, new_cloud, replaced

DIARY = MAPPING.read_text().partition("\n  busy:\n")[0].partition("  hours:\n")[2]
CHRISTMAS = date(2026, 12, 25)
ROOMS = """\
    - {days: [mon-fri], times: ["08:00-10:00"], schedules: [A]}
    - {days: [mon-fri], times: ["14:00-16:00"], schedules: [B]}
  closed: ["2026-12-25", "2026-12-28..2026-12-30"]
  schedules:
    get: /vets/{vet}/rooms
    items: rooms
    key: name
  durations:
    - {get: /lengths, items: lengths, type: kind, schedule: room, minutes: lasts}"""
# What blocks a room, whoever the vet is; a booking says in which it is.
BY_ROOM = """\
  busy:
    - get: /visits
      query: {day: {given: day}}
      items: visits
      where: state != 'cancelled'
      key: id
      schedule: room
      start: starts_at
      end: ends_at
"""
SENT = ("        source: gateway\n", "        source: gateway\n        room: {draft: schedule}\n")


HOURS_AND_ABSENCES = MAPPING.read_text().partition("  hours:\n")[2].partition("\nbooking:")[0]
VISITS = HOURS_AND_ABSENCES.partition("  busy:\n")[2].partition("    - get: /absences")[0]
SLOT_ROWS = f"""\
  busy:
{VISITS}  slots:
    - get: /absences
      items: absences
      key: id
      vet: vet
      start: {{source: from, as: zoned time}}
      end: {{source: to, as: zoned time}}
"""
WITH_THE_ROW = (
    "        source: gateway\n",
    "        source: gateway\n        row: {draft: slot}\n",
)


class RoomsKept(Cloud):
    """The example's cloud, which keeps in which room a visit is."""

    def _enter(self, body: dict[str, Any]) -> int:
        key = super()._enter(body)
        self.records.visits[key]["room"] = body.get("room")
        return key


class CloudOfRooms(RoomsKept):
    """The example's cloud, whose vets work in rooms where a visit lasts longer or shorter."""

    def app(self) -> web.Application:
        app = super().app()
        app.add_routes(
            [
                web.get(f"{BASE}/vets/{{id}}/rooms", self.rooms),
                web.get(f"{BASE}/lengths", self.lengths),
            ]
        )
        return app

    async def rooms(self, request: web.Request) -> web.Response:
        return web.json_response({"rooms": [{"name": "A"}, {"name": "B"}]})

    async def lengths(self, request: web.Request) -> web.Response:
        pairs = (("A", "00:45"), ("B", 20), ("C", 5))
        rows = [{"kind": 1, "room": room, "lasts": lasts} for room, lasts in pairs]
        return web.json_response({"lengths": [*rows, {"kind": 2, "room": "A", "lasts": 90}]})


@pytest.fixture
def cloud() -> Cloud:
    return CloudOfRooms(made(TODAY))


def rooms_of(url: str, folder: Path, *more: tuple[str, str], **given: Any) -> RestAdapter:
    pairs = ((DIARY, ROOMS), ("  busy:\n", BY_ROOM), SENT)
    return connect(url, folder, replaced(*pairs, *more), **given)


async def of_type(adapter: RestAdapter, name: str) -> str:
    kinds = (await adapter.read_many(ask("appointmentTypes"))).records
    return str(next(each["id"] for each in kinds if each["name"] == name))


def times(free: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """When each of the free times begins, and its minutes."""
    spans = [[datetime.fromisoformat(each[n]) for n in ("startTime", "endTime")] for each in free]
    return [(f"{start:%H:%M}", (end - start).seconds // 60) for start, end in spans]


async def test_on_closed_days_nothing_is_free(url: str, tmp_path: Path) -> None:
    adapter = rooms_of(url, tmp_path)
    vet = (await adapter.read_many(ask("vets"))).records[0]["id"]
    open_on = [
        day
        for ahead in range(8)
        if await slots(adapter, vet, (day := CHRISTMAS + timedelta(days=ahead - 1)))
    ]
    assert [f"{day:%d.%m.}" for day in open_on] == ["24.12.", "31.12."]
    await adapter.aclose()


async def test_a_type_lasts_as_long_as_it_does_in_the_room(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    cloud.records.absences, cloud.records.visits = [], {}
    adapter = rooms_of(url, tmp_path)
    vet = (await adapter.read_many(ask("vets"))).records[0]["id"]
    kind = await of_type(adapter, cloud.records.kinds[1]["label"])
    found = times(await slots(adapter, vet, TODAY + timedelta(days=1), kind))
    morning = [("07:00", 45), ("07:15", 45), ("07:30", 45), ("07:45", 45), ("08:00", 45),
               ("08:15", 45)]  # fmt: skip
    assert found[:6] == morning
    assert {length for begins, length in found if begins >= "13:00"} == {20}
    assert found[-1] == ("14:30", 20)
    await adapter.aclose()


async def test_a_booking_in_a_room_takes_the_vet_from_the_other(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    cloud.records.absences, cloud.records.visits = [], {}
    adapter = rooms_of(url, tmp_path, ('"14:00-16:00"', '"08:00-10:00"'))
    kind = await of_type(adapter, cloud.records.kinds[1]["label"])
    draft = await a_draft(adapter, appointment_type_id=kind)
    booked = await adapter.create_appointment(draft)
    assert times([{"startTime": booked["scheduledAt"], "endTime": booked["endTime"]}]) == [
        ("07:00", 45)
    ]
    free = times(await slots(adapter, draft.vet_id, TODAY + timedelta(days=1), kind, NOW))
    assert free[0] == ("07:45", 45)
    with pytest.raises(SlotTaken):
        await adapter.create_appointment(draft)
    await adapter.aclose()


async def test_hours_may_be_dated_rows(url: str, cloud: Cloud, tmp_path: Path) -> None:
    cloud.records.visits = {}
    day = TODAY + timedelta(days=1)
    cloud.records.absences = [
        {"vet": key, "from": f"{day}T00:00:00+01:00", "to": f"{day}T00:01:00+01:00",
         "day": day.isoformat(), "opens": "09:00", "closes": "10:00"}
        for key in cloud.records.vets
    ]  # fmt: skip
    dated = "    - {get: /absences, items: absences, vet: vet, day: day, start: opens, end: closes}"
    adapter = connect(url, tmp_path, replaced((DIARY, dated)))
    vet = (await adapter.read_many(ask("vets"))).records[0]["id"]
    assert times(await slots(adapter, vet, day)) == [("08:00", 30), ("08:15", 30), ("08:30", 30)]
    assert await slots(adapter, vet, day + timedelta(days=1)) == []
    await adapter.aclose()


async def test_a_row_with_a_key_is_booked_by_itself(url: str, cloud: Cloud, tmp_path: Path) -> None:
    cloud.records.visits = {}
    day, vets = TODAY + timedelta(days=1), list(cloud.records.vets)
    cloud.records.absences = [
        {"vet": vet, "id": number, "from": f"{day}T{begin}:00+01:00", "to": f"{day}T{end}:00+01:00"}
        for vet in vets
        for number, (begin, end) in enumerate((("07:00", "07:20"), ("07:20", "08:00")))
    ]
    adapter = connect(
        url, tmp_path, replaced((f"  hours:\n{HOURS_AND_ABSENCES}", SLOT_ROWS), WITH_THE_ROW)
    )
    free = times(await slots(adapter, vets[0].lower(), day))
    assert free == [("06:20", 30)]
    sent: list[dict[str, Any]] = []
    cloud.before_booking = sent.append
    await adapter.create_appointment(await a_draft(adapter))
    assert [each["row"] for each in sent] == ["1"]
    await adapter.aclose()


async def test_what_only_a_database_has_is_refused_at_its_line(url: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentErrors) as caught:
        rooms_of(url, tmp_path, ("    get: /vets/{vet}/rooms", "    from: rooms"))
    text = "from stands only in a mapping of the sql adapter"
    assert [each.text for each in caught.value.problems] == [text]


ONE = replaced(('    one: {get: "/visits/{id}", item: data}\n', ""))


class SlowlyTold(Cloud):
    """Takes its time to tell of one visit."""

    lag = 0.25

    async def visit(self, request: web.Request) -> web.Response:
        await asyncio.sleep(self.lag)
        return await super().visit(request)


class Listed(Cloud):
    """Counts how often the list of all visits is asked for; where it `is_ill` there is none."""

    lists = 0
    is_ill = False

    async def visits(self, request: web.Request) -> web.Response:
        if "day" in request.query:
            return await super().visits(request)
        self.lists += 1
        return web.json_response({}) if self.is_ill else await super().visits(request)


async def test_a_look_has_the_time_of_a_read_for_every_few(tmp_path: Path) -> None:
    cloud = SlowlyTold(new_cloud().records)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, timeout=1.0)
        page = await adapter.read_many(ask("appointments", limit=WATCHED_AT_ONCE))
        every = [each["id"] for each in page.records]
        assert len(every) > 4 * 8  # several rounds
        assert not (await adapter.find_overwritten(every)).unreadable
        cloud.lag = 1.5
        with pytest.raises(BackendTimeout):
            await adapter.find_overwritten(every[:1])
        await adapter.aclose()


async def test_without_a_call_for_one_the_list_is_read_once(tmp_path: Path) -> None:
    cloud = Listed(new_cloud().records)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, ONE)
        every = [each["id"] for each in (await adapter.read_many(ask("appointments"))).records]
        cloud.lists = 0
        assert not (await adapter.find_overwritten(every[:8])).unreadable
        assert cloud.lists == 1
        cloud.is_ill = True
        ill = await adapter.find_overwritten(every[:8])
        assert ill == Watched(unreadable=frozenset(every[:8]))
        cloud.is_ill = False
        cloud.records.visits.clear()
        assert await adapter.find_overwritten(every[:8]) == Watched()
        await adapter.aclose()


async def test_an_absence_whose_end_nobody_can_read_blocks_the_whole_day(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    cloud.records.visits = {}
    day = TODAY + timedelta(days=1)
    adapter = connect(url, tmp_path)
    vet = (await adapter.read_many(ask("vets"))).records[0]["id"]
    cloud.records.absences = []
    assert await slots(adapter, vet, day)
    cloud.records.absences = [
        {"vet": key, "from": f"{day}T07:00:00+01:00", "to": "until further notice"}
        for key in cloud.records.vets
    ]
    assert await slots(adapter, vet, day) == []
    await adapter.aclose()


async def test_what_blocks_is_asked_for_alike_before_and_after_a_booking(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    asked: list[tuple[str | None, str | None]] = []
    answer = cloud.visits

    async def noted(request: web.Request) -> web.Response:
        if "day" in request.query:
            asked.append((request.query.get("type"), request.query.get("minutes")))
        return await answer(request)

    cloud.visits = noted  # type: ignore[method-assign]
    async with listening(cloud) as address:
        change = replaced(
            ("{day: {given: day}}", "{day: {given: day}, type: {given: type},"
             " minutes: {given: minutes}}")
        )  # fmt: skip
        adapter = connect(address, tmp_path, change)
        kind = await of_type(adapter, cloud.records.kinds[1]["label"])
        draft = await a_draft(adapter, appointment_type_id=kind)
        asked.clear()
        await adapter.create_appointment(draft)
        await adapter.aclose()
    assert len(set(asked)) == 1
    assert asked[0][0] is not None


OPEN = {
    "none of a room": (BY_ROOM, "  busy:\n"),
    "none with a key": ("      key: id\n      schedule: room\n", "      schedule: room\n"),
}


@pytest.mark.parametrize(("right", "wrong"), OPEN.values(), ids=OPEN)
def test_rooms_that_nothing_blocks_are_refused_as_two_vets_would_be_booked_in_one(
    right: str, wrong: str, tmp_path: Path
) -> None:
    with pytest.raises(DocumentErrors) as caught:
        rooms_of("http://127.0.0.1:1", tmp_path, (right, wrong))
    [problem] = caught.value.problems
    assert "two vets would be booked" in problem.text
    lines = (tmp_path / "mapping.yaml").read_text().splitlines()
    assert lines[problem.line - 1] == "  schedules:"


@pytest.mark.parametrize("slots", ["schedule: room", "vet: vet"])
def test_rows_of_a_room_are_taken_one_by_one_and_need_no_other(slots: str, tmp_path: Path) -> None:
    changes = [(f"  hours:\n{DIARY}", "  schedules: {get: /rooms, vet: vet, key: name}\n"
                f"  slots: [{{get: /slots, {slots}, key: id, start: from, end: to}}]"),
               WITH_THE_ROW]  # fmt: skip
    if slots == "schedule: room":
        assert connect("http://127.0.0.1:1", tmp_path, replaced(*changes)).books
    else:
        with pytest.raises(DocumentErrors, match="two vets would be booked"):
            connect("http://127.0.0.1:1", tmp_path, replaced(*changes))


WRONG = {
    "what only some bookings keep": (
        "  find: {get: /visits",
        '    - {for: slot, post: "/hold", keep: {hold: id}}\n    - post: "/confirm/{hold}"\n'
        "  find: {get: /visits",
        "nothing here is called hold",
    ),
    "a day for hours": ("get: /vets/{vet}/week", "get: /vets/{vet}/week/{day}", "called day"),
    "a condition of the look-up": (
        "items: visits}\n  cancel",
        "items: visits, where: id}\n  cancel",
        "where does not go here",
    ),
}


@pytest.mark.parametrize(("right", "wrong", "said"), WRONG.values(), ids=WRONG)
async def test_a_mapping_that_could_not_be_followed_is_refused(
    right: str, wrong: str, said: str, url: str, tmp_path: Path
) -> None:
    with pytest.raises(DocumentErrors, match=said):
        connect(url, tmp_path, replaced((right, wrong)))
