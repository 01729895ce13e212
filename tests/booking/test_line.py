"""Bookings at once for one time: how often the practice system is asked, and what all are told."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

import pytest

from adapters.base import BackendUnavailable, Draft, NotFound, OutcomeUnknown, Rejected, SlotTaken
from adapters.base import Record as Booking
from gateway.booking.base import Booked, BookingRefused
from gateway.booking.ledger import Ledger
from gateway.contract.errors import Unavailable
from tests.booking.clinic import DAY, OTHER, Clinic, World, kept
from tests.waiting import until

MANY = 40


class Calendar(Clinic):
    """A practice whose vet has a number of free rows for each time; it is asked one at a time."""

    def __init__(self, rows: int = 1) -> None:
        super().__init__()
        self.rows, self.fails = rows, list[Exception | None]()
        self.taken: Counter[Any] = Counter()

    async def create_appointment(self, draft: Draft) -> Booking:
        self.asked.append("create")
        await asyncio.sleep(0.005)
        if self.gate is not None:
            await self.gate.wait()
        if self.fails and (error := self.fails.pop(0)) is not None:
            raise error
        if self.taken[draft.scheduled_at] >= self.rows:
            raise SlotTaken("taken")
        self.taken[draft.scheduled_at] += 1
        self.made.append({"id": f"a{len(self.made)}", "reason": draft.reason})
        return self.made[-1]


async def told(booking: Awaitable[Booked]) -> str:
    try:
        return "replayed" if (await booking).replayed else "booked"
    except BookingRefused as error:
        return error.error + (" replayed" if error.replayed else "")
    except Exception as error:  # noqa: BLE001 - what each of them is told is the point
        return type(error).__name__


async def race(world: World, count: int = MANY, *, keyed: bool = True, **more: Any) -> Counter[str]:
    """What so many callers at once are told, each with an animal of its own."""
    calls = (
        world.book(f"k{n}" if keyed else None, bytes([n]) * 32, f"p{n}", patient=f"p{n}", **more)
        for n in range(count)
    )
    return Counter(await asyncio.gather(*map(told, calls)))


async def race_from_one_line(world: World, *, keyed: bool = True) -> Counter[str]:
    """The same, where none is decided before all stand in line."""
    lines = world.ledger._lines._turns
    world.clinic.gate = asyncio.Event()
    racing = asyncio.create_task(race(world, keyed=keyed))
    await until(lambda: sum(map(len, lines.values())) == MANY, 30.0)
    world.clinic.gate.set()
    return await racing


@pytest.mark.parametrize("excludes", [True, False])
@pytest.mark.parametrize("keyed", [True, False])
async def test_who_loses_a_race_is_told_by_the_decision_on_the_first_loser(
    world: World, excludes: bool, keyed: bool
) -> None:
    world.clinic = clinic = Calendar()
    clinic.excludes = excludes
    answers = await race_from_one_line(world, keyed=keyed)
    assert answers == {"booked": 1, "SlotTaken": MANY - 1}
    assert clinic.asked == ["create", "create"]
    settled = ["done a0", *["refused"] * (MANY - 1)]
    assert sorted(await kept(world)) == (settled if keyed else ["done a0"])


async def test_a_refusal_that_another_was_told_sticks_like_any(world: World) -> None:
    world.clinic = clinic = Calendar()
    await race_from_one_line(world)
    clinic.taken.clear()  # it is free again: whoever asks again with the same key is told the same
    assert await race(world) == {"replayed": 1, "SlotTaken replayed": MANY - 1}
    assert clinic.asked == ["create", "create"]
    assert await told(world.book("new", OTHER, patient="new")) == "booked"


@pytest.mark.parametrize("error", [Rejected, BackendUnavailable, NotFound, ValueError])
async def test_where_the_first_ones_fail_the_time_is_another_ones(world: World, error: Any) -> None:
    world.clinic = clinic = Calendar()
    clinic.fails = [error("no"), error("no"), None]
    answers = await race_from_one_line(world)
    failed = "OutcomeUnknown" if error is ValueError else error.__name__
    assert answers == {failed: 2, "booked": 1, "SlotTaken": MANY - 3}
    assert clinic.asked.count("create") == 4


async def test_while_a_bookings_outcome_is_unknown_nobody_is_told_that_its_time_is_taken(
    world: World,
) -> None:
    world.clinic = clinic = Calendar()
    clinic.fails = [OutcomeUnknown("lost")]
    clinic.answers = [OutcomeUnknown("it may still be written")] * 100  # of look-ups
    ledger = world.opened(wait=1)
    calls = [told(world.book("k", through=ledger, patient="q"))]
    calls += [
        told(world.book(f"k{n}", bytes([n]) * 32, f"p{n}", patient=f"p{n}", through=ledger))
        for n in range(5)
    ]
    answers = Counter(await asyncio.gather(*calls))
    assert answers == {"OutcomeUnknown": 1, "Unavailable": 5}


async def test_a_vet_with_two_free_rows_at_one_time_gives_both_away(world: World) -> None:
    world.clinic = clinic = Calendar(rows=2)
    assert await race(world) == {"booked": 2, "SlotTaken": MANY - 2}
    assert len(clinic.asked) == 3


async def test_other_times_and_other_vets_are_decided_for_themselves(world: World) -> None:
    world.clinic = clinic = Calendar()
    places = [{"at": DAY + timedelta(hours=n)} for n in range(3)] + [{"vet": "w", "at": 4 * DAY}]
    calls = (told(world.book(f"k{n}", bytes([n]) * 32, **at)) for n, at in enumerate(places))
    assert await asyncio.gather(*calls) == ["booked"] * 4
    assert len(clinic.asked) == 4


async def test_who_comes_once_the_decision_is_under_way_is_decided_anew(world: World) -> None:
    world.clinic = clinic = Calendar()
    clinic.gate, clinic.fails = asyncio.Event(), [SlotTaken("taken")]
    early = asyncio.create_task(told(world.book("k1", patient="p1")))
    await until(lambda: clinic.asked)
    # the desk frees the time after it was looked at: who asks now is owed a look of its own
    late = asyncio.create_task(told(world.book("k2", OTHER, patient="p2")))
    await asyncio.sleep(0.05)
    clinic.gate.set()
    assert (await early, await late) == ("SlotTaken", "booked")


async def test_the_same_request_twice_in_the_line_is_told_the_same(world: World) -> None:
    world.clinic = clinic = Calendar()
    same = [told(world.book("k", patient="q")) for _ in range(3)]
    other = [told(world.book("k2", OTHER, "p2", patient="q2")) for _ in range(3)]
    answers = Counter(await asyncio.gather(*same, *other))
    assert answers == {"booked": 1, "replayed": 2, "SlotTaken": 1, "SlotTaken replayed": 2}
    assert len(clinic.made) == 1


async def test_who_leaves_the_line_or_waits_too_long_holds_nobody_up(world: World) -> None:
    world.clinic = clinic = Calendar()
    clinic.gate, ledger = asyncio.Event(), world.opened(wait=0.3)

    def calls(number: int, who: Ledger) -> asyncio.Task[str]:
        request = world.book(f"k{number}", bytes([number]) * 32, patient=f"p{number}", through=who)
        return asyncio.create_task(told(request))

    first = calls(0, ledger)
    await until(lambda: clinic.asked)
    leaver, waiter = calls(1, ledger), calls(2, ledger)
    await asyncio.sleep(0.05)
    leaver.cancel()
    assert await waiter == Unavailable.__name__
    last = calls(3, ledger)
    clinic.gate.set()
    assert (await first, await last) == ("booked", "SlotTaken")
    assert leaver.cancelled()


@pytest.mark.parametrize("keyed", [True, False])
async def test_a_key_that_is_revoked_meanwhile_is_not_told_about_the_time(
    world: World, keyed: bool
) -> None:
    class Revoking(Calendar):
        async def create_appointment(self, draft: Draft) -> Booking:
            try:
                return await super().create_appointment(draft)
            except SlotTaken:
                world.revoked = True
                raise

    world.clinic = Revoking()
    assert await race(world, 5, keyed=keyed) == {"booked": 1, "SlotTaken": 1, "KeyInvalid": 3}


async def test_of_the_bookings_of_a_day_those_that_lost_a_race_use_up_none(world: World) -> None:
    world.clinic = Calendar()
    calls = (told(world.book(f"k{n}", bytes([n]) * 32, patient=f"p{n}", most=2)) for n in range(9))
    answers = Counter(await asyncio.gather(*calls))
    assert answers == {"booked": 1, "SlotTaken": 8}
    assert await told(world.book("more", OTHER, at=2 * DAY, most=2)) == "booked"
    assert await told(world.book("too many", b"3" * 32, at=3 * DAY, most=2)) == "LimitExceeded"
