"""Places in a list that are too long for a cursor of ours: the gateway's store keeps those."""

from hashlib import blake2b

from adapters.base import LONGEST_AFTER, BackendNonsense, IdTable
from adapters.ids.seal import uuid_of_digest

# No server takes an address that is longer.
LONGEST_KEPT = 8_000
# Under this name they stand among the ids of the resources.
SHELF = "places of lists"


class Places:
    """A long place under a keyed hash; a place is a JSON array, so a hash is told from it."""

    def __init__(self, secret: bytes, table: IdTable | None) -> None:
        self._key = blake2b(b"places of lists", key=secret, digest_size=32).digest()
        self._table = table

    async def short(self, place: str | None) -> str | None:
        """What stands for the place in LONGEST_AFTER; BackendNonsense beyond LONGEST_KEPT.

        Without a table no way leads back from a hash.
        """
        if place is None or len(place) <= LONGEST_AFTER:
            return place
        if len(place) > LONGEST_KEPT:
            raise BackendNonsense("where the next page begins is too long a text to be kept")
        digest = blake2b(place.encode(), key=self._key, digest_size=16).digest()
        name = uuid_of_digest(digest)
        if self._table is not None:
            await self._table.remember(SHELF, {name: place})
        return name

    async def whole(self, after: str | None) -> str | None:
        """The place that it stands for; BackendNonsense where nobody knows it any more."""
        if after is None or after.startswith("["):
            return after
        found = {} if self._table is None else await self._table.find(SHELF, [after])
        if after not in found:
            raise BackendNonsense(
                "the gateway's store does not know where the next page begins: was it put back"
                " from an older copy? Begin the list anew"
            )
        return found[after]
