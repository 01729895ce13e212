"""The calls of an examination, and what comes of them."""

import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from adapters.base import Adapter, Filter, Page, Query, Record
from gateway.contract.operations import PAGE_DEFAULT, Operation

T = TypeVar("T")


class Broken(Exception):
    """What a partner would not get; the text says what."""


@dataclass(slots=True)
class Notes:
    """What came of the calls of one operation."""

    said: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    slowest: float = 0.0


class Reads:
    """Asks the adapter, notes the slowest call, and keeps the first records of each resource."""

    def __init__(self, adapter: Adapter, now: datetime) -> None:
        self.adapter = adapter
        self.now = now
        self._first: dict[str, list[Record]] = {}

    async def one(self, resource: str, public_id: str, notes: Notes) -> Record:
        query = Query(resource=resource, now=self.now, id=public_id)
        return await self.timed(notes, self.adapter.read_one(query))

    async def many(self, resource: str, notes: Notes, **more: Any) -> Page:
        query = Query(resource=resource, now=self.now, **more)
        return await self.timed(notes, self.adapter.read_many(query))

    async def page(
        self, operation: Operation, filters: Sequence[Filter], notes: Notes, **more: Any
    ) -> Page:
        return await self.many(operation.returns.name, notes, filters=tuple(filters), **more)

    async def first(self, resource: str, notes: Notes) -> list[Record]:
        """The first records of a resource; read once."""
        if resource not in self._first:
            page = await self.many(resource, notes, limit=PAGE_DEFAULT)
            self._first[resource] = page.records
        return self._first[resource]

    async def timed(self, notes: Notes, call: Awaitable[T]) -> T:
        begun = time.monotonic()
        try:
            return await call
        finally:
            notes.slowest = max(notes.slowest, time.monotonic() - begun)
