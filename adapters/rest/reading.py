"""Reads one resource: a record by its id, or a page of our own size over the backend's pages."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from adapters.base import (
    BackendNonsense,
    Condition,
    FieldShape,
    Filter,
    NotFound,
    Only,
    Page,
    Record,
    Trouble,
)
from adapters.convert import Unreadable
from adapters.narrowing import misfit, unmapped
from adapters.rest.asking import asking, marked_by
from adapters.rest.filters import FilterParams, NothingFits, fits
from adapters.rest.mapping import ListCall, ResourceMap
from adapters.rest.paging import MOST_ROWS, Ask, Barren, Batch, pager
from adapters.rest.paths import path
from adapters.rest.records import RecordMaker
from adapters.rest.templates import Values
from adapters.rest.together import AT_ONCE, for_each
from adapters.rest.toolbox import Toolbox

# Rows that cost a call each which one call looks at; then the page ends where it is.
MOST_DETAILS = 400
# The part of a read's time after which what has been found has to do.
ENOUGH = 0.6


class ResourceReader:
    """Reads one resource."""

    def __init__(self, name: str, resource: ResourceMap, tools: Toolbox) -> None:
        shapes = tools.shapes[name]
        self.name = name
        self.maker = RecordMaker(name, resource, shapes, tools.values, tools.report)
        self._backend = tools.backend
        self._places = tools.places
        self._one = None
        if resource.one is not None:
            of_one = {"id": FieldShape(format="uuid", refers=name)}
            self._one = tools.templates.call(resource.one, of_one)
            self._item = path(resource.one.item)
        self._shapes = shapes
        self._filters = FilterParams(resource, shapes, tools.templates)
        self._list = None if resource.list_ is None else Rows(resource.list_, self, tools)

    @property
    def filterable(self) -> frozenset[str]:
        """The fields that lists of it can be filtered by."""
        return self._filters.names if self._list is not None else frozenset()

    @property
    def has_one(self) -> bool:
        """Whether there is a call for one record by its id."""
        return self._one is not None

    def must_be_ours(self, public_id: str) -> None:
        """NotFound, without a call, for an id that was never made here."""
        if not self.maker.key.converter.encode(public_id):
            raise NotFound(f"no {self.name} has that id")

    def refusal(self, condition: Condition) -> str | None:
        """Why its lists cannot leave out what a condition does; None where they can."""
        said = misfit(self.name, condition, self._shapes)
        if said is not None:
            return said
        if condition.field != "id" and condition.field not in self.maker.fields.by_name:
            return unmapped(self.name, condition)
        if self._filters.narrows(condition):
            return None
        return (
            f"{self.name}.{condition.field} is no field that lists can leave records out by: name"
            " it in `sift`, or leave it out of `only`"
        )

    async def one(self, public_id: str, only: Only = ()) -> Record:
        """The record with that id; NotFound, also where the conditions let none be."""
        self.must_be_ours(public_id)
        if self._one is None:
            return await self._looked_for(public_id, only)
        record = self.made(await self.answer(public_id), only)
        if record is None:
            raise BackendNonsense(f"a record of {self.name} has no usable id")
        if record["id"] != public_id:
            raise BackendNonsense(f"asked for one of {self.name}, the backend gives another")
        return record

    async def page(
        self, filters: Sequence[Filter], limit: int, after: str | None, only: Only = ()
    ) -> Page:
        """Up to `limit` records behind the place `after`, all as filters and conditions say."""
        whole = await self._places.whole(after)
        asked = self._filters.narrowed(filters, only) if only else filters
        page = await self._page(asked, limit, whole, only)
        return replace(page, after=await self._places.short(page.after))

    async def _page(
        self, filters: Sequence[Filter], limit: int, after: str | None, only: Only = ()
    ) -> Page:
        if self._list is None:
            raise BackendNonsense(f"the mapping has no list of {self.name}")
        try:
            ask = self._asking(self._list, filters)
        except (NothingFits, NotFound):
            return Page(records=[])
        return await self._list.page(ask, filters, limit, after, only)

    async def sample(self, most: int = AT_ONCE) -> list[Any]:
        """Some records as the backend gives them; none where they cannot be had without an id."""
        listing = self.listing()
        return [] if listing is None else await listing[0].sample(listing[1], most)

    def listing(self, filters: Sequence[Filter] = ()) -> tuple["Rows", Ask] | None:
        """The list and how to ask for it; None where there is none without an id."""
        if self._list is None or (self._filters.needs_values and not filters):
            return None
        return self._list, self._asking(self._list, filters)

    def id_of(self, value: Any) -> str | None:
        """The public id of a record as the backend gives it; None where it has no usable one."""
        try:
            found: str | None = self.maker.key.read(value)
        except Unreadable:
            return None
        return found

    async def answer(self, public_id: str) -> Any:
        """The JSON of the record with that id; NotFound."""
        if self._one is None:
            raise TypeError(self.name)
        request = self._one.request(Values({"id": public_id}))
        answer = await self._backend.read(request, one=True)
        try:
            found = self._item(answer.data)
        except Unreadable as error:
            raise BackendNonsense(f"{request.label}: there is no record in the answer") from error
        if found is None or found == []:
            raise NotFound(f"{request.label}: there is none")
        return found

    def made(self, value: Any, only: Only = ()) -> Record | None:
        """The record of an answer; None without a usable id, NotFound where it is not to be."""
        if not isinstance(value, dict):
            raise BackendNonsense(f"a record of {self.name} is no object")
        hidden = only and not self.maker.lets_be(value, only)
        if hidden or not self.maker.exists(value):
            raise NotFound(f"no {self.name} has that id")
        return self.maker.record(value)

    async def listed(self, public_ids: Collection[str], only: Only = ()) -> dict[str, Record]:
        """Those of the records that are in the list: it is read once, as far as needed."""
        wanted = {each for each in public_ids if self.maker.key.converter.encode(each)}
        found: dict[str, Record] = {}
        after: str | None = None
        while wanted.difference(found):
            page = await self._page((), MOST_ROWS, after, only)
            found.update((each["id"], each) for each in page.records if each["id"] in wanted)
            if page.after is None:
                break
            after = page.after
        return found

    async def _looked_for(self, public_id: str, only: Only) -> Record:
        found = await self.listed([public_id], only)
        if public_id not in found:
            raise NotFound(f"no {self.name} has that id")
        return found[public_id]

    def _asking(self, rows: "Rows", filters: Sequence[Filter]) -> Ask:
        values, params = self._filters.in_path(filters), self._filters.params(filters)
        return asking(self._backend, rows.endpoint, values, params)


class Rows:
    """The list of a resource: its rows, and the records made of them."""

    def __init__(self, call: ListCall, reader: ResourceReader, tools: Toolbox) -> None:
        self.endpoint = tools.templates.call(call, tools.shapes[reader.name])
        self._reader = reader
        self._report = tools.report
        self.has_details = call.details
        self._key = reader.maker.key
        if call.key is not None:
            self._key = tools.values.key(call.key, reader.name)
        self.pager = pager(call.page, path(call.items), marked_by(self._key), self.endpoint.label)
        self._patience = tools.timeout * ENOUGH

    async def page(
        self, ask: Ask, filters: Sequence[Filter], limit: int, after: str | None, only: Only = ()
    ) -> Page:
        """Goes through the rows until the page is full, or enough was looked at."""
        filling = _Filling(limit, MOST_DETAILS if self.has_details else MOST_ROWS, self._patience)
        wanted = MOST_ROWS if filters or only else limit
        try:
            batches = self.pager.batches(ask, after, wanted)
            is_last = await self._fill(filling, batches, filters, only)
        except Barren:  # what was found is kept, and the next call goes on behind it
            is_last = False
        return filling.page(more=not is_last)

    async def _fill(
        self,
        filling: "_Filling",
        batches: AsyncGenerator[Batch, None],
        filters: Sequence[Filter],
        only: Only,
    ) -> bool:
        """Whether the list came to its end before the page was full, or enough was looked at.

        With conditions a full page looks for what follows it: it must not tell of hidden records.
        """
        size = AT_ONCE if self.has_details else 1
        async with aclosing(batches):
            async for batch in batches:
                for rows, places in _parts(batch.rows, batch.places, size):
                    if filling.is_enough or (filling.is_full and not only):
                        return False
                    for made, place in zip(await self._made(rows, only), places, strict=True):
                        if filling.is_full and (not only or _counts(made, filters)):
                            return False
                        filling.take(made, place, filters)
                if batch.last:
                    return True
                filling.passed(batch.end)
                if filling.is_enough or (filling.is_full and not batch.rows and not only):
                    return False
        return True

    async def sample(self, ask: Ask, most: int) -> list[Any]:
        """The first rows; where they are no whole records, the records of the first few."""
        rows: list[Any] = []
        async with aclosing(self.pager.batches(ask, None, most)) as batches:
            async for batch in batches:
                rows += batch.rows
                if batch.last or len(rows) >= most:
                    break
        if not self.has_details:
            return rows
        ids = [public_id for public_id in map(self._public_id, rows[:most]) if public_id]
        return await for_each(self._reader.answer, ids)

    async def _made(self, rows: Sequence[Any], only: Only) -> list["Record | Trouble | None"]:
        """Each row's record; None for what is not to be, a trouble for what has no usable id."""
        if self.has_details:
            return await for_each(lambda row: self._detailed(row, only), rows)
        return [self._record(row, only) for row in rows]

    def _record(self, row: Any, only: Only) -> "Record | Trouble | None":
        if only and not isinstance(row, dict):  # it has no value to be judged by
            return None
        try:
            made = self._reader.made(row, only)
        except NotFound:
            return None
        except BackendNonsense:  # one bad row fails no list
            bad = self._doubtful if isinstance(row, dict) else self._nameless
            self._report(bad)
            return bad
        return self._nameless if made is None else made

    async def _detailed(self, row: Any, only: Only) -> "Record | Trouble | None":
        public_id = self._public_id(row)
        if public_id is None and only:  # nor has this one
            return None
        if public_id is None:
            self._report(self._nameless)
            return self._nameless
        try:
            return await self._reader.one(public_id, only)
        except NotFound:  # gone since the list was made
            return None

    def _public_id(self, row: Any) -> str | None:
        try:
            found: str | None = self._key.read(row)
        except Unreadable:
            return None
        return found

    @property
    def _doubtful(self) -> Trouble:
        return Trouble("unreadable", self._reader.name, "where", "")

    @property
    def _nameless(self) -> Trouble:
        return Trouble("no id", self._reader.name, "id", "")


def _parts(
    rows: Sequence[Any], places: Sequence[str], size: int
) -> Iterator[tuple[Sequence[Any], Sequence[str]]]:
    for begin in range(0, len(rows), size):
        yield rows[begin : begin + size], places[begin : begin + size]


def _counts(made: Record | Trouble | None, filters: Sequence[Filter]) -> bool:
    """Whether a page tells of it: as a record, or as one that is left out."""
    return isinstance(made, Trouble) or (made is not None and fits(made, filters))


class _Filling:
    """A page that is being filled."""

    def __init__(self, limit: int, most: int, patience: float) -> None:
        self._limit, self._most = limit, most
        self._clock: Callable[[], float] = asyncio.get_running_loop().time
        self._until = self._clock() + patience
        self._records: list[Record] = []
        self._skipped = 0
        self._looked = 0
        self._place: str | None = None

    @property
    def is_full(self) -> bool:
        return len(self._records) + self._skipped >= self._limit

    @property
    def is_enough(self) -> bool:
        """Whether this is enough for one call: the page may be short, the next goes on."""
        late = self._place is not None and self._clock() >= self._until
        return self._looked >= self._most or late

    def passed(self, end: str | None) -> None:
        """All of a batch has been looked at, be it that there was nothing in it."""
        self._place = end or self._place

    def take(self, made: Record | Trouble | None, place: str, filters: Sequence[Filter]) -> None:
        self._looked += 1
        self._place = place
        if isinstance(made, Trouble):
            self._skipped += 1
        elif made is not None and _counts(made, filters):
            self._records.append(made)

    def page(self, *, more: bool) -> Page:
        after = self._place if more else None
        return Page(records=self._records, after=after, skipped=self._skipped)
