"""The clinic's decision how much each level sees, frozen, with a redactor for each view.

Everything is resolved when the policy is loaded: a running request only looks a redactor up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from adapters.base import Report
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.openapi import View
from gateway.contract.resources import RESOURCES
from gateway.policy.masks import Mask
from gateway.policy.redactor import Redactor
from gateway.policy.rules import WHOLE, ResourceRules, Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What each level sees.

    `hash` is the SHA-256 of the file's bytes in hexadecimal digits; `rules` is the decision as
    data. `has_rows` says whether there is any row condition at all.
    """

    file: str
    hash: str
    rules: Rules
    redactors: Mapping[tuple[str, AccessLevel], Redactor]
    has_rows: bool

    @property
    def short_hash(self) -> str:
        """The hash as it is shown and logged."""
        return self.hash[:12]

    def redactor(self, resource: str, level: AccessLevel) -> Redactor:
        """The level's view of a resource; each has the same one of what no level governs."""
        return self.redactors[resource, level]

    def view(self, resource: Resource, level: AccessLevel) -> View:
        """What the level sees of a governed resource, as the interface's description has it."""
        redactor = self.redactors[resource.name, level]
        masked = {path: mask.schema(resource.at(path)) for path, mask in redactor.masks.items()}
        return View(redactor.visible, masked, level)


def compile_policy(
    file: str, digest: str, rules: Rules, report: Report, like: Policy | None = None
) -> Policy:
    """The policy for rules that name every field of every governed resource.

    What shows as much as in the policy `like`, made for the same `report`, is taken from there.
    """
    redactors: dict[tuple[str, AccessLevel], Redactor] = {}
    for resource in RESOURCES:
        if resource.governed:
            own = rules[resource.name]
            views = [_redactor(resource, own, level, report, like) for level in LEVELS]
        elif like is not None:
            views = [like.redactor(resource.name, level) for level in LEVELS]
        else:
            views = [Redactor(resource, resource.paths, report)] * len(LEVELS)
        for level, view in zip(LEVELS, views, strict=True):
            redactors[resource.name, level] = view
    return Policy(
        file=file,
        hash=digest,
        rules=MappingProxyType(dict(rules)),
        redactors=MappingProxyType(redactors),
        has_rows=any(redactor.only for redactor in redactors.values()),
    )


def _redactor(
    resource: Resource,
    rules: ResourceRules,
    level: AccessLevel,
    report: Report,
    like: Policy | None,
) -> Redactor:
    """The view of a level; another policy's own where that shows just what these rules do."""
    sights, rows = rules.sights(level), rules.rows_of(level)
    if like is not None:
        before = like.rules[resource.name]
        if before.rows_of(level) == rows and before.sights(level) == sights:
            return like.redactors[resource.name, level]
    visible = [path for path, sight in sights.items() if sight is WHOLE]
    masks = {path: sight for path, sight in sights.items() if isinstance(sight, Mask)}
    return Redactor(resource, visible, report, masks=masks, rows=rows)
