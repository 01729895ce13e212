"""A booking over HTTP: what the backend or its desk does wrong in the middle of it."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from adapters.base import (
    BackendNonsense,
    BackendUnavailable,
    OutcomeUnknown,
    Rejected,
    SlotTaken,
    Watched,
)
from adapters.rest.adapter import RestAdapter
from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import NOW, a_draft, ask, slots
from tests.adapters.rest.cloud import connect, replaced


def newest(cloud: Cloud) -> dict[str, Any]:
    return cloud.records.visits[max(cloud.records.visits)]


def standing(cloud: Cloud) -> int:
    return sum(each["state"] != "cancelled" for each in cloud.records.visits.values())


async def test_the_whole_wish_stands_in_the_backends_books(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    kind = (await adapter.read_many(ask("appointmentTypes"))).records[0]["id"]
    draft = await a_draft(adapter, appointment_type_id=kind)
    made = await adapter.create_appointment(draft)
    visit = newest(cloud)
    local = draft.scheduled_at.astimezone().strftime("%M:%S")
    assert visit["starts_at"].endswith(local)
    assert (visit["kind"], visit["urgent"], visit["note"]) == (1, 1, draft.reason)
    assert visit["ext_ref"] == draft.reference
    assert made["appointmentTypeId"] == kind


async def test_what_the_desk_enters_in_between_wins(adapter: RestAdapter, cloud: Cloud) -> None:
    draft = await a_draft(adapter)
    later = draft.scheduled_at + timedelta(minutes=15)
    cloud.before_booking = lambda wanted: cloud.desk_books(wanted["vet"], later) and None
    with pytest.raises(SlotTaken):
        await adapter.create_appointment(draft)
    assert newest(cloud)["ext_ref"] == draft.reference
    assert newest(cloud)["state"] == "cancelled"


async def test_what_cannot_be_withdrawn_is_said_to_be_no_good(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    cancel = '  cancel: {post: "/visits/{visit}/cancel", body: {}}\n'
    adapter = connect(url, tmp_path, replaced((cancel, "")))
    draft = await a_draft(adapter)
    cloud.before_booking = lambda wanted: cloud.desk_books(wanted["vet"], draft.scheduled_at
        + timedelta(minutes=15)) and None  # fmt: skip
    with pytest.raises(BackendNonsense, match=r"no booking\.cancel"):
        await adapter.create_appointment(draft)
    assert newest(cloud)["state"] == "booked"
    await adapter.aclose()


@pytest.mark.parametrize("lost", ["note", "urgent", "ends_at", "ext_ref", "vet", "kind"])
async def test_fact_20_a_member_that_the_backend_ignores_undoes_the_booking(
    adapter: RestAdapter, cloud: Cloud, lost: str
) -> None:
    kind = (await adapter.read_many(ask("appointmentTypes"))).records[0]["id"]
    draft = await a_draft(adapter, appointment_type_id=kind)
    cloud.ignored = {lost}
    with pytest.raises(BackendNonsense):
        await adapter.create_appointment(draft)
    assert newest(cloud)["state"] == "cancelled"


async def test_an_appointment_that_blocks_nothing_is_undone(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    adapter = connect(url, tmp_path, replaced(("state != 'cancelled'", "state == 'done'")))
    draft = await a_draft(adapter)
    with pytest.raises(BackendNonsense, match="blocks nothing"):
        await adapter.create_appointment(draft)
    assert newest(cloud)["state"] == "cancelled"
    await adapter.aclose()


async def test_fact_20_a_sentence_in_a_400_says_that_the_time_is_taken(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    draft = await a_draft(adapter)
    cloud.before_booking = lambda wanted: (
        cloud.desk_books(wanted["vet"], draft.scheduled_at) and None
    )
    before = standing(cloud)
    with pytest.raises(SlotTaken, match="slot taken"):
        await adapter.create_appointment(draft)
    assert standing(cloud) == before + 1


async def test_a_booking_may_say_how_long_it_is(
    url: str, cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    enter = Cloud._enter
    monkeypatch.setattr(
        Cloud, "_enter", lambda self, body: (sent.append(body["length"]), enter(self, body))[1]
    )
    change = replaced(("        source: gateway\n", "        length: {draft: minutes}\n"))
    adapter = connect(url, tmp_path, change)
    await adapter.create_appointment(await a_draft(adapter))
    assert sent == [30]
    await adapter.aclose()


async def test_what_a_partner_writes_is_not_taken_for_what_the_backend_says(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    change = replaced(("{status: 400, path: error, text", "{text"))
    adapter = connect(url, tmp_path, change)
    record = await adapter.create_appointment(await a_draft(adapter, reason="Already booked?"))
    assert record["reason"] == "Already booked?"
    await adapter.aclose()


async def test_fact_20_a_200_that_says_no_is_a_refusal(adapter: RestAdapter, cloud: Cloud) -> None:
    draft = await a_draft(adapter)
    cloud.before_booking = lambda wanted: wanted.update(animal="?")
    before = len(cloud.records.visits)
    with pytest.raises(Rejected):
        await adapter.create_appointment(draft)
    assert len(cloud.records.visits) == before
    assert list(await adapter.find_appointments(draft, NOW)) == []


def fail(_: object) -> None:
    raise ConnectionResetError


async def test_an_answer_that_is_lost_leaves_a_booking_that_can_be_found(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    draft = await a_draft(adapter)
    cloud.after_booking = fail
    with pytest.raises(OutcomeUnknown):
        await adapter.create_appointment(draft)
    found = await adapter.find_appointments(draft, NOW)
    assert [each["scheduledAt"] for each in found] == [
        draft.scheduled_at.isoformat().replace("+00:00", "Z")
    ]
    assert not await adapter.find_appointments(replace(draft, reference="other"), NOW)


async def test_shortly_after_a_lost_answer_nothing_found_is_not_believed(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    adapter = connect(url, tmp_path)
    draft = await a_draft(adapter)
    cloud.before_booking = fail
    with pytest.raises(OutcomeUnknown):
        await adapter.create_appointment(draft)
    with pytest.raises(OutcomeUnknown, match="still be at work"):
        await adapter.find_appointments(draft, NOW)
    await adapter.aclose()
    certain = connect(url, tmp_path, replaced(("  reference: ext_ref", "  reference: ext_ref\n"
        "  settle: 0")))  # fmt: skip
    with pytest.raises(OutcomeUnknown):
        await certain.create_appointment(draft)
    assert list(await certain.find_appointments(draft, NOW)) == []
    await certain.aclose()


WITHOUT_REFERENCE = (
    ("  reference: ext_ref\n", ""),
    ("{get: /visits, query: {ref: {draft: reference}}, items: visits}",
     "{get: /visits, query: {day: {draft: scheduledAt, pattern: '%Y-%m-%d'}}, items: visits}"),
)  # fmt: skip


async def test_fact_29_an_id_that_is_made_of_the_reference_finds_the_booking(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    changes = [("ext_ref: {draft: reference}", "ext_ref: {draft: uuid}")]
    changes.append(("query: {ref: {draft: reference}}", "query: {ref: {draft: uuid}}"))
    adapter = connect(url, tmp_path, replaced(*changes))
    draft = await a_draft(adapter)
    made = await adapter.create_appointment(draft)
    visit = newest(cloud)
    assert UUID(visit["ext_ref"]).version == 5
    found = await adapter.find_appointments(draft, NOW)
    assert [each["id"] for each in found] == [made["id"]]
    assert not await adapter.find_appointments(replace(draft, reference="other"), NOW)
    await adapter.aclose()


async def test_without_a_reference_a_booking_is_known_by_all_that_it_says(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    change = replaced(*WITHOUT_REFERENCE)
    adapter = connect(url, tmp_path, change)
    draft = await a_draft(adapter)
    since = datetime.now(UTC)
    made = await adapter.create_appointment(draft)
    assert list(await adapter.find_appointments(draft, since)) == [made]
    assert not await adapter.find_appointments(draft, since + timedelta(minutes=1))
    assert not await adapter.find_appointments(replace(draft, is_urgent=False), since)
    other = draft.scheduled_at + timedelta(minutes=15)
    assert not await adapter.find_appointments(replace(draft, scheduled_at=other), since)
    await adapter.aclose()


async def test_without_a_reference_a_booking_is_found_in_the_hour_that_comes_twice(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    change = replaced(
        *WITHOUT_REFERENCE, ("createdAt: {source: entered, as: utc time}", "createdAt: entered")
    )
    adapter = connect(url, tmp_path, change)
    draft = await a_draft(adapter)
    made = await adapter.create_appointment(draft)
    for visit in cloud.records.visits.values():
        visit["entered"] = "2026-10-25 02:05:00"
    for hour, minute, found in ((0, 4, True), (0, 55, True), (1, 4, True), (1, 6, False)):
        since = datetime(2026, 10, 25, hour, minute, tzinfo=UTC)
        left = await adapter.find_appointments(draft, since)
        assert [each["id"] for each in left] == [made["id"]] * found, since
    await adapter.aclose()


async def test_what_blocks_is_asked_for_once_for_a_vet_and_day(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    draft, booked = await a_draft(adapter), []
    for free in (await slots(adapter, draft.vet_id, draft.scheduled_at.date()))[::4]:
        at = datetime.fromisoformat(free["startTime"])
        booked.append((await adapter.create_appointment(replace(draft, scheduled_at=at)))["id"])
    cloud.calls.clear()
    assert await adapter.find_overwritten(booked[:1]) == Watched()
    one = len(cloud.calls) - 1
    cloud.calls.clear()
    assert await adapter.find_overwritten(booked) == Watched()
    assert len(booked) > 2
    assert len(cloud.calls) - len(booked) == one
    cloud.desk_books(newest(cloud)["vet"], at)
    assert await adapter.find_overwritten(booked) == Watched(overwritten=frozenset(booked[-1:]))


async def test_an_appointment_that_cannot_be_read_is_not_taken_for_removed(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    booked = (await adapter.create_appointment(await a_draft(adapter)))["id"]
    number = max(cloud.records.visits)
    visit = cloud.records.visits[number]
    cloud.records.visits[number] = {**visit, "id": "what a long and strange number"}
    assert await adapter.find_overwritten([booked]) == Watched(unreadable=frozenset({booked}))
    del cloud.records.visits[number]
    assert await adapter.find_overwritten([booked]) == Watched()


async def test_a_withdrawal_that_changes_nothing_is_not_believed(
    adapter: RestAdapter, cloud: Cloud
) -> None:
    draft = await a_draft(adapter)

    def spoil(visit: dict[str, Any]) -> None:
        visit["note"] = "another"
        visits = cloud.records.visits
        visits[visit["id"]] = _Stubborn(visit)

    cloud.after_booking = spoil
    with pytest.raises(OutcomeUnknown, match="still stands"):
        await adapter.create_appointment(draft)


class _Stubborn(dict[str, Any]):
    def __setitem__(self, name: str, value: Any) -> None:
        pass


async def test_a_backend_that_is_down_was_sent_nothing(tmp_path: Path) -> None:
    from tests.adapters.rest.cloud import listening, new_cloud

    async with listening(new_cloud()) as url:
        adapter = connect(url, tmp_path)
        draft = await a_draft(adapter)
    with pytest.raises(BackendUnavailable):
        await adapter.create_appointment(draft)
    await adapter.aclose()


async def test_a_booking_of_two_calls_uses_what_the_first_one_gave(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    later = """      keep: {visit: {source: visit, match: "/visits/([0-9]+)$"}}
    - post: /visits/{visit}/cancel
      body: {again: {made: visit}}
"""
    keep = """      keep: {visit: {source: visit, match: "/visits/([0-9]+)$"}}
"""
    adapter = connect(url, tmp_path, replaced((keep, later)))
    draft = await a_draft(adapter)
    with pytest.raises(BackendNonsense, match="another status"):
        await adapter.create_appointment(draft)
    key = newest(cloud)["id"]
    assert f"POST /v2/visits/{key}/cancel" in cloud.calls
    await adapter.aclose()


async def test_a_booking_that_stops_halfway_is_withdrawn(
    url: str, cloud: Cloud, tmp_path: Path
) -> None:
    later = """      keep: {visit: {source: visit, match: "/visits/([0-9]+)$"}}
    - post: /session
      body: {name: nobody}
"""
    keep = """      keep: {visit: {source: visit, match: "/visits/([0-9]+)$"}}
"""
    adapter = connect(url, tmp_path, replaced((keep, later)))
    draft = await a_draft(adapter)
    with pytest.raises(Rejected):
        await adapter.create_appointment(draft)
    assert newest(cloud)["state"] == "cancelled"
    await adapter.aclose()


async def test_free_times_may_be_the_backends_own(url: str, cloud: Cloud, tmp_path: Path) -> None:
    change = replaced(
        ("  hours:\n    - get: /vets/{vet}/week\n", "  slots:\n    - get: /absences\n"
         "      vet: vet\n      items: absences\n"),
        ("      weekday: {source: day, codes: {mon: \"1\", tue: \"2\", wed: \"3\", thu: \"4\","
         " fri: \"5\", sat: \"6\", sun: \"7\"}}\n      start: open\n      end: close\n",
         "      start: {source: from, as: zoned time}\n      end: {source: to, as: zoned time}\n"),
        ("    - get: /absences\n      items: absences\n      vet: vet\n      start: {source: from,"
         " as: zoned time}\n      end: {source: to, as: zoned time}\n\n", ""),
    )  # fmt: skip
    adapter = connect(url, tmp_path, change)
    key = next(iter(cloud.records.vets))
    day = NOW.date() + timedelta(days=1)
    cloud.records.absences = [
        {"vet": key, "from": f"{day}T{begin}:00+01:00", "to": f"{day}T{end}:00+01:00"}
        for begin, end in (("07:00", "07:20"), ("07:20", "07:40"), ("07:40", "08:00"))
    ]
    found = await slots(adapter, key.lower(), day)
    assert [each["startTime"][11:16] for each in found] == ["06:00", "06:20"]
    await adapter.aclose()


async def test_one_vets_bookings_wait_for_one_another(adapter: RestAdapter, cloud: Cloud) -> None:
    draft = await a_draft(adapter)
    later = draft.scheduled_at + timedelta(minutes=15)
    both = [draft, replace(draft, scheduled_at=later, reference="another")]
    ends = await asyncio.gather(
        *(adapter.create_appointment(each) for each in both), return_exceptions=True
    )
    assert sorted(type(each) for each in ends if not isinstance(each, dict)) == [SlotTaken]
    posts = [each for each in cloud.calls if each == "POST /v2/visits"]
    assert len(posts) == 1
