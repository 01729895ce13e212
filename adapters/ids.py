"""Public ids: what a resource's keys look like from outside, and the way back.

A key that fits is sealed into its id and read out of it again. A longer one, and one of several
columns, becomes a keyed hash, found again through a table that the gateway keeps. A UUID of the
practice system's own is its own id.
"""

import json
import re
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar, Protocol, TypeVar

from cachebox import LRUCache

from adapters.base import Draft, IdTable, Query, Shapes
from adapters.convert import Unreadable, whole
from adapters.seal import Sealer, uuid_of_digest

T = TypeVar("T")

SEALED, NATIVE, HASHED = "id", "native id", "hashed id"
REMEMBERED = 65_536
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch


class PublicIds(Protocol):
    """The ids of one resource; a key of several columns is a tuple."""

    def shown(self, raw: Any) -> str | None:
        """The public id of a raw key; None for no key; Unreadable for what can be none."""

    def keys(self, public_id: str) -> tuple[Any, ...]:
        """The raw keys that have that id, as the backend may spell it; () where there is none."""


@dataclass(frozen=True, slots=True)
class SealedIds:
    """A whole number, or a text of up to 8 bytes, within its id."""

    sealer: Sealer = field(repr=False)

    def shown(self, raw: Any) -> str | None:
        key = _sealable(raw)
        try:
            return None if key is None else self.sealer.seal(key)
        except (ValueError, OverflowError) as error:
            raise Unreadable from error

    def keys(self, public_id: str) -> tuple[Any, ...]:
        key = self.sealer.unseal(public_id)
        if key is None:
            return ()
        # an expression may give a number as a text
        return (key, str(key)) if isinstance(key, int) else (key,)


def _sealable(raw: Any) -> int | str | None:
    """A key as a whole number where it is one, however it is kept; else as the text that it is."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if raw is None or raw == "":
        return None
    if isinstance(raw, str):
        # blanks at the end come of CHAR columns; '007' is no number: 7 would be another key
        text = raw.rstrip()
        return int(text) if _NUMBER(text) else text or None
    number = whole(raw)
    if number is None or isinstance(raw, bool):
        raise Unreadable
    return number


_NUMBER = re.compile("0|-?[1-9][0-9]{0,18}").fullmatch


@dataclass(frozen=True, slots=True)
class NativeIds:
    """A UUID that the practice system gives itself."""

    def shown(self, raw: Any) -> str | None:
        if raw is None or raw == "":
            return None
        text = str(raw).strip().strip("{}").lower()
        if not _UUID(text):
            raise Unreadable
        return text

    def keys(self, public_id: str) -> tuple[Any, ...]:
        return (public_id,)


class HashedIds:
    """A keyed hash of the key. Without a table (lists inside records) there is no way back."""

    def __init__(self, secret: bytes, resource: str, table: IdTable | None) -> None:
        self._resource = resource
        self._key = blake2b(b"hashed ids", key=secret, digest_size=32).digest()
        self._table = table
        self._known: LRUCache[str, str] = LRUCache(REMEMBERED)
        self._new: dict[str, str] = {}

    def shown(self, raw: Any) -> str | None:
        parts = raw if isinstance(raw, tuple) else (raw,)
        if any(each is None or each == "" for each in parts):
            return None
        plain = [_plain_key(each) for each in parts]
        # one key, whether a number is kept as one or as a text
        spelt = json.dumps([str(each) for each in plain], ensure_ascii=False)
        key = json.dumps(plain, ensure_ascii=False)
        mixed = f"{self._resource}\0{spelt}".encode()
        public_id = uuid_of_digest(blake2b(mixed, key=self._key, digest_size=16).digest())
        if self._table is not None and public_id not in self._known:
            self._new[public_id] = key
        return public_id

    def keys(self, public_id: str) -> tuple[Any, ...]:
        key = self._known.get(public_id) or self._new.get(public_id)
        if key is None:
            return ()
        parts = json.loads(key)
        return (parts[0] if len(parts) == 1 else tuple(parts),)

    async def learn(self, public_id: str) -> None:
        """Look an id up in the table, so that `keys` knows it."""
        if self._table is None or public_id in self._known:
            return
        found = await self._table.find(self._resource, [public_id])
        for each, key in found.items():
            self._known[each] = key

    async def keep(self) -> None:
        """Write the ids that were shown first since; none may leave before."""
        if self._table is None or not self._new:
            return
        new = dict(self._new)
        await self._table.remember(self._resource, new)
        for each, key in new.items():
            self._known[each] = key
            self._new.pop(each, None)


def _plain_key(raw: Any) -> Any:
    """A part of a key as JSON can keep it."""
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


@dataclass(frozen=True, slots=True)
class Id:
    """The converter of a field that refers to a resource."""

    ids: PublicIds
    compares: ClassVar[bool] = True

    def decode(self, raw: Any) -> str | None:
        return self.ids.shown(raw)

    def encode(self, value: Any) -> tuple[Any, ...]:
        return self.ids.keys(value)


_REFERS = {
    "clientId": "clients",
    "patientId": "patients",
    "vetId": "vets",
    "appointmentTypeId": "appointmentTypes",
}


class IdKeeper:
    """Looks hashed ids up before a call that names them, and keeps those of its answer.

    `hashed` are the ids of the resources that have such; without any nothing is done.
    """

    def __init__(self, hashed: Mapping[str, HashedIds], shapes: Shapes) -> None:
        self._hashed = hashed
        self._shapes = shapes

    async def learn_query(self, query: Query) -> None:
        """Look up what a query names."""
        if self._hashed:
            await self._learn(self._named(query))

    async def learn_draft(self, draft: Draft) -> None:
        """Look up what a draft names."""
        if self._hashed:
            named = (draft.client_id, draft.patient_id, draft.vet_id, draft.appointment_type_id)
            await self._learn(zip(_REFERS.values(), named, strict=True))

    async def learn_all(self, resource: str, public_ids: Iterable[str]) -> None:
        """Look up ids of one resource."""
        if resource in self._hashed:
            await self._learn((resource, each) for each in public_ids)

    async def kept(self, answer: Awaitable[T]) -> T:
        """The answer, once all the hashed ids in it are kept."""
        given = await answer
        for ids in self._hashed.values():
            await ids.keep()
        return given

    async def _learn(self, named: Iterable[tuple[str, str | None]]) -> None:
        for resource, public_id in named:
            ids = self._hashed.get(resource)
            if ids is not None and public_id is not None:
                await ids.learn(public_id)

    def _named(self, query: Query) -> Iterator[tuple[str, str | None]]:
        if query.id:
            yield query.resource, query.id
        if query.within is not None:
            yield query.within
        shapes = self._shapes.get(query.resource, {})
        for each in query.filters:
            refers = shapes[each.fields[0]].refers if each.match == "equals" else None
            if refers is not None:
                yield refers, each.value
        for name, resource in _REFERS.items():
            yield resource, query.values.get(name)
