"""How much is seen: the open fields of the answer, as bytes."""

from collections.abc import Callable

from adapters.base import Only, Record
from gateway.contract.access import AccessLevel
from gateway.contract.errors import BackendUnusable
from gateway.contract.operations import OPERATIONS, Operation
from gateway.keys.key import Key
from gateway.policy.policy import Policy
from gateway.policy.redactor import NoUsableId, Redactor


def redactor_for(operation: Operation, key: Key, policy: Policy) -> Redactor:
    """What the key sees of the operation's resource."""
    resource = operation.returns
    if resource.governed:
        return policy.redactor(resource.name, key.level_for(resource.name))
    return policy.for_whole(resource.name)


def others_for(key: Key, policy: Policy) -> Callable[[str], Only]:
    """Which records of any governed resource exist for the key."""
    return lambda resource: policy.redactor(resource, key.level_for(resource)).only


def redact(redactor: Redactor, record: Record) -> bytes:
    """One record; BackendUnusable where it has no usable id."""
    try:
        return redactor.one(record)
    except NoUsableId as error:
        raise BackendUnusable from error


def hidden_fields(policy: Callable[[], Policy], operation: str, level: str) -> tuple[str, int]:
    """The resource that an operation answers with, and how many of its fields the level lacks."""
    resource = next(each.returns for each in OPERATIONS if each.id == operation)
    if not resource.governed:
        return resource.name, 0
    redactor = policy().redactor(resource.name, AccessLevel(level))
    shown = redactor.visible | redactor.masks.keys()
    return resource.name, len(frozenset(resource.paths) - shown)
