"""What the road asks of the keys: one look-up, no waiting."""

from datetime import datetime
from typing import Protocol

from gateway.keys.key import Key


class KeysUnreadable(Exception):
    """The key store has not been readable for so long that nobody can say who a caller is."""


class KeyRing(Protocol):
    """The keys that are valid now."""

    def find(self, digest: bytes, now: datetime) -> Key | None:
        """The key behind a secret's digest; None for unknown, revoked and expired alike.

        KeysUnreadable where that cannot be said.
        """

    @property
    def behind(self) -> bool:
        """Whether it has been long since the keys were read, as after a pause of the process."""

    async def catch_up(self) -> None:
        """Read them now, if that goes quickly."""

    def touch(self, key_id: str, now: datetime) -> None:
        """Remember that the key was used."""
