"""Defines policies: immutable rules on which fields and records each access level sees.

A policy also has a redactor for each resource and level, so that a request only looks one up.
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
    """How much is seen of a value that no mask shows in part."""

    HIDDEN = "hidden"
    WHOLE = "whole"


HIDDEN, WHOLE = AllOrNothing.HIDDEN, AllOrNothing.WHOLE
Sight: TypeAlias = AllOrNothing | Mask
# What BASIC, STANDARD and FULL see of a field.
Sights: TypeAlias = tuple[Sight, Sight, Sight]


def no_more(one: Sight, other: Sight) -> bool:
    """Returns whether the other sight shows at least as much as this one."""
    if one is other or one is HIDDEN or other is WHOLE:
        return True
    return isinstance(one, Mask) and isinstance(other, Mask) and one.shows_no_more_than(other)


@dataclass(frozen=True, slots=True)
class ResourceRules:
    """One resource: field path -> what each level sees; level -> rows, unless it sees all."""

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
        """Returns the first level that sees the whole field; None where none does."""
        return self.first(path, lambda sight: sight is WHOLE)

    def first(self, path: str, is_so: Callable[[Sight], bool]) -> AccessLevel | None:
        """Returns the first level whose sight of the field passes the test, or None."""
        sights = zip(LEVELS, self.fields[path], strict=True)
        return next((level for level, sight in sights if is_so(sight)), None)


# resource name -> its rules, for every governed resource in the order of the contract
Rules: TypeAlias = Mapping[str, ResourceRules]


def both(one: Rules, other: Rules) -> Rules:
    """Returns what both policies show; of masks that cannot be compared that is nothing."""

    def less(first: Sight, second: Sight) -> Sight:
        if no_more(first, second):
            return first
        return second if no_more(second, first) else HIDDEN

    common: dict[str, ResourceRules] = {}
    for name, rules in one.items():
        fields: dict[str, Sights] = {}
        for path, sights in rules.fields.items():
            basic, standard, full = map(less, sights, other[name].fields[path])
            fields[path] = basic, standard, full
        rows = {level: rules.rows_of(level).both(other[name].rows_of(level)) for level in LEVELS}
        common[name] = ResourceRules(fields, {level: own for level, own in rows.items() if own})
    return common


def no_wider(one: Rules, other: Rules) -> bool:
    """Returns whether the other policy shows each level at least as much as this one."""
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

    A new condition on a field that the running rules do not show whole to a level admits no record
    there, as the records that meet it would tell the field's value.
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
    """A policy's text with its SHA-256. `made_of` has the hashes of two whose common part it is."""

    hash: str
    content: bytes
    file: str
    made_of: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """A compiled policy. `short_hash` is shown and logged. `has_rows`: it has row conditions."""

    version: Version
    file: str
    hash: str
    short_hash: str
    rules: Rules
    redactors: Mapping[tuple[str, AccessLevel], Redactor]
    has_rows: bool

    def redactor(self, resource: str, level: AccessLevel) -> Redactor:
        """Returns the level's redactor of a resource; ungoverned resources are shown whole."""
        return self.redactors[resource, level]

    def view(self, resource: Resource, level: AccessLevel) -> View:
        """Returns what the level sees of a governed resource, for the OpenAPI document."""
        redactor = self.redactors[resource.name, level]
        masked = {path: mask.schema(resource.at(path)) for path, mask in redactor.masks.items()}
        return View(redactor.visible, masked, level)


def compile_policy(
    version: Version, rules: Rules, report: Report, like: Policy | None = None
) -> Policy:
    """Returns the policy for rules; takes equal views from `like`, which has the same `report`."""
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
