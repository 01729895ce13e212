"""Ids that no UUID can hold: what the adapter will ask of a table that remembers them.

A whole number is sealed and a UUID passed through; both find their way back without a table. A
longer key is a keyed hash, which only a table can turn back into the key.
"""

from collections.abc import Mapping
from typing import Protocol


class IdTable(Protocol):
    """Remembers which key of the practice system a public id was made of."""

    async def remember(self, resource: str, pairs: Mapping[str, str]) -> None:
        """Keep public id -> key, before a record with that id is shown to anybody."""

    async def find(self, resource: str, public_id: str) -> str | None:
        """The key; None for an id that was never made here."""
