"""The cloud itself: a small HTTP program with the bad manners of real ones.

Everything embeds everything; ids are numbers here, addresses there and UUIDs elsewhere; each list
pages in its own way, with a maximum of 100; what it does not know, it ignores; what is
refused is 200 with `success: false`, or 400 with a sentence; the token lives for seconds.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any
from zoneinfo import ZoneInfo

from aiohttp import web

from examples.json_cloud.records import ZONE, Records, naive

MOST = 100
BASE = "/v2"
USER, PASSWORD = "gateway", "correct horse"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Cloud:
    """A clinic in the cloud. `token_lives` is how many seconds a token is good for."""

    def __init__(self, records: Records, token_lives: float = 20) -> None:
        self.records = records
        self.token_lives = token_lives
        self.calls: list[str] = []
        self.ignored = {"ghost"}  # members of a new visit that get lost
        # what happens just before and after a visit is entered
        self.before_booking: Callable[[dict[str, Any]], None] = lambda wanted: None
        self.after_booking: Callable[[dict[str, Any]], None] = lambda visit: None
        self.busiest = 0
        self._busy = 0
        self._tokens: dict[str, datetime] = {}

    def app(self) -> web.Application:
        """The HTTP program."""
        app = web.Application(middlewares=[self._known])
        app.add_routes(
            [
                web.post(f"{BASE}/session", self.log_in),
                web.get(f"{BASE}/status", self.status),
                web.get(f"{BASE}/owners", self.owners),
                web.get(f"{BASE}/owners/{{id}}", self.owner),
                web.get(f"{BASE}/animals", self.animals),
                web.get(f"{BASE}/animals/{{id}}", self.animal),
                web.get(f"{BASE}/vets", self.vets),
                web.get(f"{BASE}/vets/{{id}}", self.vet),
                web.get(f"{BASE}/vets/{{id}}/week", self.week),
                web.get(f"{BASE}/absences", self.absences),
                web.get(f"{BASE}/kinds", self.kinds),
                web.get(f"{BASE}/visits", self.visits),
                web.post(f"{BASE}/visits", self.book),
                web.get(f"{BASE}/visits/{{id}}", self.visit),
                web.post(f"{BASE}/visits/{{id}}/cancel", self.cancel),
                web.get(f"{BASE}/reports", self.reports),
                web.get(f"{BASE}/reports/{{id}}", self.report),
                web.get(f"{BASE}/bills", self.bills),
                web.get(f"{BASE}/bills/{{id}}", self.bill),
                web.get(f"{BASE}/stock", self.stock),
                web.get(f"{BASE}/stock/{{id}}", self.stock_item),
            ]
        )
        return app

    def desk_books(self, vet: str, start: datetime, minutes: int = 30) -> int:
        """What the clinic's own people enter: nobody checks it."""
        local = start.astimezone(ZONE)
        return self._enter(
            {
                "animal": 1, "vet": vet, "kind": 1, "starts_at": naive(local),
                "ends_at": naive(local + timedelta(minutes=minutes)), "note": "Comptoir",
            }
        )  # fmt: skip

    @web.middleware
    async def _known(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.calls.append(f"{request.method} {request.path}")
        if request.path != f"{BASE}/session":
            token = request.headers.get("Authorization", "").removeprefix("Token ")
            if self._tokens.get(token, datetime.min.replace(tzinfo=UTC)) <= datetime.now(UTC):
                return web.json_response({"error": "token unknown or expired"}, status=401)
        self._busy += 1
        self.busiest = max(self.busiest, self._busy)
        try:
            await asyncio.sleep(0)
            answer = await handler(request)
        finally:
            self._busy -= 1
        answer.set_cookie("tracking", token_hex(4))  # nobody should care
        return answer

    async def log_in(self, request: web.Request) -> web.Response:
        body = await request.json()
        if (body.get("name"), body.get("password")) != (USER, PASSWORD):
            return _failed("who are you?")
        token = token_hex(12)
        self._tokens[token] = datetime.now(UTC) + timedelta(seconds=self.token_lives)
        return web.json_response({"success": True, "token": token, "ttl": self.token_lives})

    async def status(self, request: web.Request) -> web.Response:
        return web.json_response({"up": True})

    async def owners(self, request: web.Request) -> web.Response:
        words = request.query.get("q", "").lower()
        since = request.query.get("changed_since", "")
        rows = [
            self._owner(request, key)
            for key, each in self.records.owners.items()
            if all(word in " ".join(each["name"].values()).lower() for word in words.split())
            and each["changed"] >= since
        ]
        offset, limit = _number(request, "offset", 0), min(MOST, _number(request, "limit", 20))
        return web.json_response(
            {"count": len(rows), "results": rows[offset : offset + limit], "offset": offset}
        )

    async def owner(self, request: web.Request) -> web.Response:
        return self._single(request, self.records.owners, self._owner)

    async def animals(self, request: web.Request) -> web.Response:
        owner = _tail(request.query.get("owner", ""))
        keys = [
            key for key, each in self.records.animals.items() if owner in ("", str(each["owner"]))
        ]
        page, size = _number(request, "page", 1), min(MOST, _number(request, "per_page", 25))
        begin = (page - 1) * size
        found = [self._animal(request, key) for key in keys[begin : begin + size]]
        return web.json_response({"page": page, "animals": found})

    async def animal(self, request: web.Request) -> web.Response:
        return self._single(request, self.records.animals, self._animal)

    async def vets(self, request: web.Request) -> web.Response:
        begin = _number(request, "start", 0)
        rows = list(self.records.vets.values())[begin : begin + 2]
        more = request.url.with_query({"start": str(begin + 2)})
        following = str(more) if begin + 2 < len(self.records.vets) else None
        return web.json_response({"data": rows, "links": {"next": following}})

    async def vet(self, request: web.Request) -> web.Response:
        found = self.records.vets.get(request.match_info["id"].upper())
        return web.json_response({"data": found}) if found else _missing()

    async def week(self, request: web.Request) -> web.Response:
        found = self.records.vets.get(request.match_info["id"].upper())
        return web.json_response(found["week"]) if found else _missing()

    async def absences(self, request: web.Request) -> web.Response:
        return web.json_response({"absences": self.records.absences})  # knows no parameters

    async def kinds(self, request: web.Request) -> web.Response:
        return web.json_response(list(self.records.kinds.values()))

    async def visits(self, request: web.Request) -> web.Response:
        day, reference = request.query.get("day", ""), request.query.get("ref")
        found = [
            self._visit(request, key)
            for key, each in self.records.visits.items()
            if each["starts_at"].startswith(day) and reference in (None, each["ext_ref"])
        ]
        return web.json_response({"visits": found})  # whoever the vet is

    async def visit(self, request: web.Request) -> web.Response:
        return self._single(request, self.records.visits, self._visit, "data")

    async def book(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.before_booking(body)
        kept = {name: each for name, each in body.items() if name not in self.ignored}
        if not isinstance(kept.get("animal"), int) or kept["animal"] not in self.records.animals:
            return _failed("no such animal")
        for each in self.records.visits.values():
            same = (each["vet"], each["starts_at"]) == (_vet(kept), kept.get("starts_at"))
            if same and each["state"] != "cancelled":
                text = "Sorry, this time is already booked."
                return web.json_response({"error": text}, status=400)
        key = self._enter(kept)
        self.after_booking(self.records.visits[key])
        url = str(request.url.origin().join(request.url.parent / "visits" / str(key)))
        return web.json_response({"success": True, "visit": url})

    async def cancel(self, request: web.Request) -> web.Response:
        found = self.records.visits.get(_key(request))
        if found is None:
            return _missing()
        found["state"] = "cancelled"
        return web.Response(status=204)

    async def reports(self, request: web.Request) -> web.Response:
        keys = [key for key in self.records.reports if key > _number(request, "after", 0)][:MOST]
        rows = [self.records.reports[key] for key in keys[:25]]
        return web.json_response({"rows": rows, "cursor": keys[24] if len(keys) > 25 else None})

    async def report(self, request: web.Request) -> web.Response:
        return self._single(request, self.records.reports)

    async def bills(self, request: web.Request) -> web.Response:
        owner = request.query.get("owner")
        rows = [
            self._bill(request, key)
            for key, each in self.records.bills.items()
            if owner in (None, str(each["owner"]))
        ]
        offset, limit = _number(request, "offset", 0), min(MOST, _number(request, "limit", 20))
        return web.json_response({"bills": rows[offset : offset + limit]})

    async def bill(self, request: web.Request) -> web.Response:
        return self._single(request, self.records.bills, self._bill)

    async def stock(self, request: web.Request) -> web.Response:
        return web.json_response({"ids": list(self.records.stock)})

    async def stock_item(self, request: web.Request) -> web.Response:
        return self._single(request, self.records.stock)

    def _single(
        self,
        request: web.Request,
        rows: dict[Any, dict[str, Any]],
        shown: Callable[[web.Request, int], Any] | None = None,
        within: str | None = None,
    ) -> web.Response:
        key = _key(request)
        if key not in rows:
            return _missing()
        found = shown(request, key) if shown else rows[key]
        return web.json_response({within: found} if within else found)

    def _owner(self, request: web.Request, key: int) -> dict[str, Any]:
        href = f"{request.url.origin()}{BASE}/owners/{key}"
        return {"href": href, **self.records.owners[key]}

    def _animal(self, request: web.Request, key: int) -> dict[str, Any]:
        found = self.records.animals[key]
        return {**found, "owner": self._owner(request, found["owner"])}

    def _visit(self, request: web.Request, key: int) -> dict[str, Any]:
        found = self.records.visits[key]
        animal = self._animal(request, found["animal"])
        return {**found, "animal": animal, "vet": {"uuid": found["vet"]}}

    def _bill(self, request: web.Request, key: int) -> dict[str, Any]:
        found = self.records.bills[key]
        return {**found, "owner": self._owner(request, found["owner"])}

    def _enter(self, body: dict[str, Any]) -> int:
        key = max(self.records.visits, default=0) + 1
        self.records.visits[key] = {
            "id": key,
            "animal": body["animal"],
            "vet": _vet(body),
            "kind": body.get("kind"),
            "starts_at": body.get("starts_at"),
            "ends_at": body.get("ends_at"),
            "state": "booked",
            "urgent": body.get("urgent", 0),
            "note": body.get("note"),
            "entered": naive(datetime.now(ZoneInfo("UTC"))),
            "ext_ref": body.get("ext_ref"),
        }
        return key


def _vet(body: dict[str, Any]) -> str:
    return str(body.get("vet", "")).upper()


def _failed(message: str) -> web.Response:
    return web.json_response({"success": False, "message": message})


def _missing() -> web.Response:
    return web.json_response({"error": "not here"}, status=404)


def _tail(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2]


def _key(request: web.Request) -> int:
    text = request.match_info["id"]
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else 0


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else default
