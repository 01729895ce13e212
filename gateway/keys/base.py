"""What the road asks of the keys: one look-up, no waiting."""

from datetime import datetime
from typing import Protocol

from gateway.keys.key import Key


class KeyRing(Protocol):
    """The keys that are valid now."""

    def find(self, digest: bytes, now: datetime) -> Key | None:
        """The key behind a secret's digest; None for unknown, revoked and expired alike."""

    def touch(self, key_id: str, now: datetime) -> None:
        """Remember that the key was used."""
