"""A small practice system for the tests of what wraps an adapter: its diary is a dict."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from adapters.base import Draft, NotFound, Only, Page, Query, Record, SlotTaken, Watched
from adapters.documents.problems import Problem

NOW = datetime(2026, 3, 4, 7, 0, tzinfo=UTC)
DAY = date(2026, 3, 4)
VETS = ("vet-1", "vet-2")
DRAFT = Draft(
    client_id="client-1",
    patient_id="patient-1",
    vet_id=VETS[0],
    scheduled_at=NOW + timedelta(hours=1),
    appointment_type_id=None,
    reason=None,
    is_urgent=False,
    now=NOW,
)


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def free(vet: str = VETS[0], now: datetime = NOW, **more: Any) -> Query:
    """The free times of a vet."""
    values = {"vetId": vet, "date": DAY, **more}
    return Query(resource="slots", now=now, values=values)


def client(name: str = "client-1", **more: Any) -> Query:
    return Query(resource="clients", now=NOW, id=name, **more)


def clients(**more: Any) -> Query:
    return Query(resource="clients", now=NOW, **more)


async def at_once() -> None:
    """What a practice system does before it answers, unless a test says more."""


class Practice:
    """Answers from its dict; `before` runs first in every verb, and may raise or wait.

    `after` runs once a page is read and before it is told, so that it may be old by then.
    `asked` counts the calls of each verb; `inside` and `most` are how many are under way, and
    how many were at most.
    """

    def __init__(self, before: Callable[[], Awaitable[None]] = at_once) -> None:
        self.before = before
        self.after: Callable[[], Awaitable[None]] = at_once
        self.asked: dict[str, int] = {}
        self.inside = self.most = 0
        self.booked: dict[str, Record] = {}
        self.renamed = 0
        self.closed = False
        self.refused: list[Problem] = []
        self.books, self.excludes, self.settle = True, True, 0.0
        self.default_length = None
        self.resources = frozenset({"clients", "slots", "appointments", "appointmentTypes"})
        self.filterable: Mapping[str, frozenset[str]] = {"clients": frozenset({"lastName"})}

    @property
    def times(self) -> int:
        """How many calls there were, of every verb."""
        return sum(self.asked.values())

    async def _begin(self, verb: str) -> None:
        self.asked[verb] = self.asked.get(verb, 0) + 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.before()
        finally:
            self.inside -= 1

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        return self.refused

    async def read_one(self, query: Query) -> Record:
        await self._begin("read_one")
        if query.resource == "appointments":
            if query.id not in self.booked:
                raise NotFound(query.id)
            return dict(self.booked[query.id])
        return {"id": query.id, "lastName": f"name {self.renamed}", "tags": ["a"]}

    async def read_many(self, query: Query) -> Page:
        await self._begin("read_many")
        page = self._page(query)
        await self.after()
        return page

    def _page(self, query: Query) -> Page:
        if query.resource == "slots":
            return Page(records=self._free(query.values["vetId"], query.now))
        if query.resource == "appointments":
            return Page(records=[dict(each) for each in self.booked.values()])
        asked = [query.filters, query.values, query.limit, query.after, query.within, query.only]
        records = [{"id": "client-1", "asked": repr(asked), "tags": ["a"]}]
        return Page(records=records, after="more", skipped=3)

    def _free(self, vet: str, now: datetime) -> list[Record]:
        taken = {each["scheduledAt"] for each in self.booked.values() if each["vetId"] == vet}
        grid = [NOW + timedelta(minutes=15 * step) for step in range(16)]
        starts = [text(each) for each in grid if each > now]
        return [{"startTime": each, "vetId": vet} for each in starts if each not in taken]

    async def create_appointment(self, draft: Draft) -> Record:
        await self._begin("create_appointment")
        start = text(draft.scheduled_at)
        if start not in [each["startTime"] for each in self._free(draft.vet_id, draft.now)]:
            raise SlotTaken(start)
        name = f"appointment-{len(self.booked)}"
        self.booked[name] = {"id": name, "vetId": draft.vet_id, "scheduledAt": start}
        return dict(self.booked[name])

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        await self._begin("find_appointments")
        return [each for each in self.booked.values() if each["vetId"] == draft.vet_id]

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        await self._begin("find_overwritten")
        return Watched()

    async def check(self) -> Sequence[Problem]:
        await self._begin("check")
        return ()

    async def ping(self) -> None:
        await self._begin("ping")

    async def aclose(self) -> None:
        self.closed = True


class Door:
    """Keeps who comes waiting until it is opened; counts who came."""

    def __init__(self) -> None:
        self._open, self._knock = asyncio.Event(), asyncio.Event()
        self.came = 0

    async def __call__(self) -> None:
        self.came += 1
        self._knock.set()
        await self._open.wait()

    def open(self) -> None:
        self._open.set()

    async def knocked(self, times: int = 1) -> None:
        """Until so many have come."""
        while self.came < times:
            self._knock.clear()
            await self._knock.wait()


def later(minutes: int) -> Draft:
    """The draft at another time of the grid."""
    return replace(DRAFT, scheduled_at=NOW + timedelta(minutes=minutes))
