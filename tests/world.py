"""A practice system made inside a test: each verb is what the test says it is.

`backend.adapter: tests.world:WorldAdapter` with `backend.url` naming one of WORLDS.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from adapters.base import AdapterOptions, Draft, NotFound, Only, Page, Query, Record, Watched
from adapters.documents.problems import Problem
from gateway.contract.fields import Field, Resource
from gateway.contract.resources import RESOURCES

SOME_ID = "0b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b10"
OTHER_ID = "1b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b11"
TIME = "2026-03-01T09:00:00Z"
_VALUES: Mapping[str, Any] = {
    "uuid": SOME_ID,
    "text": "x",
    "email": "a@example.org",
    "boolean": True,
    "integer": 3,
    "number": 1.5,
    "date-time": TIME,
    "date": "2026-03-01",
    "money": "1.00",
    "percent": "20.00",
    "color": "#123456",
}


def record_of(resource: Resource) -> Record:
    """A whole record with a value in every field."""
    return {each.name: _value(each) for each in resource.fields}


def _value(each: Field) -> Any:
    if each.fields:
        return [{member.name: _value(member) for member in each.fields}]
    value = each.values[0] if each.values else _VALUES[each.format.name]
    return [value] if each.many else value


@dataclass
class World:
    """What the practice system answers, and what it was asked."""

    one: Callable[[Query], Record] | None = None
    many: Callable[[Query], Page] | None = None
    create: Callable[[Draft], Record] | None = None
    find: Callable[[Draft], Sequence[Record]] = lambda draft: ()
    check: Callable[[], None] = lambda: None
    ping: Callable[[], None] = lambda: None
    unfilterable: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    asked: list[Query] = field(default_factory=list)


WORLDS: dict[str, World] = {}


class WorldAdapter:
    """Answers as its world says; by default with a whole record."""

    excludes, settle, default_length = True, 0.0, None

    def __init__(self, options: AdapterOptions) -> None:
        self.world = WORLDS[options.url]
        self.resources = frozenset(options.shapes) - self.world.left_out
        self.books = "booking" not in self.world.left_out
        self.filterable = {
            name: frozenset(paths) - self.world.unfilterable
            for name, paths in options.shapes.items()
        }
        self._records = {each.name: record_of(each) for each in RESOURCES}

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        return ()

    async def read_one(self, query: Query) -> Record:
        self.world.asked.append(query)
        return (self.world.one or (lambda query: self._records[query.resource]))(query)

    async def read_many(self, query: Query) -> Page:
        self.world.asked.append(query)
        if self.world.many is not None:
            return self.world.many(query)
        return Page(records=[self._records[query.resource]])

    async def create_appointment(self, draft: Draft) -> Record:
        if self.world.create is None:
            return self._records["appointments"]
        return self.world.create(draft)

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        return self.world.find(draft)

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        return Watched()

    async def check(self) -> Sequence[Problem]:
        self.world.check()
        return ()

    async def ping(self) -> None:
        self.world.ping()

    async def aclose(self) -> None:
        return None


def nobody(query: Query) -> Record:
    """What a practice system without that record does."""
    raise NotFound(query.id)
