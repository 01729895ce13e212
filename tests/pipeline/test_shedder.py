import asyncio
import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.contract.access import AccessLevel, Permission
from gateway.contract.errors import Crowded, NotFound
from gateway.keys.key import Key
from gateway.pipeline import shedder
from gateway.pipeline.call import Call
from gateway.pipeline.shedder import (
    BODY,
    CROWDED_FOR,
    KEY,
    LONGEST,
    PROCESS,
    AdaptiveLimit,
    LoadShedder,
)
from tests.heard import Heard

NO_UPLOAD: Any = None


def key(name: str) -> Key:
    made = datetime(2026, 1, 1, tzinfo=UTC)
    return Key(
        name=name,
        permissions=frozenset([Permission.STOCK_READ]),
        level=AccessLevel.FULL,
        created_at=made,
    )


ONE, OTHER, THIRD = map(key, ("one", "other", "third"))


def call_of(key: Key) -> Call:
    call = Call(
        at=datetime(2026, 3, 4, tzinfo=UTC),
        request_id="",
        method="GET",
        target=NotFound(),
        digest=None,
        query="",
        upload=NO_UPLOAD,
    )
    call.key = key
    return call


class Door:
    """A gate, and who came in through it, in that order."""

    def __init__(self, most: int, most_of_one: int, most_bytes: int = 10, patience: float = 1.0):
        self.clock = 0.0
        self.heard = Heard()
        self.gate = LoadShedder(
            most,
            most_of_one,
            most_bytes,
            self.heard,
            patience=patience,
            clock=lambda: self.clock,
        )
        self.came: list[Call] = []
        self.tasks: dict[Call, asyncio.Task[None]] = {}

    def reasons(self) -> list[str]:
        """Why calls were turned away."""
        return [each["reason"] for each in self.heard.details if each]

    async def come(self, key: Key, size: int = 0) -> Call:
        """One more call; it has come in or waits."""
        call = call_of(key)
        self.tasks[call] = asyncio.create_task(self._enter(call, key, size))
        await asyncio.sleep(0)
        return call

    async def _enter(self, call: Call, key: Key, size: int) -> None:
        await self.gate.enter(call, key.id, size)
        self.came.append(call)

    async def leave(self, call: Call) -> None:
        self.gate.leave(call)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def empty(self) -> bool:
        """Nothing is left of anybody."""
        gate = self.gate
        return not (gate.inside or gate._lines or gate._sizes or gate._bytes)


async def test_who_finds_no_room_comes_in_in_the_order_of_arrival() -> None:
    door = Door(2, 2)
    calls = [await door.come(each) for each in (ONE, OTHER, THIRD, ONE, OTHER)]
    assert door.came == calls[:2]
    for number, call in enumerate(calls):
        await door.leave(call)
        assert door.came == calls[: number + 3]
    assert door.empty()


async def test_nobody_waits_behind_a_key_whose_own_calls_are_too_many() -> None:
    door = Door(3, 1)
    first, second = await door.come(ONE), await door.come(ONE)
    other = await door.come(OTHER)
    assert door.came == [first, other]
    await door.leave(other)
    assert door.came == [first, other]
    await door.leave(first)
    assert door.came == [first, other, second]
    await door.leave(second)
    assert door.empty()


async def test_a_new_call_does_not_pass_those_of_its_key_that_wait() -> None:
    door = Door(3, 1)
    first = await door.come(ONE)
    second = await door.come(ONE)
    door.gate.places.now = 2
    third = await door.come(ONE)
    assert door.came == [first]
    await door.leave(first)
    assert door.came == [first, second, third]


async def test_who_has_waited_long_enough_is_turned_away() -> None:
    door = Door(1, 1, patience=0.02)
    first, second = await door.come(ONE), await door.come(ONE)
    with pytest.raises(Crowded) as refusal:
        await door.tasks[second]
    assert refusal.value.headers == {"Retry-After": "1"}
    await door.leave(second)
    assert door.gate.inside == {first}
    third = await door.come(OTHER)
    await door.leave(first)
    assert door.came == [first, third]
    await door.leave(third)
    assert door.empty()


async def test_so_many_of_one_key_wait_and_no_more() -> None:
    door = Door(1, 1)
    calls = [await door.come(ONE) for _ in range(12)]
    with pytest.raises(Crowded):
        await door.tasks[calls[-1]]
    await door.leave(calls[-1])
    for number, call in enumerate(calls[:-1]):
        assert door.came[number] is call
        await door.leave(call)
    assert door.empty()


async def test_bodies_have_so_many_bytes_at_once_and_who_brings_none_passes() -> None:
    door = Door(9, 9, most_bytes=10)
    first, second = await door.come(ONE, 6), await door.come(OTHER, 6)
    third = await door.come(THIRD)
    assert door.came == [first, third]
    await door.leave(third)
    assert door.came == [first, third]
    await door.leave(first)
    assert door.came == [first, third, second]
    await door.leave(second)
    assert door.empty()


@pytest.mark.parametrize("at_once", [False, True])
async def test_who_is_cut_off_while_it_waits_takes_nobodys_room(at_once: bool) -> None:
    door = Door(1, 1)
    first, second, third = [await door.come(ONE) for _ in range(3)]
    door.tasks[second].cancel()
    if not at_once:
        await asyncio.sleep(0)
    await door.leave(first)
    await door.leave(second)
    assert door.came == [first, third]
    await door.leave(third)
    assert door.empty()


async def test_who_is_cut_off_just_as_it_is_let_in_gives_its_room_back() -> None:
    door = Door(1, 1)
    first, second, third = [await door.come(ONE) for _ in range(3)]
    door.gate.leave(first)
    door.tasks[second].cancel()
    with pytest.raises(asyncio.CancelledError):
        await door.tasks[second]
    await door.leave(second)
    assert door.came == [first, third]
    await door.leave(third)
    assert door.empty()


async def test_every_order_of_coming_and_leaving_keeps_to_the_bounds() -> None:
    """Many at once, of a few keys, some with bodies: never too many, and all come in."""
    door = Door(4, 2, most_bytes=10)
    most = 0

    async def visit(key: Key, size: int, turns: int) -> None:
        nonlocal most
        call = call_of(key)
        try:
            await door.gate.enter(call, key.id, size)
            inside = door.gate.inside
            most = max(most, len(inside))
            assert len(inside) <= 4
            assert sum(each.key is key for each in inside) <= 2
            assert door.gate._bytes <= 10
            for _ in range(turns):
                await asyncio.sleep(0)
        finally:
            door.gate.leave(call)

    keys = (ONE, OTHER, THIRD)
    await asyncio.gather(
        *(visit(keys[n % 3], (n * 7 % 5) * 2, n * 5 % 4) for n in range(60)),
    )
    assert (most, door.empty()) == (4, True)


async def test_each_key_has_its_turn_however_many_of_another_wait() -> None:
    door = Door(2, 2)
    first, second = await door.come(ONE), await door.come(OTHER)
    many = [await door.come(ONE) for _ in range(5)]
    third = await door.come(THIRD)
    await door.leave(second)
    assert door.came == [first, second, third]
    await door.leave(first)
    assert door.came == [first, second, third, many[0]]


async def test_a_key_s_reads_do_not_wait_for_room_for_its_bodies() -> None:
    door = Door(9, 9, most_bytes=10, patience=0.02)
    first, body = await door.come(OTHER, 10), await door.come(ONE, 10)
    read = await door.come(ONE)
    assert door.came == [first, read]
    with pytest.raises(Crowded):
        await door.tasks[body]
    assert door.reasons() == [BODY]


async def test_whose_caller_has_gone_meanwhile_is_not_let_in_for_nothing() -> None:
    door = Door(1, 1)
    first, second = await door.come(ONE), await door.come(ONE)
    second.gone = True
    await door.leave(first)
    with pytest.raises(Crowded):
        await door.tasks[second]
    await door.leave(second)
    assert (door.came, door.empty(), door.reasons()) == ([first], True, [])


async def test_who_has_gone_takes_no_place_in_the_line_and_counts_as_nobody() -> None:
    door = Door(1, 1, patience=0.02)
    await door.come(ONE)
    gone = [await door.come(ONE) for _ in range(LONGEST)]
    for each in gone:
        each.gone = True
    still_there = await door.come(ONE)
    for each in (*gone, still_there):
        with pytest.raises(Crowded):
            await door.tasks[each]
    assert door.reasons() == [KEY]


async def test_a_key_s_reads_and_bodies_are_one_line_where_too_many_wait() -> None:
    door = Door(1, 1, most_bytes=1000)
    calls = [await door.come(ONE, each % 2) for each in range(LONGEST + 2)]
    with pytest.raises(Crowded):
        await door.tasks[calls[-1]]
    assert sum(each.done() for each in door.tasks.values()) == 2


async def test_why_there_was_no_room_is_told() -> None:
    door = Door(2, 1, patience=0.01)
    for each in (ONE, OTHER):
        await door.come(each)
    for again in (ONE, THIRD):
        with pytest.raises(Crowded):
            await door.tasks[await door.come(again)]
    assert door.reasons() == [KEY, PROCESS]
    door = Door(9, 1)
    calls = [await door.come(ONE) for _ in range(LONGEST + 2)]
    with pytest.raises(Crowded):
        await door.tasks[calls[-1]]
    assert door.reasons() == [KEY]


async def test_who_waits_comes_in_as_places_are_given_back() -> None:
    door = Door(9, 4)
    hear(door.gate.places, 1.0, 9)
    door.gate.on_lag(1.0)
    calls = [await door.come(ONE) for _ in range(4)]
    other = await door.come(OTHER)
    assert door.came == [*calls[:2], other]
    for _ in range(9 * shedder.CALM):
        door.gate.on_lag(0.0)
    await asyncio.sleep(0)
    assert door.came == [*calls[:2], other, *calls[2:]]
    assert door.gate.free == 4


async def test_it_is_crowded_for_a_key_whose_calls_wait_and_for_a_moment_longer() -> None:
    door = Door(9, 1)
    first = await door.come(ONE)
    assert not door.gate.crowded(ONE.id)
    second = await door.come(ONE)
    assert door.gate.crowded(ONE.id)
    assert not door.gate.crowded(OTHER.id)
    assert first.waits_since is None
    assert second.waits_since is not None
    await door.leave(first)
    assert second.waits_since is None
    assert door.gate.crowded(ONE.id)
    door.clock += CROWDED_FOR
    door.gate.on_lag(0.0)
    assert not door.gate.crowded(ONE.id)
    assert not door.gate._waited


def hear(of: AdaptiveLimit, late: float, looks: int) -> int:
    """So many looks that found the loop so late; the places thereafter."""
    for _ in range(looks):
        of.on_lag(late)
    return of.now


@pytest.mark.parametrize("late", [0.04, 0.1, 1.0])
def test_a_key_has_fewer_places_while_the_loop_comes_late_and_all_of_them_again(
    late: float,
) -> None:
    heard = Heard()
    of = AdaptiveLimit(20, heard)
    fewer = [hear(of, late, 1) for _ in range(30)]
    assert list(dict.fromkeys(fewer)) in ([20, 10, 5, shedder.FEWEST], [10, 5, shedder.FEWEST])
    assert hear(of, 0.0, shedder.CALM - 1) == shedder.FEWEST
    assert hear(of, 0.0, 8 * shedder.CALM) == 20
    assert heard.events == ["event_loop_late", "event_loop_in_time"]
    assert hear(AdaptiveLimit(1, Heard()), 5.0, 9) == 1, "never more than it is given"


def test_a_process_that_stood_still_for_once_takes_nobody_s_places() -> None:
    of = AdaptiveLimit(20, Heard())
    for _ in range(5):
        assert hear(of, 5.0, 2) == 20
        assert hear(of, 0.0, 10) == 20
    assert hear(of, shedder.LATE * 0.9, 100) == 20


async def test_the_calls_of_each_key_are_counted_right_whichever_way_they_come_and_go() -> None:
    door, chance = Door(40, 30, patience=30.0), random.Random(1)
    for _ in range(2_000):
        gate = door.gate
        step, key = chance.random(), chance.choice((ONE, OTHER, THIRD))
        if step < 0.35:
            await door.come(key, chance.choice((0, 0, 1)))
        elif step < 0.5 and len(gate.inside) < gate.free:  # as the road does without `enter`
            gate.inside.add(call_of(key))
        elif step < 0.95 and gate.inside:
            await door.leave(chance.choice(list(gate.inside)))
        else:
            gate.on_lag(0.0)
        expected = Counter(call.key.id for call in gate.inside if call.key is not None)
        assert max(expected.values(), default=0) <= 30
        if chance.random() < 0.3:
            assert +gate._own_counts() == expected
    for task in door.tasks.values():
        task.cancel()
    await asyncio.gather(*door.tasks.values(), return_exceptions=True)


async def test_a_call_that_waits_does_not_cost_a_look_at_each_one_inside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, look = [0], shedder._key_of

    def looked(call: Call) -> str | None:
        looks[0] += 1
        return look(call)

    monkeypatch.setattr(shedder, "_key_of", looked)
    door = Door(100, 50)
    calls = [await door.come(key) for _ in range(200) for key in (ONE, OTHER)]
    for call in calls:
        await door.leave(call)
    assert door.empty()
    assert looks[0] <= 4 * len(calls)
