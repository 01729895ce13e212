"""Filters of a list: which of them the backend can serve, and the same again on what came."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.base import BackendNonsense, Condition, FieldShape, Filter, Only, Record
from adapters.mapping.checker import SEARCH
from adapters.mapping.conversion import Conversion
from adapters.mapping.models import FilterParameter, ListCall, ResourceMap, ValueSource
from adapters.rest.templates import Templates, Values, text_of
from adapters.values.convert import all_begin


class NothingFits(Exception):
    """No record of the backend can have the value that is asked for."""


class FilterParams:
    """The parameters that a list call takes."""

    def __init__(
        self, resource: ResourceMap, shapes: Mapping[str, FieldShape], templates: Templates
    ) -> None:
        call = resource.list_ or ListCall(get="/")
        self._by = call.filters
        self._in_path = frozenset(name for name in call.names if name in shapes)
        self._templates = templates
        self._conversions = {
            name: _conversion(call.filters.get(name), resource.fields.get(name), shapes[name])
            for name in shapes
            if name in resource.fields
        }
        self._shapes = shapes
        searched = call.filters[SEARCH].fields or () if SEARCH in call.filters else ()
        self.names = frozenset(call.sift) | self._in_path | frozenset(searched)
        self.names |= {name for name in call.filters if name != SEARCH}
        self._sifted = frozenset(call.sift) | {"id"}
        self._is_listed = resource.list_ is not None

    @property
    def needs_values(self) -> bool:
        """Whether the list cannot be asked for without a filter."""
        return bool(self._in_path)

    def params(self, filters: Iterable[Filter]) -> list[tuple[str, Any]]:
        """What is asked of the backend; what it cannot serve is left to `fits`."""
        return [pair for each in filters for pair in self._pairs(each)]

    def narrowed(self, filters: Sequence[Filter], only: Only) -> list[Filter]:
        """The filters, and those conditions that the backend has a parameter for."""
        asked = {name for each in filters for name in each.fields}
        more = (each for each in map(self._as_filter, only) if each is not None)
        return [*filters, *(each for each in more if each.fields[0] not in asked)]

    def narrows(self, condition: Condition) -> bool:
        """Whether lists can leave out what it does: asked for, or sifted."""
        if not self._is_listed or condition.field in self._sifted:
            return True
        return self._as_filter(condition) is not None

    def _as_filter(self, condition: Condition) -> Filter | None:
        """A condition as what one parameter can say, or more than that; what comes is judged."""
        name = condition.field
        if name not in self._by or name == SEARCH or name in self._in_path:
            return None
        if self._shapes[name].format == "date-time":
            bounds = condition.test in ("min", "above")
            return Filter("since", (name,), condition.value) if bounds else None
        is_one = condition.test == "in" and len(condition.value) == 1
        return Filter("equals", (name,), condition.value[0]) if is_one else None

    def in_path(self, filters: Iterable[Filter]) -> Values:
        """The values in the call's path; BackendNonsense where one that it needs is not asked."""
        given = {each.fields[0]: each.value for each in filters if each.match == "equals"}
        if not self._in_path <= given.keys():
            needed = ", ".join(sorted(self._in_path))
            raise BackendNonsense(f"this list can only be asked for by {needed}")
        return Values(given)

    def _pairs(self, wanted: Filter) -> Iterable[tuple[str, Any]]:
        if wanted.match == SEARCH:
            by = self._by.get(SEARCH)
            if by is not None and set(wanted.fields) <= set(by.fields or ()):
                yield by.query, wanted.value
            return
        name = wanted.fields[0]
        by = self._by.get(name)
        if by is None or name in self._in_path:
            return
        raw = self._raw(name, wanted)
        if raw is not None:
            yield by.query, raw if by.form is None else by.form.format(text_of(raw))

    def _raw(self, name: str, wanted: Filter) -> Any:
        """The value as the backend writes it; None where one parameter cannot say it."""
        shape = self._shapes[name]
        conversion = self._conversions[name]
        converter: Any = self._templates.converters.make(conversion, shape)
        if wanted.match == "since":
            return converter.since(wanted.value)
        if shape.format == "boolean" and conversion.yes is None:
            return wanted.value
        raw = converter.encode(wanted.value)
        if not raw:
            raise NothingFits
        # a code with several spellings is more than one parameter can ask for
        return raw[0] if len(raw) == 1 or shape.format == "uuid" else None


def _conversion(
    by: FilterParameter | None, found: ValueSource | None, shape: FieldShape
) -> Conversion:
    """The filter's own way of writing, where it has one, else the field's."""
    if by is not None and by.model_fields_set - {"query", "form", "fields"}:
        return by
    return found if found is not None else Conversion()


def fits(record: Record, filters: Iterable[Filter]) -> bool:
    """Whether a record is what was asked for, whatever the backend made of the parameters."""
    return all(_fits(record, each) for each in filters)


def _fits(record: Record, wanted: Filter) -> bool:
    if wanted.match == SEARCH:
        return all_begin(wanted.value, (record[name] for name in wanted.fields))
    found = record[wanted.fields[0]]
    if wanted.match == "since":
        return found is not None and datetime.fromisoformat(found) >= wanted.value
    return bool(found == wanted.value)
