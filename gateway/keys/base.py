"""What the road asks of the keys: one look-up, no waiting."""

from datetime import datetime
from typing import Protocol

from gateway.keys.key import Key


class KeysUnreadable(Exception):
    """The key store has not been readable for so long that nobody can say who a caller is.

    `retry_after` are the seconds until it is read again.
    """

    def __init__(self, retry_after: float) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after


class KeysBehind(Exception):
    """It has been long since the keys were read, as after a pause of the process: catch up."""


class KeyRing(Protocol):
    """The keys that are valid now."""

    def find(self, digest: bytes, now: datetime, *, settled: bool = False) -> Key | None:
        """The key behind a secret's digest; None for unknown, revoked and expired alike.

        KeysBehind where it has been long since the keys were read, unless the caller has seen to
        that; KeysUnreadable where nobody can tell any more.
        """

    async def catch_up(self) -> None:
        """Read them now, if that goes quickly."""

    def owner_of(self, digest: bytes) -> str:
        """The id of the key whose secret has, or had, that digest, good or not; else "".

        For the figures: whoever is refused must not be told any of it, not by the time either.
        """

    def touch(self, key_id: str, now: datetime) -> None:
        """Remember that the key was used."""
