"""Reads a resource's `only`: the conditions under which its records exist, for all or by level."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from adapters.documents.document import Place, ProblemList
from adapters.documents.problems import did_you_mean, nearest
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import NUMBER, Field, Resource
from gateway.policy.reading.lists import slip_of
from gateway.policy.rows import (
    EVERY,
    Bound,
    RowFilter,
    Value,
    ValueTest,
    comparable,
    in_closed,
    is_ordered,
)
from gateway.policy.rules import WHOLE, ResourceRules
from gateway.policy.values import NoValue, read_value

ONLY = "only"
NOT = "not"
# How a bound is written: whether it is the lower one, and whether its value is within.
BOUNDS: Mapping[str, tuple[bool, bool]] = {
    "min": (True, True),
    "above": (True, False),
    "max": (False, True),
    "below": (False, False),
}
_WORDS = (NOT, *BOUNDS)
_COMPARISONS = f"{', '.join(_WORDS[:-1])} or {_WORDS[-1]}"
_LEVELS = {level.value: level for level in LEVELS}


def read_only(
    noted: ProblemList, resource: Resource, data: Any, rules: ResourceRules
) -> dict[AccessLevel, RowFilter]:
    """The rows of each level that has conditions; `rules` says what the levels see of fields."""
    reader = _ConditionReader(noted, resource, rules)
    place = (resource.name, ONLY)
    if not isinstance(data, dict) or data.keys().isdisjoint(_LEVELS):
        return dict.fromkeys(LEVELS, reader.rows(place, data, LEVELS[0]))
    found: dict[AccessLevel, RowFilter] = {}
    before = len(noted.problems)
    for name, conditions in data.items():
        if name in _LEVELS:
            found[_LEVELS[name]] = reader.rows((*place, name), conditions, _LEVELS[name])
        else:
            text = f"{name} stands beside levels, and is none{did_you_mean(name, _LEVELS)}: put a"
            text = f"{text} condition under those that it is for, or under all"
            noted.say((*place, name), "bad-only", text, at_key=True)
    for lower, higher in pairwise(LEVELS) if len(noted.problems) == before else ():
        if higher in found and not found.get(lower, EVERY).within(found[higher]):
            text = (
                f"{lower} sees records of {resource.name} that {higher} does not: a level"
                " sees all that the one before it sees"
            )
            noted.say((*place, higher.value), "narrower-level", text, at_key=True)
    return found


@dataclass(frozen=True, slots=True)
class _ConditionReader:
    noted: ProblemList
    resource: Resource
    rules: ResourceRules

    def refuse(self, place: Place, code: str, text: str) -> None:
        """Says what is wrong with the name at a place."""
        self.noted.say(place, code, text, at_key=True)

    def rows(self, place: Place, data: Any, level: AccessLevel) -> RowFilter:
        """The conditions of a level, each of a field that it sees whole."""
        if not isinstance(data, dict) or not data:
            text = f"{place[-1]} must name fields and their values, such as {{status: [ACTIVE]}}"
            self.refuse(place, "bad-only", text)
            return EVERY
        tests: dict[str, ValueTest] = {}
        for name, condition in data.items():
            here = (*place, name)
            field = self.field(here, name, level)
            test = self.test(here, field, condition) if field is not None else None
            if field is None or test is None:
                continue
            tests[name] = in_closed(field, test)
            if tests[name].is_empty:
                text = f"no value of {name} meets this, so that no record would exist"
                self.refuse(here, "empty-condition", text)
        return RowFilter(tests)

    def field(self, place: Place, name: str, level: AccessLevel) -> Field | None:
        """The field of that name, where a condition at the level may be about it."""
        resource, rules = self.resource, self.rules
        if name not in resource.paths:
            slip = slip_of(resource, name)
            code, text = slip.code, slip.text
            if near := nearest(name, _LEVELS):
                code, text = "unknown-level", f"{name} is not a level (did you mean {near}?)"
        elif "[]" in name or resource.at(name).many:
            code = "condition-on-list"
            text = f"{resource.name}.{name} stands in a list, of which no condition can be"
        elif name in rules.fields and rules.sight(name, level) is not WHOLE:
            code, first = "condition-on-hidden", rules.opened_at(name)
            text = (
                f"{resource.name}.{name} is not whole at {level}: a condition tells what the field"
                f" says; {f'it opens at {first}' if first else 'no level sees it'}"
            )
        else:
            return resource.at(name)
        self.refuse(place, code, text)
        return None

    def test(self, place: Place, field: Field, data: Any) -> ValueTest | None:
        """What is let be of one field: `A`, `[A, B]`, `{not: [...]}`, `{min: 1, below: 9}`.

        None where it could not be read.
        """
        if not isinstance(data, dict):
            values = self.values(place, field, data)
            return None if values is None else ValueTest(allowed=values)
        before = len(self.noted.problems)
        barred: frozenset[Value] | None = frozenset()
        bounds: dict[bool, Bound] = {}
        if not data:
            self.noted.say(place, "bad-condition", f"{field.name} needs a value, or {_COMPARISONS}")
        for word, given in data.items():
            here = (*place, word)
            if word == NOT:
                barred = self.values(here, field, given)
            elif word in BOUNDS:
                self.bound(here, field, given, bounds)
            else:
                text = f"{word} is no comparison{did_you_mean(word, _WORDS)}; write {_COMPARISONS}"
                self.refuse(here, "bad-condition", text)
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
        elif (value := self.value(place, field, given, finer=True)) is not None:
            bounds[is_low] = Bound(value, included)

    def values(self, place: Place, field: Field, data: Any) -> frozenset[Value] | None:
        """One value, or a list of values; None where there is none that can be read."""
        if not isinstance(data, list):
            value = self.value(place, field, data)
            return None if value is None else frozenset({value})
        if not data:
            text = f"no value of {field.name} is named here: write them, such as [A, B]"
            self.refuse(place, "empty-condition", text)
            return None
        found = [self.value((*place, at), field, given) for at, given in enumerate(data)]
        return None if None in found else frozenset(found)

    def value(self, place: Place, field: Field, given: Any, *, finer: bool = False) -> Value | None:
        """The value as it is compared; None where it is none of the field's, which is said.

        A bound may be `finer` than answers: more than two places, parts of a second.
        """
        text = f"{field.name}: nothing stands here; a record without it never meets a condition"
        if finer:
            with suppress(ValueError):
                return comparable(field, given if field.format is NUMBER else str(given))
        try:
            if given is not None:
                return comparable(field, read_value(field, given))
        except NoValue as error:
            text = f"{field.name} {error}"
        self.noted.say(place, "bad-value", text)
        return None
