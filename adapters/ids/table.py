"""Ids that need a table to lead back to their key: keyed hashes, and UUIDs in an odd spelling.

Before a call the ids that it names are looked up, where the table may hold them. A UUID whose
record is asked for is looked up only once none is found under its usual spellings. After a call
those of its answer are kept.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, TypeVar

from cachebox import LRUCache

from adapters.base import (
    AdapterError,
    BackendNonsense,
    Draft,
    IdTable,
    NotFound,
    Only,
    OutcomeUnknown,
    Query,
    Rejected,
    Shapes,
)  # fmt: skip
from adapters.ids.lookups import Lookups
from adapters.ids.seal import PublicIds, uuid_of_digest
from adapters.values.convert import Unreadable, by_value

T = TypeVar("T")

# The resource that a field of a draft, or of a query for free slots, refers to.
REFERS = {
    "clientId": "clients",
    "patientId": "patients",
    "vetId": "vets",
    "appointmentTypeId": "appointmentTypes",
}
REMEMBERED = 65_536
# The same where none is kept in the table, and every row is looked at.
REMEMBERED_UNKEPT = 1_000_000
# How many new ids wait while the table cannot be written, and how many are written at once.
MOST_WAITING = 65_536
AT_ONCE = 1_000


class TabledIds(PublicIds):
    """The ids of one resource, and the keys that a table keeps for them as texts of JSON.

    While the table cannot be written, no answer with a new id is returned, and up to MOST_WAITING
    new ids wait. Beyond these a new id is Unreadable: its row is left out, and not shown under an
    id that may never lead back.
    """

    def __init__(self, resource: str, table: IdTable | None) -> None:
        self._resource, self._table = resource, table
        self._known: LRUCache[str, str] = LRUCache(REMEMBERED)
        # the key, and whether it is certain
        self._new: dict[str, tuple[str, bool]] = {}
        self._writing = asyncio.Lock()
        self._lookups = None if table is None else Lookups(resource, table)
        self._keeps = True

    def find(self, public_id: str) -> str | None:
        """Returns the key of an id that was shown or learnt, else None."""
        new = self._new.get(public_id)
        return new[0] if new else self._known.get(public_id)

    def add(self, public_id: str, key: str, *, certain: bool = False) -> None:
        """Notes an id to keep; a `certain` key replaces another. Unreadable where too many wait."""
        known, waits = self.find(public_id), public_id in self._new
        if self._table is None or (known is not None and not certain):
            return
        if not self._keeps:
            self._known[public_id] = key
        elif waits or known != key:
            if not waits and len(self._new) >= MOST_WAITING:
                raise Unreadable
            self._new[public_id] = key, certain

    def keep_none(self) -> None:
        """Stops keeping ids in the table, for a process that shows them to nobody."""
        self._keeps = False
        self._known = LRUCache(REMEMBERED_UNKEPT)

    async def learn(self, public_id: str) -> None:
        """Looks an id up in the table, so that `find` knows it."""
        if self._lookups is not None and self.find(public_id) is None:
            key = await self._lookups.find(public_id)
            if key is not None:
                self._known[public_id] = key

    @property
    def waiting(self) -> int:
        """The number of new ids that are not in the table yet."""
        return len(self._new)

    async def keep(self) -> None:
        """Writes new ids to the table. No answer may leave before."""
        table = self._table
        if table is None or not self._new:
            return
        async with self._writing:  # ids that another request has written meanwhile wait no longer
            waiting = list(self._new.items())
            for start in range(0, len(waiting), AT_ONCE):
                new = dict(waiting[start : start + AT_ONCE])
                certain = {id_: key for id_, (key, is_certain) in new.items() if is_certain}
                others = {id_: key for id_, (key, is_certain) in new.items() if not is_certain}
                if certain:
                    await table.respell(self._resource, certain)
                known: Mapping[str, str] = {}
                if others:
                    await table.remember(self._resource, others)
                    # another worker may have been certain of it
                    known = await table.find(self._resource, list(others))
                for public_id, entry in new.items():
                    self._known[public_id] = known.get(public_id, entry[0])
                    if self._new.get(public_id) == entry:
                        del self._new[public_id]


class HashedIds(TabledIds):
    """Ids that are keyed hashes. Without a table (lists inside records) none leads back."""

    def __init__(self, secret: bytes, resource: str, table: IdTable | None) -> None:
        super().__init__(resource, table)
        self._key = blake2b(b"hashed ids", key=secret, digest_size=32).digest()

    def shown(self, raw: Any) -> str | None:
        parts = raw if isinstance(raw, tuple) else (raw,)
        if None in parts or "" in parts:
            return None
        plain = [_plain_key(part) for part in parts]
        # the same id, whether a number is kept as a number or as a text
        spelt = json.dumps([str(part) for part in plain], ensure_ascii=False)
        mixed = f"{self._resource}\0{spelt}".encode()
        public_id = uuid_of_digest(blake2b(mixed, key=self._key, digest_size=16).digest())
        self.add(public_id, json.dumps(plain, ensure_ascii=False))
        return public_id

    def keys(self, public_id: str) -> tuple[Any, ...]:
        key = self.find(public_id)
        if key is None:
            return ()
        parts = json.loads(key)
        return (parts[0] if len(parts) == 1 else tuple(parts),)


def _plain_key(raw: Any) -> Any:
    """Returns a part of a key as JSON can keep it."""
    raw = by_value(raw)
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, float) and abs(raw) >= 2**53:  # rounded: it may be another key's too
        raise Unreadable
    if isinstance(raw, bytes):
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise Unreadable from error
    return raw.rstrip() if isinstance(raw, str) else str(raw)


_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").fullmatch


def _plain_uuid(raw: Any) -> str | None:
    """Returns a UUID in lower case without braces; None for no value. Raises Unreadable."""
    if raw is None or raw == "":
        return None
    if type(raw) is str and _UUID(raw):
        return raw
    public_id = str(raw).strip().strip("{}").lower()
    if not _UUID(public_id):
        raise Unreadable
    return public_id


class NativeIds(TabledIds):
    """Ids that are the practice system's own UUIDs, kept as UUIDs or as texts in any case.

    The resource's own key says how an id is spelt. Keys that refer to it may be spelt otherwise,
    and count only while nothing else is known. Lower and upper case are both tried. A spelling in
    mixed case or in braces needs the table to be found again after a restart. Where a backend is
    asked for `one_spelling` alone, so does upper case.

    Nearly every practice spells all its UUIDs in a way that is tried. There the table is never
    asked: the first id that is spelt oddly is announced to all processes before it is shown.
    """

    def __init__(
        self, resource: str = "", table: IdTable | None = None, *, one_spelling: bool = False
    ) -> None:
        super().__init__(resource, table)
        self._one_spelling = one_spelling
        # how the resource's own keys are spelt; lower case only where that saves a look-up
        self._met: LRUCache[str, str] = LRUCache(REMEMBERED)
        self._notes_all = one_spelling

    def shown(self, raw: Any) -> str | None:
        if type(raw) is str and self._met.get(raw) == raw:
            return raw
        public_id = _plain_uuid(raw)
        if public_id is None:
            return None
        spelt = str(raw).strip()
        if not self._is_tried(public_id, spelt) or self.find(public_id) is not None:
            self.add(public_id, json.dumps(spelt), certain=True)
        if spelt != public_id or self._notes_all:
            self._met[public_id] = spelt
        elif self._met:
            self._met.pop(public_id, None)
        return public_id

    def referred(self, raw: Any) -> str | None:
        public_id = _plain_uuid(raw)
        if public_id is None or public_id in self._met:
            return public_id
        spelt = str(raw).strip()
        if not self._is_tried(public_id, spelt):
            self.add(public_id, json.dumps(spelt))
        return public_id

    def add(self, public_id: str, key: str, *, certain: bool = False) -> None:
        self._notes_all = True
        if self._table is None:  # of a resource whose own ids are of another kind
            self._known[public_id] = key
        super().add(public_id, key, certain=certain)

    def keys(self, public_id: str) -> tuple[Any, ...]:
        entry = self.find(public_id)
        spelt = self._met.get(public_id), entry and json.loads(entry), public_id, public_id.upper()
        return tuple(dict.fromkeys(spelling for spelling in spelt if spelling))

    async def learn(self, public_id: str) -> None:
        """Looks up in the table how an id is spelt, unless that is known or the table has none."""
        table = self._table
        if table is None or public_id in self._met or self.find(public_id) is not None:
            return
        if await table.may_hold(self._resource):
            self._notes_all = True
            await super().learn(public_id)

    async def keep(self) -> None:
        if self._table is not None and self._new:
            await self._table.announce(self._resource)
        await super().keep()

    def _is_tried(self, public_id: str, spelt: str) -> bool:
        """Returns whether `keys` tries that spelling anyway."""
        return spelt == public_id or (not self._one_spelling and spelt == public_id.upper())


class IdKeeper:
    """Looks ids up in the table before a call that names them, and keeps those of its answer."""

    def __init__(self, tabled: Mapping[str, HashedIds | NativeIds], shapes: Shapes) -> None:
        self._tabled = tabled
        self._shapes = shapes

    async def read(self, query: Query, ask: Callable[[], Awaitable[T]]) -> T:
        """Returns the record that `ask` reads, once its ids are kept.

        A UUID that names none is looked up, and asked for once more if it is spelt otherwise.
        """
        if not self._tabled:
            return await ask()
        ids = self._tabled.get(query.resource)
        if not isinstance(ids, NativeIds):
            await self.learn_query(query)
            return await self.kept(ask())
        if query.only or self._waiting(MOST_WAITING):
            await self._learn(self._meant(query.resource, query.only))
        tried = ids.keys(query.id)
        try:
            record = await ask()
        except (NotFound, BackendNonsense, Rejected):  # as backends refuse what they cannot read
            await ids.learn(query.id)
            if ids.keys(query.id) == tried:
                raise
            record = await ask()
        for new in self._waiting(1):
            await new.keep()
        return record

    async def learn_query(self, query: Query) -> None:
        """Makes room for the ids of the answer, then looks up those that a query names."""
        await self._learn(self._named(query))

    async def learn_draft(self, draft: Draft) -> None:
        """Makes room for the ids of the booking, then looks up those that a draft names."""
        await self._learn((refers, draft.asked[name]) for name, refers in REFERS.items())

    async def learn_all(self, resource: str, public_ids: Iterable[str]) -> None:
        await self._learn((resource, public_id) for public_id in public_ids)

    async def kept(self, answer: Awaitable[T], *, is_booking: bool = False) -> T:
        """Returns the answer once its ids are kept; for a booking, OutcomeUnknown if not."""
        result = await answer
        try:
            for ids in self._waiting(1):
                await ids.keep()
        except AdapterError as error:
            if is_booking:
                raise OutcomeUnknown("it was booked, and its id could not be kept") from error
            raise
        return result

    async def _learn(self, named: Iterable[tuple[str, str | None]]) -> None:
        if not self._tabled:
            return
        for ids in self._waiting(MOST_WAITING):  # room for what the backend is about to answer
            await ids.keep()
        for resource, public_id in named:
            if resource in self._tabled and public_id is not None:
                await self._tabled[resource].learn(public_id)

    def _waiting(self, least: int) -> list[HashedIds | NativeIds]:
        """Returns those of which at least so many new ids are not in the table yet."""
        return [ids for ids in self._tabled.values() if ids.waiting >= least]

    def _named(self, query: Query) -> Iterator[tuple[str, str | None]]:
        """Yields the ids that a query and its conditions name: they must be known to be found."""
        shapes = self._shapes.get(query.resource, {})
        if query.id:
            yield query.resource, query.id
        for filter_ in query.filters:
            if filter_.match == "equals" and (refers := shapes[filter_.fields[0]].refers):
                yield refers, filter_.value
        yield from self._meant(query.resource, query.only)
        if query.within is not None:
            yield query.within
            yield from self._meant(query.within[0], query.within_only)
        for name, resource in REFERS.items():
            yield resource, query.values.get(name)

    def _meant(self, resource: str, only: Only) -> Iterator[tuple[str, str]]:
        for condition in only:
            refers = self._shapes[resource][condition.field].refers
            if target := resource if condition.field == "id" else refers:
                yield from ((target, public_id) for public_id in condition.value)
