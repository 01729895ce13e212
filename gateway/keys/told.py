"""What is told of the keys in the store, and why one is not."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.keys.key import Key
from gateway.store import StoreError


@dataclass(frozen=True, slots=True)
class Change:
    """A key as it is now, with the digests of its secrets and until when each is valid.

    `told` is what may be told of these secrets, in the same order.

    `key` is None where what is kept of it makes no sense.
    """

    id: str
    key: Key | None
    secrets: tuple[tuple[bytes, datetime | None], ...]
    told: "tuple[Secret, ...]" = ()


@dataclass(frozen=True, slots=True)
class Secret:
    """What may be told of a secret: its hint, and until when it is valid."""

    hint: str
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Listing:
    """Every key in the order of making, with its secrets; `odd` are the ids that make no sense."""

    keys: Sequence[tuple[Key, tuple[Secret, ...]]]
    odd: Sequence[str]


@dataclass(frozen=True, slots=True)
class Rotated:
    """A new secret, which is told this once, and the key with what may be told of all of them."""

    secret: str
    key: Key
    secrets: tuple[Secret, ...]


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
