"""Ids of keys that do not fit into one."""

import json
from hashlib import blake2b
from typing import Any

from adapters.base import IdTable
from adapters.ids.kept import KeptIds
from adapters.ids.seal import uuid_of_digest
from adapters.values.convert import Unreadable, by_value


class HashedIds:
    """A keyed hash of the key. Without a table (lists inside records) there is no way back."""

    def __init__(self, secret: bytes, resource: str, table: IdTable | None) -> None:
        self._resource = resource
        self._key = blake2b(b"hashed ids", key=secret, digest_size=32).digest()
        self.kept = KeptIds(resource, table)

    def shown(self, raw: Any) -> str | None:
        parts = raw if isinstance(raw, tuple) else (raw,)
        if any(each is None or each == "" for each in parts):
            return None
        plain = [_plain_key(each) for each in parts]
        # one key, whether a number is kept as one or as a text
        spelt = json.dumps([str(each) for each in plain], ensure_ascii=False)
        mixed = f"{self._resource}\0{spelt}".encode()
        public_id = uuid_of_digest(blake2b(mixed, key=self._key, digest_size=16).digest())
        self.kept.add(public_id, json.dumps(plain, ensure_ascii=False))
        return public_id

    def referred(self, raw: Any) -> str | None:
        return self.shown(raw)

    def keys(self, public_id: str) -> tuple[Any, ...]:
        key = self.kept.find(public_id)
        if key is None:
            return ()
        parts = json.loads(key)
        return (parts[0] if len(parts) == 1 else tuple(parts),)

    async def learn(self, public_id: str) -> None:
        """Look an id up in the table, so that `keys` knows it."""
        await self.kept.learn(public_id)

    async def keep(self) -> None:
        """As KeptIds."""
        await self.kept.keep()


def _plain_key(raw: Any) -> Any:
    """A part of a key as JSON can keep it."""
    raw = by_value(raw)
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, str):
        return raw.rstrip()
    if isinstance(raw, bytes):
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise Unreadable from error
    if isinstance(raw, float) and abs(raw) >= 2**53:  # rounded: another key's too
        raise Unreadable
    return str(raw)
