"""May this key call this operation: nothing is read or asked of anyone before it may."""

from gateway.contract.errors import Forbidden
from gateway.contract.operations import Operation
from gateway.keys.key import Key


def authorize(key: Key, operation: Operation) -> None:
    """Forbidden where the key lacks the operation's permission."""
    if operation.permission not in key.permissions:
        raise Forbidden
