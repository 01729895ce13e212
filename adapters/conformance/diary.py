# ruff: noqa: S101 - it is made of asserts
"""The diary: free times on long, short and common days, at night, and around what blocks."""

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta

import pytest

from adapters.base import Adapter, NotFound, SlotTaken
from adapters.conformance.asking import NOBODY, Asking, at, changing_days, moment
from adapters.conformance.formats import wrong_with
from adapters.conformance.practice import Practice, needs

DAY = timedelta(days=1)
FEW = 5
WEEK = timedelta(days=7)
MORNING = (time(8), time(14))
NIGHT = (time(22), time(2))
Span = tuple[datetime, datetime]


class Diary:
    """What every adapter promises of free times."""

    async def test_free_times_are_in_order_and_without_doubles(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        draft = await asking.draft()
        day = draft.scheduled_at.astimezone(practice.zone).date()
        slots = await asking.slots(draft.vet_id, day)
        for slot in slots:
            assert wrong_with(slot, practice.shapes["slots"]) == []
            assert slot["startTime"] < slot["endTime"]
            assert moment(slot["startTime"]).astimezone(practice.zone).date() == day
        starts = [each["startTime"] for each in slots]
        assert starts == sorted(set(starts))

    async def test_who_or_what_is_not_there_has_no_free_times(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        draft = await asking.draft()
        day = draft.scheduled_at.date()
        for vet, kind in ((NOBODY, None), (draft.client_id, None), (draft.vet_id, NOBODY)):
            with pytest.raises(NotFound):
                await asking.slots(vet, day, kind)

    async def test_every_type_of_appointment_has_its_length(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking = Asking(practice, adapter)
        draft = await asking.draft()
        day = draft.scheduled_at.astimezone(practice.zone).date()
        for kind in await asking.some("appointmentTypes", limit=FEW):
            slots = await asking.slots(draft.vet_id, day, kind["id"])
            assert len({_length(each) for each in slots}) <= 1, kind["id"]

    async def test_what_has_begun_is_not_free(self, practice: Practice, adapter: Adapter) -> None:
        asking = Asking(practice, adapter)
        draft = await asking.draft()
        day = draft.scheduled_at.astimezone(practice.zone).date()
        starts = await asking.starts(draft.vet_id, day)
        for now in (starts[0], starts[len(starts) // 2], starts[-1]):
            found = await asking.starts(draft.vet_id, day, now=now)
            assert found == [each for each in starts if each > now]
        assert await asking.starts(draft.vet_id, day, now=starts[-1] + DAY) == []

    @needs("set_hours")
    async def test_days_of_23_and_25_hours_lose_and_double_nothing(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking, hours = Asking(practice, adapter), (time(0), time(6))
        for changing in changing_days(asking.later(), practice.zone):
            vet = await asking.working(changing + WEEK, *hours)
            step, length = await _grid(asking, vet, changing + WEEK)
            for day in (changing + WEEK, changing):
                span = at(day, hours[0], practice.zone), at(day, hours[1], practice.zone)
                every = _offered(span, step, length)
                assert await asking.starts(vet, day) == every
                assert await asking.starts(vet, day + DAY) == []
                await _books_as_offered(asking, vet, every)

    @needs("set_hours", "add_appointment")
    async def test_a_night_shift_belongs_to_two_days(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking, day = Asking(practice, adapter), _quiet(practice)
        vet = await asking.working(day, *NIGHT)
        step, length = await _grid(asking, vet, day)
        span = at(day, NIGHT[0], practice.zone), at(day + DAY, NIGHT[1], practice.zone)
        midnight = at(day + DAY, time(), practice.zone)
        offered = _offered(span, step, length)
        assert await asking.starts(vet, day) == [each for each in offered if each < midnight]
        assert await asking.starts(vet, day + DAY) == [each for each in offered if each >= midnight]
        half = timedelta(minutes=30)
        await practice.add_appointment(vet, midnight - half, midnight + half)
        await practice.settle()
        left = _without(offered, length, (midnight - half, midnight + half))
        assert await _both(asking, vet, day) == left

    @needs("set_hours", "add_appointment", "cancel")
    async def test_an_appointment_blocks_its_time_and_no_more_until_it_is_cancelled(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking, day = Asking(practice, adapter), _quiet(practice)
        vet = await asking.working(day, *MORNING)
        step, length = await _grid(asking, vet, day)
        offered = await asking.starts(vet, day)
        span = offered[4], offered[4] + step
        added = await practice.add_appointment(vet, *span)
        await practice.settle()
        assert (await asking.one("appointments", added))["vetId"] == vet
        assert await asking.starts(vet, day) == _without(offered, length, span)
        draft = await asking.draft(vet_id=vet, scheduled_at=span[0])
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(draft)
        await practice.cancel(added)
        await practice.settle()
        assert (await asking.one("appointments", added))["status"] == "CANCELLED"
        assert await asking.starts(vet, day) == offered
        assert (await adapter.create_appointment(draft))["vetId"] == vet

    @needs("set_hours", "add_absence")
    async def test_an_absence_blocks_all_of_the_days_it_covers(
        self, practice: Practice, adapter: Adapter
    ) -> None:
        asking, day = Asking(practice, adapter), _quiet(practice)
        vet = await asking.working(day, *MORNING)
        offered = await asking.starts(vet, day)
        length = (await _grid(asking, vet, day))[1]
        noon = at(day, time(11), practice.zone)
        await practice.add_absence(vet, noon, noon + 2 * DAY)
        await practice.settle()
        assert await asking.starts(vet, day) == _without(offered, length, (noon, noon + 2 * DAY))
        await practice.add_absence(vet, noon - 2 * DAY, noon + DAY)
        await practice.settle()
        assert await asking.starts(vet, day) == []
        draft = await asking.draft(vet_id=vet, scheduled_at=offered[0])
        with pytest.raises(SlotTaken):
            await adapter.create_appointment(draft)


def _quiet(practice: Practice) -> date:
    """A day some time ahead, whose clocks and whose next day's clocks are not changed."""
    later = (practice.now + timedelta(days=60)).date()
    changing = changing_days(later, practice.zone)
    ahead = (later + timedelta(days=number) for number in range(14))
    return next(each for each in ahead if not {each, each + DAY} & set(changing))


async def _books_as_offered(asking: Asking, vet: str, starts: list[datetime]) -> None:
    """The last before the second of two equal hours, or of any that are as late; and another."""
    zone = asking.practice.zone
    again = [each for each in starts if each.astimezone(zone).fold] or starts[len(starts) // 2 :]
    for start in (again[0], starts[0]):
        draft = await asking.draft(vet_id=vet, scheduled_at=start)
        made = await asking.adapter.create_appointment(draft)
        assert moment(made["scheduledAt"]) == start
        assert await asking.one("appointments", made["id"]) == made
        assert await asking.adapter.find_appointments(draft, draft.now) == [made]
        day = start.astimezone(zone).date()
        assert start not in await asking.starts(vet, day)


async def _grid(asking: Asking, vet: str, day: date) -> tuple[timedelta, timedelta]:
    """From one start to the next on an empty day, and how long a free time is."""
    slots = await asking.slots(vet, day)
    first, second = (moment(each["startTime"]) for each in slots[:2])
    return second - first, _length(slots[0])


def _length(slot: dict[str, str]) -> timedelta:
    return moment(slot["endTime"]) - moment(slot["startTime"])


def _offered(span: Span, step: timedelta, length: timedelta) -> list[datetime]:
    """Every start of the grid from which the whole length fits."""
    found, start = [], span[0]
    while start + length <= span[1]:
        found.append(start)
        start += step
    return found


def _without(starts: Iterable[datetime], length: timedelta, busy: Span) -> list[datetime]:
    """Those from which nothing overlaps."""
    return [each for each in starts if not (each < busy[1] and busy[0] < each + length)]


async def _both(asking: Asking, vet: str, day: date) -> list[datetime]:
    return await asking.starts(vet, day) + await asking.starts(vet, day + DAY)
