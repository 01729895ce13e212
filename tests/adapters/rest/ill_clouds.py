"""Clouds with a fault that no record shows: slow, late, or deaf to a parameter."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from aiohttp import web

from examples.json_cloud.backend import Cloud
from examples.json_cloud.records import Records

SLOW = 0.6


class SlowCloud(Cloud):
    """Thinks long about what kinds of appointments there are."""

    async def kinds(self, request: web.Request) -> web.Response:
        await asyncio.sleep(SLOW)
        return await super().kinds(request)


class LateCloud(Cloud):
    """Its clock is five minutes behind."""

    def app(self) -> web.Application:
        app = super().app()
        app.on_response_prepare.append(self._date)
        return app

    async def _date(self, _: web.Request, answer: web.StreamResponse) -> None:
        there = datetime.now(UTC) - timedelta(minutes=5)
        answer.headers["Date"] = format_datetime(there, usegmt=True)


class WordyCloud(Cloud):
    """Its cursors and its links to a next page hold a long text."""

    words = "x" * 2_100

    async def reports(self, request: web.Request) -> web.Response:
        after = request.query.get("after", "0").removeprefix(self.words)
        answer = await super().reports(request.clone(rel_url=f"/v2/reports?after={after}"))
        found = json.loads(answer.text or "")
        if found["cursor"] is not None:
            found["cursor"] = f"{self.words}{found['cursor']}"
        return web.json_response(found)

    async def vets(self, request: web.Request) -> web.Response:
        answer = await super().vets(request)
        found = json.loads(answer.text or "")
        if found["links"]["next"] is not None:
            found["links"]["next"] += f"&words={self.words}"
        return web.json_response(found)


class DeafCloud(Cloud):
    """Gives the first page of animals, whichever page is wanted."""

    async def animals(self, request: web.Request) -> web.Response:
        return await super().animals(request.clone(rel_url="/v2/animals?per_page=100"))


class LeafingCloud(Cloud):
    """Gives visits by pages of ten where a page is asked for; what else is asked it ignores.

    While `is_stuck` it gives the first page, whichever is wanted; with `is_newest_first` it begins
    at the end.
    """

    is_stuck = False
    is_newest_first = False

    def __init__(self, records: Records) -> None:
        super().__init__(records)
        self.pages: list[str] = []

    async def visits(self, request: web.Request) -> web.Response:
        if "page" not in request.query:
            return await super().visits(request)
        self.pages.append(request.query["page"])
        answer = await super().visits(request.clone(rel_url="/v2/visits"))
        begin = 0 if self.is_stuck else 10 * (int(request.query["page"]) - 1)
        rows = json.loads(answer.text or "")["visits"][:: -1 if self.is_newest_first else 1]
        return web.json_response({"visits": rows[begin:][:10]})


class SiftingCloud(Cloud):
    """Gives three reports, then so many empty pages, then three more; each takes its time."""

    def __init__(self, records: Records, empty: int, lag: float) -> None:
        super().__init__(records)
        self.empty, self.lag = empty, lag
        self.pages = 0

    async def reports(self, request: web.Request) -> web.Response:
        self.pages += 1
        await asyncio.sleep(self.lag)
        number = int(request.query.get("after", "0"))
        rows = json.loads((await super().reports(request.clone(rel_url="/v2/reports"))).text or "")
        some = {0: rows["rows"][:3], self.empty + 1: rows["rows"][3:6]}
        following = None if number > self.empty else str(number + 1)
        return web.json_response({"rows": some.get(number, []), "cursor": following})


class ShufflingCloud(Cloud):
    """Gives its bills in another order each time: the first ten move round."""

    async def bills(self, request: web.Request) -> web.Response:
        rows = list(self.records.bills.items())
        self.records.bills = dict([*rows[1:10], rows[0], *rows[10:]])
        return await super().bills(request)


class ForgetfulCloud(Cloud):
    """Lets nobody in any more who asked for the kinds of appointments."""

    async def kinds(self, request: web.Request) -> web.Response:
        self._tokens.clear()
        return await super().kinds(request)
