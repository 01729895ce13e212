"""Checks a mapping file of a JSON backend as a whole: every problem at once, at its line."""

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as Group
from pathlib import Path

from adapters.base import FieldShape, Shapes
from adapters.documents.document import Document, Place
from adapters.documents.problems import Problem, did_you_mean
from adapters.mapping.conversion import DRAFT_FIELDS, Conversion, ConversionChecker
from adapters.mapping.loading import fields_checked, lacking, load, no_list
from adapters.rest.availability import GIVEN, TIME
from adapters.rest.calls import CallChecker
from adapters.rest.filters import SEARCH
from adapters.rest.mapping import (
    Booking,
    FilterBy,
    Found,
    HoursCall,
    ListCall,
    Mapping,
    Paging,
    ResourceMap,
    Times,
)

# What a booking cannot do without: to know whose animal it is, and to know itself again.
NEEDED = {
    "patients": ("clientId",),
    "appointments": ("vetId", "patientId", "scheduledAt", "status"),
}
# Read by their ids alone.
UNLISTED = frozenset({"appointments", "consultations"})
_TEXT = FieldShape(format="text")
_PAGING = {
    "offset": (("offset",), {"limit", "total"}),
    "page": (("page",), {"size", "first", "total"}),
    "cursor": (("cursor", "next"), {"limit", "size"}),
    "link": ((), {"next", "header", "limit", "size"}),
}


def load_mapping(path: Path, shapes: Shapes, secrets: Iterable[str]) -> tuple[Mapping, Document]:
    """The mapping at `path`, and where all of it stands; DocumentErrors with every problem.

    `secrets` are the names of those that the settings give.
    """
    given = frozenset(secrets)
    return load(
        path,
        Mapping,
        lambda found, made: _Checker(found, shapes, made, given).problems(),
        adapter="rest",
    )


class _Checker:
    """What the models cannot see: names of resources, fields, values, and converters."""

    def __init__(
        self, document: Document, shapes: Shapes, mapping: Mapping, secrets: frozenset[str]
    ) -> None:
        self.document = document
        self.shapes = shapes
        self.mapping = mapping
        self.conversions = ConversionChecker(document, shapes)
        self.calls = CallChecker(document, self.conversions, secrets)

    def problems(self) -> Iterator[Problem]:
        yield from self._backend()
        wanted = [name for name in self.shapes if name != "slots"]
        for name, resource in self.mapping.resources.items():
            place: Place = ("resources", name)
            if name not in wanted:
                yield self._at_key(place, f"{name} is no resource{did_you_mean(name, wanted)}")
            else:
                yield from self._resource(place, name, resource)
        for name in wanted:
            if name not in self.mapping.resources:
                text = f"{name} is missing: every resource needs its calls"
                yield self._at_key(("resources",), text)
        yield from self._diary()
        yield from self._booking(self.mapping.booking)
        yield from self._needed()

    def _at_key(self, place: Place, text: str) -> Problem:
        return self.document.problem(place, text, at_key=True)

    def _backend(self) -> Iterator[Problem]:
        backend = self.mapping.backend
        for name, tree in backend.headers.items():
            yield from self.calls.tree(("backend", "headers", name), tree, {}, ())
        for number, name in enumerate(backend.basic or ()):
            yield from self.calls.secret(("backend", "basic", number), name)
        if backend.login is not None:
            yield from self.calls.call(("backend", "login"), backend.login, {}, ())
            if backend.login.seconds is None and backend.login.lifetime is None:
                text = "say how long the token lives: seconds, a path, or lifetime, a number"
                yield self._at_key(("backend", "login"), text)

    def _resource(self, place: Place, name: str, resource: ResourceMap) -> Iterator[Problem]:
        yield from self._key((*place, "key"), resource.key, name)
        yield from self._fields(place, name, "", resource.fields)
        if resource.one is not None:
            shapes = {"id": FieldShape(format="uuid", refers=name)}
            yield from self.calls.call((*place, "one"), resource.one, shapes, ())
            yield from self.calls.only_get((*place, "one"), resource.one)
        if resource.list_ is not None:
            yield from self._list((*place, "list"), name, resource, resource.list_)
        elif name not in UNLISTED:
            text = f"list is missing, such as list: /{name}; {name} cannot be listed without it"
            yield self._at_key(place, text)
        for each, nested in resource.lists.items():
            inner = (*place, "lists", each)
            prefix = f"{each}[]."
            if not any(path.startswith(prefix) for path in self.shapes[name]):
                yield self._at_key(inner, no_list(name, each, self.shapes[name]))
                continue
            if nested.key is not None:
                yield from self._key((*inner, "key"), nested.key, name)
            elif f"{prefix}id" in self.shapes[name]:
                text = f"key is missing, such as key: id; each of {each} has one"
                yield self._at_key(inner, text)
            yield from self._fields(inner, name, prefix, nested.fields)

    def _key(self, place: Place, key: Found, resource: str) -> Iterator[Problem]:
        shape = FieldShape(format="uuid", refers=resource)
        yield from self.conversions.problems(place, key, shape)

    def _fields(
        self, place: Place, resource: str, prefix: str, fields: Group[str, Found]
    ) -> Iterator[Problem]:
        own, check = self.shapes[resource], self.conversions.problems
        yield from fields_checked(self.document, place, own, prefix, fields, check)

    def _list(
        self, place: Place, name: str, resource: ResourceMap, call: ListCall
    ) -> Iterator[Problem]:
        yield from self.calls.call(place, call, self.shapes[name], ())
        yield from self.calls.only_get(place, call)
        if call.page is not None:
            yield from self._page((*place, "page"), call.page)
        if call.key is not None:
            yield from self._key((*place, "key"), call.key, name)
        if call.details and resource.one is None:
            yield self._at_key((*place, "details"), "details are read with one, which is missing")
        for field, by in call.filters.items():
            yield from self._filter(place, field, by, self.shapes[name], resource)
        for number, field in enumerate(call.sift):
            yield from self._filled((*place, "sift", number), field, resource)

    def _filter(
        self,
        place: Place,
        field: str,
        by: FilterBy,
        shapes: Group[str, FieldShape],
        resource: ResourceMap,
    ) -> Iterator[Problem]:
        at = (*place, "filters", field)
        if field == SEARCH:
            if by.fields is None:
                yield self._at_key(at, "search needs fields: in which it looks for the words")
            for number, each in enumerate(by.fields or ()):
                yield from self._filled((*at, "fields", number), each, resource)
            return
        if by.fields is not None:
            yield self._at_key((*at, "fields"), "fields goes with search alone")
        yield from self._filled(at, field, resource)
        if _own(by) and field in shapes:
            yield from self.conversions.problems(at, by, shapes[field])

    def _filled(self, place: Place, field: str, resource: ResourceMap) -> Iterator[Problem]:
        if field not in resource.fields:
            near = did_you_mean(field, resource.fields)
            yield self._at_key(place, f"{field} is no field that this mapping fills{near}")

    def _page(self, place: Place, page: Paging) -> Iterator[Problem]:
        needed, may = _PAGING[page.by]
        for name in needed:
            if getattr(page, name) is None:
                yield self._at_key(place, f"{name} is missing: by: {page.by} needs it")
        if page.by == "link" and (page.next is None) != page.header:
            yield self._at_key(place, "by: link needs either next, a path, or header: true")
        for name in sorted(page.model_fields_set - {"by", "most", *needed, *may}):
            yield self._at_key((*place, name), f"{name} does not go with by: {page.by}")

    def _diary(self) -> Iterator[Problem]:
        diary = self.mapping.diary
        for number, hours in enumerate(diary.hours):
            if isinstance(hours, HoursCall):
                place: Place = ("diary", "hours", number)
                yield from self.calls.call(place, hours, {"vet": GIVEN["vet"]}, ())
                yield from self._whose(place, hours)
                yield from self.conversions.problems((*place, "weekday"), hours.weekday, _TEXT)
        for name, sources in (("free", diary.free), ("busy", diary.busy)):
            for number, times in enumerate(sources):
                yield from self._times(("diary", name, number), times)
        if diary.busy and not any(times.key for times in diary.busy):
            text = "no source here has a key: name that of the appointment in the one that holds"
            text += " the bookings, so that a booking is told from what the desk writes"
            yield self._at_key(("diary", "busy"), text)

    def _times(self, place: Place, times: Times) -> Iterator[Problem]:
        yield from self.calls.call(place, times, GIVEN, ())
        yield from self._whose(place, times)
        yield from self.conversions.problems((*place, "start"), times.start, TIME)
        if times.end is not None:
            yield from self.conversions.problems((*place, "end"), times.end, TIME)
        if times.key is not None:
            yield from self._key((*place, "key"), times.key, "appointments")
        if times.page is not None:
            yield from self._page((*place, "page"), times.page)
            if times.page.by == "link":
                yield self._at_key((*place, "page"), "by: link is not possible here")

    def _whose(self, place: Place, call: HoursCall | Times) -> Iterator[Problem]:
        if call.vet is None and "vet" not in call.names:
            text = "vet is missing: it must be known whose a row is, as a parameter may be ignored"
            yield self._at_key(place, text)
        if call.vet is not None:
            yield from self.conversions.problems((*place, "vet"), call.vet, GIVEN["vet"])
        yield from self.calls.only_get(place, call)

    def _booking(self, booking: Booking) -> Iterator[Problem]:
        made: list[str] = []
        for number, step in enumerate(booking.calls):
            yield from self.calls.call(("booking", "calls", number), step, DRAFT_FIELDS, made)
            made += step.keep
        if all(step.get is not None for step in booking.calls):
            text = "a get is a read, which may be sent twice: what books must be another method"
            yield self._at_key(("booking", "calls"), text)
        if booking.appointment not in made:
            near = did_you_mean(booking.appointment, made)
            text = f"{booking.appointment} is nothing that a call keeps{near}"
            yield self.document.problem(("booking", "appointment"), text)
        yield from self.calls.call(("booking", "find"), booking.find, DRAFT_FIELDS, ())
        yield from self.calls.only_get(("booking", "find"), booking.find)
        if booking.find.page is not None:
            yield from self._page(("booking", "find", "page"), booking.find.page)
        if booking.cancel is not None:
            yield from self.calls.call(("booking", "cancel"), booking.cancel, DRAFT_FIELDS, made)

    def _needed(self) -> Iterator[Problem]:
        kept = self.mapping.booking.reference is not None
        yield from lacking(self.document, NEEDED, self.mapping.resources, keeps_reference=kept)


def _own(conversion: Conversion) -> bool:
    return bool(conversion.model_fields_set - {"query", "form", "fields"})
