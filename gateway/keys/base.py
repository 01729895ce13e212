"""What the store tells of keys, and why one is not told."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.keys.key import Key
from gateway.store import StoreError


class KeysUnreadable(Exception):
    """The key store has not been readable for so long that nobody can say who a caller is.

    `retry_after` are the seconds until it is read again.
    """

    def __init__(self, retry_after: float) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after


class KeysBehind(Exception):
    """It has been long since the keys were read, as after a pause of the process: catch up."""


@dataclass(frozen=True, slots=True)
class KnownSecret:
    """What is kept of a secret: its hint, which may be told, its digest, and how long it is good.

    It is good until `expires_at`, or as long as its key.
    """

    hint: str
    digest: bytes
    expires_at: datetime | None = None


# A key, and what is kept of its secrets, the oldest first.
KeyAndSecrets = tuple[Key, tuple[KnownSecret, ...]]


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A key as it is now, with its secrets; `key` is None where what is kept makes no sense."""

    id: str
    key: Key | None
    secrets: tuple[KnownSecret, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Every key in the order of making, with its secrets; `odd` are the ids that make no sense."""

    keys: Sequence[KeyAndSecrets]
    odd: Sequence[str]


@dataclass(frozen=True, slots=True)
class Rotated:
    """A new secret, which is told this once, and the key with what is kept of all of them."""

    secret: str
    key: Key
    secrets: tuple[KnownSecret, ...]


class OddKey(Exception):
    """What is kept of the key with that id makes no sense."""


class OddTime(StoreError):
    """What the store at that place keeps as the latest time is none."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"{place} keeps as `latest time` (in its table meta) what is no time: check that this"
            " machine's clock is right, then run `clinic-gateway state clock --accept`"
        )


class UnknownKey(LookupError):
    """No key has that id."""


class KeyExists(Exception):
    """There is a key of that id already."""


class RevokedKey(Exception):
    """The key with that id was taken away for good."""


class ChangedKey(Exception):
    """The key with that id is not as it was when somebody looked at it."""
