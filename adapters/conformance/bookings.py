# ruff: noqa: S101 - it is made of asserts
"""Bookings: whole or not at all, once, by whoever comes first."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from adapters.base import Adapter, Draft, NotFound, PatientDeceased, Record, SlotTaken
from adapters.conformance.asking import NOBODY, Asking, moment, reference
from adapters.conformance.formats import wrong_with
from adapters.conformance.practice import Practice, needs

RACERS = 20
SHIFTED = 5


class Bookings:
    """What every adapter promises of bookings."""

    async def test_a_booking_takes_its_time_reads_back_and_can_be_found(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        draft = await asking.draft()
        assert not await adapter.find_appointments(draft, draft.now)
        made = await adapter.create_appointment(draft)
        assert wrong_with(made, practice.shapes["appointments"]) == []
        assert (made["vetId"], made["patientId"]) == (draft.vet_id, draft.patient_id)
        assert (made["clientId"], made["status"]) == (draft.client_id, "SCHEDULED")
        assert moment(made["scheduledAt"]) == draft.scheduled_at
        assert made["reason"] in (draft.reason, None)
        assert await asking.one("appointments", made["id"]) == made
        assert list(await adapter.find_appointments(draft, draft.now)) == [made]
        assert await _written_over(adapter, made) == []
        assert draft.scheduled_at not in await _starts(asking, draft)
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(draft)

    async def test_who_is_not_there_is_not_found_and_books_nothing(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        draft = await asking.draft()
        before = await _starts(asking, draft)
        for stranger in (
            replace(draft, client_id=NOBODY),
            replace(draft, patient_id=NOBODY),
            replace(draft, vet_id=NOBODY),
            replace(draft, appointment_type_id=NOBODY),
            replace(draft, client_id=draft.vet_id),
        ):
            with pytest.raises(NotFound):
                await adapter.create_appointment(stranger)
        assert await _starts(asking, draft) == before

    async def test_for_an_animal_that_has_died_nothing_is_booked(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        patient = await asking.deceased()
        if patient is None:  # a practice without one has nothing to refuse
            return
        draft = await asking.draft(client_id=patient["clientId"], patient_id=patient["id"])
        before = await _starts(asking, draft)
        with pytest.raises(PatientDeceased):
            await adapter.create_appointment(draft)
        assert await _starts(asking, draft) == before

    async def test_only_a_time_that_is_offered_can_be_booked(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        draft = await asking.draft()
        before = await _starts(asking, draft)
        for odd in (
            replace(draft, scheduled_at=draft.scheduled_at + timedelta(seconds=1)),
            replace(draft, scheduled_at=before[-1] + timedelta(days=3650, minutes=7)),
            replace(draft, now=draft.scheduled_at),
        ):
            with pytest.raises(SlotTaken):
                await adapter.create_appointment(odd)
        assert await _starts(asking, draft) == before

    async def test_of_many_at_once_through_two_processes_one_gets_the_time(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        draft = await asking.draft()
        length = timedelta(seconds=1)
        drafts = [replace(draft, reference=reference()) for _ in range(RACERS)]
        drafts += [replace(draft, scheduled_at=draft.scheduled_at + length)] * SHIFTED
        other = practice.open()
        try:
            both = (adapter, other)
            tries = [both[n % 2].create_appointment(each) for n, each in enumerate(drafts)]
            ends = await asyncio.gather(*tries, return_exceptions=True)
            assert sum(isinstance(each, dict) for each in ends) == 1
            assert sum(isinstance(each, SlotTaken) for each in ends) == RACERS + SHIFTED - 1
            winner = next(n for n, each in enumerate(ends) if isinstance(each, dict))
            assert list(await other.find_appointments(drafts[winner], draft.now)) == [ends[winner]]
        finally:
            await other.aclose()
        assert draft.scheduled_at not in await _starts(asking, draft)

    async def test_neighbours_at_once_never_overlap(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        draft = await asking.draft()
        tries = [
            adapter.create_appointment(replace(draft, scheduled_at=each, reference=""))
            for each in (await _starts(asking, draft))[:6]
        ]
        ends = await asyncio.gather(*tries, return_exceptions=True)
        assert all(isinstance(each, dict | SlotTaken) for each in ends), ends
        made = sorted(
            (moment(each["scheduledAt"]), moment(each["endTime"]))
            for each in ends
            if isinstance(each, dict)
        )
        assert made
        for earlier, later in pairwise(made):
            assert earlier[1] <= later[0]

    @needs("add_appointment")
    async def test_what_the_desk_writes_over_a_booking_is_found(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        draft = await asking.draft()
        made = await adapter.create_appointment(draft)
        end = moment(made["endTime"])
        await practice.add_appointment(draft.vet_id, end, end + timedelta(minutes=5))
        assert await _written_over(adapter, made) == []
        await practice.add_appointment(draft.vet_id, draft.scheduled_at, end)
        assert await _written_over(adapter, made) == [made["id"]]


async def _written_over(adapter: Adapter, made: Record) -> list[str]:
    """The appointment, where something else is written over it; it can be read in any case."""
    seen = await adapter.find_overwritten([made["id"]])
    assert not seen.unreadable
    return list(seen.overwritten)


async def _starts(asking: Asking, draft: Draft) -> list[datetime]:
    day = draft.scheduled_at.astimezone(asking.practice.zone).date()
    return await asking.starts(draft.vet_id, day)
