"""The ledger: one outcome for a day, whatever happens in between; nothing twice."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from adapters.base import BackendUnavailable, NotFound, OutcomeUnknown, Rejected, SlotTaken
from gateway.booking.base import Booked, BookingRefused, LedgerRow, LostClaim, Outcome
from gateway.booking.rows import LedgerRows
from gateway.contract.errors import InvalidRequest, KeyInvalid, KeyReused, Unavailable
from gateway.store.tables import bookings
from tests.booking.clinic import (
    DAY,
    MINUTE,
    NOW,
    OTHER,
    Forgetful,
    World,
    another,
    kept,
    slain,
)
from tests.waiting import until


async def test_the_same_request_gets_the_first_booking_again(world: World) -> None:
    first = await world.book()
    assert first == Booked({"id": "a0", "reason": "r"}, replayed=False)
    world.past = True  # the look-up comes before the look at the clock
    world.now += DAY - timedelta(seconds=1)
    assert await world.book() == Booked(first.record, replayed=True)
    assert len(world.clinic.made) == 1


async def test_after_a_day_the_key_is_free_again(world: World) -> None:
    await world.book()
    world.now += DAY
    assert not (await world.book()).replayed
    assert len(world.clinic.made) == 2


@pytest.mark.parametrize("error", [NotFound, SlotTaken])
async def test_the_practice_systems_404_and_409_stick(world: World, error: Any) -> None:
    world.clinic.answers = [error("no")]
    for replayed in (False, True, True):
        with pytest.raises(BookingRefused) as refused:
            await world.book()
        assert (refused.value.error, refused.value.replayed) == (error.__name__, replayed)
    assert world.clinic.asked == ["create"]


@pytest.mark.parametrize("error", [BackendUnavailable, Rejected])
async def test_any_other_outcome_leaves_the_key_free(world: World, error: Any) -> None:
    world.clinic.answers = [error("down")]
    with pytest.raises(error):
        await world.book()
    assert not (await world.book(fingerprint=OTHER)).replayed
    assert world.clinic.asked == ["create", "create"]


@pytest.mark.parametrize(
    ("error", "written"),
    [
        (BackendUnavailable, ["sent", None]),
        (SlotTaken, ["sent", "refused"]),
        (OutcomeUnknown, ["sent", "unknown", "unknown"]),
        (ValueError, ["sent", "unknown", "unknown"]),
    ],
)
async def test_each_end_of_a_booking_is_written_once(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Any, written: list[str | None]
) -> None:
    states, write = list[str | None](), LedgerRows.write

    async def noted(rows: LedgerRows, row: LedgerRow, outcome: Outcome) -> bool:
        states.append(outcome and str(outcome["state"]))
        return await write(rows, row, outcome)

    monkeypatch.setattr(LedgerRows, "write", noted)
    world.clinic.answers = [error("no")]
    with pytest.raises((BackendUnavailable, BookingRefused, OutcomeUnknown)):
        await world.book()
    assert states == written


async def test_a_time_that_is_past_is_refused_and_takes_no_key(world: World) -> None:
    world.past = True
    with pytest.raises(InvalidRequest):
        await world.book()
    world.past = False
    assert not (await world.book(fingerprint=OTHER)).replayed


async def test_a_key_that_is_revoked_while_it_waits_sends_nothing(world: World) -> None:
    world.revoked = True
    with pytest.raises(KeyInvalid):
        await world.book()
    world.revoked = False
    assert not (await world.book(fingerprint=OTHER)).replayed


async def test_the_same_key_with_another_request_is_refused(world: World) -> None:
    await world.book()
    with pytest.raises(KeyReused):
        await world.book(fingerprint=OTHER)
    assert not (await world.book(who="another partner")).replayed


async def test_without_a_key_every_call_is_its_own(world: World) -> None:
    assert not (await world.book(None)).replayed
    assert not (await world.book(None)).replayed
    world.clinic.answers = [SlotTaken("no")]
    with pytest.raises(BookingRefused):
        await world.book(None)


@pytest.mark.parametrize("key", ["k", None])
async def test_a_lost_answer_is_looked_up_and_its_booking_given_back(
    world: World, key: str | None
) -> None:
    world.clinic.lost = OutcomeUnknown("lost")
    with pytest.raises(OutcomeUnknown):
        await world.book(key)
    found = Booked({"id": "a0", "reason": "r"}, replayed=True)
    assert await world.book(key) == found
    assert world.clinic.asked == ["create", "find"]
    if key is not None:  # from now on it is known: nobody is asked again
        assert await world.book(key) == found
        assert world.clinic.asked == ["create", "find"]


async def test_a_booking_that_certainly_was_not_made_is_made(world: World) -> None:
    world.clinic.answers = [OutcomeUnknown("lost")]
    with pytest.raises(OutcomeUnknown):
        await world.book()
    assert await world.book() == Booked({"id": "a0", "reason": "r"}, replayed=False)
    assert world.clinic.asked == ["create", "find", "create"]


async def test_while_it_cannot_be_looked_up_it_stays_unknown_and_nothing_is_sent(
    world: World,
) -> None:
    world.clinic.lost = OutcomeUnknown("lost")
    with pytest.raises(OutcomeUnknown):
        await world.book()
    world.clinic.answers = [BackendUnavailable("down")]
    with pytest.raises(OutcomeUnknown):
        await world.book()
    assert (await world.book()).replayed
    assert len(world.clinic.made) == 1


async def test_a_fault_in_an_adapter_leaves_the_outcome_unknown(world: World) -> None:
    world.clinic.lost = ZeroDivisionError()
    with pytest.raises(OutcomeUnknown) as raised:
        await world.book()
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert (await world.book()).replayed


async def test_what_a_dead_process_left_is_looked_up(world: World) -> None:
    dead = await another(world)
    world.clinic.gate = asyncio.Event()
    task = asyncio.create_task(world.book(through=world.opened(owners=dead)))
    await world.clinic.called.wait()
    world.clinic.made.append({"id": "a0", "reason": "r"})  # written, and then the process died
    await slain(dead)
    assert await world.book() == Booked({"id": "a0", "reason": "r"}, replayed=True)
    # it was not dead after all, and it has booked once more: what the ledger says is the answer
    world.clinic.gate.set()
    assert await task == Booked({"id": "a0", "reason": "r"}, replayed=True)
    assert world.heard.said == ["booked_twice: a1"]


async def test_calls_at_the_same_time_wait_and_get_one_outcome(world: World) -> None:
    world.clinic.gate = asyncio.Event()
    calls = [asyncio.create_task(world.book()) for _ in range(20)]
    await world.clinic.called.wait()
    world.clinic.gate.set()
    booked = await asyncio.gather(*calls)
    assert len(world.clinic.made) == 1
    assert {each.record["id"] for each in booked} == {"a0"}
    assert [each.replayed for each in booked].count(False) == 1


async def test_who_waits_too_long_for_the_first_is_told_to_come_back(world: World) -> None:
    world.ledger = world.opened(wait=0.2)
    world.clinic.gate = asyncio.Event()
    first = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    with pytest.raises(Unavailable) as refused:
        await world.book()
    assert refused.value.retry_after == 1
    world.clinic.gate.set()
    assert not (await first).replayed


async def test_who_finds_the_key_taken_again_and_again_is_told_to_come_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0

    async def quicker(*_: object, **__: object) -> None:
        nonlocal turns
        turns += 1

    monkeypatch.setattr(LedgerRows, "insert", quicker)
    with pytest.raises(Unavailable) as refused:
        async with asyncio.timeout(5):
            await world.book(through=world.opened(wait=0.5))
    assert refused.value.retry_after == 1
    assert 2 <= turns < 20


async def test_a_caller_who_goes_away_leaves_a_booking_that_is_finished(world: World) -> None:
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    world.clinic.gate.set()
    assert (await world.book()).replayed
    assert world.clinic.asked == ["create"]


async def test_what_is_settled_is_forgotten_after_a_day_and_what_is_unknown_after_a_week(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.booking.ledger.PURGE_EVERY", 0)
    await world.book("a")
    world.clinic.answers = [SlotTaken(), OutcomeUnknown("lost")]
    for key in ("b", "c"):
        with pytest.raises((BookingRefused, OutcomeUnknown)):
            await world.book(key)
    assert await kept(world) == ["done a0", "refused", "unknown"]
    for later, expected in (
        (DAY - MINUTE, ["done a0", "refused", "unknown"]),
        (DAY, ["done", "unknown"]),  # that it is taken is all that is kept
        (7 * DAY, []),
    ):
        world.now = NOW + later
        await world.ledger.tidy(world.now)
        assert await kept(world) == expected, later


@pytest.mark.parametrize("back", [True, False])
async def test_for_a_day_after_the_clock_was_set_nothing_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    monkeypatch.setattr("gateway.booking.ledger.PURGE_EVERY", 0)
    first = await world.book()
    world.jump(2 * DAY)
    await world.ledger.tidy(world.now)
    assert await world.book() == Booked(first.record, replayed=True)
    if back:
        world.jump(-2 * DAY)
        await world.ledger.tidy(world.now)
    world.now += DAY - MINUTE
    await world.ledger.tidy(world.now)
    assert await kept(world) == ["done a0"]
    assert (await world.book()).replayed
    world.now += MINUTE
    await world.ledger.tidy(world.now)
    assert not (await world.book()).replayed


async def test_a_clock_that_is_put_right_bit_by_bit_was_not_set(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.booking.ledger.PURGE_EVERY", 0)
    await world.book()
    for _ in range(50):
        world.jump(MINUTE)
        await world.ledger.tidy(world.now)
    world.now += DAY - 50 * MINUTE
    assert not (await world.book()).replayed


async def test_a_refusal_without_a_key_leaves_no_row(world: World) -> None:
    world.clinic.answers = [SlotTaken()]
    with pytest.raises(BookingRefused):
        await world.book(None)
    assert await kept(world) == []


async def test_without_a_ledger_nothing_is_booked(world: World) -> None:
    async with world.store.begin() as connection:
        await connection.exec_driver_sql("ALTER TABLE bookings RENAME TO gone")
    with pytest.raises(Unavailable):
        await world.book()
    assert world.clinic.asked == []
    async with world.store.begin() as connection:
        await connection.exec_driver_sql("ALTER TABLE gone RENAME TO bookings")


async def test_an_appointment_that_another_booking_holds_is_not_given_back(world: World) -> None:
    await world.book("first", who="another partner")
    world.clinic.lost = None
    world.clinic.answers = [OutcomeUnknown("lost before anything was written")]
    with pytest.raises(OutcomeUnknown):
        await world.book("mine")
    assert await world.book("mine") == Booked({"id": "a1", "reason": "r"}, replayed=False)


async def test_a_call_just_like_one_whose_outcome_cannot_be_written_waits_for_it(
    world: World,
) -> None:
    store = Forgetful(world.store)
    world.ledger = world.opened(store, wait=0.3)
    world.clinic.gate = asyncio.Event()
    other = asyncio.create_task(world.book("other", who="another partner"))
    await world.clinic.called.wait()
    store.full = True
    world.clinic.gate.set()
    assert (await other).record["id"] == "a0"
    elsewhere = world.opened(owners=await another(world), wait=0.3)
    with pytest.raises(Unavailable):  # it cannot tell whose an appointment is
        await world.book("mine", through=elsewhere)
    store.full = False
    await world.ledger.tidy(world.now)
    assert (await world.book("mine", through=elsewhere)).record["id"] == "a1"


async def test_it_is_held_for_as_long_as_an_unknown_outcome_is_looked_up(world: World) -> None:
    await world.book("first", who="another partner")
    world.clinic.answers = [OutcomeUnknown("lost before anything was written")]
    with pytest.raises(OutcomeUnknown):
        await world.book("mine")
    world.now += 7 * DAY - MINUTE
    await world.ledger.tidy(world.now)
    assert (await world.book("mine")).record["id"] == "a1"


@pytest.mark.parametrize("excludes", [True, False])
async def test_two_that_ask_for_the_same_are_let_through_one_after_the_other(
    world: World, excludes: bool
) -> None:
    world.clinic.excludes = excludes
    elsewhere = world.opened(owners=await another(world))
    world.clinic.gate = asyncio.Event()
    other = asyncio.create_task(world.book("other", who="another partner", through=elsewhere))
    await world.clinic.called.wait()
    mine = asyncio.create_task(world.book("mine"))
    await asyncio.sleep(0.3)
    assert world.clinic.asked == ["create"]
    world.clinic.gate.set()
    assert (await other).record["id"] == "a0"
    assert (await mine).record["id"] == "a1"


@pytest.mark.parametrize(("at", "patient", "waits"), [
    (DAY, "p", True), (DAY + MINUTE, "p", False), (DAY, "another patient", True),
])  # fmt: skip
async def test_another_request_that_could_be_taken_for_it_or_wants_its_time_waits_too(
    world: World, at: timedelta, patient: str, waits: bool
) -> None:
    world.clinic.gate = asyncio.Event()
    first = asyncio.create_task(world.book("one"))
    await world.clinic.called.wait()
    second = asyncio.create_task(world.book("two", OTHER, at=at, patient=patient))
    expected = ["create"] * (1 if waits else 2)
    await until(lambda: len(world.clinic.asked) >= len(expected))
    await asyncio.sleep(0.3)
    assert world.clinic.asked == expected
    world.clinic.gate.set()
    assert {(await each).record["id"] for each in (first, second)} == {"a0", "a1"}


@pytest.mark.parametrize("key", ["two", None])
async def test_an_appointment_that_another_booking_was_given_is_not_told_twice(
    world: World, key: str | None
) -> None:
    await world.book("one")
    made, create = world.clinic.made[0], world.clinic.create_appointment
    world.clinic.create_appointment = lambda draft: asyncio.sleep(0, made)  # type: ignore[method-assign,assignment]
    with pytest.raises(OutcomeUnknown):
        await world.book(key, OTHER)
    assert await kept(world) == ["done a0", "unknown"]
    world.clinic.create_appointment = create  # type: ignore[method-assign]
    assert (await world.book(key, OTHER)).record["id"] == "a1"


async def test_each_attempt_has_a_reference_of_its_own_that_a_look_up_says_again(
    world: World,
) -> None:
    await world.book("a")
    await world.book("b")
    assert len(set(world.clinic.references)) == 2
    world.clinic.answers = [OutcomeUnknown("lost")]
    with pytest.raises(OutcomeUnknown):
        await world.book("c", fingerprint=OTHER)
    async with world.store.begin() as connection:
        rows = await connection.execute(select(bookings.c.reference).order_by(bookings.c.id))
        kept_references = list(rows.scalars())
    assert kept_references[:2] == world.clinic.references
    await world.book("c", fingerprint=OTHER)
    assert world.clinic.references[2] == kept_references[2]


@pytest.mark.parametrize("refused", [False, True])
async def test_an_outcome_that_cannot_be_written_is_kept_and_written_later(
    world: World, refused: bool
) -> None:
    """A booking is told all the same: it stands there. A refusal sticks only once it is written."""
    store = Forgetful(world.store)
    world.ledger = world.opened(store)
    world.clinic.gate = asyncio.Event()
    world.clinic.answers = [SlotTaken()] if refused else []
    call = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    store.full = True
    world.clinic.gate.set()
    [first] = await asyncio.gather(call, return_exceptions=True)
    assert isinstance(first, Unavailable if refused else Booked)
    assert world.heard.events == ["outcome_waits"]
    with pytest.raises(Unavailable):  # and nobody books on a ledger that forgets
        await world.book()
    store.full = False
    await world.ledger.tidy(world.now)
    assert await kept(world) == ["refused" if refused else "done a0"]
    [again] = await asyncio.gather(world.book(), return_exceptions=True)
    assert again.replayed  # type: ignore[union-attr]
    assert world.clinic.asked == ["create"]


async def test_a_refusal_that_does_not_stick_is_told_whether_it_can_be_written_or_not(
    world: World,
) -> None:
    store = Forgetful(world.store)
    world.ledger = world.opened(store)
    world.clinic.gate = asyncio.Event()
    world.clinic.answers = [SlotTaken()]
    call = asyncio.create_task(world.book(None))
    await world.clinic.called.wait()
    store.full = True
    world.clinic.gate.set()
    with pytest.raises(BookingRefused):
        await call


async def test_without_a_key_a_booking_whose_outcome_waits_is_not_given_to_the_next(
    world: World,
) -> None:
    store = Forgetful(world.store)
    world.ledger = world.opened(store)
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book(None))
    await world.clinic.called.wait()
    store.full = True
    world.clinic.gate.set()
    await call
    store.full = False
    assert await world.book(None) == Booked({"id": "a1", "reason": "r"}, replayed=False)


async def test_an_outcome_that_waited_takes_no_appointment_that_is_another_bookings_by_then(
    world: World,
) -> None:
    store = Forgetful(world.store)
    world.ledger = world.opened(store)
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    store.full = True
    world.clinic.gate.set()
    await call
    world.clinic.made.clear()  # the next booking is given the same id
    other = await world.book("other", OTHER, at=2 * DAY, through=world.opened())
    assert other.record["id"] == "a0"
    store.full = False
    await world.ledger.tidy(world.now)
    assert await kept(world) == ["unknown", "done a0"]
    again = await world.book("other", OTHER, at=2 * DAY, through=world.opened())
    assert (again.record["id"], again.replayed) == ("a0", True)


async def test_a_ledger_that_cannot_be_written_before_anything_is_sent_leaves_nothing_unknown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Forgetful(world.store)
    world.ledger = world.opened(store)
    write = LedgerRows.write

    async def fail(self: LedgerRows, row: LedgerRow, outcome: Outcome) -> bool:
        store.full = True
        return await write(self, row, outcome)

    with monkeypatch.context() as patched:
        patched.setattr(LedgerRows, "write", fail)
        with pytest.raises(Unavailable):
            await world.book()
    store.full = False
    await world.ledger.tidy(world.now)
    assert await kept(world) == []
    assert world.clinic.asked == []
    assert not (await world.book(fingerprint=OTHER)).replayed


async def test_what_waits_is_written_as_soon_as_it_can_be(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.booking.ledger.TIDY_EVERY", 0.001)
    store = Forgetful(world.store)
    world.ledger = world.opened(store)
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    store.full = True
    world.clinic.gate.set()
    await call
    await world.heard.more.wait()
    world.ledger.start()
    store.full = False
    async with asyncio.timeout(10):
        while world.ledger.waiting:  # noqa: ASYNC110 - until the ledger has come round
            await asyncio.sleep(0.001)
    assert await kept(world) == ["done a0"]
    await world.ledger.aclose()


async def test_two_that_write_what_waits_undo_nothing_that_was_made_since(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Forgetful(world.store)
    world.ledger = world.opened(store)
    world.clinic.gate = asyncio.Event()
    world.clinic.answers = [BackendUnavailable("down")]
    call = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    store.full = True
    world.clinic.gate.set()
    with pytest.raises(BackendUnavailable):
        await call
    assert world.ledger.waiting == 1  # the row is to go
    store.full = False
    write, held, go = LedgerRows.write, asyncio.Event(), asyncio.Event()

    async def slowly(self: LedgerRows, row: LedgerRow, outcome: Outcome) -> bool:
        if outcome is None and not held.is_set():
            held.set()
            await go.wait()
        return await write(self, row, outcome)

    monkeypatch.setattr(LedgerRows, "write", slowly)
    tidy = asyncio.create_task(world.ledger.tidy(world.now))
    await held.wait()
    retry = asyncio.create_task(world.book())
    for _ in range(20):  # as far as it gets
        await asyncio.sleep(0)
    go.set()
    assert not (await retry).replayed
    await tidy
    assert await kept(world) == ["done a0"]
    assert (await world.book()).replayed


async def test_what_is_settled_is_not_written_over(world: World) -> None:
    await world.book()
    async with world.store.begin() as connection:
        row = LedgerRow(**(await connection.execute(select(bookings))).mappings().one())
    for outcome in ({"state": "refused", "outcome": "SlotTaken"}, None):
        with pytest.raises(LostClaim):
            await LedgerRows(world.store).write(row, outcome)
        assert await kept(world) == ["done a0"]


@pytest.mark.parametrize("odd", [b"x", "\ud800", {1}])
async def test_a_record_with_a_value_that_json_does_not_have_is_booked_all_the_same(
    world: World, odd: object
) -> None:
    record = {"id": "a0", "reason": odd}
    world.clinic.create_appointment = lambda draft: asyncio.sleep(0, record)  # type: ignore[method-assign,assignment]
    assert (await world.book()).record == record
    assert (await world.book()).record == {"id": "a0", "reason": None}


async def test_a_fault_in_a_look_up_leaves_the_outcome_unknown(world: World) -> None:
    world.clinic.lost = OutcomeUnknown("lost")
    with pytest.raises(OutcomeUnknown):
        await world.book()
    world.clinic.answers = [ZeroDivisionError()]
    with pytest.raises(OutcomeUnknown):
        await world.book()
    assert (await world.book()).record["id"] == "a0"


@pytest.mark.parametrize(("where", "left"), [
    ("check_key", []), ("sent", []), ("create_appointment", ["unknown"]), ("done", ["unknown"]),
])  # fmt: skip
async def test_a_fault_of_the_gateway_leaves_nothing_under_way(
    world: World, monkeypatch: pytest.MonkeyPatch, where: str, left: list[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        place = {"check_key": world, "create_appointment": world.clinic}.get(where)
        write = LedgerRows.write

        async def failing(self: LedgerRows, row: LedgerRow, outcome: Outcome) -> bool:
            if outcome is not None and outcome["state"] == where:
                fail()
            return await write(self, row, outcome)

        if place is None:
            patched.setattr(LedgerRows, "write", failing)
        else:
            patched.setattr(place, where, fail)
        with pytest.raises(OutcomeUnknown if left else ZeroDivisionError):
            await world.book()
    assert await kept(world) == left
    assert not world.ledger._running
    await world.book()


@pytest.mark.parametrize(("state", "left"), [("intended", []), ("sent", ["unknown"])])
async def test_a_process_hands_in_what_it_does_not_work_on(
    world: World, state: str, left: list[str]
) -> None:
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    await world.ledger.tidy(world.now)
    assert await kept(world) == ["sent"]
    async with world.store.begin() as connection:
        await connection.execute(bookings.update().values(claim="lost", state=state))
    other = world.opened(owners=await another(world))
    await other.tidy(world.now)
    assert await kept(world) == [state]
    await world.opened().tidy(world.now)
    assert await kept(world) == left
    world.clinic.gate.set()
    await asyncio.gather(call, return_exceptions=True)


async def test_what_waits_is_written_at_the_end(world: World) -> None:
    store = Forgetful(world.store)
    world.ledger = world.opened(store)
    world.clinic.gate = asyncio.Event()
    call = asyncio.create_task(world.book())
    await world.clinic.called.wait()
    store.full = True
    world.clinic.gate.set()
    await call
    store.full = False
    world.ledger.start()
    await world.ledger.aclose()
    assert await kept(world) == ["done a0"]
