"""Reads one resource by calls: a record by its id, or a page made of the backend's pages."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from adapters import base
from adapters.base import BackendNonsense, Filter, NotFound, Only, Page, Record
from adapters.mapped.records import UNUSABLE, Barren, Fields, Fits, ResourceReader
from adapters.mapping.checker import SEARCH
from adapters.mapping.converters import Converters
from adapters.mapping.models import FilterParameter, ListCall, MappingFile, ResourceMap
from adapters.mapping.paths import path
from adapters.rest.backend import AT_ONCE, TO_ONE, Ask, Backend, for_each
from adapters.rest.client import Client
from adapters.rest.joins import Failure, Failures, Joins, is_known
from adapters.rest.login import LoggedOut
from adapters.rest.paging import MOST_ROWS, Pager, PlaceShelf
from adapters.rest.records import JsonRows, own_id
from adapters.rest.requests import Templates, TemplateValues, text_of
from adapters.values.convert import Unreadable, all_begin
from adapters.values.times import instant_text, whole_second

# The most rows that one call looks at where each costs a call; then its page ends.
MOST_DETAILS = 400
# The share of a read's time after which a page ends with the records that it has.
ENOUGH = 0.6


class Components:
    """What all calls of the adapter are made with; one read may take `timeout` seconds.

    `tokens` asks for tokens that are to be had at another address.
    """

    def __init__(
        self,
        mapping: MappingFile,
        options: base.AdapterOptions,
        client: Client,
        tokens: Client | None = None,
    ) -> None:
        self.shapes, self.report, self.timeout = options.shapes, options.report, options.timeout
        self.converters = Converters(
            ZoneInfo(mapping.zone),
            options.secret,
            kinds={name: resource.key.ids for name, resource in mapping.resources.items()},
            table=options.ids,
            one_spelling=True,
        )
        omits = mapping.backend.nulls == "omit"
        self.templates = Templates(self.converters, options.credentials, omits=omits)
        self.backend = Backend(mapping.backend, self.templates, client, tokens)
        self.places = PlaceShelf(options.secret, options.ids)


class NothingFits(Exception):
    """No record of the backend can have the value that is asked for."""


class ListCalls:
    """The calls of a resource's list, and the parameters that they take.

    `names` are the fields that it can be filtered by, `needed` those that it cannot be asked for
    without. `id` reads the public id of a row.
    """

    def __init__(
        self, call: ListCall, resource: ResourceMap, rows: JsonRows, parts: Components
    ) -> None:
        self._parts, self._shapes = parts, rows.shapes
        self._fields, self.has_details = resource.fields, call.details
        self._call = parts.templates.call(call, self._shapes)
        self.id = own_id(call.key or resource.key, rows.ids)
        self.pager = Pager(call.page, path(call.items), self.id.plain, self._call.label)
        self.needed = frozenset(name for name in call.names if name in self._shapes)
        self._by = {name: by for name, by in call.filters.items() if name not in self.needed}
        self._writers = {
            name: self._writer(name, by) for name, by in self._by.items() if name != SEARCH
        }
        searched = call.filters[SEARCH].fields or () if SEARCH in call.filters else ()
        names = {*call.filters, *call.sift, *self.needed, *searched}
        self.names, self.sifted = frozenset(names - {SEARCH}), {*call.sift, "id"}

    def filter_of(self, condition: base.Condition) -> Filter | None:
        """Returns a filter that passes all records of a condition, maybe more; None without one."""
        name = condition.field
        if name not in self._by or name == SEARCH:
            return None
        if self._shapes[name].format == "date-time":
            bounds = condition.test in ("min", "above")
            return Filter("since", (name,), condition.value) if bounds else None
        is_one = condition.test == "in" and len(condition.value) == 1
        return Filter("equals", (name,), condition.value[0]) if is_one else None

    def asking(self, filters: Sequence[Filter], only: Only = ()) -> tuple[Ask, bool]:
        """Returns what asks for pages of what the filters let through; the rest is left to `fits`.

        With it comes whether the backend is asked by all of them, and so gives hardly another row.
        Raises BackendNonsense where a value that the path needs is not given, NothingFits or
        NotFound where no record can have one that is.
        """
        given: dict[str, Any] = {}
        if self.needed:
            given = {
                chosen.fields[0]: chosen.value for chosen in filters if chosen.match == "equals"
            }
            if not self.needed <= given.keys():
                needed = ", ".join(sorted(self.needed))
                raise BackendNonsense(f"this list can only be asked for by {needed}")
            filters = [
                chosen
                for chosen in filters
                if chosen.match == SEARCH or chosen.fields[0] not in self.needed
            ]
        params = [self._param(chosen) for chosen in filters]
        is_all = not only and all(value is not None for _, value in params)
        searched = self._by.get(SEARCH)
        if searched is not None and searched.words == "one":  # others of them are sifted here
            is_all = is_all and all(chosen.match != SEARCH for chosen in filters)
        return self._parts.backend.pages(self._call, TemplateValues(given), params), is_all

    def _param(self, chosen: Filter) -> tuple[str, Any]:
        """Returns a parameter and its value as the backend writes it; None if it cannot say it."""
        if chosen.match == SEARCH:
            by = self._by.get(SEARCH)
            if by is None or not by.fields or not set(chosen.fields).issubset(by.fields):
                return "", None
            return by.query, _words(by, chosen.value)
        name = chosen.fields[0]
        if name not in self._writers:
            return "", None
        return self._by[name].query, self._writers[name](chosen)

    def _writer(self, name: str, by: FilterParameter) -> Callable[[Filter], Any]:
        """Returns what writes the value of a filter by that field as the backend does, or None."""
        shape = self._shapes[name]
        conversion = by if by.model_fields_set - {"query", "form", "fields"} else self._fields[name]
        converter: Any = self._parts.converters.make(conversion, shape)
        is_plain = shape.format == "boolean" and conversion.yes is None

        def write(chosen: Filter) -> Any:
            if chosen.match == "since":
                raw = converter.since(chosen.value)
            elif is_plain:
                raw = chosen.value
            else:
                spellings = converter.encode(chosen.value)
                if not spellings:
                    raise NothingFits
                # a code with several spellings is more than one parameter can ask for
                raw = spellings[0] if len(spellings) == 1 or shape.format == "uuid" else None
            return raw if raw is None or by.form is None else by.form.format(text_of(raw))

        return write


class SampledRecords(NamedTuple):
    """Some records as the backend gives them, and the calls that failed for others."""

    records: list[Any]
    failures: list[Failure]


class ResourceCalls(ResourceReader):
    """Reads one resource by calls over HTTP."""

    exact = True

    def __init__(self, name: str, resource: ResourceMap, parts: Components) -> None:
        shapes, self._parts, self.name = parts.shapes[name], parts, name
        self.rows: JsonRows = JsonRows(name, resource, shapes, parts.converters, parts.report)
        self.key = own_id(resource.key, self.rows.ids)
        self._one = self._list = None
        if resource.one is not None:
            self._place = ("one", resource.one.method)
            of_one = {"id": base.FieldShape(format="uuid", refers=name)}
            self._one = parts.templates.call(resource.one, of_one)
            self._item = path(resource.one.item)
        if resource.list_ is not None:
            self._list = ListCalls(resource.list_, resource, self.rows, parts)
        self.filterable = frozenset() if self._list is None else self._list.names
        self._has_details = self._list is not None and self._list.has_details
        self._joins = Joins(resource, parts.templates, parts.backend)
        costly = self._has_details or self._joins.of_each
        self.most = MOST_DETAILS if costly else MOST_ROWS
        self._at_once = AT_ONCE if costly else 0
        self.patience = parts.timeout * ENOUGH

    def refusal(self, condition: base.Condition) -> str | None:
        """Returns why lists cannot leave out what a condition does; None where they can."""
        text, call = self.rows.refusal(condition), self._list
        if text is not None or call is None or condition.field in call.sifted:
            return text
        if call.filter_of(condition) is not None:
            return None
        return (
            f"{self.name}.{condition.field} is no field that lists can leave records out by: name"
            " it in `sift`, or leave it out of `only`"
        )

    @property
    def _listing(self) -> ListCalls:
        if self._list is None:
            raise BackendNonsense(f"the mapping has no list of {self.name}")
        return self._list

    async def row(
        self,
        public_id: str,
        only: Only,
        fields: Fields = None,
        failures: Failures | None = None,
    ) -> Any:
        """Returns the row from its own call, or out of the list where there is none."""
        if self._one is None:
            rows = await self._listed([public_id], only)
            if public_id not in rows:
                raise self.rows.missing()
            return (await self._joins.added([rows[public_id]], fields, only, failures))[0]
        request = self._one.request(TemplateValues({"id": public_id}))
        answer = await self._parts.backend.read(request, TO_ONE)
        try:
            record = self._item(answer.data)
        except Unreadable as error:
            raise BackendNonsense(f"{request.label}: there is no record in the answer") from error
        if record is None or record == []:
            raise NotFound(f"{request.label}: there is none")
        return (await self._joins.added([record], fields, only, failures))[0]

    async def joined(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Returns rows of a list with what the joins tell of them."""
        return await self._joins.added(rows)

    async def rows_of(self, public_ids: Collection[str]) -> Mapping[str, Any]:
        """Asks for each record, or looks for all of them in the list."""
        rows: dict[str, Any] = {}
        if self._one is None:
            try:
                found = await self._listed(public_ids)
                joined = await self._joins.added(list(found.values()), failures=Failures())
                return dict(zip(found, joined, strict=True))
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
        """Returns the records' rows that are in the list, which is read once, as far as needed.

        They lack what the joins tell; None where nobody can say whether there is such a record. A
        hidden one is looked for to the end, as one that is not there.
        """
        sought = {name for name in public_ids if self.key.converter.encode(name)}
        rows: dict[str, Any] = {}
        if not sought:
            return rows
        after: str | None = None
        (ask, _), pager = self._listing.asking(()), self._listing.pager
        while sought.difference(rows):
            with suppress(Barren):  # the list may go on behind it
                async with aclosing(pager.batches(ask, after, MOST_ROWS)) as batches:
                    async for batch in batches:
                        after = batch.end
                        rows |= await self._found(batch.rows, sought, only)
                        if batch.last or rows.keys() == sought:
                            break
                break
        return rows

    async def _found(
        self, rows: Sequence[Any], sought: Collection[str], only: Only
    ) -> dict[str, Any]:
        """Returns those of a list's rows that are sought, as `_listed` does."""
        joined, found = rows, dict[str, Any]()
        if only or self.rows.is_selective:  # conditions on what is joined
            joined = await self._joins.added(rows, frozenset(), only, Failures())
        for row, plain in zip(joined, rows, strict=True):
            shown = self.rows.id_of(row) or ""
            if shown in sought and (exists := self.judged(row, only)) is not False:
                found[shown] = plain if exists else None
        return found

    async def page(
        self,
        filters: Sequence[Filter],
        limit: int,
        after: str | None,
        only: Only = (),
        fields: Fields = None,
    ) -> Page:
        listing, places = self._listing, self._parts.places
        wanted = filters
        if only:
            named = {name for chosen in filters for name in chosen.fields}
            conditions = filter(None, map(listing.filter_of, only))
            wanted = [*filters, *(more for more in conditions if more.fields[0] not in named)]
        place = await places.whole(after)
        try:
            ask, is_all = listing.asking(wanted, only)
        except (NothingFits, NotFound):
            return Page(records=[])
        if wanted and fields is not None:
            fields = fields.union(*[chosen.fields for chosen in wanted])
        failures = Failures()
        enough = limit + self.rows.is_selective  # one of them may be no record
        page = await self.filled(
            listing.pager.batches(ask, place, enough if is_all else MOST_ROWS),
            limit,
            only,
            fields,
            fitting(wanted) if wanted else None,
            self._at_once,
            partial(self._made, failures),
        )
        failures.judge()
        after = await places.short(page.after)
        return page if after == page.after else replace(page, after=after)

    def listing(self, filters: Sequence[Filter] = ()) -> tuple[Pager, Ask] | None:
        """Returns the list's pager and what asks for it; None where that needs an id."""
        if self._list is None or (self._list.needed and not filters):
            return None
        return self._list.pager, self._list.asking(filters)[0]

    async def sample(self, most: int = AT_ONCE) -> SampledRecords:
        """Returns some records as the backend gives them; none where the list needs an id.

        Unreadable ones are left out. Where none can be read, the AdapterError is raised.
        """
        listing = self.listing()
        if listing is None:
            return SampledRecords([], [])
        rows = await listing[0].first(listing[1], most)
        if not self._has_details:  # else they are no whole records
            failures = Failures()
            rows = rows[:most] if self._at_once else rows
            joined = await self._joins.added(rows, failures=failures)
            return SampledRecords([row for row in joined if is_known(row)], failures)

        async def answer(public_id: str) -> Any:
            try:
                return await self.row(public_id, ())
            except (NotFound, BackendNonsense) as error:
                return error

        records, answers = await self._looked_at(rows[:most], answer)
        others = rows[most:][-most:]
        if others and not records and all(isinstance(it, NotFound) for it in answers):
            # those that come first may be gone; the last ones tell whether there are any
            records, answers = await self._looked_at(others, answer)
        if answers and not records:
            raise answers[0]
        errors = (it for it in answers if isinstance(it, BackendNonsense))
        first = [Failure(self._place, error, False) for error in islice(errors, 1)]
        return SampledRecords(records, first)

    async def _looked_at(
        self, rows: Sequence[Any], answer: Callable[[str], Awaitable[Any]]
    ) -> tuple[list[Any], list[Any]]:
        """Returns the records that could be read, and all answers."""
        shown = map(self._listing.id.shown, rows)
        answers = await for_each(answer, filter(None, shown))
        return [it for it in answers if not isinstance(it, base.AdapterError)], answers

    async def _made(
        self, failures: Failures, rows: Sequence[Any], only: Only, fields: Fields
    ) -> Sequence[Record | None]:
        """Asks for each record by a call of its own, where the list has no whole ones."""
        if not self._has_details:
            joined = await self._joins.added(rows, fields, only, failures)
            return await self.made(joined, only, fields)
        return await for_each(lambda row: self._detailed(row, only, fields, failures), rows)

    def judged(self, row: Any, only: Only) -> bool | None:
        where = ("no id", "id")
        try:
            if self.rows.exists(row, only):
                return True
            unclear = self._joins.unclear(row, only)
            others = tuple(condition for condition in only if condition not in unclear)
            if not unclear or not self.rows.exists(row, others):
                return False
            where = ("unreadable", unclear[0].field)
        except BackendNonsense:  # one bad row fails no list
            if isinstance(row, dict):
                where = ("unreadable", "where")
        self._unusable(*where)
        return None

    async def _detailed(
        self, row: Any, only: Only, fields: Fields, failures: Failures
    ) -> Record | None:
        public_id = self._listing.id.shown(row)
        if public_id is None:  # with conditions it has no value to be judged by
            return None if only else self._unusable("no id", "id")
        try:
            row = await self.row(public_id, only, fields, failures)
            failures.answered.add(self._place)
            if (exists := self.judged(row, only)) is None:
                return UNUSABLE
            return self.asked(row, public_id, only, fields) if exists else None
        except NotFound:  # gone since the list was made
            failures.answered.add(self._place)
            return None
        except LoggedOut:
            raise
        except BackendNonsense as error:  # one bad row fails no list
            failures.append(Failure(self._place, error, False))
            return self._unusable("unreadable", "one", public_id)

    def _unusable(self, kind: str, field: str, record: str = "") -> Record:
        self.rows.report(base.Trouble(kind, self.name, field, record))
        return UNUSABLE


def _words(by: FilterParameter, text: str) -> str | list[str]:
    """Returns the words of a search as the backend takes them."""
    form, words = by.form or "{}", text.split()
    if by.words == "each":
        return [form.format(word) for word in words]
    return form.format(max(words, key=len, default=text) if by.words == "one" else text)


def fitting(filters: Sequence[Filter]) -> Fits:
    """Returns whether records are what was asked for, whatever the backend made of parameters."""
    each = [_fits(chosen) for chosen in filters]
    return each[0] if len(each) == 1 else lambda records: all(fits(records) for fits in each)


def _fits(chosen: Filter) -> Fits:
    name, value = chosen.fields[0], chosen.value
    if chosen.match == SEARCH:
        names = chosen.fields
        return lambda records: all(
            all_begin(value, (record[name] for name in names)) for record in records
        )
    if chosen.match == "since":
        # in their JSON form, times sort as texts; an empty one is before all others
        since = instant_text(whole_second(value.astimezone(UTC)))
        return lambda records: (
            min([record[name] or "" for record in records], default=since) >= since
        )
    return lambda records: [record[name] for record in records].count(value) == len(records)
