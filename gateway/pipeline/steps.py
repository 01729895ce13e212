"""The first and last steps of the pipeline: who asks, for what, how often, and what is shown."""

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

# As long as a secret, but in a form that no secret has.
NOBODYS = f"{PREFIX}{'!' * 48}"
# Stands in for the key of an unknown secret. It may be used from nowhere.
NOBODY = Key(
    id="",
    name="",
    permissions=frozenset(),
    level=LEVELS[0],
    created_at=datetime.min.replace(tzinfo=UTC),
    networks=("192.0.2.0",),  # an address that no caller has
)


def digest_of(secrets: Sequence[str]) -> bytes | None:
    """Returns the digest by which a call's key is looked up; None without any secret.

    In place of two secrets one is looked up that nobody has.
    """
    if not secrets:
        return None
    return digest(secrets[0] if len(secrets) == 1 else NOBODYS)


def authenticate(
    secret: bytes | None, address: str, keys: KeyRing, now: datetime, *, settled: bool = False
) -> Key:
    """Returns the key of that secret, a digest, where it may be used from the caller's address.

    Raises KeyMissing without any secret, KeyInvalid for every other reason, Unavailable where the
    keys cannot be read, and KeysBehind where they should be read first, unless that is `settled`.

    Without a good secret the address is looked up too: the time does not tell why a key is refused.
    """
    if secret is None:
        raise errors.KeyMissing
    try:
        key = keys.find(secret, now, settled=settled)
    except KeysUnreadable as error:
        # the outage was reported once, which every call need not repeat
        raise errors.Unavailable(error.retry_after) from None
    candidate = NOBODY if key is None else key
    within = candidate.within
    is_elsewhere = within is not None and not within(address)
    # NOBODY is elsewhere from every address, so both refusals take the same steps
    if is_elsewhere or key is None:
        raise errors.KeyInvalid(candidate.id)
    keys.touch(key.id, now)
    return key


def authorize(key: Key, operation: Operation) -> None:
    """Raises Forbidden where the key lacks the operation's permission."""
    if operation.permission not in key.permissions:
        raise errors.Forbidden


def throttle(quota: Quota) -> None:
    """Raises LimitExceeded, with the seconds to wait, where the limiter did not admit the call."""
    if not quota.admitted:
        raise errors.LimitExceeded(quota.reset)


def others_for(key: Key, policy: Policy) -> Callable[[str], Only] | None:
    """Returns what gives the key's conditions for each governed resource; None without any."""
    if not policy.has_rows:
        return None
    return lambda resource: policy.redactor(resource, key.level_for(resource)).only


def redact(redactor: Redactor, record: Record) -> bytes:
    """Returns one record's open fields. Raises BackendUnusable where it has no usable id."""
    try:
        return redactor.one(record)
    except NoUsableId as error:
        raise errors.BackendUnusable from error


def hidden_fields(policy: Callable[[], Policy], operation: str, level: str) -> tuple[str, int]:
    """Returns the resource that an operation answers with, and how many fields a level hides."""
    [resource] = [known.returns for known in OPERATIONS if known.id == operation]
    if not resource.governed:
        return resource.name, 0
    redactor = policy().redactor(resource.name, AccessLevel(level))
    shown = redactor.visible | redactor.masks.keys()
    return resource.name, len(frozenset(resource.paths) - shown)
