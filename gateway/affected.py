"""Whom a change of the policy touches: the keys that see it, and how often they were answered."""

from collections.abc import Iterable, Mapping

from gateway.contract.operations import OPERATIONS
from gateway.keys.key import Key
from gateway.policy.telling.wording import PolicyChange


def operations_of(change: PolicyChange) -> list[str]:
    """The operations that show the resource, by their ids."""
    return [each.id for each in OPERATIONS if each.returns.name == change.resource]


def reach(change: PolicyChange, keys: Iterable[Key]) -> list[Key]:
    """The keys whose answers change: they may ask for the resource, and have one of the levels."""
    reaching = {each.permission for each in OPERATIONS if each.returns.name == change.resource}
    return [
        key
        for key in keys
        if key.permissions & reaching and key.level_for(change.resource) in change.levels
    ]


def answers(
    change: PolicyChange, keys: Iterable[Key], counts: Mapping[tuple[str, str], int]
) -> int:
    """In how many answers those keys were shown the resource; `counts` by key id and operation."""
    showing = operations_of(change)
    return sum(counts.get((key.id, operation), 0) for key in keys for operation in showing)
