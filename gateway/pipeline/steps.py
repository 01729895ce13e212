"""The first steps of the road and the last: who asks, for what, how often, and what is seen."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from adapters.base import Only, Record
from gateway.contract import errors
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.operations import OPERATIONS, Operation
from gateway.keys.key import Key
from gateway.keys.ring import KeyRing, KeysUnreadable
from gateway.keys.secret import PREFIX, digest
from gateway.limits.base import Quota
from gateway.policy.policy import Policy
from gateway.policy.redactor import NoUsableId, Redactor

# As long as a secret, and no secret has this form.
NOBODYS = f"{PREFIX}{'!' * 48}"
# Stands in for the key of a secret that opens nothing, and may be used from nowhere.
NOBODY = Key(
    id="",
    name="",
    permissions=frozenset(),
    level=LEVELS[0],
    created_at=datetime.min.replace(tzinfo=UTC),
    networks=("192.0.2.0",),  # an address that no caller has
)


def authenticate(
    secrets: Sequence[str], address: str, keys: KeyRing, now: datetime, *, settled: bool = False
) -> Key:
    """The key behind the one secret, where it may be used from the caller's address.

    KeyMissing without any secret, KeyInvalid for every other reason. Unavailable where the keys
    cannot be read; KeysBehind where they should be read first, unless that is `settled`.

    In place of two secrets one is looked up that nobody has, and the address of a caller without a
    good one is looked up too: the time does not tell why a key is refused.
    """
    if not secrets:
        raise errors.KeyMissing
    secret = secrets[0] if len(secrets) == 1 else NOBODYS
    try:
        key = keys.find(digest(secret), now, settled=settled)
    except KeysUnreadable as error:
        # the outage has been said once: not for every call again
        raise errors.Unavailable(error.retry_after) from None
    asked = NOBODY if key is None else key
    within = asked.within
    is_elsewhere = within is not None and not within(address)
    if key is None or is_elsewhere:
        raise errors.KeyInvalid(asked.id)
    keys.touch(key.id, now)
    return key


def owner_of(secrets: Sequence[str], keys: KeyRing) -> str:
    """Whose secret was refused: the id of its key, "" where that is nobody's.

    For the figures, once the answer has gone: it must not depend on it in any way.
    """
    return keys.owner_of(digest(secrets[0])) if len(secrets) == 1 else ""


def authorize(key: Key, operation: Operation) -> None:
    """Forbidden where the key lacks the operation's permission."""
    if operation.permission not in key.permissions:
        raise errors.Forbidden


def throttle(quota: Quota) -> None:
    """LimitExceeded, with the seconds to wait, where the limiter did not admit the call."""
    if not quota.admitted:
        raise errors.LimitExceeded(quota.reset)


def others_for(key: Key, policy: Policy) -> Callable[[str], Only] | None:
    """Which records of any governed resource exist for the key; None where all do, of each."""
    if not policy.has_rows:
        return None
    return lambda resource: policy.redactor(resource, key.level_for(resource)).only


def redact(redactor: Redactor, record: Record) -> bytes:
    """The open fields of one record; BackendUnusable where it has no usable id."""
    try:
        return redactor.one(record)
    except NoUsableId as error:
        raise errors.BackendUnusable from error


def hidden_fields(policy: Callable[[], Policy], operation: str, level: str) -> tuple[str, int]:
    """The resource that an operation answers with, and how many of its fields the level lacks."""
    [resource] = [known.returns for known in OPERATIONS if known.id == operation]
    if not resource.governed:
        return resource.name, 0
    redactor = policy().redactor(resource.name, AccessLevel(level))
    shown = redactor.visible | redactor.masks.keys()
    return resource.name, len(frozenset(resource.paths) - shown)
