"""What is asked of a practice system that is slow, busy or down, and what is not asked."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    Filter,
    LeftAlone,
    NotFound,
    OutcomeUnknown,
    Rejected,
    SlotTaken,
    Watched,
)
from adapters.call_notes import CALL_NOTES, CallNotes
from adapters.wrappers.call_limiter import CallLimiter
from adapters.wrappers.guard import Guarded, Limits
from tests.adapters.stand_in import DRAFT, NOW, Door, Practice, client, clients, later

FAST = {"timeout": 0.05, "booking_timeout": 0.05, "grace": 0.02, "patience": 0.05}


def failing(*errors: Exception | None) -> Callable[[], Awaitable[None]]:
    """Raises one after the other, then answers."""
    left = list(errors)

    async def before() -> None:
        error = left.pop(0) if left else None
        if error is not None:
            raise error

    return before


def down() -> BackendUnavailable:
    return BackendUnavailable("down")


async def always_down() -> None:
    raise down()


class World:
    """A guarded practice, what was heard of it, and its clock."""

    def __init__(self, before: Any = None, **limits: Any) -> None:
        self.practice = Practice(before) if before else Practice()
        self.now = 0.0
        self.states: list[str] = []
        self.calls: list[tuple[str, str, str]] = []
        self.seconds: list[float | None] = []
        self.guarded = Guarded(
            self.practice,
            Limits(**limits),
            changed=self.states.append,
            called=self.called,
            clock=lambda: self.now,
        )

    def called(self, verb: str, resource: str, outcome: str, seconds: float | None) -> None:
        self.calls.append((verb, resource, outcome))
        self.seconds.append(seconds)

    async def fail(self, times: int = 5) -> None:
        """Calls of a practice that is down."""
        before, self.practice.before = self.practice.before, always_down
        for _ in range(times):
            with pytest.raises(BackendUnavailable):
                await self.guarded.read_one(client())
        self.practice.before = before


async def test_it_answers_what_the_adapter_answers() -> None:
    world, bare = World(), Practice()
    guarded = world.guarded
    assert await guarded.read_one(client()) == await bare.read_one(client())
    assert await guarded.read_many(clients()) == await bare.read_many(clients())
    made = await guarded.create_appointment(DRAFT)
    assert made == await bare.create_appointment(DRAFT)
    assert list(await guarded.find_appointments(DRAFT, NOW)) == [made]
    assert (guarded.resources, guarded.filterable) == (bare.resources, bare.filterable)
    await guarded.ping()
    await guarded.check()
    await guarded.aclose()
    assert world.practice.closed
    assert [call[2] for call in world.calls] == ["answered"] * 4
    assert world.calls[2][:2] == ("create_appointment", "appointments")


# The deadline


async def test_a_read_that_does_not_end_is_a_timeout() -> None:
    world = World(Door(), **FAST)
    for ask in (world.guarded.read_one(client()), world.guarded.read_many(clients())):
        began = time.monotonic()
        with pytest.raises(BackendTimeout):
            await ask
        assert 0.06 < time.monotonic() - began < 1
    assert world.practice.inside == 0


async def test_each_of_many_reads_has_its_own_time() -> None:
    world = World(Door(), **FAST, in_flight=3)
    ends = []

    async def read(delay: float) -> None:
        await asyncio.sleep(delay)
        began = time.monotonic()
        with pytest.raises(BackendTimeout):
            await world.guarded.read_one(client())
        ends.append(time.monotonic() - began)

    await asyncio.gather(read(0), read(0.02), read(0.04))
    assert all(0.065 < each < 0.5 for each in ends)


async def test_the_adapter_that_says_by_itself_what_happened_is_believed() -> None:
    async def says_so() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise BackendUnavailable("rolled back") from None

    world = World(says_so, **FAST)
    with pytest.raises(BackendUnavailable, match="rolled back"):
        await world.guarded.create_appointment(DRAFT)


async def test_the_adapters_own_verdict_within_the_grace_counts() -> None:
    async def slow() -> None:
        await asyncio.sleep(0.06)

    world = World(slow, **(FAST | {"grace": 5}))
    made = await world.guarded.create_appointment(DRAFT)
    assert made["id"] in world.practice.booked

    async def slow_and_unknown() -> None:
        await asyncio.sleep(0.06)
        raise OutcomeUnknown("the line was cut")

    world.practice.before = slow_and_unknown
    with pytest.raises(OutcomeUnknown, match="the line was cut"):
        await world.guarded.create_appointment(later(30))


async def test_a_booking_that_does_not_end_is_unknown_and_not_asked_again() -> None:
    world = World(Door(), **FAST)
    with pytest.raises(OutcomeUnknown):
        await world.guarded.create_appointment(DRAFT)
    assert world.practice.asked == {"create_appointment": 1}


async def test_a_timeout_of_the_adapters_own_is_none_of_ours() -> None:
    world = World(failing(TimeoutError("inside"), TimeoutError("inside")))
    with pytest.raises(TimeoutError, match="inside"):
        await world.guarded.read_one(client())
    with pytest.raises(TimeoutError, match="inside"):
        await world.guarded.create_appointment(DRAFT)
    assert [call[2] for call in world.calls] == ["fault", "fault"]


async def test_a_caller_who_goes_away_is_no_timeout_though_the_time_is_over_too() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.02)
            raise

    world = World(stubborn, **FAST)
    caller = asyncio.create_task(world.guarded.read_one(client()))
    await asyncio.sleep(0.08)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_who_was_told_that_the_time_is_over_goes_on_as_if_nothing_had_been() -> None:
    world = World(Door(), **FAST)
    with pytest.raises(BackendTimeout):
        await world.guarded.read_one(client())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0.1)


# The room


async def test_so_many_are_under_way_at_most_and_all_get_their_turn() -> None:
    world = World(lambda: asyncio.sleep(0.001), in_flight=4)
    await asyncio.gather(*(world.guarded.read_one(client()) for _ in range(60)))
    assert world.practice.most == 4
    assert world.practice.times == 60


async def test_half_of_what_is_under_way_may_be_bookings() -> None:
    door = Door()
    world = World(door, in_flight=4)
    bookings = [asyncio.create_task(world.guarded.create_appointment(DRAFT)) for _ in range(4)]
    finds = [asyncio.create_task(world.guarded.find_appointments(DRAFT, NOW)) for _ in range(4)]
    await door.knocked(2)
    reads = [asyncio.create_task(world.guarded.read_one(client())) for _ in range(2)]
    await door.knocked(4)
    assert world.practice.asked == {"create_appointment": 2, "read_one": 2}
    door.open()
    await asyncio.gather(*bookings, *finds, *reads, return_exceptions=True)


async def test_a_quarter_of_what_is_under_way_may_be_searches() -> None:
    door = Door()
    world = World(door, in_flight=8)
    search = clients(filters=(Filter("search", ("lastName",), "a"),))
    searches = [asyncio.create_task(world.guarded.read_many(search)) for _ in range(8)]
    await door.knocked(2)
    reads = [asyncio.create_task(world.guarded.read_many(clients())) for _ in range(8)]
    await door.knocked(8)
    assert world.practice.asked == {"read_many": 8}
    assert (world.guarded.room.in_use, world.guarded._searches.waiting) == (8, 6)
    door.open()
    await asyncio.gather(*searches, *reads)
    assert world.practice.times == 16


async def test_who_waits_too_long_or_finds_a_queue_is_not_asked_of_anybody() -> None:
    door = Door()
    world = World(door, in_flight=1, queue=2, patience=0.05)
    inside = asyncio.create_task(world.guarded.read_one(client()))
    await door.knocked()
    waiting = [asyncio.create_task(world.guarded.read_one(client())) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(BackendUnavailable, match="too much is waiting"):
        await world.guarded.create_appointment(DRAFT)
    for each in waiting:
        with pytest.raises(BackendUnavailable, match="busy"):
            await each
    door.open()
    await inside
    assert world.practice.times == 1
    assert [call[2] for call in world.calls] == ["not asked"] * 3 + ["answered"]
    assert world.states == []


async def test_partners_come_in_by_turns_however_many_calls_one_of_them_has() -> None:
    room, came = CallLimiter(1, queue=100, patience=5), []

    async def call(partner: str, number: int) -> None:
        asking = CallNotes()
        asking.partner = partner
        CALL_NOTES.set(asking)
        await room.enter()
        came.append(f"{partner}{number}")
        await asyncio.sleep(0)
        room.leave()

    order = [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1), ("c", 1), ("b", 2)]
    await asyncio.gather(*(call(*each) for each in order))
    assert came == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]
    assert (room.in_use, room.waiting) == (0, 0)


async def test_a_full_queue_turns_away_the_last_of_whoever_waits_most() -> None:
    room, ends = CallLimiter(1, queue=4, patience=5), {}

    async def call(partner: str, number: int) -> None:
        asking = CallNotes()
        asking.partner = partner
        CALL_NOTES.set(asking)
        try:
            await room.enter()
            await asyncio.sleep(0)
            room.leave()
            ends[f"{partner}{number}"] = "in"
        except BackendUnavailable:
            ends[f"{partner}{number}"] = "turned away"

    order = [*(("a", each) for each in range(5)), ("b", 1), ("b", 2), ("b", 3), ("a", 5), ("c", 1)]
    await asyncio.gather(*(call(*each) for each in order))
    away = {name for name, end in ends.items() if end == "turned away"}
    assert away == {"a4", "a3", "b3", "a5", "a2"}
    assert (room.in_use, room.waiting) == (0, 0)


async def test_a_caller_who_goes_away_gives_its_room_back_wherever_it_is() -> None:
    door = Door()
    world = World(door, in_flight=2, queue=100, failures=1)
    for ask in (
        lambda: world.guarded.read_one(client()),
        lambda: world.guarded.create_appointment(DRAFT),
        lambda: world.guarded.find_appointments(DRAFT, NOW),
    ):
        callers = [asyncio.create_task(ask()) for _ in range(50)]  # type: ignore[no-untyped-call]
        await asyncio.sleep(0.002)
        for each in callers:
            each.cancel()
        ends = await asyncio.gather(*callers, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ends)
    door.open()
    ends = await asyncio.gather(
        *(world.guarded.read_one(client()) for _ in range(50)),
        *(world.guarded.find_appointments(DRAFT, NOW) for _ in range(50)),
    )
    assert len(ends) == 100
    assert world.practice.most == 2
    assert world.guarded.breaker.state == "closed"


async def test_a_caller_who_goes_away_as_its_turn_comes_leaks_nothing() -> None:
    world = World(lambda: asyncio.sleep(0), in_flight=1)
    for steps in range(12):
        callers = [asyncio.create_task(world.guarded.read_one(client())) for _ in range(4)]
        for _ in range(steps):
            await asyncio.sleep(0)
        callers[1].cancel()
        callers[2].cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    assert (await world.guarded.read_one(client()))["id"] == "client-1"
    assert world.guarded.room._free == 1


# What a call is told of its own questions


async def test_a_call_is_told_how_long_it_asked_and_how_long_it_waited_for_room() -> None:
    world = World(lambda: asyncio.sleep(0.05), in_flight=1)

    async def call() -> CallNotes:
        asking = CallNotes()
        CALL_NOTES.set(asking)
        await world.guarded.read_one(client())
        return asking

    first, second = await asyncio.gather(call(), call())
    assert first.waited == 0 < first.seconds
    assert second.waited > 0.04
    assert 0.04 < second.seconds < second.waited + second.seconds
    assert sorted(world.seconds) == pytest.approx(sorted([first.seconds, second.seconds]))  # type: ignore[type-var]
    with pytest.raises(asyncio.CancelledError):
        await cancelled(asyncio.create_task(call()))
    assert world.calls[-1] == ("read_one", "clients", "given up")


async def cancelled(task: "asyncio.Task[CallNotes]") -> None:
    await asyncio.sleep(0.01)
    task.cancel()
    await task


async def test_a_booking_waits_too_and_what_was_not_asked_has_no_seconds() -> None:
    world = World(lambda: asyncio.sleep(0.05), in_flight=2)

    async def book() -> CallNotes:
        asking = CallNotes()
        CALL_NOTES.set(asking)
        await world.guarded.find_appointments(DRAFT, NOW)
        return asking

    first, second = await asyncio.gather(book(), book())
    assert first.waited < 0.01
    assert second.waited > 0.04
    await world.fail()
    with pytest.raises(BackendUnavailable, match="left alone"):
        await world.guarded.read_one(client())
    assert (world.calls[-1][2], world.seconds[-1]) == ("not asked", None)


# The retry


async def test_a_read_of_which_nothing_was_done_is_tried_once_more() -> None:
    world = World(failing(down(), None, down(), None, down(), None))
    began = time.monotonic()
    await world.guarded.read_one(client())
    assert time.monotonic() - began < 0.5
    await world.guarded.read_many(clients())
    await world.guarded.find_appointments(DRAFT, NOW)
    assert world.practice.asked == {"read_one": 2, "read_many": 2, "find_appointments": 2}
    assert [call[2] for call in world.calls] == ["answered"] * 3


async def test_a_second_failure_is_final_and_counts_once() -> None:
    world = World(always_down, failures=2)
    with pytest.raises(BackendUnavailable, match="down"):
        await world.guarded.read_one(client())
    assert world.practice.times == 2
    assert world.states == []
    assert world.calls == [("read_one", "clients", "BackendUnavailable")]


@pytest.mark.parametrize(
    "error", [NotFound(), BackendTimeout(), BackendNonsense(), ValueError()], ids=repr
)
async def test_nothing_else_is_tried_again(error: Exception) -> None:
    world = World(failing(error))
    with pytest.raises(type(error)):
        await world.guarded.read_one(client())
    assert world.practice.times == 1


async def test_a_booking_is_never_tried_again() -> None:
    world = World(failing(down()))
    with pytest.raises(BackendUnavailable):
        await world.guarded.create_appointment(DRAFT)
    assert world.practice.times == 1


async def test_what_failed_late_is_not_tried_again() -> None:
    async def crowded() -> None:
        await asyncio.sleep(0.3)
        raise down()

    world = World(crowded, timeout=0.5, grace=0)
    with pytest.raises(BackendUnavailable):
        await world.guarded.read_one(client())
    assert world.practice.times == 1


async def test_a_retry_says_nothing_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    world = World(failing(BackendUnavailable("a value")))
    await world.guarded.read_one(client())
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


# The breaker


@pytest.mark.parametrize("error", [BackendUnavailable, BackendTimeout, OutcomeUnknown])
async def test_after_so_many_failures_in_a_row_nothing_is_asked(
    error: type[AdapterError],
) -> None:
    async def broken() -> None:
        raise error("down")

    world = World(broken)
    for _ in range(5):
        assert world.guarded.breaker.state == "closed"
        with pytest.raises(error):
            await world.guarded.create_appointment(DRAFT)
    assert (world.guarded.breaker.state, world.states) == ("open", ["open"])
    asked = world.practice.times
    began = time.perf_counter()
    for _ in range(100):
        with pytest.raises(BackendUnavailable, match="left alone"):
            await world.guarded.read_one(client())
        with pytest.raises(BackendUnavailable, match="left alone"):
            await world.guarded.create_appointment(DRAFT)
    assert (time.perf_counter() - began) / 200 < 0.001
    assert world.practice.times == asked
    assert world.calls[-1] == ("create_appointment", "appointments", "not asked")


@pytest.mark.parametrize("error", [NotFound, SlotTaken, Rejected, BackendNonsense])
async def test_a_no_is_an_answer_and_ends_a_row_of_failures(error: type[AdapterError]) -> None:
    world = World()
    for _ in range(3):
        await world.fail(4)
        world.practice.before = failing(error("no"))
        with pytest.raises(error):
            await world.guarded.create_appointment(DRAFT)
    assert world.states == []
    world.practice.before = failing(*[error("no")] * 20)
    for _ in range(20):
        with pytest.raises(error):
            await world.guarded.create_appointment(DRAFT)
    assert world.states == []


async def test_faults_of_the_adapter_open_nothing() -> None:
    world = World(failing(*[ValueError("a bug")] * 20))
    for _ in range(20):
        with pytest.raises(ValueError, match="a bug"):
            await world.guarded.read_one(client())
    assert world.states == []


async def test_slow_calls_open_nothing_while_others_are_answered() -> None:
    door = Door()
    world = World(door, **FAST)
    slow = [asyncio.create_task(world.guarded.read_many(clients())) for _ in range(10)]
    await door.knocked(10)
    world.practice.before = failing()
    await world.guarded.read_one(client())
    ends = await asyncio.gather(*slow, return_exceptions=True)
    assert all(isinstance(each, BackendTimeout) for each in ends)
    assert world.guarded.breaker.state == "closed"


async def test_a_look_at_many_bookings_has_more_time_than_a_read() -> None:
    async def slow() -> None:
        await asyncio.sleep(0.15)

    world = World(slow, **FAST)
    with pytest.raises(BackendTimeout):
        await world.guarded.read_one(client())
    assert await world.guarded.find_overwritten(["a"]) == Watched()
    world.practice.before = Door()
    with pytest.raises(BackendTimeout):
        await world.guarded.find_overwritten(["a"])


@pytest.mark.parametrize(("error", "opens"), [(BackendTimeout, False), (BackendUnavailable, True)])
async def test_looks_that_take_too_long_keep_nobody_out(
    error: type[AdapterError], opens: bool
) -> None:
    world = World(failing(*[error("of the look")] * 20))
    for _ in range(10):
        with pytest.raises(BackendUnavailable if opens else error):
            await world.guarded.find_overwritten(["a"])
    assert (world.guarded.breaker.state == "open") is opens


async def test_a_look_that_takes_too_long_ends_no_row_of_failures() -> None:
    world = World()
    await world.fail(4)
    world.practice.before = failing(BackendTimeout("of the look"))
    with pytest.raises(BackendTimeout):
        await world.guarded.find_overwritten(["a"])
    await world.fail(1)
    assert world.states == ["open"]


async def test_a_look_that_tries_whether_it_is_back_has_the_time_of_a_read() -> None:
    world = World(**FAST)
    await world.fail()
    world.now = 10.0
    world.practice.before = Door()
    began = time.monotonic()
    with pytest.raises(BackendTimeout):
        await world.guarded.find_overwritten(["a"])
    assert time.monotonic() - began < 0.25
    world.practice.before = failing()
    await world.guarded.read_one(client())
    assert world.states == ["open", "half-open", "closed"]


async def test_of_a_hundred_at_once_one_tries_whether_it_is_back() -> None:
    door = Door()
    world = World(door)
    await world.fail()
    world.now = 9.9
    with pytest.raises(BackendUnavailable, match="left alone"):
        await world.guarded.read_one(client())
    world.now = 10.0
    callers = [asyncio.create_task(world.guarded.read_one(client())) for _ in range(100)]
    await asyncio.sleep(0.01)
    assert door.came == 1
    assert world.guarded.breaker.state == "half-open"
    assert not any(each.done() for each in callers)
    door.open()
    ends = await asyncio.gather(*callers)
    assert all(isinstance(each, dict) for each in ends)
    assert world.states == ["open", "half-open", "closed"]
    assert door.came == 100


async def test_nobody_waits_long_for_the_one_call_that_tries() -> None:
    world = World(Door(), patience=0.05)
    await world.fail()
    world.now = 10.0
    probe = asyncio.create_task(world.guarded.read_one(client()))
    await asyncio.sleep(0)
    for ask in (world.guarded.read_one(client()), world.guarded.create_appointment(DRAFT)):
        with pytest.raises(LeftAlone, match="tried by one call") as refused:
            await ask
        # the one that tries has the time of a read
        assert refused.value.retry_after == 3.5
    probe.cancel()


async def test_who_finds_a_pause_is_told_what_is_left_of_it() -> None:
    world = World(always_down)
    told = []
    for _ in range(5):
        with pytest.raises(BackendUnavailable) as failed:
            await world.guarded.read_one(client())
        told.append(failed.value.retry_after)
    assert told == [0, 0, 0, 0, 10]
    world.now = 6.6
    for ask in (world.guarded.read_one(client()), world.guarded.create_appointment(DRAFT)):
        with pytest.raises(LeftAlone) as refused:
            await ask
        assert refused.value.retry_after == pytest.approx(3.4)
    world.now = 10.0
    with pytest.raises(BackendUnavailable) as failed:
        await world.guarded.read_one(client())
    assert failed.value.retry_after == 10


async def test_a_try_that_fails_is_one_call_and_begins_a_new_pause() -> None:
    world = World()
    await world.fail()
    asked = world.practice.times
    world.now = 10.0
    await world.fail(1)
    assert world.practice.times == asked + 1
    assert world.guarded.breaker.state == "open"
    world.now = 19.9
    with pytest.raises(BackendUnavailable, match="left alone"):
        await world.guarded.read_one(client())
    world.now = 20.0
    await world.guarded.create_appointment(DRAFT)
    assert world.states == ["open", "half-open", "open", "half-open", "closed"]


@pytest.mark.parametrize("end", ["cancelled", "a fault"])
async def test_a_try_of_which_nothing_is_learned_leaves_the_next_to_try(end: str) -> None:
    door = Door()
    world = World(door if end == "cancelled" else failing(ValueError("a bug")))
    await world.fail()
    world.now = 10.0
    probe = asyncio.create_task(world.guarded.read_one(client()))
    if end == "cancelled":
        await door.knocked()
        probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    assert world.guarded.breaker.state == "half-open"
    world.practice.before = failing()
    await world.guarded.read_one(client())
    assert world.guarded.breaker.state == "closed"


async def test_what_began_before_a_change_changes_nothing_any_more() -> None:
    door = Door()
    world = World(door)
    early = [asyncio.create_task(world.guarded.read_one(client())) for _ in range(3)]
    await door.knocked(3)
    await world.fail()
    world.now = 10.0
    probing = Door()
    world.practice.before = probing
    probe = asyncio.create_task(world.guarded.read_one(client()))
    await probing.knocked()
    door.open()
    await asyncio.gather(*early)
    assert world.guarded.breaker.state == "half-open"
    probing.open()
    await probe
    assert world.guarded.breaker.state == "closed"


async def test_those_who_wait_for_room_are_not_asked_of_once_it_opens() -> None:
    world = World(lambda: asyncio.sleep(0.01), in_flight=1, failures=1)

    async def broken() -> None:
        await asyncio.sleep(0.01)
        raise BackendTimeout("slow")

    world.practice.before = broken
    callers = [asyncio.create_task(world.guarded.read_one(client())) for _ in range(30)]
    ends = await asyncio.gather(*callers, return_exceptions=True)
    assert world.practice.times == 1
    assert sum(isinstance(each, BackendUnavailable) for each in ends) == 29
    world.now = 10.0
    world.practice.before = failing()
    await world.guarded.read_one(client())


async def test_ping_and_check_ask_whatever_the_breaker_says_and_an_answer_ends_the_pause() -> None:
    world = World(in_flight=1)
    await world.fail()
    await world.guarded.check()
    assert world.guarded.breaker.state == "open"
    world.practice.before = always_down
    with pytest.raises(BackendUnavailable, match="down"):
        await world.guarded.ping()
    assert world.guarded.breaker.state == "open"
    world.practice.before = failing()
    await world.guarded.ping()
    assert world.guarded.breaker.state == "half-open"
    await world.guarded.read_one(client())
    assert world.guarded.breaker.state == "closed"


async def test_ping_needs_no_room() -> None:
    door = Door()
    world = World(door, in_flight=1)
    inside = asyncio.create_task(world.guarded.read_one(client()))
    await door.knocked()
    world.practice.before = failing()
    await asyncio.wait_for(world.guarded.ping(), 1)
    await asyncio.wait_for(world.guarded.check(), 1)
    door.open()
    await inside
