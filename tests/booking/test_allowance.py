"""How many bookings a key may make a day: counted exactly, whoever asks and however they end."""

import asyncio
from datetime import timedelta

import pytest

from adapters.base import BackendUnavailable, LeftAlone, OutcomeUnknown, SlotTaken
from gateway.booking.base import BookingRefused
from gateway.contract.errors import LimitExceeded, Unavailable
from tests.booking.clinic import DAY, NOW, ONE, OTHER, Forgetful, World, another, kept


async def booked(
    world: World, key: str | None, fingerprint: bytes, most: int, at: timedelta = DAY
) -> str:
    """How one booking ends."""
    try:
        await world.book(key, fingerprint, most=most, at=at)
    except LimitExceeded as error:
        return f"wait {error.retry_after}"
    except (BookingRefused, BackendUnavailable, OutcomeUnknown) as error:
        return type(error).__name__
    return "booked"


async def test_beyond_it_a_booking_waits_for_the_next_day(world: World) -> None:
    ends = [await booked(world, f"k{n}", bytes([n]) * 32, 2) for n in range(3)]
    assert ends == ["booked", "booked", f"wait {14 * 3600}"]
    assert len(world.clinic.made) == 2
    # what was made is told again, and what was refused took no key
    assert (await world.book("k1", bytes([1]) * 32, most=2)).replayed
    world.now += timedelta(hours=13, minutes=59, seconds=59.5)
    assert await booked(world, "k2", bytes([2]) * 32, 2) == "wait 1"
    assert (await world.book("k2", bytes([2]) * 32, who="another", most=2)).record["id"] == "a2"


async def test_a_process_that_is_started_again_counts_on(world: World) -> None:
    await world.book(most=1)
    with pytest.raises(LimitExceeded):
        await world.book("other", OTHER, most=1, through=world.opened())


async def test_of_another_day_nothing_counts(world: World) -> None:
    world.now = NOW.replace(hour=0) - timedelta(microseconds=1)
    await world.book("yesterday", most=1)
    world.now = NOW
    assert await booked(world, "today", OTHER, 1) == "booked"


async def test_what_was_not_made_does_not_count(world: World) -> None:
    world.clinic.answers = [SlotTaken("no"), BackendUnavailable("down")]
    ends = [await booked(world, f"k{n}", bytes([n]) * 32, 1) for n in range(4)]
    assert ends == ["BookingRefused", "BackendUnavailable", "booked", f"wait {14 * 3600}"]


async def test_what_is_under_way_is_waited_for_and_what_fails_leaves_its_place(
    world: World,
) -> None:
    world.clinic.answers = [SlotTaken("no") for _ in range(7)]
    world.clinic.gate = asyncio.Event()
    calls = [
        asyncio.create_task(
            booked(world, f"k{n}", bytes([n]) * 32, 1, at=DAY * (n + 1)), name=f"booking {n}"
        )
        for n in range(9)
    ]
    await world.clinic.called.wait()
    ended, _ = await asyncio.wait(calls, timeout=0.5)
    assert not ended  # nobody is refused for what is not decided
    world.clinic.gate.set()
    ends = sorted(await asyncio.gather(*calls))
    assert ends == [*["BookingRefused"] * 7, "booked", f"wait {14 * 3600}"]
    assert len(world.clinic.made) == 1


@pytest.mark.parametrize("same_process", [True, False])
async def test_what_stays_under_way_is_503_for_a_moment(world: World, same_process: bool) -> None:
    world.clinic.gate = asyncio.Event()
    first = asyncio.create_task(world.book("first", most=1))
    await world.clinic.called.wait()
    owners = world.owners if same_process else await another(world)
    ledger = world.ledger if same_process else world.opened(owners=owners)
    ledger.wait = 0.3
    with pytest.raises(Unavailable) as unavailable:
        await world.book("other", OTHER, vet="w", most=1, through=ledger)
    assert unavailable.value.retry_after == 1
    # before a body is read only what is certain counts
    await ledger.check_allowance("p", world.allowance(1), NOW)
    world.clinic.gate.set()
    assert (await first).record["id"] == "a0"
    with pytest.raises(LimitExceeded):
        await world.book("other", OTHER, vet="w", most=1, through=ledger)
    assert len(world.clinic.made) == 1


async def test_an_unknown_outcome_is_asked_for_before_it_counts(world: World) -> None:
    world.clinic.lost = OutcomeUnknown("lost")
    assert await booked(world, "first", ONE, 1) == "OutcomeUnknown"
    world.clinic.answers = [LeftAlone("down", 7.0)]
    with pytest.raises(Unavailable) as unavailable:
        await world.book("other", OTHER, vet="w", most=1)
    assert unavailable.value.retry_after == 7
    # now it is known to have been made
    assert await booked(world, "other", OTHER, 1) == f"wait {14 * 3600}"
    assert (await world.book("first", most=1)).record["id"] == "a0"
    assert len(world.clinic.made) == 1


async def test_an_unknown_outcome_that_was_not_made_leaves_its_place(world: World) -> None:
    world.clinic.answers = [OutcomeUnknown("lost")]
    assert await booked(world, "first", ONE, 1) == "OutcomeUnknown"
    assert await booked(world, "other", OTHER, 1) == "booked"
    # its retry would be a second booking by now
    assert await booked(world, "first", ONE, 1) == f"wait {14 * 3600}"
    assert len(world.clinic.made) == 1


@pytest.mark.parametrize("settled", [False, True])
async def test_without_a_key_a_retry_gets_its_own_unknown_booking(
    world: World, settled: bool
) -> None:
    world.clinic.lost = OutcomeUnknown("lost")
    assert await booked(world, None, ONE, 1) == "OutcomeUnknown"
    if settled:  # another booking has found it meanwhile
        assert await booked(world, None, OTHER, 1) == f"wait {14 * 3600}"
        assert await kept(world) == ["done a0"]
    allowance = world.allowance(1)
    await world.ledger.check_allowance("p", allowance, NOW)
    assert (await world.book(None, most=1)).record["id"] == "a0"
    with pytest.raises(LimitExceeded):  # it is told once
        await world.ledger.check_allowance("p", allowance, NOW)
    assert await booked(world, None, ONE, 1) == f"wait {14 * 3600}"
    assert len(world.clinic.made) == 1


async def test_a_booking_that_its_caller_did_not_hear_of_is_told_all_the_same(
    world: World,
) -> None:
    await world.book(None, most=1)
    await world.ledger.mark_untold("p", "a0")
    await world.ledger.check_allowance("p", world.allowance(1), NOW)
    assert (await world.book(None, most=1)).record["id"] == "a0"
    with pytest.raises(LimitExceeded):
        await world.ledger.check_allowance("p", world.allowance(1), NOW)


@pytest.mark.parametrize("key", ["k", None])
async def test_it_is_exact_over_processes(world: World, key: str | None) -> None:
    ledgers = [world.opened(), world.opened(owners=await another(world))]

    async def book(number: int) -> bool:
        try:
            await world.book(
                key and f"{key}{number}",
                bytes([number]) * 32,
                vet=f"v{number}",
                through=ledgers[number % 2],
                most=7,
            )
        except LimitExceeded:
            return False
        return True

    ends = await asyncio.gather(*map(book, range(20)))
    assert sum(ends) == len(world.clinic.made) == 7
    assert sorted(await kept(world)) == [f"done a{number}" for number in range(7)]


async def test_before_a_body_is_read_it_is_only_looked_at(world: World) -> None:
    allowance = world.allowance(1)
    await world.ledger.check_allowance("p", allowance, NOW)
    await world.book(most=1)
    with pytest.raises(LimitExceeded) as exceeded:
        await world.ledger.check_allowance("p", allowance, NOW)
    assert exceeded.value.retry_after == 14 * 3600
    await world.ledger.check_allowance("q", allowance, NOW)


async def test_where_it_cannot_be_counted_nothing_is_booked(world: World) -> None:
    store = Forgetful(world.store)
    store.full = True
    with pytest.raises(Unavailable):
        await world.book(most=5, through=world.opened(store))
    assert world.clinic.asked == []
