"""What a policy decides, as data: how much each level sees of each field, and which records."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from gateway.contract.access import LEVELS, AccessLevel
from gateway.policy.masks import Mask
from gateway.policy.rows import EVERY, NOTHING, RowFilter


class AllOrNothing(Enum):
    """How much is seen of a value where no Mask shows a part of it."""

    HIDDEN = "hidden"
    WHOLE = "whole"

    def __str__(self) -> str:
        return self.value


HIDDEN, WHOLE = AllOrNothing.HIDDEN, AllOrNothing.WHOLE
Sight: TypeAlias = AllOrNothing | Mask
# What BASIC, STANDARD and FULL see of a field.
Sights: TypeAlias = tuple[Sight, Sight, Sight]


def no_more(one: Sight, other: Sight) -> bool:
    """Whether the other shows at least what this one does."""
    if one is other or one is HIDDEN or other is WHOLE:
        return True
    return isinstance(one, Mask) and isinstance(other, Mask) and one.shows_no_more_than(other)


def opening(
    first: AccessLevel | None, masked_from: AccessLevel | None = None, mask: Mask | None = None
) -> Sights:
    """The sights of a field that is whole from `first` on, and under a mask from a lower level."""

    def sight(level: AccessLevel) -> Sight:
        rank = LEVELS.index(level)
        if first is not None and rank >= LEVELS.index(first):
            return WHOLE
        if mask is not None and masked_from is not None and rank >= LEVELS.index(masked_from):
            return mask
        return HIDDEN

    basic, standard, full = map(sight, LEVELS)
    return basic, standard, full


@dataclass(frozen=True, slots=True)
class ResourceRules:
    """Of one resource: field path -> what each level sees, in the order of the answers; the rows.

    A level without rows of its own sees all records.
    """

    fields: Mapping[str, Sights]
    rows: Mapping[AccessLevel, RowFilter]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", MappingProxyType(dict(self.fields)))
        object.__setattr__(self, "rows", MappingProxyType(dict(self.rows)))

    def sight(self, path: str, level: AccessLevel) -> Sight:
        """How much the level sees of the field."""
        return self.fields[path][LEVELS.index(level)]

    def sights(self, level: AccessLevel) -> Mapping[str, Sight]:
        """What the level sees of each field."""
        number = LEVELS.index(level)
        return {path: sights[number] for path, sights in self.fields.items()}

    def rows_of(self, level: AccessLevel) -> RowFilter:
        """Which records exist for the level."""
        return self.rows.get(level, EVERY)

    def opened_at(self, path: str) -> AccessLevel | None:
        """The first level that sees the whole field; None where none does."""
        return self.first(path, lambda sight: sight is WHOLE)

    def first(self, path: str, is_so: Callable[[Sight], bool]) -> AccessLevel | None:
        """The first level whose sight of the field is so."""
        sights = zip(LEVELS, self.fields[path], strict=True)
        return next((level for level, sight in sights if is_so(sight)), None)

    def both(self, other: "ResourceRules") -> "ResourceRules":
        """Returns what both show: of two masks of different kinds nothing at all."""

        def less(one: Sight, other: Sight) -> Sight:
            if no_more(one, other):
                return one
            return other if no_more(other, one) else HIDDEN

        fields: dict[str, Sights] = {}
        for path, sights in self.fields.items():
            basic, standard, full = map(less, sights, other.fields[path])
            fields[path] = basic, standard, full
        rows = {level: self.rows_of(level).both(other.rows_of(level)) for level in LEVELS}
        return ResourceRules(fields, {level: shared for level, shared in rows.items() if shared})

    def no_wider(self, other: "ResourceRules") -> bool:
        """Whether the other shows at least what this one does, to each level."""
        rows = all(self.rows_of(level).within(other.rows_of(level)) for level in LEVELS)
        return rows and all(
            no_more(*pair)
            for path, sights in self.fields.items()
            for pair in zip(sights, other.fields[path], strict=True)
        )


# resource name -> its rules, for every governed resource in the order of the contract
Rules: TypeAlias = Mapping[str, ResourceRules]


def both(one: Rules, other: Rules) -> Rules:
    """Returns what two policies both show: never more than either."""
    return {name: rules.both(other[name]) for name, rules in one.items()}


def no_wider(one: Rules, other: Rules) -> bool:
    """Whether the other policy shows at least what this one does, to each level."""
    return all(rules.no_wider(other[name]) for name, rules in one.items())


def narrowed(running: Rules, new: Rules) -> Rules | None:
    """Returns what may run of the new rules without approval; None where that runs already.

    Where the new rules have a condition on a field that the running ones do not show whole to that
    level, no record exists for it: which records meet the condition would tell the field's value.
    """
    if no_wider(running, new):
        return None
    rules = dict(both(running, new))
    for name, shared in rules.items():
        rows = dict(shared.rows)
        for level, shared_rows in rows.items():
            tests, before = dict(shared_rows.tests), running[name].rows_of(level).tests
            for path, test in tests.items():
                if running[name].sight(path, level) is not WHOLE and test != before.get(path):
                    tests[path] = NOTHING
            rows[level] = RowFilter(tests)
        rules[name] = replace(shared, rows=rows)
    return rules
