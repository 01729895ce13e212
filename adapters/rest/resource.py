"""Reads one resource by calls: a record by its id, or a page of ours over pages and filters."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import datetime
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
from adapters.mapped.records import UNUSABLE, Barren, ResourceReader
from adapters.mapping.checker import SEARCH
from adapters.mapping.conversion import Conversion
from adapters.mapping.converters import Converters
from adapters.mapping.models import ListCall, MappingFile, ResourceMap
from adapters.mapping.paths import path
from adapters.rest.backend import AT_ONCE, Ask, Backend, for_each
from adapters.rest.client import Client
from adapters.rest.paging import MOST_ROWS, Pager, PlaceShelf
from adapters.rest.records import JsonRows, own_id
from adapters.rest.requests import Templates, TemplateValues, text_of
from adapters.values.convert import Unreadable, all_begin

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


class NothingFits(Exception):
    """No record of the backend can have the value that is asked for."""


class FilterParams:
    """The parameters that a list call takes; `names` are the fields it can be filtered by.

    `needs_values` where the list cannot be asked for without a filter.
    """

    def __init__(
        self, resource: ResourceMap, shapes: Mapping[str, FieldShape], converters: Converters
    ) -> None:
        call = resource.list_ or ListCall(get="/")
        self._shapes, self._converters = shapes, converters
        self._fields, self._is_listed = resource.fields, resource.list_ is not None
        self._in_path = frozenset(name for name in call.names if name in shapes)
        self.needs_values = bool(self._in_path)
        self._by = {name: by for name, by in call.filters.items() if name not in self._in_path}
        searched = call.filters[SEARCH].fields or () if SEARCH in call.filters else ()
        names = {*call.filters, *call.sift, *self._in_path, *searched} - {SEARCH}
        self.names = frozenset(names if self._is_listed else ())
        self._sifted = {*call.sift, "id"}

    def narrowed(self, filters: Sequence[Filter], only: Only) -> list[Filter]:
        """The filters, and those conditions that the backend has a parameter for."""
        asked = {name for wanted in filters for name in wanted.fields}
        more = map(self._as_filter, only)
        return [*filters, *(each for each in more if each and each.fields[0] not in asked)]

    def narrows(self, condition: Condition) -> bool:
        """Whether lists can leave out what it does: asked for, or sifted."""
        is_sifted = not self._is_listed or condition.field in self._sifted
        return is_sifted or self._as_filter(condition) is not None

    def _as_filter(self, condition: Condition) -> Filter | None:
        """A condition as what one parameter can say, or more than that; what comes is judged."""
        name = condition.field
        if name not in self._by or name == SEARCH:
            return None
        if self._shapes[name].format == "date-time":
            bounds = condition.test in ("min", "above")
            return Filter("since", (name,), condition.value) if bounds else None
        is_one = condition.test == "in" and len(condition.value) == 1
        return Filter("equals", (name,), condition.value[0]) if is_one else None

    def in_path(self, filters: Iterable[Filter]) -> TemplateValues:
        """The values in the call's path; BackendNonsense where one that it needs is not asked."""
        given = {wanted.fields[0]: wanted.value for wanted in filters if wanted.match == "equals"}
        if not self._in_path <= given.keys():
            needed = ", ".join(sorted(self._in_path))
            raise BackendNonsense(f"this list can only be asked for by {needed}")
        return TemplateValues(given)

    def params(self, filters: Iterable[Filter]) -> list[tuple[str, Any]]:
        """What is asked of the backend; what it cannot serve is left to `fits`.

        NothingFits where no record can have a value that is asked for.
        """
        params = []
        for wanted in filters:
            is_search = wanted.match == SEARCH
            by = self._by.get(SEARCH if is_search else wanted.fields[0])
            if by is None:
                continue
            if is_search:
                raw = wanted.value if set(wanted.fields) <= set(by.fields or ()) else None
            else:
                is_own = by.model_fields_set - {"query", "form", "fields"}
                raw = self._raw(wanted, by if is_own else self._fields[wanted.fields[0]])
                raw = raw if raw is None or by.form is None else by.form.format(text_of(raw))
            if raw is not None:
                params.append((by.query, raw))
        return params

    def _raw(self, wanted: Filter, conversion: Conversion) -> Any:
        """The value as the backend writes it; None where one parameter cannot say it."""
        shape = self._shapes[wanted.fields[0]]
        converter: Any = self._converters.make(conversion, shape)
        if wanted.match == "since":
            return converter.since(wanted.value)
        if shape.format == "boolean" and conversion.yes is None:
            return wanted.value
        raw = converter.encode(wanted.value)
        if not raw:
            raise NothingFits
        # a code with several spellings is more than one parameter can ask for
        return raw[0] if len(raw) == 1 or shape.format == "uuid" else None


class ResourceCalls(ResourceReader):
    """Reads one resource by calls over HTTP."""

    exact = True

    def __init__(self, name: str, resource: ResourceMap, parts: Components) -> None:
        self._parts, self._shapes = parts, parts.shapes[name]
        plan = compile_resource(name, resource, self._shapes, parts.converters)
        self.rows: JsonRows = JsonRows(plan, parts.report, resource.lists)
        self.name = name
        self.key = self._list_id = own_id(resource.key, plan.ids)
        self._one = None
        if resource.one is not None:
            of_one = {"id": FieldShape(format="uuid", refers=name)}
            self._one = parts.templates.call(resource.one, of_one)
            self._item = path(resource.one.item)
        self._filters = FilterParams(resource, self._shapes, parts.converters)
        self.filterable = self._filters.names
        call = resource.list_
        self._has_details = call is not None and call.details
        self.most = MOST_DETAILS if self._has_details else MOST_ROWS
        self.patience = parts.timeout * ENOUGH
        self._pager: Pager | None = None
        if call is not None:
            self._endpoint = parts.templates.call(call, self._shapes)
            if call.key is not None:
                self._list_id = own_id(call.key, plan.ids)
            items, label = path(call.items), self._endpoint.label
            self._pager = Pager(call.page, items, self._list_id.plain, label)

    def refusal(self, condition: Condition) -> str | None:
        """Why its lists cannot leave out what a condition does; None where they can."""
        text = self.rows.refusal(condition, self._shapes)
        if text is not None or self._filters.narrows(condition):
            return text
        return (
            f"{self.name}.{condition.field} is no field that lists can leave records out by: name"
            " it in `sift`, or leave it out of `only`"
        )

    async def row(self, public_id: str, only: Only) -> Any:
        """From its own call, or where there is none out of the list."""
        if self._one is None:
            found = await self._listed([public_id], only)
            if public_id not in found:
                raise self.rows.missing()
            return found[public_id]
        request = self._one.request(TemplateValues({"id": public_id}))
        answer = await self._parts.backend.read(request, one=True)
        try:
            record = self._item(answer.data)
        except Unreadable as error:
            raise BackendNonsense(f"{request.label}: there is no record in the answer") from error
        if record is None or record == []:
            raise NotFound(f"{request.label}: there is none")
        return record

    async def rows_of(self, public_ids: Collection[str]) -> Mapping[str, Any]:
        """Each is asked for, or all are looked for in the list."""
        rows: dict[str, Any] = {}
        if self._one is None:
            try:
                return await self._listed(public_ids)
            except BackendNonsense:
                return dict.fromkeys(public_ids)

        async def ask(public_id: str) -> None:
            with suppress(NotFound):
                try:
                    row = await self.row(public_id, ())
                    if self.rows.exists(row):
                        rows[public_id] = row if self.rows.id_of(row) == public_id else None
                except BackendNonsense:
                    rows[public_id] = None

        await for_each(ask, public_ids)
        return rows

    async def _listed(self, public_ids: Collection[str], only: Only = ()) -> dict[str, Any]:
        """The rows of those records that are in the list: it is read once, as far as needed.

        A hidden record is looked for to the end, as one that is not there.
        """
        wanted = {name for name in public_ids if self.key.converter.encode(name)}
        found: dict[str, Any] = {}
        if not wanted:
            return found
        after: str | None = None
        way, ask = self._asking(())
        while wanted.difference(found):
            with suppress(Barren):  # the list may go on behind it
                async with aclosing(way.batches(ask, after, MOST_ROWS)) as batches:
                    async for batch in batches:
                        after = batch.end
                        for row in batch.rows:
                            shown = self.rows.id_of(row)
                            with suppress(BackendNonsense):
                                if shown in wanted and self.rows.exists(row, only):
                                    found[str(shown)] = row
                        if batch.last or found.keys() == wanted:
                            break
                break
        return found

    async def page(
        self, filters: Sequence[Filter], limit: int, after: str | None, only: Only = ()
    ) -> Page:
        """Up to `limit` records behind the place `after`, all as filters and conditions say."""
        places, asked = self._parts.places, self._filters.narrowed(filters, only)
        place = await places.whole(after)
        try:
            way, ask = self._asking(asked)
        except (NothingFits, NotFound):
            return Page(records=[])
        page = await self.filled(
            way.batches(ask, place, MOST_ROWS if asked or only else limit),
            limit,
            only,
            lambda record: fits(record, asked),
            AT_ONCE if self._has_details else 1,
        )
        return replace(page, after=await places.short(page.after))

    def _asking(self, filters: Sequence[Filter]) -> tuple[Pager, Ask]:
        if self._pager is None:
            raise BackendNonsense(f"the mapping has no list of {self.name}")
        values, params = self._filters.in_path(filters), self._filters.params(filters)
        return self._pager, self._parts.backend.pages(self._endpoint, values, params)

    def listing(self, filters: Sequence[Filter] = ()) -> tuple[Pager, Ask] | None:
        """The way through the list, and how to ask; None where there is none without an id."""
        if self._pager is None or (self._filters.needs_values and not filters):
            return None
        return self._asking(filters)

    async def sample(self, most: int = AT_ONCE) -> list[Any]:
        """Some records as the backend gives them; none where they cannot be had without an id.

        One that cannot be read is left out; where none can, the AdapterError is raised.
        """
        listing = self.listing()
        if listing is None:
            return []
        rows = await listing[0].first(listing[1], most)
        if not self._has_details:  # else they are no whole records
            return rows

        async def answer(public_id: str) -> Any:
            try:
                return await self.row(public_id, ())
            except (NotFound, BackendNonsense) as error:
                return error

        shown = map(self._list_id.shown, rows[:most])
        answers = await for_each(answer, filter(None, shown))
        found = [each for each in answers if not isinstance(each, AdapterError)]
        if answers and not found:
            raise answers[0]
        return found

    async def made(self, rows: Sequence[Any], only: Only) -> Sequence[Record | None]:
        """Each by a call of its own, where the list has no whole records."""
        if self._has_details:
            return await for_each(lambda row: self._detailed(row, only), rows)
        found: list[Record | None] = []
        for row in rows:
            try:
                found.append(self.record(row, only))
            except BackendNonsense:  # one bad row fails no list
                where = ("unreadable", "where") if isinstance(row, dict) else ("no id", "id")
                found.append(self._unusable(*where))
        return found

    async def _detailed(self, row: Any, only: Only) -> Record | None:
        public_id = self._list_id.shown(row)
        if public_id is None:  # with conditions it has no value to be judged by
            return None if only else self._unusable("no id", "id")
        try:
            return await self.one(public_id, only)
        except NotFound:  # gone since the list was made
            return None

    def _unusable(self, kind: str, field: str) -> Record:
        self.rows.report(Trouble(kind, self.name, field, ""))
        return UNUSABLE


def fits(record: Record, filters: Iterable[Filter]) -> bool:
    """Whether a record is what was asked for, whatever the backend made of the parameters."""
    return all(_fits(record, wanted) for wanted in filters)


def _fits(record: Record, wanted: Filter) -> bool:
    if wanted.match == SEARCH:
        return all_begin(wanted.value, (record[name] for name in wanted.fields))
    value = record[wanted.fields[0]]
    if wanted.match == "since":
        return value is not None and datetime.fromisoformat(value) >= wanted.value
    return bool(value == wanted.value)
