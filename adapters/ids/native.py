"""Ids that the practice system gives itself, however it spells them."""

import json
import re
from typing import Any

from cachebox import LRUCache

from adapters.base import IdTable
from adapters.ids.kept import REMEMBERED, KeptIds
from adapters.values.convert import Unreadable

_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch


def plain_uuid(raw: Any) -> str | None:
    """A UUID in lower case without braces, by which two spellings are one; None for none.

    Unreadable for what is no UUID.
    """
    if raw is None or raw == "":
        return None
    public_id = str(raw).strip().strip("{}").lower()
    if not _UUID(public_id):
        raise Unreadable
    return public_id


class NativeIds:
    """A UUID that the practice system gives itself, kept as one or as a text in any case.

    The resource's own key says how it is spelt; what refers to it may spell it otherwise, and is
    believed only while nothing else is known. A text in lower or in upper case is looked for as
    both. One that is written otherwise, in mixed case or in braces, needs the table to be found
    again after a restart; where a backend is asked for `one_spelling` alone, so does upper case.
    """

    def __init__(
        self, resource: str = "", table: IdTable | None = None, *, one_spelling: bool = False
    ) -> None:
        self.kept = KeptIds(resource, table)
        self._one_spelling = one_spelling
        # as the resource's own key spells it, and as others do
        self._met: LRUCache[str, str] = LRUCache(REMEMBERED)
        self._referred: LRUCache[str, str] = LRUCache(REMEMBERED)

    def shown(self, raw: Any) -> str | None:
        public_id = plain_uuid(raw)
        if public_id is None:
            return None
        spelt = str(raw).strip()
        if not self._is_tried(public_id, spelt) or self.kept.find(public_id) is not None:
            self.kept.add(public_id, json.dumps(spelt), certain=True)
        self._met[public_id] = spelt
        return public_id

    def referred(self, raw: Any) -> str | None:
        public_id = plain_uuid(raw)
        if public_id is None or public_id in self._met:
            return public_id
        spelt = str(raw).strip()
        if not self._is_tried(public_id, spelt):
            self.kept.add(public_id, json.dumps(spelt))
        self._referred[public_id] = spelt
        return public_id

    def keys(self, public_id: str) -> tuple[Any, ...]:
        kept = self.kept.find(public_id)
        known = self._met.get(public_id), kept and json.loads(kept), self._referred.get(public_id)
        spelt = *known, public_id, public_id.upper()
        return tuple(dict.fromkeys(each for each in spelt if each))

    async def learn(self, public_id: str) -> None:
        """Look up in the table how an id is spelt that was not met yet."""
        if public_id not in self._met:
            await self.kept.learn(public_id)

    async def keep(self) -> None:
        """As KeptIds."""
        await self.kept.keep()

    def _is_tried(self, public_id: str, spelt: str) -> bool:
        """Whether it is looked for in that spelling without being known."""
        return spelt == public_id or (not self._one_spelling and spelt == public_id.upper())
