"""The clinic's decision how much each level sees of each field, and which records: data, frozen.

A policy is such rules with a redactor for each view, made when it is loaded: a running request only
looks one up.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from types import MappingProxyType
from typing import TypeAlias

from adapters.base import Report
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.openapi import View
from gateway.contract.resources import RESOURCES
from gateway.policy.masks import Mask
from gateway.policy.redactor import Redactor
from gateway.policy.rows import EVERY, NOTHING, RowFilter


class AllOrNothing(StrEnum):
    """How much is seen of a value where no Mask shows a part of it."""

    HIDDEN = "hidden"
    WHOLE = "whole"


HIDDEN, WHOLE = AllOrNothing.HIDDEN, AllOrNothing.WHOLE
Sight: TypeAlias = AllOrNothing | Mask
# What BASIC, STANDARD and FULL see of a field.
Sights: TypeAlias = tuple[Sight, Sight, Sight]


def no_more(one: Sight, other: Sight) -> bool:
    """Whether the other shows at least what this one does."""
    if one is other or one is HIDDEN or other is WHOLE:
        return True
    return isinstance(one, Mask) and isinstance(other, Mask) and one.shows_no_more_than(other)


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
        return self.fields[path][LEVELS.index(level)]

    def sights(self, level: AccessLevel) -> Mapping[str, Sight]:
        number = LEVELS.index(level)
        return {path: sights[number] for path, sights in self.fields.items()}

    def rows_of(self, level: AccessLevel) -> RowFilter:
        return self.rows.get(level, EVERY)

    def opened_at(self, path: str) -> AccessLevel | None:
        """The first level that sees the whole field; None where none does."""
        return self.first(path, lambda sight: sight is WHOLE)

    def first(self, path: str, is_so: Callable[[Sight], bool]) -> AccessLevel | None:
        """The first level whose sight of the field is so."""
        sights = zip(LEVELS, self.fields[path], strict=True)
        return next((level for level, sight in sights if is_so(sight)), None)


# resource name -> its rules, for every governed resource in the order of the contract
Rules: TypeAlias = Mapping[str, ResourceRules]


def both(one: Rules, other: Rules) -> Rules:
    """Returns what two policies both show: of two masks of different kinds nothing at all."""

    def less(first: Sight, second: Sight) -> Sight:
        if no_more(first, second):
            return first
        return second if no_more(second, first) else HIDDEN

    found: dict[str, ResourceRules] = {}
    for name, rules in one.items():
        fields: dict[str, Sights] = {}
        for path, sights in rules.fields.items():
            basic, standard, full = map(less, sights, other[name].fields[path])
            fields[path] = basic, standard, full
        rows = {level: rules.rows_of(level).both(other[name].rows_of(level)) for level in LEVELS}
        found[name] = ResourceRules(fields, {level: each for level, each in rows.items() if each})
    return found


def no_wider(one: Rules, other: Rules) -> bool:
    """Whether the other policy shows at least what this one does, to each level."""
    return all(
        rules.rows_of(level).within(other[name].rows_of(level))
        and all(
            no_more(sight, other[name].sight(path, level))
            for path, sight in rules.sights(level).items()
        )
        for name, rules in one.items()
        for level in LEVELS
    )


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


_UNGOVERNED = {
    resource.name: ResourceRules(dict.fromkeys(resource.paths, (WHOLE, WHOLE, WHOLE)), {})
    for resource in RESOURCES
    if not resource.governed
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A policy's text; `hash` is its SHA-256 in hexadecimal digits.

    `made_of` are the hashes of the two that it is the common part of.
    """

    hash: str
    content: bytes
    file: str
    made_of: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """What each level sees.

    `hash` is that of its text, `short_hash` as it is shown and logged; `rules` is the decision as
    data. `has_rows` says whether there is any row condition.
    """

    version: Version
    file: str
    hash: str
    short_hash: str
    rules: Rules
    redactors: Mapping[tuple[str, AccessLevel], Redactor]
    has_rows: bool

    def redactor(self, resource: str, level: AccessLevel) -> Redactor:
        """The level's view of a resource; each sees the whole of what no level governs."""
        return self.redactors[resource, level]

    def view(self, resource: Resource, level: AccessLevel) -> View:
        """What the level sees of a governed resource, as the interface's description has it."""
        redactor = self.redactors[resource.name, level]
        masked = {path: mask.schema(resource.at(path)) for path, mask in redactor.masks.items()}
        return View(redactor.visible, masked, level)


def compile_policy(
    version: Version, rules: Rules, report: Report, like: Policy | None = None
) -> Policy:
    """The policy for a text's rules, which name every field of every governed resource.

    What shows as much as in the policy `like`, made for the same `report`, is taken from there.
    """
    redactors: dict[tuple[str, AccessLevel], Redactor] = {}
    for resource, level in product(RESOURCES, LEVELS):
        view = resource.name, level
        sights, rows = _seen(rules, *view)
        if like is not None and _seen(like.rules, *view) == (sights, rows):
            redactors[view] = like.redactors[view]
            continue
        visible = [path for path, sight in sights.items() if sight is WHOLE]
        masks = {path: sight for path, sight in sights.items() if isinstance(sight, Mask)}
        redactors[view] = Redactor(resource, visible, report, masks=masks, rows=rows)
    has_rows, digest = any(redactor.only for redactor in redactors.values()), version.hash
    frozen = MappingProxyType(dict(rules)), MappingProxyType(redactors)
    return Policy(version, version.file, digest, digest[:12], *frozen, has_rows)


def _seen(rules: Rules, resource: str, level: AccessLevel) -> tuple[Mapping[str, Sight], RowFilter]:
    own = rules.get(resource) or _UNGOVERNED[resource]
    return own.sights(level), own.rows_of(level)
