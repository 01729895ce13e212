"""Who is asking: the first step, whatever the path."""

from collections.abc import Sequence
from datetime import datetime

from gateway.contract.errors import KeyInvalid, KeyMissing, Unavailable
from gateway.keys.base import KeyRing, KeysUnreadable
from gateway.keys.key import Key
from gateway.keys.secret import digest


def authenticate(
    secrets: Sequence[str], keys: KeyRing, now: datetime, *, settled: bool = False
) -> Key:
    """The key behind the one secret; KeyMissing without any, KeyInvalid for every other reason.

    Unavailable where the keys cannot be read; KeysBehind where they should be read first, unless
    that is `settled`.

    Two secrets are looked up like one, so that time does not tell them apart.
    """
    if not secrets:
        raise KeyMissing
    try:
        key = keys.find(digest(secrets[0]), now, settled=settled)
    except KeysUnreadable:
        # the outage has been said once: not for every call again
        raise Unavailable from None
    if key is None or len(secrets) != 1:
        raise KeyInvalid
    keys.touch(key.id, now)
    return key
