"""The calls of an examination: each resource's first records, and every list with its filters."""

import re
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from adapters.base import Adapter, Filter, NotFound, Page, Query, Record
from gateway.contract.operations import PAGE_DEFAULT, PAGE_LARGEST, Match, Operation, Param

T = TypeVar("T")
# Clients whose invoices are asked for.
CLIENTS = 10
_word = re.compile(r"[^\W_]{2,}").search


class PartnerFailure(Exception):
    """What a partner would not get; the text says what."""


@dataclass(slots=True)
class CallNotes:
    """What came of the calls of one operation; the slowest in seconds."""

    said: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    slowest: float = 0.0


def count(records: Sequence[Any]) -> str:
    return "1 record" if len(records) == 1 else f"{len(records)} records"


class Reads:
    """Asks the adapter, notes the slowest call, and keeps the first records of each resource."""

    def __init__(self, adapter: Adapter, now: datetime) -> None:
        self.adapter = adapter
        self.now = now
        self._first: dict[str, list[Record]] = {}

    async def one(self, resource: str, public_id: str, notes: CallNotes) -> Record:
        query = Query(resource=resource, now=self.now, id=public_id)
        return await self.timed(notes, self.adapter.read_one(query))

    async def many(self, resource: str, notes: CallNotes, **more: Any) -> Page:
        query = Query(resource=resource, now=self.now, **more)
        return await self.timed(notes, self.adapter.read_many(query))

    async def first(self, resource: str, notes: CallNotes) -> list[Record]:
        """The first records of a resource; read once."""
        if resource not in self._first:
            page = await self.many(resource, notes, limit=PAGE_DEFAULT)
            self._first[resource] = page.records
        return self._first[resource]

    async def timed(self, notes: CallNotes, call: Awaitable[T]) -> T:
        begun = time.monotonic()
        try:
            return await call
        finally:
            notes.slowest = max(notes.slowest, time.monotonic() - begun)


async def try_list(reads: Reads, operation: Operation, notes: CallNotes) -> None:
    """The list, or that of a client who has some; NotFound, PartnerFailure."""
    if not any(param.within for param in operation.params):
        await _ListTrial(reads, operation, notes).run()
        return
    records = await reads.first(operation.returns.name, notes)
    owners = dict.fromkeys(record["clientId"] for record in records if record["clientId"])
    for owner in list(owners)[:CLIENTS]:
        try:
            await _ListTrial(reads, operation, notes, owner).run()
        except NotFound:
            continue
        return
    if owners:
        raise PartnerFailure("the clients whose they are do not exist")
    notes.doubts.append("no record with a client: is clientId mapped?")


class _ListTrial:
    """One list, or one client's part of it: a page, a page further on, every filter."""

    def __init__(
        self, reads: Reads, operation: Operation, notes: CallNotes, owner: str | None = None
    ) -> None:
        self._reads = reads
        self._operation = operation
        self._notes = notes
        self._within = None if owner is None else ("clients", owner)
        self._fixed = [Filter("equals", (name,), value) for name, value in operation.only]
        if owner is not None:
            self._fixed.append(Filter("equals", ("clientId",), owner))

    async def run(self) -> None:
        page = await self._page()
        self._notes.said.append(count(page.records))
        if not page.records:
            self._notes.doubts.append("0 records: is its `where` right?")
            return
        await self._try_next_page(page)
        for param in self._operation.query:
            if param.match is not None:
                await self._try_filter(param, page.records)

    async def _page(self, *filters: Filter, **more: Any) -> Page:
        resource, wanted = self._operation.returns.name, (*self._fixed, *filters)
        return await self._reads.many(
            resource, self._notes, filters=wanted, within=self._within, **more
        )

    async def _try_next_page(self, page: Page) -> None:
        """A page further on, which has none of the first one's records."""
        half = max(1, len(page.records) // 2)
        first = await self._page(limit=half)
        if first.after is None:
            return
        more = await self._page(limit=half, after=first.after)
        if {record["id"] for record in first.records} & {record["id"] for record in more.records}:
            raise PartnerFailure("the second page repeats records of the first")
        self._notes.said.append("a second page")

    async def _try_filter(self, param: Param, records: Sequence[Record]) -> None:
        """By a value of a record, which must then be among what is found."""
        resource, doubts = self._operation.returns.name, self._notes.doubts
        offered = self._reads.adapter.filterable.get(resource, frozenset())
        if not offered.issuperset(param.fields):
            doubts.append(f"no filter {param.name}: {' or '.join(param.fields)} is not mapped")
            return
        example = next(((r, v) for r in records if (v := _example(param, r)) is not None), None)
        if example is None:
            doubts.append(f"{param.name} was not tried: no record has a value for it")
            return
        record, value = example
        wanted = Filter(str(param.match), param.fields, value)
        page = await self._page(wanted, limit=PAGE_LARGEST)
        if record["id"] not in {each["id"] for each in page.records} and page.after is None:
            raise PartnerFailure(f"by {param.name}, a record that has the value is not found")
        self._notes.said.append(f"by {param.name}")


def _example(param: Param, record: Record) -> Any:
    """A value to filter by, of a record; None where it has none."""
    for name in param.fields:
        value = record.get(name)
        if param.match is Match.SEARCH and isinstance(value, str) and (word := _word(value)):
            return word[0]
        if param.match is Match.SINCE and value:
            return datetime.fromisoformat(value)
        if param.match is Match.EQUALS and value is not None:
            return value
    return None
