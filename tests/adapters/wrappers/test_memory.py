"""Where answers are remembered: in one process, or in Redis for all; they promise the same."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from adapters.wrappers.cache import Cached, CacheRule
from adapters.wrappers.memory import LocalMemory, Memory, open_shared
from adapters.wrappers.redis import FAILURES, PREFIX
from tests.adapters.stand_in import DRAFT, NOW, VETS, Door, Practice, client, clients, free, text
from tests.redis_server import RedisServer, redis_server, shared_redis

SECRET = bytes(range(32))
KEPT = (
    CacheRule(resource="clients", many=False, seconds=60),
    CacheRule(resource="clients", many=True, seconds=60),
    CacheRule(resource="slots", many=True, seconds=60),
    CacheRule(resource="appointments", many=False, seconds=60),
)
SLACK = 0.5  # seconds: this machine does other things too


def in_redis(url: str, scope: bytes = b"", secret: bytes = SECRET) -> Memory:
    return open_shared(url, secret=secret, scope=scope, most=60.0)


@pytest.fixture(params=["memory", "redis"])
async def memory(request: pytest.FixtureRequest) -> AsyncIterator[Memory]:
    if request.param == "memory":
        made: Memory = LocalMemory(100, 100_000)
    else:
        made = in_redis(shared_redis(), uuid4().bytes)
    yield made
    await made.aclose()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as running:
        yield running


@asynccontextmanager
async def nodes(url: str, practice: Practice, count: int = 2) -> AsyncIterator[list[Cached]]:
    """Gateways before one practice that remember together."""
    scope = uuid4().bytes
    async with AsyncExitStack() as closing:
        made = [Cached(practice, KEPT, in_redis(url, scope)) for _ in range(count)]
        for each in made:
            closing.push_async_callback(each.aclose)
            # what connects takes its time, which no test is about
            await each._memory.look("", "")
            await asyncio.sleep(0.02)
        yield made


# What both promise


async def version_of(memory: Memory, key: str = "a", mark: str = "") -> bytes:
    for _ in range(100):
        version, found = await memory.look(key, mark)
        assert found is None
        if version is not None:
            return version
        await asyncio.sleep(0.02)  # what connects takes its time
    raise AssertionError("nothing can be kept")


async def data_of(memory: Memory, key: str, mark: str) -> bytes | None:
    _, found = await memory.look(key, mark)
    return found.data if found else None


async def test_what_is_kept_is_found_until_its_time_is_over(memory: Memory) -> None:
    await memory.keep("a", "", await version_of(memory), b"\x00\xff", 0.2)
    assert await data_of(memory, "a", "") == b"\x00\xff"
    assert await data_of(memory, "b", "") is None
    await asyncio.sleep(0.25)
    assert await data_of(memory, "a", "") is None


async def test_what_is_dropped_is_not_found_and_nothing_else_is_dropped(memory: Memory) -> None:
    for key, mark in (("a", "one"), ("b", "two"), ("c", "")):
        await memory.keep(key, mark, await version_of(memory, key, mark), b"x", 60)
    await memory.drop(["one", "three"])
    assert await data_of(memory, "a", "one") is None
    assert await data_of(memory, "b", "two") == b"x"
    assert await data_of(memory, "c", "") == b"x"


async def test_what_was_read_before_a_drop_is_not_found_after_it(memory: Memory) -> None:
    for _ in range(2):
        before = await version_of(memory, "a", "mark")
        await memory.drop(["mark"])
        await memory.keep("a", "mark", before, b"old", 60)
        assert await data_of(memory, "a", "mark") is None
    await memory.keep("a", "mark", await version_of(memory, "a", "mark"), b"new", 60)
    assert await data_of(memory, "a", "mark") == b"new"


# Several gateways


async def test_what_one_node_read_another_tells() -> None:
    practice = Practice()
    async with nodes(shared_redis(), practice) as (one, two):
        assert await two.read_one(client()) == await one.read_one(client())
        assert await two.read_many(clients()) == await one.read_many(clients())
    assert practice.asked == {"read_one": 1, "read_many": 1}


async def test_a_booking_at_one_node_is_seen_at_the_other_at_once() -> None:
    practice = Practice()
    async with nodes(shared_redis(), practice) as (one, two):
        vet, other = VETS
        for each in (vet, other):
            await two.read_many(free(each))
        await one.create_appointment(DRAFT)
        told = await two.read_many(free(vet))
        assert text(DRAFT.scheduled_at) not in [each["startTime"] for each in told.records]
        await two.read_many(free(other))
    assert practice.asked == {"read_many": 3, "create_appointment": 1}


async def test_a_read_under_way_at_another_node_does_not_bring_the_old_answer_back() -> None:
    practice, old = Practice(), Door()
    async with nodes(shared_redis(), practice) as (one, two):
        practice.after = old
        before = asyncio.create_task(two.read_many(free()))
        await old.knocked()
        practice.after = Practice().after
        await one.create_appointment(DRAFT)
        old.open()
        assert text(DRAFT.scheduled_at) in [each["startTime"] for each in (await before).records]
        for node in (two, one):
            told = await node.read_many(free())
            assert text(DRAFT.scheduled_at) not in [each["startTime"] for each in told.records]


async def test_those_with_another_secret_or_practice_share_nothing(server: RedisServer) -> None:
    memories = [
        in_redis(server.url, b"a"),
        in_redis(server.url, b"b"),
        in_redis(server.url, b"a", bytes(32)),
    ]
    for number, each in enumerate(memories):
        await each.keep("k", "", await version_of(each, "k"), b"%d" % number, 60)
    found = [await data_of(each, "k", "") for each in memories]
    for each in memories:
        await each.aclose()
    assert found == [b"0", b"1", b"2"]


# What lies in Redis


async def test_what_lies_there_is_sealed_and_named_by_nothing(server: RedisServer) -> None:
    async with (
        nodes(server.url, Practice(), 1) as (node,),
        Redis.from_url(server.url) as redis,
    ):
        record = await node.read_one(client("client-name"))
        await node.create_appointment(DRAFT)
        names = await redis.keys("*")
        lying = b"".join(names) + b"".join([await redis.get(each) for each in names])
        ends = [await redis.pttl(each) for each in names]
    assert len(names) == 3
    assert all(each.startswith(PREFIX.encode()) for each in names)
    assert all(0 < each <= 120_000 for each in ends)
    for plain in (b"client-name", b"lastName", record["lastName"].encode(), b"vet-1"):
        assert plain not in lying


async def test_what_somebody_else_wrote_there_is_not_told(server: RedisServer) -> None:
    async with (
        nodes(server.url, Practice(), 1) as (node,),
        Redis.from_url(server.url) as redis,
    ):
        truth = [await node.read_one(client(name)) for name in ("a", "b")]
        first, second = await redis.keys("*")
        one, two = await redis.get(first), await redis.get(second)
        for lies in ((two, one), (b"", b"x" * 100), (one[:-1] + b"\0", two[::-1])):
            await redis.set(first, lies[0])
            await redis.set(second, lies[1])
            assert [await node.read_one(client(name)) for name in ("a", "b")] == truth


# Where it fails


async def timed(work: Awaitable[Any]) -> float:
    began = time.monotonic()
    await work
    return time.monotonic() - began


async def test_one_that_hangs_costs_a_few_reads_50_ms_and_fails_none(server: RedisServer) -> None:
    practice = Practice()
    async with nodes(server.url, practice, 1) as (node,):
        await node.read_one(client())
        server.hang()
        took = [await timed(node.read_one(client(str(number)))) for number in range(20)]
        assert sum(each > 0.03 for each in took) <= FAILURES + 3
        assert max(took) < 2 * 0.05 + SLACK
        assert await timed(node.create_appointment(DRAFT)) < 2 * 0.05 + SLACK
        server.go_on()
    assert practice.asked == {"read_one": 21, "create_appointment": 1}


async def test_one_that_is_away_is_as_if_nothing_were_remembered(server: RedisServer) -> None:
    practice = Practice()
    async with nodes(server.url, practice, 1) as (node,):
        server.kill()
        took = sorted([await timed(node.read_one(client())) for _ in range(20)])
        assert took[10] < 0.01
        assert practice.asked == {"read_one": 20}
        server.start()
        async with asyncio.timeout(10):  # it is left alone for a second
            asked = 0
            while practice.asked["read_one"] != asked:
                asked = practice.asked["read_one"]
                await asyncio.sleep(0.2)
                await node.read_one(client())


async def test_a_booking_that_could_not_be_told_is_told_as_soon_as_it_can(
    server: RedisServer,
) -> None:
    practice = Practice()

    def shown(page: Any) -> list[str]:
        return [each["startTime"] for each in page.records]

    async with nodes(server.url, practice) as (one, two):
        await one.read_many(free())
        server.hang()
        await one.create_appointment(DRAFT)
        # at this node at once, whatever Redis does
        assert text(DRAFT.scheduled_at) not in shown(await one.read_many(free()))
        server.go_on()
        assert text(DRAFT.scheduled_at) not in shown(await one.read_many(free()))
        async with asyncio.timeout(5):
            while text(DRAFT.scheduled_at) in shown(await two.read_many(free())):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def test_while_it_is_away_nobody_waits_for_a_read_from_before_a_booking(
    server: RedisServer,
) -> None:
    practice, old = Practice(), Door()
    async with nodes(server.url, practice, 1) as (node,):
        server.kill()
        practice.after = old
        before = asyncio.create_task(node.read_many(free()))
        await old.knocked()
        practice.after = Practice().after
        await node.create_appointment(DRAFT)
        told = await asyncio.wait_for(node.read_many(free(now=NOW)), 1)
        assert text(DRAFT.scheduled_at) not in [each["startTime"] for each in told.records]
        old.open()
        await before
