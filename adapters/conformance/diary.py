# ruff: noqa: S101 - it is made of asserts
"""Tests the diary, with free times around hours and what blocks, and single, whole bookings."""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from secrets import token_hex
from typing import NamedTuple

import pytest

from adapters.base import AdapterError, Draft, NotFound, PatientDeceased, Record, SlotTaken
from adapters.conformance.practice import DAY, NOBODY, Probe, moment, needs
from adapters.conformance.records import wrong_with

FEW = 5
RACERS = 20
SHIFTED = 5
WEEK = timedelta(days=7)
EARLY = (time(0), time(6))
MORNING = (time(8), time(14))
NIGHT = (time(22), time(2))
Span = tuple[datetime, datetime]


class DiaryPromises:
    """Tests of what every adapter promises about free times."""

    async def test_free_times_are_in_order_and_without_doubles(self, probe: Probe) -> None:
        draft = await probe.draft()
        day = probe.day(draft.scheduled_at)
        slots = await probe.slots(draft.vet_id, day)
        assert wrong_with(slots, probe.practice.shapes["slots"]) == []
        for slot in slots:
            assert slot["startTime"] < slot["endTime"]
            assert probe.day(moment(slot["startTime"])) == day
        starts = [slot["startTime"] for slot in slots]
        assert starts == sorted(set(starts))

    async def test_who_or_what_is_not_there_has_no_free_times(self, probe: Probe) -> None:
        draft = await probe.draft()
        day = draft.scheduled_at.date()
        for vet, kind in ((NOBODY, None), (draft.client_id, None), (draft.vet_id, NOBODY)):
            with pytest.raises(NotFound):
                await probe.slots(vet, day, kind)

    async def test_every_type_of_appointment_has_its_length(self, probe: Probe) -> None:
        draft = await probe.draft()
        for kind in await probe.some("appointmentTypes", limit=FEW):
            slots = await probe.slots(draft.vet_id, probe.day(draft.scheduled_at), kind["id"])
            assert len({_length(slot) for slot in slots}) <= 1, kind["id"]

    async def test_what_has_begun_is_not_free(self, probe: Probe) -> None:
        draft = await probe.draft()
        day = probe.day(draft.scheduled_at)
        starts = await probe.starts(draft.vet_id, day)
        for now in (starts[0], starts[len(starts) // 2], starts[-1]):
            later = await probe.starts(draft.vet_id, day, now=now)
            assert later == [start for start in starts if start > now]
        assert await probe.starts(draft.vet_id, day, now=starts[-1] + DAY) == []

    @needs("set_hours")
    async def test_days_of_23_and_25_hours_lose_and_double_nothing(self, probe: Probe) -> None:
        for changing in filter(probe.is_changing, probe.days_ahead()):
            vet, every = await _working(probe, changing + WEEK, EARLY)
            for day in (changing + WEEK, changing):
                starts = every.starts(_span(probe, day, EARLY))
                assert await probe.starts(vet, day) == starts
                assert await probe.starts(vet, day + DAY) == []
                # in the second of two equal hours, or as late in the day; and the first of all
                again = [start for start in starts if start.astimezone(probe.practice.zone).fold]
                for start in ((again or starts[len(starts) // 2 :])[0], starts[0]):
                    draft = await probe.draft(vet_id=vet, scheduled_at=start)
                    made = await probe.adapter.create_appointment(draft)
                    assert moment(made["scheduledAt"]) == start
                    assert await probe.one("appointments", made["id"]) == made
                    assert await probe.bookings_of(draft) == [made]
                    assert start not in await probe.offered(draft)

    @needs("set_hours", "add_appointment")
    async def test_a_night_shift_belongs_to_two_days(self, probe: Probe) -> None:
        day = _quiet(probe)
        vet, every = await _working(probe, day, NIGHT)
        midnight, half = probe.at(day + DAY, time()), timedelta(minutes=30)
        offered = every.starts(_span(probe, day, NIGHT))
        before = [start for start in offered if start < midnight]
        assert await probe.starts(vet, day) == before
        assert await probe.starts(vet, day + DAY) == offered[len(before) :]
        busy = midnight - half, midnight + half
        await probe.settled(probe.practice.add_appointment(vet, *busy))
        left = every.without(offered, busy)
        assert await probe.starts(vet, day) + await probe.starts(vet, day + DAY) == left

    @needs("set_hours", "add_appointment", "cancel")
    async def test_an_appointment_blocks_its_time_until_it_is_cancelled(self, probe: Probe) -> None:
        day = _quiet(probe)
        vet, every = await _working(probe, day, MORNING)
        offered = await probe.starts(vet, day)
        span = offered[4], offered[4] + every.step
        added = await probe.settled(probe.practice.add_appointment(vet, *span))
        assert (await probe.one("appointments", added))["vetId"] == vet
        assert await probe.starts(vet, day) == every.without(offered, span)
        draft = await probe.draft(vet_id=vet, scheduled_at=span[0])
        with pytest.raises(SlotTaken):
            await probe.adapter.create_appointment(draft)
        await probe.settled(probe.practice.cancel(added))
        assert (await probe.one("appointments", added))["status"] == "CANCELLED"
        assert await probe.starts(vet, day) == offered
        assert (await probe.adapter.create_appointment(draft))["vetId"] == vet

    @needs("set_hours", "add_absence")
    async def test_an_absence_blocks_all_of_the_days_it_covers(self, probe: Probe) -> None:
        day = _quiet(probe)
        vet, every = await _working(probe, day, MORNING)
        offered, noon = await probe.starts(vet, day), probe.at(day, time(11))
        await probe.settled(probe.practice.add_absence(vet, noon, noon + 2 * DAY))
        assert await probe.starts(vet, day) == every.without(offered, (noon, noon + 2 * DAY))
        await probe.settled(probe.practice.add_absence(vet, noon - 2 * DAY, noon + DAY))
        assert await probe.starts(vet, day) == []
        draft = await probe.draft(vet_id=vet, scheduled_at=offered[0])
        with pytest.raises(SlotTaken):
            await probe.adapter.create_appointment(draft)


def _quiet(probe: Probe) -> date:
    """Returns a day some time ahead on which no clocks change, nor on the next day."""
    days = pairwise(probe.days_ahead())
    return next(day for day, after in days if not any(map(probe.is_changing, (day, after))))


def _span(probe: Probe, day: date, hours: tuple[time, time]) -> Span:
    """Returns those hours of a day; an end that is not after the start is on the next day."""
    begin, end = hours
    return probe.at(day, begin), probe.at(day if end > begin else day + DAY, end)


class Grid(NamedTuple):
    """The free times of an empty day: the time from one start to the next, and their length."""

    step: timedelta
    length: timedelta

    def starts(self, span: Span) -> list[datetime]:
        """Returns every start from which the whole length fits into the span."""
        count = (span[1] - span[0] - self.length) // self.step + 1
        return [span[0] + number * self.step for number in range(count)]

    def without(self, starts: Iterable[datetime], busy: Span) -> list[datetime]:
        """Returns the starts of the times that do not overlap the busy span."""
        return [start for start in starts if start >= busy[1] or start + self.length <= busy[0]]


async def _working(probe: Probe, day: date, hours: tuple[time, time]) -> tuple[str, Grid]:
    """Returns a free vet with those hours on that weekday alone, and the grid of free times."""
    for vet in [str(vet["id"]) for vet in await probe.some("vets")]:
        await probe.settled(probe.practice.set_hours(vet, day.isoweekday(), *hours))
        if slots := await probe.slots(vet, day):
            first, second = (moment(slot["startTime"]) for slot in slots[:2])
            return vet, Grid(second - first, _length(slots[0]))
    raise LookupError(f"with hours from {hours[0]} to {hours[1]} no vet has a free time on {day}")


def _length(slot: Record) -> timedelta:
    return moment(slot["endTime"]) - moment(slot["startTime"])


class BookingPromises:
    """Tests of what every adapter promises about bookings."""

    async def test_a_booking_takes_its_time_reads_back_and_can_be_found(self, probe: Probe) -> None:
        draft = await probe.draft()
        assert await probe.bookings_of(draft) == []
        made = await probe.adapter.create_appointment(draft)
        assert wrong_with([made], probe.practice.shapes["appointments"]) == []
        assert (made["vetId"], made["patientId"]) == (draft.vet_id, draft.patient_id)
        assert (made["clientId"], made["status"]) == (draft.client_id, "SCHEDULED")
        assert moment(made["scheduledAt"]) == draft.scheduled_at
        assert made["reason"] in (draft.reason, None)
        assert await probe.one("appointments", made["id"]) == made
        assert await probe.bookings_of(draft) == [made]
        assert await _written_over(probe, made) == []
        assert draft.scheduled_at not in await probe.offered(draft)
        with pytest.raises(SlotTaken):
            await probe.adapter.create_appointment(draft)

    async def test_who_is_not_there_is_not_found_and_books_nothing(self, probe: Probe) -> None:
        draft = await probe.draft()
        strangers = (
            replace(draft, client_id=NOBODY),
            replace(draft, patient_id=NOBODY),
            replace(draft, vet_id=NOBODY),
            replace(draft, appointment_type_id=NOBODY),
            replace(draft, client_id=draft.vet_id),
        )
        await _refused(probe, NotFound, *strangers, free=draft)

    async def test_for_an_animal_that_has_died_nothing_is_booked(self, probe: Probe) -> None:
        # a practice without one has nothing to refuse
        for patient in (await probe.patients(deceased=True))[:1]:
            draft = await probe.draft(client_id=patient["clientId"], patient_id=patient["id"])
            await _refused(probe, PatientDeceased, draft, free=draft)

    async def test_only_a_time_that_is_offered_can_be_booked(self, probe: Probe) -> None:
        draft = await probe.draft()
        last = (await probe.offered(draft))[-1]
        unbookable = (
            replace(draft, scheduled_at=draft.scheduled_at + timedelta(seconds=1)),
            replace(draft, scheduled_at=last + timedelta(days=3650, minutes=7)),
            replace(draft, now=draft.scheduled_at),
        )
        await _refused(probe, SlotTaken, *unbookable, free=draft)

    async def test_of_many_at_once_in_two_processes_one_gets_the_time(self, probe: Probe) -> None:
        draft = await probe.draft()
        drafts = [replace(draft, reference=token_hex(8)) for _ in range(RACERS)]
        drafts += [replace(draft, scheduled_at=draft.scheduled_at + timedelta(seconds=1))] * SHIFTED
        async with aclosing(probe.practice.open()) as other:
            both = (probe.adapter, other)
            tries = [both[n % 2].create_appointment(draft) for n, draft in enumerate(drafts)]
            ends = await asyncio.gather(*tries, return_exceptions=True)
            assert sum(isinstance(end, dict) for end in ends) == 1
            assert sum(isinstance(end, SlotTaken) for end in ends) == RACERS + SHIFTED - 1
            winner = next(n for n, end in enumerate(ends) if isinstance(end, dict))
            assert list(await other.find_appointments(drafts[winner], draft.now)) == [ends[winner]]
        assert draft.scheduled_at not in await probe.offered(draft)

    async def test_neighbours_at_once_never_overlap(self, probe: Probe) -> None:
        draft = await probe.draft()
        tries = [
            probe.adapter.create_appointment(replace(draft, scheduled_at=start, reference=""))
            for start in (await probe.offered(draft))[:6]
        ]
        ends = await asyncio.gather(*tries, return_exceptions=True)
        assert all(isinstance(end, dict | SlotTaken) for end in ends), ends
        records = [end for end in ends if isinstance(end, dict)]
        made = sorted((moment(r["scheduledAt"]), moment(r["endTime"])) for r in records)
        assert made
        for earlier, later in pairwise(made):
            assert earlier[1] <= later[0]

    @needs("add_appointment")
    async def test_what_the_desk_writes_over_a_booking_is_found(self, probe: Probe) -> None:
        draft = await probe.draft()
        made = await probe.adapter.create_appointment(draft)
        end = moment(made["endTime"])
        await probe.practice.add_appointment(draft.vet_id, end, end + timedelta(minutes=5))
        assert await _written_over(probe, made) == []
        await probe.practice.add_appointment(draft.vet_id, draft.scheduled_at, end)
        assert await _written_over(probe, made) == [made["id"]]


async def _refused(probe: Probe, error: type[AdapterError], *drafts: Draft, free: Draft) -> None:
    """Asserts that no draft is booked, and that the free times for `free` stay as they were."""
    before = await probe.offered(free)
    for draft in drafts:
        with pytest.raises(error):
            await probe.adapter.create_appointment(draft)
    assert await probe.offered(free) == before


async def _written_over(probe: Probe, made: Record) -> list[str]:
    """Returns the appointment's id in a list where it is overwritten, else []."""
    seen = await probe.adapter.find_overwritten([made["id"]])
    assert not seen.unreadable
    return list(seen.overwritten)
