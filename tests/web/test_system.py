from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from adapters.base import BackendUnavailable
from gateway.web import system
from gateway.web.system import Readiness
from tests.conftest import Begin, RunningGateway
from tests.world import World


async def get(session: aiohttp.ClientSession, gateway: RunningGateway, path: str) -> Any:
    async with session.get(gateway.operations + path) as response:
        return response.status, await response.text()


async def test_ready_says_so_for_each_part(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    assert await get(session, running_gateway, "/healthz") == (200, '{"alive": true}')
    status, text = await get(session, running_gateway, "/readyz")
    assert status == 200
    for part in ("backend", "store", "policy", "limiter"):
        assert f'"{part}":{{"ready":true' in text
    assert running_gateway.gateway.policy().hash[:12] in text


async def test_any_other_path_names_those_that_there_are(
    running_gateway: RunningGateway, session: aiohttp.ClientSession
) -> None:
    for path in ("/", "/metric", "/healthz/x"):
        status, text = await get(session, running_gateway, path)
        assert status == 404
        assert all(f'"{each}"' in text for each in ("/healthz", "/readyz", "/metrics"))


async def test_a_practice_system_that_is_down_makes_it_not_ready_but_alive(
    partner_of: Begin, session: aiohttp.ClientSession
) -> None:
    def down() -> None:
        raise BackendUnavailable("no route to the practice")

    partner = await partner_of(World(ping=down))
    status, text = await get(session, partner.gateway, "/readyz")
    assert status == 503
    assert '"backend":{"ready":false,"reason":"no route to the practice"}' in text
    assert (await get(session, partner.gateway, "/healthz"))[0] == 200


async def test_parts_are_asked_once_a_second_and_silence_is_no_answer(monkeypatch: Any) -> None:
    asked: list[str] = []

    def probe(name: str, answer: Callable[[], Awaitable[None]]) -> Any:
        async def ask() -> dict[str, str]:
            asked.append(name)
            await answer()
            return {}

        return ask

    async def nothing() -> None:
        return None

    async def silence() -> None:
        await asyncio_event_that_never_comes()

    monkeypatch.setattr(system, "PATIENCE", 0.01)
    readiness = Readiness({"a": probe("a", nothing), "b": probe("b", silence)})
    first, second = await readiness.report(), await readiness.report()
    assert first == second
    assert asked == ["a", "b"]
    assert first["parts"]["b"] == {"ready": False, "reason": "no answer in time"}


async def asyncio_event_that_never_comes() -> None:
    import asyncio

    await asyncio.Event().wait()


async def test_figures_are_in_prometheus_form_and_tell_of_calls(
    partner_of: Begin, session: aiohttp.ClientSession
) -> None:
    partner = await partner_of(World())
    await partner.get("/stock")
    await partner.anonymous().get("/stock")
    await (await partner.with_key(limit=0)).get("/stock")
    status, text = await get(session, partner.gateway, "/metrics")
    assert status == 200
    for line in (
        'gateway_requests_total{operation="list_stock",status="200"} 1.0',
        'gateway_requests_total{operation="list_stock",status="401"} 1.0',
        'gateway_authentication_failures_total{reason="KeyMissing"} 1.0',
        "gateway_limit_denials_total 1.0",
        "gateway_keys_loaded 2.0",
    ):
        assert line in text.splitlines()
    assert 'gateway_request_seconds_bucket{le="0.001",operation="list_stock"}' in text
