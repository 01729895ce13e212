"""Who is asking: the first step, whatever the path."""

from collections.abc import Sequence
from datetime import UTC, datetime

from gateway.contract.access import LEVELS
from gateway.contract.errors import KeyInvalid, KeyMissing, Unavailable
from gateway.keys.base import KeysUnreadable
from gateway.keys.key import Key
from gateway.keys.ring import KeyRing
from gateway.keys.secret import PREFIX, digest

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

    KeyMissing without any secret, KeyInvalid for every other reason.

    Unavailable where the keys cannot be read; KeysBehind where they should be read first, unless
    that is `settled`.

    In place of two secrets one is looked up that nobody has, and the address of a caller without a
    good one is looked up too: the time does not tell why a key is refused.
    """
    if not secrets:
        raise KeyMissing
    secret = secrets[0] if len(secrets) == 1 else NOBODYS
    try:
        key = keys.find(digest(secret), now, settled=settled)
    except KeysUnreadable as error:
        # the outage has been said once: not for every call again
        raise Unavailable(error.retry_after) from None
    asked = NOBODY if key is None else key
    within = asked.within
    is_elsewhere = within is not None and not within.admit(address)
    if key is None or is_elsewhere:
        raise KeyInvalid(asked.id)
    keys.touch(key.id, now)
    return key


def owner_of(secrets: Sequence[str], keys: KeyRing) -> str:
    """Whose secret was refused: the id of its key, "" where that is nobody's.

    For the figures, once the answer has gone: it must not depend on it in any way.
    """
    return keys.owner_of(digest(secrets[0])) if len(secrets) == 1 else ""
