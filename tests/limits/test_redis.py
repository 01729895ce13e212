"""The limiter in Redis, and what happens where that is down, hung, new or not to be written."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from redis import Redis as SyncRedis
from redis.asyncio import Redis

from gateway.limits import open_limiter, open_shared
from gateway.limits.base import FAILURES, PATIENCE, TRIAL, Degrading, Limiter, LimiterDown, Quota
from gateway.limits.redis import PREFIX, RedisLimiter
from tests.heard import Heard
from tests.limits.subjects import PATIENT
from tests.redis_server import RedisServer, redis_server

SLACK = 0.5  # seconds: this machine does other things too
BUSY = 5  # calls of those tried that may be slow because of that


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as running:
        yield running


@asynccontextmanager
async def opened(
    server: RedisServer, share: int = 4, *, start: bool = True, patience: float = PATIENT
) -> AsyncIterator[tuple[Limiter, Heard]]:
    watcher = Heard()
    limiter = open_limiter(server.url, watcher, share=share, patience=patience)
    try:
        if start:
            await limiter.start()
        yield limiter, watcher
    finally:
        await limiter.aclose()


def counted(limiter: Limiter) -> list[str]:
    """The ids of the keys whose calls reach the inner limiter from here on, but for its trials."""
    assert isinstance(limiter, Degrading)
    asked: list[str] = []
    hit = limiter._inner.hit

    async def noted(key_id: str, limit: int) -> Quota:
        asked.extend([key_id] * (key_id != TRIAL))
        return await hit(key_id, limit)

    limiter._inner.hit = noted  # type: ignore[method-assign]
    return asked


async def timed(limiter: Limiter, limit: int = 1_000_000) -> float:
    began = time.monotonic()
    await limiter.hit("k", limit)
    return time.monotonic() - began


async def restored(watcher: Heard) -> None:
    async with asyncio.timeout(10):
        while watcher.said[-1] != "limiter_back":  # noqa: ASYNC110 - a second, as it says
            await asyncio.sleep(0.02)


async def test_a_limiter_that_hangs_costs_five_calls_50_ms_each_and_no_other(
    server: RedisServer,
) -> None:
    async with opened(server, patience=PATIENCE) as (limiter, watcher):
        await timed(limiter)
        server.hang()
        asked = counted(limiter)
        took = [await timed(limiter) for _ in range(40)]
        assert len(asked) == FAILURES
        assert sum(each > 0.03 for each in took) <= FAILURES + BUSY
        assert max(took) < 0.05 + SLACK
        assert limiter.degraded
        assert watcher.said == ["limiter_down: it does not answer in time"]
        assert watcher.counted["counted_here"] == 40
        await asyncio.sleep(1.2)  # it is tried, beside the calls
        assert sorted([await timed(limiter) for _ in range(20)])[-BUSY] < 0.03
        server.go_on()
        await restored(watcher)
        assert not limiter.degraded
        assert watcher.said == ["limiter_down: it does not answer in time", "limiter_back"]


async def test_nobody_says_what_is_used_while_it_is_down(server: RedisServer) -> None:
    async with opened(server, patience=PATIENT) as (limiter, watcher):
        await limiter.hit("k", 5)
        assert (await limiter.peek(["k"]))["k"].calls == 1
        server.kill()
        with pytest.raises(LimiterDown, match="it cannot be used"):
            await limiter.peek(["k"])
        assert watcher.said == [], "who only looks says nothing of it"
        for _ in range(FAILURES):
            await limiter.hit("k", 5)
        with pytest.raises(LimiterDown, match="each process counts its share"):
            await limiter.peek(["k"])
        server.start()
        await restored(watcher)
        assert await limiter.peek(["k"]) == {}, "this Redis has begun anew, and forgot the step"


async def test_another_process_sees_what_is_counted_without_counting_itself(
    server: RedisServer,
) -> None:
    async with opened(server, patience=PATIENT) as (limiter, _):
        peeker = open_shared(server.url, None)
        assert await peeker.peek(["k"]) == {}
        await limiter.hit("k", 5)
        assert [used.calls for used in (await peeker.peek(["k"])).values()] == [1]
        await peeker.aclose()


async def test_many_calls_at_once_wait_for_it_no_longer_than_one(server: RedisServer) -> None:
    async with opened(server, patience=PATIENCE) as (limiter, watcher):
        await timed(limiter)
        server.hang()
        took = await asyncio.gather(*(timed(limiter) for _ in range(200)))
        assert max(took) < 0.05 + SLACK
        assert sorted([await timed(limiter) for _ in range(20)])[-BUSY] < 0.03
        assert len(watcher.said) == 1
        server.go_on()


async def test_a_limiter_that_is_away_costs_nothing_and_is_said_once(server: RedisServer) -> None:
    async with opened(server) as (limiter, watcher):
        await timed(limiter)
        server.kill()
        took = sorted([await timed(limiter) for _ in range(100)])
        assert took[50] < 0.005, "it costs nothing"
        assert took[-1] < 0.05 + SLACK
        assert watcher.said == ["limiter_down: it cannot be used (ConnectionError)"]
        server.start()
        await restored(watcher)


async def test_where_it_is_down_each_process_admits_its_share_however_often_it_comes_back(
    server: RedisServer,
) -> None:
    async with opened(server, share=4) as (limiter, watcher):
        quotas = [await limiter.hit("k", 10) for _ in range(3)]
        for _ in range(2):
            server.kill()
            quotas += [await limiter.hit("k", 10) for _ in range(20)]
            server.start()
            await restored(watcher)
        there, here = quotas[:3], quotas[3:]
        assert [quota.remaining for quota in there] == [9, 8, 7]
        assert sum(quota.admitted for quota in here) == 10 // 4
        assert {quota.limit for quota in here} == {10}
        assert [quota.remaining for quota in here][:3] == [1, 0, 0]
        assert all(1 <= quota.reset <= 3600 for quota in here)
        # it has forgotten what it had counted: a new window
        assert (await limiter.hit("k", 10)).remaining == 9


@pytest.mark.parametrize(("limit", "admitted"), [(0, 0), (1, 1), (3, 1), (8, 2)])
async def test_a_share_is_rounded_down_but_never_nothing(
    server: RedisServer, limit: int, admitted: int
) -> None:
    server.kill()
    async with opened(server, share=4) as (limiter, _):
        quotas = [await limiter.hit("k", limit) for _ in range(10)]
    assert sum(quota.admitted for quota in quotas) == admitted


async def test_it_need_not_be_there_at_the_start(server: RedisServer) -> None:
    server.kill()
    async with opened(server, start=False) as (limiter, watcher):
        assert (await limiter.hit("k", 100)).remaining == 24
        for _ in range(FAILURES):
            await limiter.hit("k", 100)
        server.start()
        await restored(watcher)
        assert (await limiter.hit("k", 100)).remaining == 99


async def test_what_is_wrong_with_it_is_said_at_the_start(server: RedisServer) -> None:
    server.kill()
    async with opened(server) as (limiter, watcher):
        assert limiter.degraded
        assert watcher.said == ["limiter_down: it cannot be used (ConnectionError)"]
        server.start()
        await restored(watcher)


async def test_a_standby_counts_nothing(server: RedisServer) -> None:
    async with opened(server) as (limiter, watcher), Redis.from_url(server.url) as client:
        await limiter.hit("k", 100)
        await client.replicaof("127.0.0.1", 1)
        for _ in range(FAILURES):
            assert (await limiter.hit("k", 100)).remaining >= 20
        assert watcher.said == ["limiter_down: it cannot be used (ReadOnlyError)"]
        await client.replicaof("NO", "ONE")
        await restored(watcher)
        assert (await limiter.hit("k", 100)).remaining == 98


async def test_a_password_is_sent_and_never_said(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--requirepass", "hunter2") as server:
        address = f"redis://:{{}}@127.0.0.1:{server.port}/1"
        for password, said in (("hunter2", []), ("hunter3", ["limiter_down: it refuses the user"])):
            watcher = Heard()
            limiter = open_limiter(address.format(password), watcher, share=2)
            for _ in range(FAILURES):
                await limiter.hit("k", 100)
            await limiter.aclose()
            assert [each[: len(said[0])] for each in watcher.said] == said
            assert "hunter" not in str(watcher.said)


async def test_many_limiters_admit_exactly_the_limit_together(server: RedisServer) -> None:
    async with AsyncExitStack() as closing:
        limiters = [RedisLimiter(server.url, patience=PATIENT) for _ in range(4)]
        for each in limiters:
            closing.push_async_callback(each.aclose)
            await each.start()
        admitted = 0
        for _ in range(30):
            turn = (limiters[number % 4].hit("k", 1_000) for number in range(50))
            admitted += sum(quota.admitted for quota in await asyncio.gather(*turn))
    assert admitted == 1_000


async def test_the_name_holds_its_version_and_the_id_of_the_key(server: RedisServer) -> None:
    async with opened(server) as (limiter, _), Redis.from_url(server.url) as client:
        await limiter.hit("some-id", 5)
        names = {f"{PREFIX}some-id".encode(), f"{PREFIX}trial".encode()}
        assert set(await client.keys("*")) == names
        assert await client.get(f"{PREFIX}some-id") == b"1"
        assert 3_590_000 < await client.pttl(f"{PREFIX}some-id") <= 3_600_000


@pytest.mark.parametrize("spoilt", ["no end", "too late", "no number"])
async def test_a_counter_that_makes_no_sense_is_put_right(server: RedisServer, spoilt: str) -> None:
    name = f"{PREFIX}k"
    async with opened(server) as (limiter, _), Redis.from_url(server.url) as client:
        if spoilt == "no end":  # as two steps would leave it that were cut in between
            await client.set(name, 1_000_000)
        elif spoilt == "too late":  # as a clock that was set back by an hour would
            await client.set(name, 1, px=7_200_000)
        else:
            await client.set(name, "x", px=1_000)
        quota = await limiter.hit("k", 5)
        assert quota.admitted
        assert 1 <= quota.reset <= 3600
        assert 0 < await client.pttl(name) <= 3_600_000


async def test_a_process_that_was_busy_does_not_take_its_own_delay_for_a_failure(
    server: RedisServer,
) -> None:
    with SyncRedis(port=server.port) as beside:
        async with opened(server, patience=PATIENCE) as (limiter, watcher):
            if watcher.said:  # it was too busy to connect in time
                await restored(watcher)
            for _ in range(5):
                hit = asyncio.create_task(limiter.hit("k", 100))
                for _ in range(20):  # until it is sent: nothing of that waits
                    await asyncio.sleep(0)
                time.sleep(0.06)  # noqa: ASYNC251 - that is what is tried
                # Redis may be slow itself: once it has answered here twice, the first answer is out
                assert beside.ping()
                assert beside.ping()
                await hit
            assert (
                watcher.counted["counted_here"] <= 2
            )  # the kernel may have let others run in between
