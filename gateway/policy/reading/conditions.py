"""Reads a resource's `only`: the conditions under which its records exist, for all or by level."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from adapters.documents.document import Place, ProblemList
from adapters.documents.problems import did_you_mean, hint
from gateway.contract import fields as formats
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Field, Resource
from gateway.policy.reading.lists import of_field
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
NOT = "not"
# How a bound is written: whether it is the lower one, and whether its value is within.
BOUNDS: Mapping[str, tuple[bool, bool]] = {
    "min": (True, True),
    "above": (True, False),
    "max": (False, True),
    "below": (False, False),
}
WORDS = (NOT, *BOUNDS)
COMPARISONS = f"{', '.join(WORDS[:-1])} or {WORDS[-1]}"
_AMOUNTS = (formats.MONEY, formats.PERCENT)
_TRUTHS = dict.fromkeys(("yes", "on", "y"), "true") | dict.fromkeys(("no", "off", "n"), "false")
_unspaced = re.compile(rf"({'|'.join(WORDS)})\s*[:= ]\s*(\S+)").fullmatch
_LEVELS = {level.value: level for level in LEVELS}


def read_only(
    noted: ProblemList, resource: Resource, data: Any, rules: ResourceRules
) -> dict[AccessLevel, RowFilter]:
    """The rows of each level that has conditions; `rules` says what the levels see of fields."""
    return _ConditionReader(noted, resource, rules).levels(data)


class _ConditionReader:
    def __init__(self, noted: ProblemList, resource: Resource, rules: ResourceRules) -> None:
        self.noted = noted
        self.resource = resource
        self.rules = rules

    def refuse(self, place: Place, code: str, text: str) -> None:
        """Says what is wrong with the name at a place."""
        self.noted.say(place, code, text, at_key=True)

    def levels(self, data: Any) -> dict[AccessLevel, RowFilter]:
        place = (self.resource.name, ONLY)
        if not isinstance(data, dict) or not data:
            text = f"{ONLY} must name fields and their values, such as only: {{status: [ACTIVE]}}"
            self.refuse(place, "bad-only", text)
            return {}
        if data.keys().isdisjoint(_LEVELS):
            return dict.fromkeys(LEVELS, self.rows(place, data, LEVELS[0]))
        found, before = {}, len(self.noted.problems)
        for name, conditions in data.items():
            if name in _LEVELS:
                found[_LEVELS[name]] = self.rows((*place, name), conditions, _LEVELS[name])
            elif self.conditionable(name):
                text = "stands beside levels: put it under those that it is for, or under all"
                self.refuse((*place, name), "bad-only", f"{name} {text}")
            else:
                text = f"{name} is not a level{did_you_mean(name, _LEVELS)}"
                self.refuse((*place, name), "bad-only", text)
        if len(self.noted.problems) == before:
            self.check_widening(found)
        return found

    def rows(self, place: Place, data: Any, level: AccessLevel) -> RowFilter:
        """The conditions of a level, each of a field that it sees whole."""
        if not isinstance(data, dict) or not data:
            text = f"{place[-1]} must name fields and their values, such as {{status: [ACTIVE]}}"
            self.refuse(place, "bad-only", text)
            return EVERY
        wanted: dict[str, ValueTest] = {}
        before = ""
        for name, condition in data.items():
            here = (*place, name)
            if condition is None and before and name not in self.resource.paths:
                text = f"several values stand in brackets: {before}: [ONE, {name}]"
                self.refuse(here, "bad-value", text)
                continue
            before = name
            field = self.field(here, name, level)
            if field is not None and (found := self.wanted(here, field, condition)) is not None:
                wanted[name] = found
        return RowFilter(wanted)

    def conditionable(self, name: str) -> bool:
        """Whether a condition may be about the field: it has one plain value."""
        return name in self.resource.paths and "[]" not in name and not self.resource.at(name).many

    def field(self, place: Place, name: str, level: AccessLevel) -> Field | None:
        if not self.conditionable(name):
            self.refuse(place, *self.no_field(name))
            return None
        if name in self.rules.fields and self.rules.sight(name, level) is not WHOLE:
            first = self.rules.opened_at(name)
            text = (
                f"{self.resource.name}.{name} is not whole at {level}: a condition tells what the"
                f" field says; {f'it opens at {first}' if first else 'no level sees it'}"
            )
            self.refuse(place, "condition-on-hidden", text)
            return None
        return self.resource.at(name)

    def no_field(self, name: str) -> tuple[str, str]:
        """Which check a name fails that no condition can be about, and what to say."""
        resource = self.resource
        if name in resource.paths:
            text = f"{resource.name}.{name} stands in a list, of which no condition can be"
            return "condition-on-list", text
        if slip := of_field(resource, name):
            return slip.code, slip.text
        if name.upper() in _LEVELS:
            return "level-case", f"{name} is written {name.upper()}"
        known = filter(self.conditionable, resource.paths)
        text = f"{resource.name} has no field {name!r}{did_you_mean(name, known)}"
        return "unknown-field", text

    def wanted(self, place: Place, field: Field, data: Any) -> ValueTest | None:
        """What is let be of one field; None where it could not be read, or lets nothing be."""
        if isinstance(data, dict):
            found = self.comparisons(place, field, data)
        else:
            values = self.values(place, field, data)
            found = ValueTest(allowed=values) if values else None
        if found is None:
            return None
        found = in_closed(field, found)
        if found.is_empty:
            text = f"no value of {field.name} meets this, so that no record would exist"
            self.refuse(place, "empty-condition", text)
            return None
        return found

    def comparisons(self, place: Place, field: Field, data: Mapping[str, Any]) -> ValueTest | None:
        """`{not: [...]}`, `{min: 1, below: 9}`."""
        before = len(self.noted.problems)
        barred: frozenset[Value] | None = frozenset()
        bounds: dict[bool, Bound] = {}
        if not data:
            text = f"{field.name} needs a value, or {COMPARISONS}"
            self.noted.say(place, "bad-condition", text)
        for word, given in data.items():
            at = (*place, word)
            if word == NOT:
                barred = self.values(at, field, given)
            elif word in BOUNDS:
                self.bound(at, field, given, bounds)
            else:
                self.refuse(at, *_no_comparison(word, given))
        if len(self.noted.problems) > before or barred is None:
            return None
        return ValueTest(barred=barred, low=bounds.get(True), high=bounds.get(False))

    def bound(self, place: Place, field: Field, given: Any, bounds: dict[bool, Bound]) -> None:
        word = str(place[-1])
        is_low, included = BOUNDS[word]
        if not is_ordered(field):
            text = f"{field.name} has no order: write a list of values, or not: and a list"
            self.refuse(place, "unordered-field", text)
        elif is_low in bounds:
            other = next(name for name, way in BOUNDS.items() if way == (is_low, not included))
            text = f"{word} and {other} bound the same side; keep one of the two"
            self.refuse(place, "bad-condition", text)
        elif (value := self.value(place, field, given)) is not None:
            bounds[is_low] = Bound(value, included)

    def values(self, place: Place, field: Field, data: Any) -> frozenset[Value] | None:
        """One value, or a list of values; None where there is none that can be read."""
        if not isinstance(data, list):
            value = self.answerable(place, field, data)
            return None if value is None else frozenset({value})
        if not data:
            text = f"no value of {field.name} is named here: write them, such as [A, B]"
            self.refuse(place, "empty-condition", text)
            return None
        found = [self.answerable((*place, at), field, given) for at, given in enumerate(data)]
        return None if None in found else frozenset(value for value in found if value is not None)

    def answerable(self, place: Place, field: Field, given: Any) -> Value | None:
        """The same, of values that answers can have: amounts with two places, whole seconds."""
        value = self.value(place, field, given)
        if value is None or comparable(field, shown(field, value)) == value:
            return value
        finest = "whole seconds" if field.format is formats.INSTANT else "two places"
        self.noted.say(place, "bad-value", f"{field.name} is never {given}: it has {finest}")
        return None

    def value(self, place: Place, field: Field, given: Any) -> Value | None:
        """The value as it is compared; None where it is none of the field's, which is said."""
        try:
            return comparable(field, _as_answered(field, given))
        except ValueError:
            self.noted.say(place, *_no_value(field, given))
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
                self.refuse(place, "narrower-level", text)


def _no_comparison(word: str, given: Any) -> tuple[str, str]:
    """Which check a word fails that compares nothing, and what to say."""
    if word.isdigit() and given is None:
        text = "a comma parts two values: a number is written with a point, such as 1.50"
        return "bad-value", text
    if given is None and (found := _unspaced(word)):
        return "bad-condition", f"a comparison is written {{{found[1]}: {found[2]}}}"
    text = f"{word} is no comparison{did_you_mean(word, WORDS)}; write {COMPARISONS}"
    return "bad-condition", text


def _as_answered(field: Field, given: Any) -> Any:
    """Amounts may be written as numbers."""
    if field.format in _AMOUNTS and isinstance(given, int | float) and not isinstance(given, bool):
        return str(given)
    if field.format is formats.UUID and isinstance(given, str):
        return formats.read_uuid(given)
    return given


def _no_value(field: Field, given: Any) -> tuple[str, str]:
    """Which check a value fails that the field never has, and what to write."""
    name, text, is_truth = field.name, "", field.format is formats.BOOLEAN
    is_text = field.format in (formats.TEXT, formats.EMAIL) and not field.values
    if is_truth and (word := _TRUTHS.get(str(given).lower())):
        return "yes-no", f"{name} is true or false: write {word} for {given}"
    if is_text and isinstance(given, int | float):
        spelt = str(given).lower() if isinstance(given, bool) else given
        return "unquoted-text", f'{name} is a text: put it in quotes, "{spelt}"'
    if given is None:
        text = f"nothing stands here; a record without {name} never meets a condition"
    elif isinstance(given, dict | list):
        text = f"{name} is compared with plain values, or with {COMPARISONS}"
    elif is_truth:
        text = f"{name} is true or false"
    elif field.values:
        text = f"{name} is never {given}{hint(str(given), field.values)}"
    else:
        text = f"{name} {field.format.problem}{_as_number(field, given)}"
    return "bad-value", text


def _as_number(field: Field, given: Any) -> str:
    """How a text that has a number in it is written, where that number is wanted."""
    if field.format not in (formats.NUMBER, formats.INTEGER) or not isinstance(given, str):
        return ""
    try:
        float(given)
    except ValueError:
        return ", or a comparison such as {min: 1}"
    return f": write {given} without quotes"
