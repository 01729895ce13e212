"""A gateway whose limiter is in Redis: what partners and operators see, with it and without."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from gateway.settings import StartRefused
from tests.conftest import RunningGateway, Start
from tests.redis_server import RedisServer, redis_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    (tmp_path / "redis").mkdir()
    with redis_server(tmp_path / "redis") as running:
        yield running


async def readiness(gateway: RunningGateway, session: aiohttp.ClientSession) -> Any:
    async with session.get(f"{gateway.operations}/readyz") as answer:
        return answer.status, (await answer.json())["parts"]["limiter"]


async def figures(gateway: RunningGateway, session: aiohttp.ClientSession) -> dict[str, str]:
    async with session.get(f"{gateway.operations}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return dict(each.split() for each in lines if each.startswith("gateway_limiter"))


async def test_two_nodes_count_together_and_each_its_share_when_redis_is_gone(
    start_gateway: Start,
    session: aiohttp.ClientSession,
    server: RedisServer,
    capfd: pytest.CaptureFixture[str],
) -> None:
    limiter = SecretStr(f"{server.url}/0")
    counting = {"limiter": limiter, "nodes": 2, "limiter_timeout": 1.0}
    first = await start_gateway("first", **counting)
    store = SecretStr(f"sqlite:///{first.folder}/gateway.db")
    second = await start_gateway("second", store=store, **counting)
    key = await first.mint(limit=30)
    await second.gateway.ring.refresh()

    async def call(gateway: RunningGateway) -> tuple[int, int]:
        url, headers = f"{gateway.base}/stock", {"X-API-Key": key.secret}
        async with session.get(url, headers=headers) as answer:
            await answer.read()
            return answer.status, int(answer.headers["X-RateLimit-Remaining"])

    ends = []
    for _ in range(5):
        ends += await asyncio.gather(*(call(each) for each in (first, second) * 4))
    assert sorted(ends, reverse=True) == [(429, 0)] * 10 + [(200, n) for n in range(29, -1, -1)]
    place = f"redis://127.0.0.1:{server.port}/0"
    assert (await readiness(first, session))[1] == {"ready": True, "for": [], "url": place}

    server.kill()
    alone = [await call(first) for _ in range(20)]
    assert alone == [(200, n) for n in range(14, -1, -1)] + [(429, 0)] * 5
    await asyncio.sleep(1.1)  # what was told is told again for a second
    async with asyncio.timeout(10):
        # a machine that is busy enough may hold the loop meanwhile: that passes, this would not
        while (told := await readiness(first, session))[0] != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    assert told[1]["degraded"]
    assert await figures(first, session) == {
        "gateway_limiter_degraded": "1.0",
        "gateway_limiter_local_total": "20.0",
    }
    assert (await figures(second, session))["gateway_limiter_degraded"] == "0.0"
    server.start()
    async with asyncio.timeout(10):
        while (await figures(first, session))["gateway_limiter_degraded"] != "0.0":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert await call(second) == (200, 29)
    said = capfd.readouterr().err
    assert said.count("the limiter is down: each process counts its share of every limit") == 1
    assert said.count("the limiter counts for all processes again") == 1


async def test_several_nodes_that_would_each_count_by_itself_do_not_start(
    start_gateway: Start,
) -> None:
    with pytest.raises(StartRefused, match="more than one of nodes cannot count in memory:"):
        await start_gateway(nodes=2)
