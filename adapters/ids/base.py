"""The shape of the ids of one resource, and the converter of a field that holds one."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


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
