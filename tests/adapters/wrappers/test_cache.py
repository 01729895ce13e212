"""What is remembered, for how long, of whom, and what never is."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.base import (
    AdapterError,
    BackendUnavailable,
    Condition,
    Filter,
    NotFound,
    OutcomeUnknown,
    Page,
    Query,
    SlotTaken,
)
from adapters.documents.problems import Problem
from adapters.wrappers.cache import Cached, CacheRule
from adapters.wrappers.guard import Guarded, Limits
from adapters.wrappers.memory import LocalMemory
from tests.adapters.stand_in import (
    DRAFT,
    NOW,
    VETS,
    Door,
    Practice,
    client,
    clients,
    free,
    later,
    text,
)

LOW = Filter("equals", ("isLow",), True)
KEPT = (
    CacheRule(resource="clients", many=False, seconds=60),
    CacheRule(resource="clients", many=True, seconds=60),
    CacheRule(resource="slots", many=True, seconds=60),
    CacheRule(resource="appointments", many=False, seconds=60),
    CacheRule(resource="appointments", many=True, seconds=60),
)


class World:
    """A cached practice, and the clock of its memory."""

    def __init__(
        self, *kept: CacheRule, entries: int = 1000, size: int = 1_000_000, before: Any = None
    ) -> None:
        self.practice = Practice(before) if before else Practice()
        self.now = 0.0
        self.memory = LocalMemory(entries, size, lambda: self.now)
        self.cached = Cached(self.practice, kept or KEPT, self.memory)


async def test_what_was_read_is_told_again_until_its_time_is_over() -> None:
    world = World()
    first = await world.cached.read_one(client()), await world.cached.read_many(clients())
    world.practice.renamed = 1
    world.now = 59.9
    again = await world.cached.read_one(client()), await world.cached.read_many(clients())
    assert again == first
    assert world.practice.asked == {"read_one": 1, "read_many": 1}
    world.now = 60.0
    assert (await world.cached.read_one(client()))["lastName"] == "name 1"


async def test_a_page_is_told_whole_with_what_was_skipped_and_where_it_goes_on() -> None:
    world = World()
    for _ in range(2):
        page = await world.cached.read_many(clients())
        assert (page.after, page.skipped, page.records[0]["id"]) == ("more", 3, "client-1")


async def test_everybody_gets_records_of_their_own() -> None:
    world = World()
    first = await world.cached.read_one(client())
    first["tags"].append("spoilt")
    page = await world.cached.read_many(clients())
    page.records.clear()
    assert (await world.cached.read_one(client()))["tags"] == ["a"]
    assert len((await world.cached.read_many(clients())).records) == 1
    together = await asyncio.gather(*(world.cached.read_one(client("x")) for _ in range(3)))
    together[0]["tags"].append("spoilt")
    assert [each["tags"] for each in together[1:]] == [["a"], ["a"]]


async def test_what_is_not_to_be_remembered_is_asked_each_time() -> None:
    world = World(CacheRule(resource="clients", many=True, seconds=0))
    for _ in range(3):
        await world.cached.read_one(client())
        await world.cached.read_many(clients())
        await world.cached.read_many(free())
    assert world.practice.asked == {"read_one": 3, "read_many": 6}


async def test_of_two_kinds_that_fit_the_closer_one_says_how_long() -> None:
    whole = CacheRule(resource="clients", many=True, seconds=60)
    low = CacheRule(resource="clients", many=True, seconds=0, only=frozenset({LOW}))
    for kept in ((whole, low), (low, whole)):
        world = World(*kept)
        for _ in range(2):
            await world.cached.read_many(clients(filters=(LOW,)))
            await world.cached.read_many(clients())
        assert world.practice.asked == {"read_many": 3}


# The key


OTHERS = (
    clients(limit=49),
    clients(after="more"),
    clients(within=("clients", "client-1")),
    clients(within=("clients", "client-2")),
    clients(filters=(Filter("equals", ("lastName",), "x"),)),
    clients(filters=(Filter("equals", ("firstName",), "x"),)),
    clients(filters=(Filter("search", ("lastName",), "x"),)),
    clients(filters=(Filter("search", ("lastName", "firstName"), "x"),)),
    clients(filters=(Filter("equals", ("lastName",), "y"),)),
    clients(filters=(Filter("equals", ("lastName",), True),)),
    clients(filters=(Filter("equals", ("lastName",), "true"),)),
    clients(filters=(Filter("since", ("lastName",), NOW),)),
    clients(filters=(Filter("since", ("lastName",), NOW + timedelta(microseconds=1)),)),
    clients(values={"vetId": "x"}),
    clients(values={"vetId": "x", "date": NOW.date()}),
    clients(only=(Condition("lastName", "in", ("x",)),)),
    clients(only=(Condition("lastName", "in", ("x", "y")),)),
    clients(only=(Condition("lastName", "not in", ("x",)),)),
    clients(only=(Condition("lastName", "in", (True,)),)),
    clients(only=(Condition("lastName", "in", (1,)),)),
    clients(only=(Condition("createdAt", "min", NOW),)),
    clients(only=(Condition("createdAt", "min", NOW.date()),)),
    clients(only=(Condition("balance", "max", Decimal("1.5")),)),
    clients(only=(Condition("balance", "max", Decimal("1.6")),)),
    clients(within_only=(Condition("lastName", "in", ("x",)),)),
)


async def test_whatever_changes_the_answer_is_part_of_the_key() -> None:
    world = World()
    for query in (clients(), *OTHERS):
        assert await world.cached.read_many(query) == await Practice().read_many(query)
    assert world.practice.asked == {"read_many": 1 + len(OTHERS)}
    for name in ("client-1", "client-2"):
        assert (await world.cached.read_one(client(name)))["id"] == name


async def test_one_answer_serves_all_whatever_fields_they_look_at() -> None:
    world = World()
    for fields in (frozenset({"lastName"}), frozenset({"tags"}), None):
        assert await world.cached.read_many(clients(fields=fields)) == await Practice().read_many(
            clients()
        )
        assert "tags" in await world.cached.read_one(client(fields=fields))
    assert world.practice.asked == {"read_many": 1, "read_one": 1}


async def test_the_same_question_in_another_order_or_later_is_the_same() -> None:
    world = World()
    a, b = Filter("equals", ("lastName",), "x"), Filter("equals", ("firstName",), "y")
    for query in (
        clients(filters=(a, b), values={"p": 1, "q": 2}),
        clients(filters=(b, a), values={"q": 2, "p": 1}),
        Query(
            resource="clients",
            now=NOW + timedelta(hours=3),
            filters=(a, b),
            values={"p": 1, "q": 2},
        ),
    ):
        await world.cached.read_many(query)
    assert world.practice.asked == {"read_many": 1}


async def test_one_read_is_never_shared_by_two_for_whom_other_records_exist() -> None:
    world = World()
    hiding = clients(only=(Condition("balance", "max", Decimal(1)),))
    both = await asyncio.gather(*(world.cached.read_many(each) for each in (clients(), hiding)))
    assert both[0] != both[1]
    again = await asyncio.gather(*(world.cached.read_many(each) for each in (clients(), hiding)))
    assert again == both
    assert world.practice.asked == {"read_many": 2}


async def test_why_it_cannot_narrow_is_passed_on() -> None:
    world = World()
    problem = Problem("mapping.yaml", 3, 7, "clients.phone cannot be a condition")
    world.practice.refused = [problem]
    guarded = Guarded(world.cached, Limits())
    assert guarded.narrows("clients", (Condition("phone", "in", ("x",)),)) == [problem]
    assert world.practice.times == 0
    await guarded.aclose()


async def test_a_question_that_has_no_spelling_is_asked_each_time() -> None:
    world = World()
    for _ in range(2):
        await world.cached.read_many(clients(filters=(Filter("search", ("x",), "\udcff"),)))
    assert world.practice.asked == {"read_many": 2}


async def test_an_answer_that_json_does_not_have_is_told_as_it_is_to_each() -> None:
    class Odd(Practice):
        async def read_many(self, query: Query) -> Page:
            await self._begin("read_many")
            return Page(records=[{"id": "a", "odd": {1, 2}}])

    odd = Odd()
    cached = Cached(odd, KEPT, LocalMemory(10, 10_000))
    pages = await asyncio.gather(*(cached.read_many(clients()) for _ in range(2)))
    assert [each.records for each in pages] == [[{"id": "a", "odd": {1, 2}}]] * 2
    assert pages[0].records[0] is not pages[1].records[0]
    await cached.read_many(clients())
    assert odd.asked == {"read_many": 2}


# Errors


@pytest.mark.parametrize("error", [BackendUnavailable, NotFound, ValueError])
async def test_an_error_is_told_to_those_who_wait_and_to_nobody_after(
    error: type[Exception],
) -> None:
    door = Door()

    async def broken() -> None:
        await door()
        raise error("no")

    world = World(before=broken)
    callers = [asyncio.create_task(world.cached.read_one(client())) for _ in range(3)]
    await door.knocked()
    door.open()
    ends = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(each) for each in ends] == [error] * 3
    world.practice.before = Practice().before
    assert (await world.cached.read_one(client()))["id"] == "client-1"


async def test_what_was_not_there_is_there_as_soon_as_it_is() -> None:
    world = World()
    with pytest.raises(NotFound):
        await world.cached.read_one(Query(resource="appointments", now=NOW, id="appointment-0"))
    made = await world.cached.create_appointment(DRAFT)
    found = await world.cached.read_one(Query(resource="appointments", now=NOW, id=made["id"]))
    assert found == made


# One read for many


async def test_of_many_who_ask_at_once_one_read_is_made() -> None:
    door = Door()
    world = World(before=door)
    callers = [asyncio.create_task(world.cached.read_one(client())) for _ in range(50)]
    others = [asyncio.create_task(world.cached.read_one(client("other"))) for _ in range(50)]
    await door.knocked(2)
    door.open()
    ends = await asyncio.gather(*callers, *others)
    assert [each["id"] for each in ends] == ["client-1"] * 50 + ["other"] * 50
    assert world.practice.asked == {"read_one": 2}


async def test_who_waits_is_told_even_where_the_one_who_asked_first_has_gone() -> None:
    door = Door()
    world = World(before=door)
    leader = asyncio.create_task(world.cached.read_one(client()))
    await door.knocked()
    followers = [asyncio.create_task(world.cached.read_one(client())) for _ in range(3)]
    await asyncio.sleep(0)
    leader.cancel()
    followers[0].cancel()
    await asyncio.sleep(0)
    door.open()
    ends = await asyncio.gather(leader, *followers, return_exceptions=True)
    assert [type(each) for each in ends] == [asyncio.CancelledError] * 2 + [dict] * 2
    assert world.practice.asked == {"read_one": 1}


async def test_where_all_have_gone_a_failure_is_nobodys_fault() -> None:
    door = Door()

    async def broken() -> None:
        await door()
        raise BackendUnavailable("down")

    world = World(before=broken)
    faults: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, said: faults.append(said))
    caller = asyncio.create_task(world.cached.read_one(client()))
    await door.knocked()
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    door.open()
    await asyncio.sleep(0.01)
    assert world.cached._reads == {}
    assert faults == []


async def test_closing_ends_what_is_still_read() -> None:
    world = World(before=Door())
    caller = asyncio.create_task(world.cached.read_one(client()))
    await asyncio.sleep(0)
    await world.cached.aclose()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert world.practice.closed


# The bound


async def test_no_more_is_kept_than_there_is_room_for() -> None:
    world = World(entries=10_000, size=20_000)
    for number in range(500):
        await world.cached.read_one(client(f"client-{number}"))
    kept = world.memory.kept
    held = sum(len(key) + answer.size for key, answer in kept.items())
    assert 10 < len(kept) < 100
    assert held + 200 * len(kept) <= 20_000


async def test_no_more_entries_are_kept_than_may_be() -> None:
    world = World(entries=7)
    for number in range(50):
        await world.cached.read_one(client(f"client-{number}"))
        assert len(world.memory.kept) <= 7
    assert len(world.memory.kept) == 7
    world.practice.renamed = 1
    assert (await world.cached.read_one(client("client-49")))["lastName"] == "name 0"


async def test_what_is_larger_than_all_room_is_told_and_not_kept() -> None:
    world = World(size=300)
    for _ in range(2):
        assert len((await world.cached.read_many(clients(after="x" * 300))).records) == 1
    assert world.practice.asked == {"read_many": 2}
    assert len(world.memory.kept) == 0


# Free times


async def test_free_times_are_told_for_five_seconds_whatever_is_set() -> None:
    world = World()
    await world.cached.read_many(free())
    world.now = 4.9
    await world.cached.read_many(free())
    assert world.practice.asked == {"read_many": 1}
    world.now = 5.0
    await world.cached.read_many(free())
    assert world.practice.asked == {"read_many": 2}


async def test_a_free_time_that_has_begun_is_not_told_any_more() -> None:
    world = World()
    await world.cached.read_many(free())
    for seconds in (1, 14 * 60 + 59.9, 15 * 60, 15 * 60 + 0.5, 3 * 3600):
        at = NOW + timedelta(seconds=seconds)
        told = await world.cached.read_many(free(now=at))
        assert told == await Practice().read_many(free(now=at))
    assert world.practice.asked == {"read_many": 1}


async def test_a_booking_drops_the_free_times_of_its_vet_and_of_no_other() -> None:
    world = World()
    vet, other = VETS
    await world.cached.read_many(free(vet))
    await world.cached.read_many(free(other))
    await world.cached.create_appointment(DRAFT)
    told = await world.cached.read_many(free(vet))
    assert text(DRAFT.scheduled_at) not in [each["startTime"] for each in told.records]
    await world.cached.read_many(free(other))
    assert world.practice.asked == {"read_many": 3, "create_appointment": 1}


@pytest.mark.parametrize("error", [SlotTaken, OutcomeUnknown, BackendUnavailable])
async def test_a_booking_drops_them_however_it_ends(error: type[AdapterError]) -> None:
    world = World()
    await world.cached.read_many(free())

    async def broken() -> None:
        raise error("no")

    before, world.practice.before = world.practice.before, broken
    with pytest.raises(error):
        await world.cached.create_appointment(DRAFT)
    with pytest.raises(error):
        await world.cached.find_appointments(DRAFT, NOW)
    world.practice.before = before
    await world.cached.read_many(free())
    assert world.practice.asked["read_many"] == 2


async def test_a_read_under_way_during_a_booking_does_not_bring_the_old_answer_back() -> None:
    world = World()
    old, during = Door(), Door()
    world.practice.after = old
    before_it = asyncio.create_task(world.cached.read_many(free()))
    await old.knocked()
    world.practice.before = during
    booking = asyncio.create_task(world.cached.create_appointment(DRAFT))
    await during.knocked()
    world.practice.before = Practice().before
    while_it_ran = asyncio.create_task(world.cached.read_many(free()))
    await old.knocked(2)
    during.open()
    await booking
    world.practice.after = Practice().after
    at_once = await asyncio.wait_for(world.cached.read_many(free()), 1)
    old.open()
    for read in (before_it, while_it_ran):
        assert text(DRAFT.scheduled_at) in [each["startTime"] for each in (await read).records]
    for page in (at_once, await world.cached.read_many(free())):
        assert text(DRAFT.scheduled_at) not in [each["startTime"] for each in page.records]


async def test_an_appointment_that_a_search_finds_is_seen_by_those_who_read() -> None:
    world = World()
    await world.cached.read_many(free())
    await world.practice.create_appointment(DRAFT)  # whose answer was lost
    [found] = await world.cached.find_appointments(DRAFT, NOW)
    told = await world.cached.read_many(free())
    assert found["scheduledAt"] not in [each["startTime"] for each in told.records]


# Whatever is read and booked


Step = Callable[[Any, datetime], Any]
moments = st.sampled_from([15, 30, 45, 120])
vets = st.sampled_from(VETS)
names = st.sampled_from(["appointment-0", "appointment-1", "appointment-2"])


def book(vet: str, minutes: int) -> Step:
    draft = replace(later(minutes), vet_id=vet)
    return lambda adapter, now: adapter.create_appointment(replace(draft, now=now))


def look_up(vet: str) -> Step:
    return lambda adapter, now: adapter.find_appointments(replace(DRAFT, vet_id=vet), now)


def one(resource: str, name: str) -> Step:
    return lambda adapter, now: adapter.read_one(Query(resource=resource, now=now, id=name))


def many(resource: str, vet: str, limit: int) -> Step:
    values = {"vetId": vet}
    return lambda adapter, now: adapter.read_many(
        Query(resource=resource, now=now, values=values, limit=limit)
    )


steps = st.tuples(
    st.sampled_from([0, 0, 0, 1, 900]),
    st.one_of(
        st.builds(book, vets, moments),
        st.builds(look_up, vets),
        st.builds(many, st.just("appointments"), st.just(VETS[0]), st.just(50)),
        st.builds(one, st.just("appointments"), names),
        st.builds(one, st.just("clients"), names),
        st.builds(
            many,
            st.sampled_from(["slots", "clients"]),
            vets,
            st.sampled_from([1, 50]),
        ),
    ),
)


@given(st.lists(steps, max_size=40))
def test_whatever_is_read_and_booked_the_answers_are_those_of_the_bare_adapter(
    chosen: list[tuple[int, Step]],
) -> None:
    async def compare() -> None:
        bare, inner = Practice(), Practice()
        # so that only a booking, or the present, can make an answer old
        cached = Cached(Guarded(inner, Limits()), KEPT, LocalMemory(1000, 1_000_000, lambda: 0.0))
        now = NOW.astimezone(UTC)
        for seconds, step in chosen:
            now += timedelta(seconds=seconds)
            assert await end_of(step(cached, now)) == await end_of(step(bare, now))
        assert inner.booked == bare.booked

    asyncio.run(compare())


async def end_of(call: Any) -> Any:
    try:
        return await call
    except AdapterError as error:
        return type(error), str(error)
