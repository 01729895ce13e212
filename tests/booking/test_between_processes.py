"""Several processes on one ledger: they wait for one another, and keep out of each other's way."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from adapters.base import Adapter, BackendUnavailable, OutcomeUnknown, Record, SlotTaken
from gateway.booking.base import LEFT, Booked, BookingRefused, LedgerRow, Outcome
from gateway.booking.reconcile import LedgerStatus, UnknownBookings
from gateway.booking.rows import LedgerRows
from gateway.contract.errors import Unavailable
from gateway.store.tables import bookings
from tests.booking.clinic import DAY, MINUTE, NOW, ONE, OTHER, World, another, kept, slain
from tests.waiting import until

HALF = timedelta(minutes=30)


async def lost(world: World, key: str | None = "k", *, made: bool = False) -> None:
    """A booking that was sent, and made or not, which nobody knows."""
    if made:
        world.clinic.lost = OutcomeUnknown("lost")
    else:
        world.clinic.answers = [OutcomeUnknown("lost")]
    with pytest.raises(OutcomeUnknown):
        await world.book(key)


async def test_calls_with_one_key_through_two_processes_get_one_outcome(world: World) -> None:
    elsewhere = world.opened(owners=await another(world))
    world.clinic.gate = asyncio.Event()
    calls = [
        asyncio.create_task(world.book(through=each)) for each in [world.ledger, elsewhere] * 10
    ]
    await world.clinic.called.wait()
    await asyncio.sleep(0.2)
    world.clinic.gate.set()
    booked = await asyncio.gather(*calls)
    assert world.clinic.asked == ["create"]
    assert {each.record["id"] for each in booked} == {"a0"}
    assert [each.replayed for each in booked].count(False) == 1


async def test_who_waits_too_long_for_another_process_is_told_to_come_back(world: World) -> None:
    elsewhere = world.opened(owners=await another(world), wait=0.3)
    world.clinic.gate = asyncio.Event()
    first = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    begun = time.monotonic()
    with pytest.raises(Unavailable) as refused:
        await world.book(through=elsewhere)
    assert refused.value.retry_after == 1
    assert time.monotonic() - begun < 5.0
    world.clinic.gate.set()
    await first


@pytest.mark.parametrize(
    ("at", "vet", "is_blocked"),
    [
        (DAY, "v", True),
        (DAY + HALF - MINUTE, "v", True),
        (DAY - HALF + MINUTE, "v", True),
        (DAY + HALF, "v", False),
        (DAY - HALF, "v", False),
        (DAY, "another vet", False),
    ],
)
async def test_over_what_is_not_known_nothing_is_booked(
    world: World, at: timedelta, vet: str, is_blocked: bool
) -> None:
    await lost(world)
    if not is_blocked:
        assert not (await world.book("other", OTHER, "q", at=at, vet=vet)).replayed
        return
    for key in ("other", "other", None):
        world.clinic.answers = [BackendUnavailable("down")]
        with pytest.raises(Unavailable):
            await world.book(key, OTHER, "q", at=at, vet=vet)
    assert world.clinic.asked == ["create", "find", "find", "find"]
    assert await kept(world) == ["unknown"]


@pytest.mark.parametrize("made", [True, False])
async def test_who_meets_what_is_not_known_has_it_looked_up_at_once(
    world: World, made: bool
) -> None:
    await lost(world, made=made)
    booked = await world.book("other", OTHER, "q", at=DAY + HALF - MINUTE)
    assert not booked.replayed
    assert world.clinic.asked == ["create", "find", "create"]
    assert world.heard.events == (["booking_made"] if made else ["booking_not_made"])
    assert await kept(world) == (["done a0", "done a1"] if made else ["done a0"])
    if made:  # its own partner is told of it
        assert await world.book() == Booked({"id": "a0", "reason": "r"}, replayed=True)


async def test_many_who_meet_it_at_once_have_it_looked_up_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lost(world, made=False)
    kinds = [bytes([number]) * 32 for number in range(5)]
    settle, find = UnknownBookings.settle, world.clinic.find_appointments
    met, all_met = 0, asyncio.Event()

    async def meeting(self: UnknownBookings, row: LedgerRow, adapter: Adapter) -> None:
        nonlocal met
        met += 1
        if met == len(kinds):
            all_met.set()
        await settle(self, row, adapter)

    async def found_once_all_have_met(*given: Any) -> list[Record]:
        await all_met.wait()
        return await find(*given)

    monkeypatch.setattr(UnknownBookings, "settle", meeting)
    world.clinic.find_appointments = found_once_all_have_met  # type: ignore[method-assign]
    calls = (world.book(f"k{n}", each, "q", at=DAY + n * MINUTE) for n, each in enumerate(kinds))
    await asyncio.gather(*calls)
    assert world.clinic.asked.count("find") == 1


async def test_while_another_process_looks_it_up_for_its_caller_they_come_back_later(
    world: World,
) -> None:
    await lost(world, made=False)
    other = await another(world)
    [row] = await LedgerRows(world.store).between()
    assert await LedgerRows(world.store).take(row, other.me, "c" * 32)
    with pytest.raises(Unavailable) as unavailable:
        await world.book("other", OTHER, "q", through=world.opened(looks=2.5))
    assert unavailable.value.retry_after == 3
    assert world.clinic.asked == ["create"]


async def test_until_it_can_be_known_they_are_told_when_that_is(world: World) -> None:
    world.clinic.excludes, world.clinic.settle = False, 30.0
    await lost(world, made=False)
    elsewhere = world.opened(owners=await another(world), lands=15)
    for passed, left in ((0, 45), (20, 25), (24.5, 1)):
        world.now += timedelta(seconds=passed)
        with pytest.raises(Unavailable) as unavailable:
            await world.book("other", OTHER, "q", through=elsewhere)
        assert unavailable.value.retry_after == left
    world.now += timedelta(seconds=0.5)
    assert not (await world.book("other", OTHER, "q", through=elsewhere)).replayed
    assert world.heard.events == ["booking_not_made"]


async def test_since_when_it_is_unknown_is_taken_from_who_reconciles(
    world: World, tmp_path: Path
) -> None:
    world.clinic.excludes = False
    await lost(world, made=False)
    rows = LedgerRows(world.store)
    [row] = await rows.between()
    file = tmp_path / "unknown.json"
    reconciling = UnknownBookings(rows, world.heard, 15, lambda: -10.0, file)
    await reconciling.count_only({row.sending})
    elsewhere = world.opened(owners=await another(world), lands=15, seen=file)
    with pytest.raises(Unavailable) as unavailable:
        await world.book("other", OTHER, "q", through=elsewhere)
    assert unavailable.value.retry_after == 5


@pytest.mark.parametrize("known", [True, False])
async def test_a_time_taken_by_what_nobody_knows_of_is_no_conflict_yet(
    world: World, known: bool
) -> None:
    """Another process' booking became unknown after this one had its row."""
    rows = LedgerRows(world.store)
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book("mine", OTHER, "q"))
    await world.clinic.called.wait()
    [mine] = await rows.between()
    assert await rows.restore(_of_another(mine), LEFT)
    world.clinic.answers = [SlotTaken("it stands there")]
    if not known:
        world.clinic.answers.append(BackendUnavailable("down"))
    world.clinic.gate.set()
    with pytest.raises(BookingRefused if known else Unavailable):
        await call
    # a conflict stays with its key, and what may pass does not
    assert (await kept(world)).count("refused") == known


def _of_another(row: LedgerRow) -> LedgerRow:
    return replace(row, key_id="r", reference="theirs", idempotency_digest=b"3" * 32)


@pytest.mark.parametrize("excludes", [True, False])
@pytest.mark.parametrize("key", ["k", None])
async def test_who_booked_what_is_not_known_is_not_in_his_own_way(
    world: World, key: str | None, excludes: bool
) -> None:
    world.clinic.excludes = excludes
    await lost(world, key)
    assert not (await world.book(key)).replayed
    assert world.clinic.asked == ["create", "find", "create"]
    assert await kept(world) == ["done a0"]


@pytest.mark.parametrize("excludes", [True, False])
async def test_what_the_practice_system_does_not_exclude_the_ledger_does(
    world: World, excludes: bool
) -> None:
    world.clinic.excludes = excludes
    elsewhere = world.opened(owners=await another(world))
    world.clinic.gate = asyncio.Event()
    first = asyncio.create_task(world.book("one"))
    await world.clinic.called.wait()
    over = world.book("two", OTHER, "q", at=DAY + HALF - MINUTE, through=elsewhere)
    behind = world.book("three", b"3" * 32, "q", at=DAY + HALF, through=elsewhere)
    calls = [first, asyncio.create_task(behind)]
    expected = 2 if not excludes else 3

    async def are_let_through() -> bool:
        return len(world.clinic.asked) >= expected

    if excludes:
        calls.append(asyncio.create_task(over))
    await until(are_let_through)
    if not excludes:
        calls.append(asyncio.create_task(over))
    await asyncio.sleep(0.2)
    assert len(world.clinic.asked) == expected
    world.clinic.gate.set()
    await asyncio.gather(*calls)
    assert len(world.clinic.asked) == 3


async def test_many_at_once_through_two_processes_have_one_row_in_between(world: World) -> None:
    world.clinic.excludes = False
    ledgers = [world.ledger, world.opened(owners=await another(world))]
    inside, most = 0, 0
    create = world.clinic.create_appointment

    async def watched(draft: object) -> object:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.01)
        inside -= 1
        return await create(draft)  # type: ignore[arg-type]

    world.clinic.create_appointment = watched  # type: ignore[method-assign,assignment]
    calls = [
        world.book(f"k{n}", bytes([n]) * 32, at=DAY + n * MINUTE, through=ledgers[n % 2])
        for n in range(10)
    ]
    await asyncio.gather(*calls)
    assert most == 1


async def test_a_dead_process_is_in_nobodys_way(world: World) -> None:
    world.clinic.excludes = False
    dead = await another(world)
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book("one", through=world.opened(owners=dead)))
    await world.clinic.called.wait()
    await slain(dead)
    with pytest.raises(Unavailable):  # what it may have booked is not known yet
        await world.book("two", OTHER, "q")
    assert await kept(world) == ["unknown"]
    world.clinic.gate.set()
    assert (await call).record["id"] == "a0"  # it lived: and what it made is in the ledger again
    assert await kept(world) == ["done a0"]


async def test_what_was_only_intended_by_a_dead_process_is_as_if_it_had_not_been(
    world: World,
) -> None:
    dead = await another(world, lives=False)
    await world.book("one")
    async with world.store.begin() as connection:
        await connection.execute(
            update(bookings).values(state="intended", owner=dead.me, appointment_id=None)
        )
    assert not (await world.book("one")).replayed
    assert world.clinic.asked == ["create", "create"]


async def test_after_a_takeover_a_taken_time_may_be_the_first_attempts(world: World) -> None:
    await lost(world)
    find, looks = world.clinic.find_appointments, 0

    async def late(*given: object) -> list[object]:
        nonlocal looks
        looks += 1
        if looks == 1:
            return []  # the first attempt lands after this look
        world.clinic.made.append({"id": "a9", "reason": "r"})
        return await find(*given)  # type: ignore[arg-type,return-value]

    world.clinic.find_appointments = late  # type: ignore[method-assign,assignment]
    world.clinic.answers = [SlotTaken("by ourselves")]
    assert await world.book() == Booked({"id": "a9", "reason": "r"}, replayed=True)
    assert await world.book() == Booked({"id": "a9", "reason": "r"}, replayed=True)


async def test_a_process_that_was_taken_for_dead_writes_back_what_it_made(world: World) -> None:
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    async with world.store.begin() as connection:  # released, as certainly not made
        await connection.execute(bookings.delete())
    world.clinic.gate.set()
    assert await call == Booked({"id": "a0", "reason": "r"}, replayed=False)
    assert await world.book() == Booked({"id": "a0", "reason": "r"}, replayed=True)


@pytest.mark.parametrize("is_gone", [True, False])
async def test_a_process_that_was_taken_for_dead_is_not_given_what_another_booking_has(
    world: World, is_gone: bool
) -> None:
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book("one"))
    await world.clinic.called.wait()
    async with world.store.begin() as connection:
        if is_gone:
            await connection.execute(bookings.delete())
        else:
            lost = {"state": "unknown", "owner": None, "claim": "another's"}
            await connection.execute(update(bookings).values(lost))
    made = {"id": "a0", "reason": "r"}
    world.clinic.create_appointment = lambda draft: asyncio.sleep(0, made)  # type: ignore[method-assign,assignment]
    assert (await world.book("two", OTHER, at=2 * DAY)).record == made
    world.clinic.gate.set()
    with pytest.raises(OutcomeUnknown):
        await call
    assert (await kept(world)).count("done a0") == 1


async def test_a_process_that_was_taken_for_dead_sends_nothing_any_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = LedgerRows.write
    stolen = False

    async def late(self: LedgerRows, row: LedgerRow, outcome: Outcome) -> bool:
        nonlocal stolen
        if not stolen:
            stolen = True
            async with world.store.begin() as connection:
                await connection.execute(bookings.delete())
        return await write(self, row, outcome)

    monkeypatch.setattr(LedgerRows, "write", late)
    await world.book()
    assert world.clinic.asked == ["create"]
    assert await kept(world) == ["done a0"]


async def test_a_lost_answer_is_looked_up_while_its_caller_waits(world: World) -> None:
    world.ledger = world.opened(looks=3)
    world.clinic.lost = OutcomeUnknown("lost")
    assert await world.book() == Booked({"id": "a0", "reason": "r"}, replayed=False)
    assert world.clinic.asked == ["create", "find"]


async def test_a_lost_answer_is_looked_up_for_three_seconds_and_no_longer(world: World) -> None:
    world.ledger = world.opened(looks=0.6)
    world.clinic.excludes = False
    begun = time.monotonic()
    await lost(world)
    assert 0.5 < time.monotonic() - begun < 2
    assert world.clinic.asked.count("find") >= 2


async def test_of_another_processs_attempt_nothing_found_is_not_nothing_there(
    world: World,
) -> None:
    world.clinic.excludes, world.clinic.settle = False, 30.0
    await lost(world)
    elsewhere = world.opened(owners=await another(world), lands=15)
    for late in (1, 44, 45.9):
        world.now = NOW + timedelta(seconds=late)
        with pytest.raises(OutcomeUnknown):
            await world.book(through=elsewhere)
    assert world.clinic.asked == ["create", "find", "find", "find"]
    world.now = NOW + timedelta(seconds=46)  # since it was first seen there
    assert not (await world.book(through=elsewhere)).replayed


@pytest.mark.parametrize("hours", [1, -1])
async def test_no_clock_that_is_set_or_differs_makes_an_attempt_over(
    world: World, hours: int
) -> None:
    world.clinic.excludes, world.clinic.settle = False, 30.0
    dead = await another(world)
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book(through=world.opened(owners=dead)))
    await world.clinic.called.wait()
    await slain(dead)
    world.jump(timedelta(hours=hours))
    elsewhere = world.opened(owners=await another(world), lands=15)
    for seconds in (0, 44.9):
        world.now += timedelta(seconds=seconds)
        with pytest.raises(OutcomeUnknown):
            async with asyncio.timeout(5):  # what is sent would wait here
                await world.book(through=elsewhere)
    assert world.clinic.asked == ["create", "find", "find"]
    world.now += timedelta(seconds=0.1)
    world.clinic.gate.set()
    await call  # it lived, and what it made is told to whoever asks again
    assert (await world.book(through=elsewhere)).replayed
    assert world.clinic.asked == ["create", "find", "find"]


async def test_what_was_sent_again_is_waited_for_anew(world: World) -> None:
    world.clinic.excludes, world.clinic.settle = False, 30.0
    one, two = [world.opened(owners=await another(world), lands=15) for _ in range(2)]
    await lost(world)
    for through in (one, two):
        with pytest.raises(OutcomeUnknown):
            await world.book(through=through)
    world.now += timedelta(seconds=45)
    find = world.clinic.find_appointments
    world.clinic.find_appointments = nothing  # type: ignore[method-assign]
    world.clinic.answers = [OutcomeUnknown("lost")]
    for through in (one, two):  # one sends it, and two has seen only what was sent before
        with pytest.raises(OutcomeUnknown):
            await world.book(through=through)
    world.clinic.find_appointments = find  # type: ignore[method-assign]
    assert world.clinic.asked.count("create") == 2
    world.now += timedelta(seconds=45)
    assert not (await world.book(through=two)).replayed


async def nothing(*_: object) -> list[Record]:
    return []


async def test_a_ledger_that_hangs_books_nothing_within_its_bound(
    world: World, monkeypatch: pytest.MonkeyPatch, patience: Callable[[float], None]
) -> None:
    patience(0.5)
    hangs = asyncio.Event()
    insert = LedgerRows.insert

    async def late(*given: object, **more: object) -> object:
        await hangs.wait()
        return await insert(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(LedgerRows, "insert", late)
    begun = time.monotonic()
    with pytest.raises(Unavailable):
        await world.book()
    assert time.monotonic() - begun < 5.0
    patience(30.0)
    # what is written after all, for nobody, is taken away again
    monkeypatch.setattr(LedgerRows, "insert", insert)
    await world.ledger.tidy(world.now)  # too early: it is not there yet
    hangs.set()
    await asyncio.sleep(0.3)
    await world.ledger.tidy(world.now)
    assert await kept(world) == []
    assert world.clinic.asked == []
    assert not (await world.book(fingerprint=OTHER)).replayed


async def test_the_states_are_counted_for_those_who_watch(world: World) -> None:
    await world.book("a")
    world.now += MINUTE
    world.clinic.answers = [OutcomeUnknown("lost")]
    with pytest.raises(OutcomeUnknown):
        await world.book("b", OTHER, at=DAY + HALF)
    standing = LedgerStatus(world.store, lambda: world.now + MINUTE)
    await standing.look()
    counts = {state: count for (state,), count in standing.states().items()}
    assert counts == {"intended": 0, "sent": 0, "unknown": 1, "done": 1, "refused": 0}
    assert standing.oldest_unknown() == 60
    assert not (await world.book("b", OTHER, at=DAY + HALF)).replayed
    assert standing.oldest_unknown() == 60  # it looks again only after a while
    after = LedgerStatus(world.store, lambda: world.now)
    await after.look()
    assert after.oldest_unknown() == 0


async def test_what_is_settled_keeps_no_draft(world: World) -> None:
    await world.book()
    async with world.store.begin() as connection:
        row = (await connection.execute(select(bookings))).one()
    assert (row.draft, row.owner, row.fingerprint) == (None, None, ONE)
