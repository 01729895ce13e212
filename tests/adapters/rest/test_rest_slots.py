"""Prepared rows of a JSON product: several in a row are one time, and each is taken by a call."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.base import SlotTaken
from adapters.documents.problems import DocumentErrors
from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import BASE, Cloud
from examples.json_cloud.records import made
from tests.adapters.clinic import TODAY, a_draft, slots
from tests.adapters.rest.cloud import connect, listening, replaced
from tests.adapters.rest.test_rest_diary import HOURS_AND_ABSENCES, VISITS, times

TOMORROW = TODAY + timedelta(days=1)
ROWS = f"""\
  busy:
{VISITS}  slots:
    - get: /slots
      items: slots
      where: state == 'free'
      key: id
      vet: vet
      start: {{source: from, as: zoned time}}
      end: {{source: to, as: zoned time}}
"""
# The calendar of a vet is looked up; only vets who have one get an entry.
STEPS = """\
    - {for: slot, each: slot, get: "/slots/{slot}", keep: {version: version}}
    - {for: slot, each: slot, put: "/slots/{slot}/{version}", body: {first: {draft: firstSlot}}}
    - for: slot
      post: /taken
      body: {rows: {each: slot, then: {row: {draft: slot}, version: {made: version}}}}
    - {get: "/vets/{vetId}/calendar", keep: {calendar: {source: number, optional: true}}}
    - {if: {made: calendar}, post: "/calendars/{calendar}", body: {visit: {made: visit}}}
  find: {get: /visits,"""
CHANGES = [(f"  hours:\n{HOURS_AND_ABSENCES}", ROWS), ("  find: {get: /visits,", STEPS)]


class _Changing(dict[str, Any]):
    """A row that the desk changes as soon as it was looked at."""

    def __getitem__(self, name: str) -> Any:
        return -1 if name == "version" else super().__getitem__(name)


class CloudOfSlots(Cloud):
    """The example's cloud, with free rows of half an hour, and with calendars of some vets."""

    def app(self) -> web.Application:
        app = super().app()
        first = next(iter(self.records.vets))
        self.rows: dict[str, dict[str, Any]] = {
            str(number): {
                "id": number,
                "vet": first,
                "from": f"{TOMORROW}T{begins}:00Z",
                "to": f"{TOMORROW}T{ends}:00Z",
                "state": "free",
                "version": number + 5,
            }
            for number, (begins, ends) in enumerate(
                (("08:00", "08:30"), ("08:30", "09:00"), ("09:30", "10:00"))
            )
        }
        self.calendar: dict[str, Any] = {}
        self.entries: list[tuple[str, Any]] = []
        app.add_routes(
            [
                web.get(f"{BASE}/slots", self.free),
                web.get(f"{BASE}/slots/{{id}}", self.row),
                web.put(f"{BASE}/slots/{{id}}/{{version}}", self.take),
                web.post(f"{BASE}/taken", self.told),
                web.get(f"{BASE}/vets/{{id}}/calendar", self.calendar_of),
                web.post(f"{BASE}/calendars/{{id}}", self.enter),
            ]
        )
        return app

    async def free(self, request: web.Request) -> web.Response:
        return web.json_response({"slots": list(self.rows.values())})

    async def row(self, request: web.Request) -> web.Response:
        return web.json_response(self.rows[request.match_info["id"]])

    async def told(self, request: web.Request) -> web.Response:
        self.said = await request.json()
        return web.json_response({})

    async def take(self, request: web.Request) -> web.Response:
        row = self.rows[request.match_info["id"]]
        if row["state"] != "free" or str(row["version"]) != request.match_info["version"]:
            return web.json_response({"error": "already booked"}, status=400)
        row |= await request.json() | {"state": "taken"}
        return web.json_response({})

    async def calendar_of(self, request: web.Request) -> web.Response:
        return web.json_response(self.calendar)

    async def enter(self, request: web.Request) -> web.Response:
        self.entries.append((request.match_info["id"], (await request.json())["visit"]))
        return web.json_response({})


@pytest.fixture
def cloud() -> CloudOfSlots:
    cloud = CloudOfSlots(made(TODAY))
    cloud.records.absences, cloud.records.visits = [], {}
    return cloud


@pytest.fixture
async def adapter(cloud: CloudOfSlots, tmp_path: Path) -> AsyncIterator[RestAdapter]:
    async with listening(cloud) as url:
        opened = connect(url, tmp_path, replaced(*CHANGES))
        yield opened
        await opened.aclose()


async def long_type(adapter: RestAdapter, cloud: CloudOfSlots) -> str:
    """A type of 45 minutes."""
    cloud.records.kinds[1]["length_min"] = 45
    return str(adapter.readers["appointmentTypes"].key.converter.decode(1))


async def test_fact_25_rows_back_to_back_are_one_time_and_each_is_taken(
    adapter: RestAdapter, cloud: CloudOfSlots
) -> None:
    kind, vet = await long_type(adapter, cloud), next(iter(cloud.records.vets)).lower()
    # the cloud is told when a visit ends, so it lasts as long as its type
    assert times(await slots(adapter, vet, TOMORROW, kind)) == [("08:00", 45)]
    draft = await a_draft(adapter, vet_id=vet, appointment_type_id=kind)
    booked = await adapter.create_appointment(draft)
    assert times([{"startTime": booked["scheduledAt"], "endTime": booked["endTime"]}]) == [
        ("08:00", 45)
    ]
    taken = [(row["id"], row["first"]) for row in cloud.rows.values() if row["state"] == "taken"]
    assert taken == [(0, "0"), (1, "0")]
    assert cloud.said == {"rows": [{"row": "0", "version": 5}, {"row": "1", "version": 6}]}
    assert times(await slots(adapter, vet, TOMORROW)) == [("09:30", 30)]


async def test_where_a_later_row_is_gone_the_visit_is_withdrawn(
    adapter: RestAdapter, cloud: CloudOfSlots
) -> None:
    kind = await long_type(adapter, cloud)
    draft = await a_draft(adapter, appointment_type_id=kind)
    cloud.rows["1"] = _Changing(cloud.rows["1"])
    with pytest.raises(SlotTaken):
        await adapter.create_appointment(draft)
    assert [visit["state"] for visit in cloud.records.visits.values()] == ["cancelled"]


@pytest.mark.parametrize("number", [None, 7])
async def test_fact_26_a_call_happens_only_where_an_earlier_one_kept_its_value(
    adapter: RestAdapter, cloud: CloudOfSlots, number: int | None
) -> None:
    draft = await a_draft(adapter)
    cloud.calendar = {} if number is None else {"number": number}
    await adapter.create_appointment(draft)
    visit = str(max(cloud.records.visits))
    assert cloud.entries == ([] if number is None else [("7", visit)])


WRONG = {
    "nothing optional": (", optional: true", "", "no call before this one keeps calendar as opt"),
    "another name": ("{made: calendar}", "{made: calender}", "(did you mean calendar?)"),
    "a value that may be missing": (
        "if: {made: calendar}, ",
        "",
        "nothing here is called calendar",
    ),
    "what each row has of its own": (
        "{each: slot, then: {row: {draft: slot}, version: {made: version}}}",
        "{made: version}",
        "no call before this one keeps version",
    ),
    "SQL": ("{made: calendar}", '{sql: "1 = 1"}', "sql stands only in a mapping of the sql"),
    "each of any time": ("for: slot, each", "each", "each: slot needs for: slot"),
}


@pytest.mark.parametrize(("right", "wrong", "said"), WRONG.values(), ids=WRONG)
async def test_what_may_be_missing_is_used_only_where_it_is_asked_for(
    right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(DocumentErrors) as caught:
        connect("http://127.0.0.1:1", tmp_path, replaced(*CHANGES, (right, wrong)))
    assert said in str(caught.value.problems)
