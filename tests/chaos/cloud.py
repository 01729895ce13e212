"""A cloud that enters whatever it is sent, and takes its time: nothing in it forbids an overlap."""

import asyncio
import random
import sys
from datetime import datetime

from aiohttp import web

from examples.json_cloud.backend import BASE, Cloud
from examples.json_cloud.records import WEEK, ZONE, made
from tests.races.practice import CLOSES, OPENS, TYPES, VETS

LONGEST = 0.2  # seconds that it takes to enter a visit


class SlowCloud(Cloud):
    """Between the call and the visit there is time in which its caller may die."""

    async def book(self, request: web.Request) -> web.Response:
        body = await request.json()
        await asyncio.sleep(random.uniform(0, LONGEST))
        key = self._enter(body)
        await asyncio.sleep(random.uniform(0, LONGEST))
        return web.json_response({"success": True, "visit": f"{BASE}/visits/{key}"})


def work() -> None:
    """Serve it for good; the first line says where."""
    asyncio.run(_serve())


async def _serve() -> None:
    runner = web.AppRunner(_cloud().app())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sys.stdout.write(f"http://127.0.0.1:{runner.addresses[0][1]}{BASE}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def _cloud() -> SlowCloud:
    """With an empty diary, and the vets and types of the other kinds of practice."""
    records = made(datetime.now(ZONE).date())
    week = [{"day": day, "open": f"{OPENS:02}:00", "close": f"{CLOSES}:00"} for day in WEEK[:5]]
    names = {number: f"00000000-0000-4000-8000-{number:012}" for number in VETS}
    records.vets = {
        name: {"uuid": name, "label": f"Dr {number}", "retired": False, "week": week}
        for number, name in names.items()
    }
    records.kinds = {
        number: {"id": number, "label": f"Kind {number}", "length_min": minutes, "colour": 0}
        for number, minutes in TYPES.items()
    }
    records.visits, records.reports, records.absences = {}, {}, []
    return SlowCloud(records)
