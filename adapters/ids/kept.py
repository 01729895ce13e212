"""What ids stand for, where a table of the gateway's has to say it."""

import asyncio

from cachebox import LRUCache

from adapters.base import IdTable
from adapters.values.convert import Unreadable

REMEMBERED = 65_536
# By one who keeps none in the table, and looks at every row.
REMEMBERED_UNKEPT = 1_000_000
# New ids that wait for the table while it cannot be written, and how many of them go there at once.
MOST_WAITING = 65_536
AT_ONCE = 1_000


class KeptIds:
    """What the ids of one resource stand for, by a table; keys are texts of JSON.

    While the table cannot be written no answer with a new id leaves, and MOST_WAITING wait for it.
    Beyond that a new id is Unreadable: its row is left out, rather than shown under an id that may
    never lead back.
    """

    def __init__(self, resource: str, table: IdTable | None) -> None:
        self._resource = resource
        self._table = table
        self._known: LRUCache[str, str] = LRUCache(REMEMBERED)
        self._new: dict[str, str] = {}
        self._certain: set[str] = set()
        self._writing = asyncio.Lock()
        self._keeps = True

    def find(self, public_id: str) -> str | None:
        """The key, of an id that was shown or learnt."""
        return self._new.get(public_id) or self._known.get(public_id)

    def add(self, public_id: str, key: str, *, certain: bool = False) -> None:
        """To be kept; Unreadable where too many wait for that already.

        A key that is `certain` takes the place of another one; else the first stays.
        """
        known = self.find(public_id)
        if self._table is None or not (known is None or certain):
            return
        if known == key and public_id not in self._new:
            return
        if not self._keeps:
            self._known[public_id] = key
            return
        if public_id not in self._new and len(self._new) >= MOST_WAITING:
            raise Unreadable
        self._new[public_id] = key
        if certain:
            self._certain.add(public_id)

    def keep_none(self) -> None:
        """For one who shows the ids to nobody: none has to wait for the table, nor is refused."""
        self._keeps = False
        self._known = LRUCache(REMEMBERED_UNKEPT)

    async def learn(self, public_id: str) -> None:
        """Look an id up in the table, so that `find` knows it."""
        if self._table is None or self.find(public_id) is not None:
            return
        found = await self._table.find(self._resource, [public_id])
        for each, key in found.items():
            self._known[each] = key

    async def keep(self) -> None:
        """Write the ids that were shown first since; none may leave before."""
        if self._table is None or not self._new:
            return
        async with self._writing:  # what another request has written meanwhile waits no longer
            waiting = list(self._new.items())
            for start in range(0, len(waiting), AT_ONCE):
                await self._write(self._table, dict(waiting[start : start + AT_ONCE]))

    async def make_room(self) -> None:
        """Write them now where no more may wait, before anything is asked of the backend."""
        if len(self._new) >= MOST_WAITING:
            await self.keep()

    async def _write(self, table: IdTable, new: dict[str, str]) -> None:
        certain = {each: key for each, key in new.items() if each in self._certain}
        others = {each: key for each, key in new.items() if each not in certain}
        if certain:
            await table.respell(self._resource, certain)
        kept: dict[str, str] = dict(new)
        if others:
            await table.remember(self._resource, others)
            # another worker may have known it better
            kept |= await table.find(self._resource, list(others))
        for each, key in new.items():
            self._known[each] = kept[each]
            if self._new.get(each) == key and (each in certain or each not in self._certain):
                del self._new[each]
                self._certain.discard(each)
