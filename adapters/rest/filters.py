"""Filters of a list: which of them the backend can serve, and the same again on what came."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.base import BackendNonsense, Condition, FieldShape, Filter, Only, Record
from adapters.mapping.checker import SEARCH
from adapters.mapping.conversion import Conversion
from adapters.mapping.converters import Converters
from adapters.mapping.models import ListCall, ResourceMap
from adapters.rest.requests import TemplateValues, text_of
from adapters.values.convert import all_begin


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
