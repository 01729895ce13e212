"""The clinic's decision which field opens at which level, frozen, with a redactor for each view.

Everything is resolved when the policy is loaded: a running request only looks a redactor up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from adapters.base import Report
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.resources import GOVERNED, RESOURCES
from gateway.policy.redactor import Redactor

# resource name -> field path -> the first level that shows it, None where no key sees it
Opens = Mapping[str, Mapping[str, AccessLevel | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What each level sees.

    `hash` is the SHA-256 of the file's bytes in hexadecimal digits, `short_hash` its first 12, as
    they are shown and logged; `opens` the decision field by field, in the order of the answers.
    """

    file: str
    hash: str
    opens: Opens
    redactors: Mapping[tuple[str, AccessLevel], Redactor]
    whole: Mapping[str, Redactor]
    short_hash: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "short_hash", self.hash[:12])

    def redactor(self, resource: str, level: AccessLevel) -> Redactor:
        """The view of a governed resource; KeyError for any other."""
        return self.redactors[resource, level]

    def for_whole(self, resource: str) -> Redactor:
        """The only view of a resource that no level governs; KeyError for a governed one."""
        return self.whole[resource]

    def visible(self, resource: str, level: AccessLevel) -> frozenset[str]:
        """The paths of the fields that the level sees of a governed resource."""
        return self.redactors[resource, level].visible


def compile_policy(file: str, digest: str, opens: Opens, report: Report) -> Policy:
    """The policy for a decision that names every field of every governed resource."""
    redactors = {
        (resource.name, level): Redactor(resource, _seen(opens[resource.name], level), report)
        for resource in GOVERNED
        for level in LEVELS
    }
    whole = {
        resource.name: Redactor(resource, resource.paths, report)
        for resource in RESOURCES
        if not resource.governed
    }
    return Policy(
        file=file,
        hash=digest,
        opens=MappingProxyType({name: MappingProxyType(dict(opens[name])) for name in opens}),
        redactors=MappingProxyType(redactors),
        whole=MappingProxyType(whole),
    )


def _seen(decision: Mapping[str, AccessLevel | None], level: AccessLevel) -> frozenset[str]:
    rank = LEVELS.index(level)
    return frozenset(
        path for path, first in decision.items() if first and LEVELS.index(first) <= rank
    )
