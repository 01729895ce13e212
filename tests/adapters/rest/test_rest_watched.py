"""A look at many bookings: what it costs a backend, and how long it may take."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from adapters.base import WATCHED_AT_ONCE, BackendTimeout, Watched
from examples.json_cloud.backend import Cloud
from tests.adapters.clinic import ask
from tests.adapters.rest.cloud import connect, listening, new_cloud, replaced

ONE = replaced(('    one: {get: "/visits/{id}", item: data}\n', ""))


class SlowlyTold(Cloud):
    """Takes its time to tell of one visit."""

    lag = 0.25

    async def visit(self, request: web.Request) -> web.Response:
        await asyncio.sleep(self.lag)
        return await super().visit(request)


class Listed(Cloud):
    """Counts how often the list of all visits is asked for; where it `is_ill` there is none."""

    lists = 0
    is_ill = False

    async def visits(self, request: web.Request) -> web.Response:
        if "day" in request.query:
            return await super().visits(request)
        self.lists += 1
        return web.json_response({}) if self.is_ill else await super().visits(request)


async def test_a_look_has_the_time_of_a_read_for_every_few(tmp_path: Path) -> None:
    cloud = SlowlyTold(new_cloud().records)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, timeout=1.0)
        page = await adapter.read_many(ask("appointments", limit=WATCHED_AT_ONCE))
        every = [each["id"] for each in page.records]
        assert len(every) > 4 * 8  # several rounds
        assert not (await adapter.find_overwritten(every)).unreadable
        cloud.lag = 1.5
        with pytest.raises(BackendTimeout):
            await adapter.find_overwritten(every[:1])
        await adapter.aclose()


async def test_without_a_call_for_one_the_list_is_read_once(tmp_path: Path) -> None:
    cloud = Listed(new_cloud().records)
    async with listening(cloud) as url:
        adapter = connect(url, tmp_path, ONE)
        every = [each["id"] for each in (await adapter.read_many(ask("appointments"))).records]
        cloud.lists = 0
        assert not (await adapter.find_overwritten(every[:8])).unreadable
        assert cloud.lists == 1
        cloud.is_ill = True
        ill = await adapter.find_overwritten(every[:8])
        assert ill == Watched(unreadable=frozenset(every[:8]))
        cloud.is_ill = False
        cloud.records.visits.clear()
        assert await adapter.find_overwritten(every[:8]) == Watched()
        await adapter.aclose()
