"""Reads a resource's `only`: the conditions under which its records exist, for all or by level."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from adapters.documents.document import Place
from adapters.documents.problems import did_you_mean
from gateway.contract import fields as formats
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Field, Resource
from gateway.policy.reading.comparisons import BOUNDS, NOT, WORDS, comparisons, remedy
from gateway.policy.reading.notes import Notes
from gateway.policy.reading.slips import of_field
from gateway.policy.rows import (
    EVERY,
    Bound,
    RowFilter,
    Value,
    ValueTest,
    comparable,
    in_closed,
    is_ordered,
    shown,
)
from gateway.policy.rules import WHOLE, ResourceRules

ONLY = "only"
_unspaced = re.compile(rf"({'|'.join(WORDS)})\s*[:= ]\s*(\S+)").fullmatch
_LEVELS = {level.value: level for level in LEVELS}
_EXAMPLE = "such as only: {status: [ACTIVE]}"


def read_only(
    notes: Notes, resource: Resource, data: Any, rules: ResourceRules
) -> dict[AccessLevel, RowFilter]:
    """The rows of each level that has conditions; `rules` says what the levels see of fields."""
    return _Reading(notes, resource, rules).levels(data)


class _Reading:
    def __init__(self, notes: Notes, resource: Resource, rules: ResourceRules) -> None:
        self.notes = notes
        self.resource = resource
        self.rules = rules

    def levels(self, data: Any) -> dict[AccessLevel, RowFilter]:
        place = (self.resource.name, ONLY)
        if not isinstance(data, dict) or not data:
            text = f"{ONLY} must name fields and their values, {_EXAMPLE}"
            self.notes.say(place, "bad-only", text, at_key=True)
            return {}
        named = [name for name in data if name in _LEVELS]
        if not named:
            rows = self.rows(place, data, LEVELS[0])
            return dict.fromkeys(LEVELS, rows)
        found, before = {}, len(self.notes.problems)
        for name, conditions in data.items():
            if name in _LEVELS:
                found[_LEVELS[name]] = self.rows((*place, name), conditions, _LEVELS[name])
            else:
                self.stranger((*place, name))
        if len(self.notes.problems) == before:
            self.check_widening(found)
        return found

    def stranger(self, place: Place) -> None:
        """A field beside levels, or a misspelt level."""
        name = str(place[-1])
        hint = did_you_mean(name, _LEVELS)
        if self.conditionable(name):
            text = f"{name} stands beside levels: put it under those that it is for, or under all"
        else:
            text = f"{name} is not a level{hint}"
        self.notes.say(place, "bad-only", text, at_key=True)

    def rows(self, place: Place, data: Any, level: AccessLevel) -> RowFilter:
        """The conditions of a level, each of a field that it sees whole."""
        if not isinstance(data, dict) or not data:
            text = f"{place[-1]} must name fields and their values, such as {{status: [ACTIVE]}}"
            self.notes.say(place, "bad-only", text, at_key=True)
            return EVERY
        wanted: dict[str, ValueTest] = {}
        before = ""
        for name, condition in data.items():
            if condition is None and before and name not in self.resource.paths:
                text = f"several values stand in brackets: {before}: [ONE, {name}]"
                self.notes.say((*place, name), "bad-value", text, at_key=True)
                continue
            before = name
            field = self.field((*place, name), name, level)
            if field is not None:
                found = self.wanted((*place, name), field, condition)
                if found is not None:
                    wanted[name] = found
        return RowFilter(wanted)

    def conditionable(self, name: str) -> bool:
        """Whether a condition may be about the field: it has one plain value."""
        return name in self.resource.paths and "[]" not in name and not self.resource.at(name).many

    def field(self, place: Place, name: str, level: AccessLevel) -> Field | None:
        resource = self.resource
        if not self.conditionable(name):
            known = [path for path in resource.paths if self.conditionable(path)]
            code, slip = "unknown-field", of_field(resource, name)
            if name in resource.paths:
                text = f"{resource.name}.{name} stands in a list, of which no condition can be"
                code = "condition-on-list"
            elif slip is not None:
                code, text = slip.code, slip.text
            elif name.upper() in _LEVELS:
                code, text = "level-case", f"{name} is written {name.upper()}"
            else:
                text = f"{resource.name} has no field {name!r}{did_you_mean(name, known)}"
            self.notes.say(place, code, text, at_key=True)
            return None
        if name in self.rules.fields and self.rules.sight(name, level) is not WHOLE:
            first = self.rules.opened_at(name)
            text = (
                f"{resource.name}.{name} is not whole at {level}: a condition tells what the"
                f" field says; {f'it opens at {first}' if first else 'no level sees it'}"
            )
            self.notes.say(place, "condition-on-hidden", text, at_key=True)
            return None
        return resource.at(name)

    def wanted(self, place: Place, field: Field, data: Any) -> ValueTest | None:
        """What is let be of one field; None where it could not be read."""
        if isinstance(data, dict):
            found = self.words(place, field, data)
        else:
            values = self.values(place, field, data)
            found = ValueTest(allowed=values) if values else None
        return self.some(place, field, found)

    def some(self, place: Place, field: Field, found: ValueTest | None) -> ValueTest | None:
        """The same by its allowed values, where it lets anything be at all."""
        if found is None:
            return None
        found = in_closed(field, found)
        if found.is_empty:
            text = f"no value of {field.name} meets this, so that no record would exist"
            self.notes.say(place, "empty-condition", text, at_key=True)
            return None
        return found

    def words(self, place: Place, field: Field, data: Mapping[str, Any]) -> ValueTest | None:
        """`{not: [...]}`, `{min: 1, below: 9}`."""
        barred: frozenset[Value] | None = frozenset()
        bounds: dict[bool, Bound] = {}
        sound = bool(data)
        if not data:
            self.notes.say(
                place, "bad-condition", f"{field.name} needs a value, or {comparisons()}"
            )
        for word, given in data.items():
            at = (*place, word)
            if word == NOT:
                barred = self.values(at, field, given)
                sound = sound and barred is not None
            elif word in BOUNDS:
                sound = self.bound(at, field, given, bounds) and sound
            elif word.isdigit() and given is None:
                text = "a comma parts two values: a number is written with a point, such as 1.50"
                self.notes.say(at, "bad-value", text, at_key=True)
                sound = False
            elif given is None and (found := _unspaced(word)):
                text = f"a comparison is written {{{found[1]}: {found[2]}}}"
                self.notes.say(at, "bad-condition", text, at_key=True)
                sound = False
            else:
                hint = did_you_mean(str(word), WORDS)
                text = f"{word} is no comparison{hint}; write {comparisons()}"
                self.notes.say(at, "bad-condition", text, at_key=True)
                sound = False
        if not sound or barred is None:
            return None
        return ValueTest(barred=barred, low=bounds.get(True), high=bounds.get(False))

    def bound(self, place: Place, field: Field, given: Any, bounds: dict[bool, Bound]) -> bool:
        word = str(place[-1])
        is_low, included = BOUNDS[word]
        if not is_ordered(field):
            text = f"{field.name} has no order: write a list of values, or not: and a list"
            self.notes.say(place, "unordered-field", text, at_key=True)
            return False
        if is_low in bounds:
            other = "above" if word == "min" else "min" if word == "above" else ""
            other = other or ("below" if word == "max" else "max")
            text = f"{word} and {other} bound the same side; keep one of the two"
            self.notes.say(place, "bad-condition", text, at_key=True)
            return False
        value = self.value(place, field, given)
        if value is None:
            return False
        bounds[is_low] = Bound(value, included)
        return True

    def values(self, place: Place, field: Field, data: Any) -> frozenset[Value] | None:
        """One value, or a list of values; None where there is none that can be read."""
        if not isinstance(data, list):
            value = self.shown(place, field, data)
            return None if value is None else frozenset({value})
        if not data:
            text = f"no value of {field.name} is named here: write them, such as [A, B]"
            self.notes.say(place, "empty-condition", text, at_key=True)
            return None
        found = [self.shown((*place, number), field, each) for number, each in enumerate(data)]
        return None if any(each is None for each in found) else frozenset(found)

    def shown(self, place: Place, field: Field, given: Any) -> Value | None:
        """The same, of values that answers can have: amounts with two places, whole seconds."""
        value = self.value(place, field, given)
        if value is None or comparable(field, shown(field, value)) == value:
            return value
        finest = "whole seconds" if field.format is formats.INSTANT else "two places"
        self.notes.say(place, "bad-value", f"{field.name} is never {given}: it has {finest}")
        return None

    def value(self, place: Place, field: Field, given: Any) -> Value | None:
        """The value as it is compared; None where it is none of the field's, which is said."""
        try:
            return comparable(field, _as_shown(field, given))
        except ValueError:
            self.notes.say(place, *remedy(field, given))
            return None

    def check_widening(self, found: Mapping[AccessLevel, RowFilter]) -> None:
        """A level sees all records that the one before it sees."""
        for lower, higher in pairwise(LEVELS):
            if higher in found and not found.get(lower, EVERY).within(found[higher]):
                text = (
                    f"{lower} sees records of {self.resource.name} that {higher} does not: a level"
                    " sees all that the one before it sees"
                )
                place = (self.resource.name, ONLY, higher.value)
                self.notes.say(place, "narrower-level", text, at_key=True)


def _as_shown(field: Field, given: Any) -> Any:
    """Amounts may be written as numbers."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if field.format in (formats.MONEY, formats.PERCENT) and is_number:
        return str(given)
    if field.format is formats.UUID and isinstance(given, str):
        return formats.read_uuid(given)
    return given
