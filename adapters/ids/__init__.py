"""Public ids: what a resource's keys look like from outside, and the way back.

A key that fits is sealed into its id and read out of it again. A longer one, and one of several
columns, becomes a keyed hash, found again through a table that the gateway keeps. A UUID of the
practice system's own is its own id, in lower case whatever case it is kept in.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from adapters.ids.keeper import IdKeeper
from adapters.ids.seal import SealedIds
from adapters.ids.tabled import AT_ONCE, HashedIds, NativeIds, plain_uuid

__all__ = [
    "AT_ONCE",
    "HASHED",
    "NATIVE",
    "SEALED",
    "HashedIds",
    "Id",
    "IdKeeper",
    "NativeIds",
    "PublicIds",
    "SealedIds",
    "plain_uuid",
]

SEALED, NATIVE, HASHED = "id", "native id", "hashed id"


class PublicIds(Protocol):
    """The ids of one resource; a key of several columns is a tuple."""

    def shown(self, raw: Any) -> str | None:
        """The public id of a raw key; None for no key; Unreadable for what can be none."""

    def referred(self, raw: Any) -> str | None:
        """The same of a key that refers to the resource: it may be spelt otherwise there."""

    def keys(self, public_id: str) -> tuple[Any, ...]:
        """The raw keys that have that id, as the backend may spell it; () where there is none.

        The first is the one to write.
        """


@dataclass(frozen=True, slots=True)
class Id:
    """The converter of a field that refers to a resource, or of the resource's `own` key."""

    ids: PublicIds
    own: bool = False
    compares: ClassVar[bool] = True

    def decode(self, raw: Any) -> str | None:
        return self.ids.shown(raw) if self.own else self.ids.referred(raw)

    def encode(self, value: Any) -> tuple[Any, ...]:
        return self.ids.keys(value)
