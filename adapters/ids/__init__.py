"""Public ids: what a resource's keys look like from outside, and the way back.

A key that fits is sealed into its id and read out of it again. A longer one, and one of several
columns, becomes a keyed hash, found again through a table that the gateway keeps. A UUID of the
practice system's own is its own id, in lower case whatever case it is kept in.
"""

from dataclasses import dataclass
from typing import Any

from adapters.ids.keeper import IdKeeper
from adapters.ids.seal import PublicIds, SealedIds
from adapters.ids.tabled import HashedIds, NativeIds
from adapters.values.convert import AsItIs

__all__ = [
    "HASHED",
    "NATIVE",
    "SEALED",
    "HashedIds",
    "Id",
    "IdKeeper",
    "NativeIds",
    "PublicIds",
    "SealedIds",
]

SEALED, NATIVE, HASHED = "id", "native id", "hashed id"


@dataclass(frozen=True, slots=True)
class Id(AsItIs):
    """The converter of a field that refers to a resource, or of the resource's `own` key."""

    ids: PublicIds
    own: bool = False

    def decode(self, raw: Any) -> str | None:
        return self.ids.shown(raw) if self.own else self.ids.referred(raw)

    def encode(self, value: Any) -> tuple[Any, ...]:
        return self.ids.keys(value)
