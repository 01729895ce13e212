"""What a key sees, resource by resource: its fields whole, in part, or not at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.contract.access import AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.operations import OPERATIONS
from gateway.contract.resources import RESOURCES
from gateway.keys.key import Key
from gateway.policy.masks import Mask
from gateway.policy.policy import Policy
from gateway.policy.rules import WHOLE
from gateway.policy.telling.wording import ENGLISH, Phrases, conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighted:
    """One resource that a key may read; `level` is None where no policy is about it.

    `condition` says which records exist for it, "" where all do.
    """

    resource: Resource
    level: AccessLevel | None
    whole: Sequence[str]
    masked: Sequence[tuple[str, Mask]]
    hidden: Sequence[str]
    condition: str = ""


def sights(policy: Policy, key: Key, phrases: Phrases = ENGLISH) -> list[Sighted]:
    """Every resource that an operation of the key's permissions answers with."""
    return [_sight(policy, key, resource, phrases) for resource in _readable(key)]


def closed_to(key: Key) -> list[str]:
    """The names of the resources that the key may not read, as far as any operation shows them."""
    open_to = {each.name for each in _readable(key)}
    shown = {each.returns.name for each in OPERATIONS}
    return [each.name for each in RESOURCES if each.name in shown - open_to]


def _readable(key: Key) -> Iterator[Resource]:
    named = {each.returns.name for each in OPERATIONS if each.permission in key.permissions}
    return (each for each in RESOURCES if each.name in named)


def _sight(policy: Policy, key: Key, resource: Resource, phrases: Phrases) -> Sighted:
    if not resource.governed:
        return Sighted(resource=resource, level=None, whole=resource.paths, masked=(), hidden=())
    level = key.level_for(resource.name)
    rules = policy.rules[resource.name]
    seen = {path: rules.sight(path, level) for path in resource.paths}
    rows = rules.rows_of(level)
    return Sighted(
        resource=resource,
        level=level,
        whole=[path for path, sight in seen.items() if sight is WHOLE],
        masked=[(path, sight) for path, sight in seen.items() if isinstance(sight, Mask)],
        hidden=[
            path
            for path, sight in seen.items()
            if sight is not WHOLE and not isinstance(sight, Mask)
        ],
        condition=conditions(resource, rows, phrases) if rows else "",
    )
