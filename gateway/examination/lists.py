"""Tries a list: what is in it, a page further on, every filter that it offers."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from adapters.base import Filter, NotFound, Page, Record
from gateway.contract.operations import PAGE_LARGEST, Match, Operation, Param
from gateway.examination.findings import count
from gateway.examination.reads import Broken, Notes, Reads

# Clients whose invoices are asked for.
CLIENTS = 10
_word = re.compile(r"[^\W_]{2,}").search


async def tried_list(reads: Reads, operation: Operation, notes: Notes) -> None:
    """The list, or that of a client who has some; NotFound, Broken."""
    if not any(each.within for each in operation.params):
        await _Trial(reads, operation, notes).made()
        return
    records = await reads.first(operation.returns.name, notes)
    owners = dict.fromkeys(each["clientId"] for each in records if each["clientId"])
    for owner in list(owners)[:CLIENTS]:
        try:
            await _Trial(reads, operation, notes, owner).made()
        except NotFound:
            continue
        return
    if owners:
        raise Broken("the clients whose they are do not exist")
    notes.doubts.append("no record with a client: is clientId mapped?")


class _Trial:
    """One list, or one client's part of it."""

    def __init__(
        self, reads: Reads, operation: Operation, notes: Notes, owner: str | None = None
    ) -> None:
        self._reads = reads
        self._operation = operation
        self._notes = notes
        self._within = None if owner is None else ("clients", owner)
        self._fixed = [Filter("equals", (name,), value) for name, value in operation.only]
        if owner is not None:
            self._fixed.append(Filter("equals", ("clientId",), owner))

    async def made(self) -> None:
        page = await self._page()
        self._notes.said.append(count(page.records))
        if not page.records:
            self._notes.doubts.append("0 records: is its `where` right?")
            return
        await self._further(page)
        for param in self._operation.query:
            if param.match is not None:
                await self._filtered(param, page.records)

    async def _page(self, *filters: Filter, **more: Any) -> Page:
        wanted = [*self._fixed, *filters]
        return await self._reads.page(
            self._operation, wanted, self._notes, within=self._within, **more
        )

    async def _further(self, page: Page) -> None:
        """A page further on, which has none of the first one's records."""
        half = max(1, len(page.records) // 2)
        first = await self._page(limit=half)
        if first.after is None:
            return
        more = await self._page(limit=half, after=first.after)
        if {each["id"] for each in first.records} & {each["id"] for each in more.records}:
            raise Broken("the second page repeats records of the first")
        self._notes.said.append("a second page")

    async def _filtered(self, param: Param, records: Sequence[Record]) -> None:
        """By a value of a record, which must then be among what is found."""
        resource = self._operation.returns.name
        offered = self._reads.adapter.filterable.get(resource, frozenset())
        if not offered.issuperset(param.fields):
            self._notes.doubts.append(
                f"no filter {param.name}: {' or '.join(param.fields)} is not mapped"
            )
            return
        example = next(((r, v) for r in records if (v := _example(param, r)) is not None), None)
        if example is None:
            self._notes.doubts.append(f"{param.name} was not tried: no record has a value for it")
            return
        wanted = Filter(str(param.match), param.fields, example[1])
        page = await self._page(wanted, limit=PAGE_LARGEST)
        found = {each["id"] for each in page.records}
        if example[0]["id"] not in found and page.after is None:
            raise Broken(f"by {param.name}, a record that has the value is not found")
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
