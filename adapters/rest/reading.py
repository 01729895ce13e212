"""Reads one resource: a record by its id, or a page of our own size over the backend's pages."""

from collections.abc import Collection, Sequence
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
)
from adapters.mapped.plan import compile_resource
from adapters.mapping.models import ResourceMap
from adapters.mapping.narrowing import misfit, unmapped
from adapters.mapping.paths import path
from adapters.rest.asking import asking
from adapters.rest.filters import FilterParams, NothingFits
from adapters.rest.paging import MOST_ROWS, Ask
from adapters.rest.records import RecordMaker
from adapters.rest.rows import Rows
from adapters.rest.templates import Values
from adapters.rest.together import AT_ONCE
from adapters.rest.toolbox import Toolbox
from adapters.values.convert import Unreadable


class ResourceReader:
    """Reads one resource."""

    def __init__(self, name: str, resource: ResourceMap, tools: Toolbox) -> None:
        shapes = tools.shapes[name]
        self.name = name
        plan = compile_resource(name, resource, shapes, tools.values.converters)
        self.maker = RecordMaker(plan, resource, tools.report)
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

    def listing(self, filters: Sequence[Filter] = ()) -> tuple[Rows, Ask] | None:
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

    def _asking(self, rows: Rows, filters: Sequence[Filter]) -> Ask:
        values, params = self._filters.in_path(filters), self._filters.params(filters)
        return asking(self._backend, rows.endpoint, values, params)
