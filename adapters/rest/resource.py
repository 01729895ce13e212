"""Reads one resource by calls: a record by its id, or a page of ours over the backend's pages."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import (
    AdapterError,
    AdapterOptions,
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
from adapters.mapped.plan import compile_resource
from adapters.mapping.converters import Converters
from adapters.mapping.models import ListCall, MappingFile, ResourceMap
from adapters.mapping.narrowing import misfit, unmapped
from adapters.mapping.paths import path
from adapters.rest.backend import AT_ONCE, Ask, Backend, for_each
from adapters.rest.client import Client
from adapters.rest.filters import FilterParams, NothingFits, fits
from adapters.rest.paging import MOST_ROWS, Barren, Batch, PlaceShelf, pager
from adapters.rest.records import RecordMaker, own_id
from adapters.rest.requests import Templates, TemplateValues
from adapters.values.convert import Unreadable

# Rows that cost a call each which one call looks at; then the page ends where it is.
MOST_DETAILS = 400
# The part of a read's time after which what has been found has to do.
ENOUGH = 0.6


class Components:
    """What all calls of the adapter are made with; `timeout` is all that one read may take."""

    def __init__(self, mapping: MappingFile, options: AdapterOptions, client: Client) -> None:
        self.shapes, self.report, self.timeout = options.shapes, options.report, options.timeout
        self.converters = Converters(
            ZoneInfo(mapping.zone),
            options.secret,
            kinds={name: resource.key.ids for name, resource in mapping.resources.items()},
            table=options.ids,
            one_spelling=True,
        )
        self.templates = Templates(self.converters, options.credentials)
        self.backend = Backend(mapping.backend, self.templates, client)
        self.places = PlaceShelf(options.secret, options.ids)


class ResourceCalls:
    """Reads one resource; its `list` is None where the mapping has none."""

    def __init__(self, name: str, resource: ResourceMap, parts: Components) -> None:
        self.name = name
        self._shapes = parts.shapes[name]
        plan = compile_resource(name, resource, self._shapes, parts.converters)
        self.maker = RecordMaker(plan, resource, parts.report)
        self._parts = parts
        self._one = None
        if resource.one is not None:
            of_one = {"id": FieldShape(format="uuid", refers=name)}
            self._one = parts.templates.call(resource.one, of_one)
            self._item = path(resource.one.item)
        self._filters = FilterParams(resource, self._shapes, parts.converters)
        self._list = None if resource.list_ is None else RowList(resource.list_, self, parts)

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
        text = misfit(self.name, condition, self._shapes)
        if text is not None:
            return text
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
            record = (await self.listed([public_id], only)).get(public_id)
            if record is None:
                raise NotFound(f"no {self.name} has that id")
            return record
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
        places = self._parts.places
        asked = self._filters.narrowed(filters, only) if only else filters
        page = await self._page(asked, limit, await places.whole(after), only)
        return replace(page, after=await places.short(page.after))

    async def listed(self, public_ids: Collection[str], only: Only = ()) -> dict[str, Record]:
        """Those of the records that are in the list: it is read once, as far as needed."""
        wanted = {key for key in public_ids if self.maker.key.converter.encode(key)}
        found: dict[str, Record] = {}
        after: str | None = None
        while wanted.difference(found):
            page = await self._page((), MOST_ROWS, after, only)
            found |= {record["id"]: record for record in page.records if record["id"] in wanted}
            after = page.after
            if after is None:
                break
        return found

    async def _page(
        self, filters: Sequence[Filter], limit: int, after: str | None, only: Only
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

    def listing(self, filters: Sequence[Filter] = ()) -> tuple["RowList", Ask] | None:
        """The list and how to ask for it; None where there is none without an id."""
        if self._list is None or (self._filters.needs_values and not filters):
            return None
        return self._list, self._asking(self._list, filters)

    def _asking(self, rows: "RowList", filters: Sequence[Filter]) -> Ask:
        values, params = self._filters.in_path(filters), self._filters.params(filters)
        return self._parts.backend.pages(rows.endpoint, values, params)

    def id_of(self, value: Any) -> str | None:
        """The public id of a record as the backend gives it; None where it has no usable one."""
        public_id: str | None = self.maker.key.shown(value)
        return public_id

    async def answer(self, public_id: str) -> Any:
        """The JSON of the record with that id; NotFound."""
        if self._one is None:
            raise TypeError(self.name)
        request = self._one.request(TemplateValues({"id": public_id}))
        answer = await self._parts.backend.read(request, one=True)
        try:
            record = self._item(answer.data)
        except Unreadable as error:
            raise BackendNonsense(f"{request.label}: there is no record in the answer") from error
        if record is None or record == []:
            raise NotFound(f"{request.label}: there is none")
        return record

    def made(self, value: Any, only: Only = ()) -> Record | None:
        """The record of an answer; None without a usable id, NotFound where it is not to be."""
        if not isinstance(value, dict):
            raise BackendNonsense(f"a record of {self.name} is no object")
        hidden = only and not self.maker.meets(value, only)
        if hidden or not self.maker.exists(value):
            raise NotFound(f"no {self.name} has that id")
        return self.maker.record(value)


class RowList:
    """The list of a resource: its rows, and the records that `reader` makes of them."""

    def __init__(self, call: ListCall, reader: ResourceCalls, parts: Components) -> None:
        self.endpoint = parts.templates.call(call, parts.shapes[reader.name])
        self.has_details = call.details
        self._reader = reader
        self._report = parts.report
        self._key = reader.maker.key
        if call.key is not None:
            self._key = own_id(call.key, parts.converters.ids(reader.name))
        self.pager = pager(call.page, path(call.items), self._key.mark, self.endpoint.label)
        self._patience = parts.timeout * ENOUGH
        self._doubtful = Trouble("unreadable", reader.name, "where", "")
        self._nameless = Trouble("no id", reader.name, "id", "")

    async def page(
        self, ask: Ask, filters: Sequence[Filter], limit: int, after: str | None, only: Only
    ) -> Page:
        """Goes through the rows until the page is full, or enough was looked at."""
        most = MOST_DETAILS if self.has_details else MOST_ROWS
        filling = _Filling(limit, most, self._patience, filters)
        batches = self.pager.batches(ask, after, MOST_ROWS if filters or only else limit)
        try:
            is_last = await self._fill(filling, batches, only)
        except Barren:  # what was found is kept, and the next call goes on behind it
            is_last = False
        rest = None if is_last else filling.place
        return Page(records=filling.records, after=rest, skipped=filling.skipped)

    async def _fill(
        self, filling: "_Filling", batches: AsyncGenerator[Batch, None], only: Only
    ) -> bool:
        """Whether the list came to its end before the page was full, or enough was looked at.

        With conditions a full page looks for what follows it: it must not tell of hidden records.
        """
        size = AT_ONCE if self.has_details else 1
        async with aclosing(batches):
            async for batch in batches:
                for begin in range(0, len(batch.rows), size):
                    if filling.is_enough or (filling.is_full and not only):
                        return False
                    made = await self._made(batch.rows[begin : begin + size], only)
                    for number, record in enumerate(made, begin):
                        if filling.is_full and (not only or filling.counts(record)):
                            return False
                        filling.take(record, batch.places[number])
                if batch.last:
                    return True
                filling.place = batch.end or filling.place
                if filling.is_enough or (filling.is_full and not batch.rows and not only):
                    return False
        return True

    async def sample(self, ask: Ask, most: int) -> list[Any]:
        """The first rows; where they are no whole records, the records of the first few.

        One that cannot be read is left out; where none can, the AdapterError is raised.
        """
        rows = await self.pager.first(ask, most)
        if not self.has_details:
            return rows
        ids = [public_id for public_id in map(self._key.shown, rows[:most]) if public_id]
        answers = await for_each(self._answer, ids)
        errors = [answer for answer in answers if isinstance(answer, AdapterError)]
        if errors and len(errors) == len(answers):
            raise errors[0]
        return [answer for answer in answers if not isinstance(answer, AdapterError)]

    async def _answer(self, public_id: str) -> Any:
        """The JSON of a record, or the error of one that is not there or is none."""
        try:
            return await self._reader.answer(public_id)
        except (NotFound, BackendNonsense) as error:
            return error

    async def _made(self, rows: Sequence[Any], only: Only) -> list[Record | Trouble | None]:
        """Each row's record; None for what is not to be, a trouble for what has no usable id."""
        if self.has_details:
            return await for_each(lambda row: self._detailed(row, only), rows)
        return [self._record(row, only) for row in rows]

    def _record(self, row: Any, only: Only) -> Record | Trouble | None:
        if only and not isinstance(row, dict):  # it has no value to be judged by
            return None
        try:
            record = self._reader.made(row, only)
        except NotFound:
            return None
        except BackendNonsense:  # one bad row fails no list
            bad = self._doubtful if isinstance(row, dict) else self._nameless
            self._report(bad)
            return bad
        return self._nameless if record is None else record

    async def _detailed(self, row: Any, only: Only) -> Record | Trouble | None:
        public_id = self._key.shown(row)
        if public_id is None:
            if only:  # nor has this one
                return None
            self._report(self._nameless)
            return self._nameless
        try:
            return await self._reader.one(public_id, only)
        except NotFound:  # gone since the list was made
            return None


class _Filling:
    """A page that is being filled, row by row, until it is full or enough was looked at."""

    def __init__(self, limit: int, most: int, patience: float, filters: Sequence[Filter]) -> None:
        self._limit, self._most, self._filters = limit, most, filters
        self._clock = asyncio.get_running_loop().time
        self._until = self._clock() + patience
        self._looked = 0
        self.records: list[Record] = []
        self.skipped = 0
        self.place: str | None = None

    @property
    def is_full(self) -> bool:
        return len(self.records) + self.skipped >= self._limit

    @property
    def is_enough(self) -> bool:
        """Whether this is enough for one call: the page may be short, the next goes on."""
        late = self.place is not None and self._clock() >= self._until
        return self._looked >= self._most or late

    def counts(self, made: Record | Trouble | None) -> bool:
        """Whether a page tells of it: as a record, or as one that is left out."""
        return isinstance(made, Trouble) or (made is not None and fits(made, self._filters))

    def take(self, made: Record | Trouble | None, place: str) -> None:
        self._looked += 1
        self.place = place
        if isinstance(made, Trouble):
            self.skipped += 1
        elif made is not None and self.counts(made):
            self.records.append(made)
