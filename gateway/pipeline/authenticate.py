"""Who is asking: the first step, whatever the path."""

from collections.abc import Sequence
from datetime import datetime

from gateway.contract.errors import KeyInvalid, KeyMissing, Unavailable
from gateway.keys.base import KeyRing, KeysUnreadable
from gateway.keys.key import Key
from gateway.keys.secret import PREFIX, digest

# As long as a secret, and no secret has this form.
NOBODYS = f"{PREFIX}{'!' * 48}"


def authenticate(
    secrets: Sequence[str], keys: KeyRing, now: datetime, *, settled: bool = False
) -> Key:
    """The key behind the one secret; KeyMissing without any, KeyInvalid for every other reason.

    Unavailable where the keys cannot be read; KeysBehind where they should be read first, unless
    that is `settled`.

    In place of two secrets one is looked up that nobody has: neither tells by its time whether it
    is good.
    """
    if not secrets:
        raise KeyMissing
    secret = secrets[0] if len(secrets) == 1 else NOBODYS
    try:
        key = keys.find(digest(secret), now, settled=settled)
    except KeysUnreadable as error:
        # the outage has been said once: not for every call again
        raise Unavailable(error.retry_after) from None
    if key is None:
        raise KeyInvalid
    keys.touch(key.id, now)
    return key


def owner_of(secrets: Sequence[str], keys: KeyRing) -> str:
    """Whose secret was refused: the id of its key, "" where that is nobody's.

    For the figures, once the answer has gone: it must not depend on it in any way.
    """
    return keys.owner_of(digest(secrets[0])) if len(secrets) == 1 else ""
