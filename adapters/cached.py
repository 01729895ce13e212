"""An adapter around an adapter that remembers: whole records as bytes, for so many seconds.

What is remembered knows nothing of keys, levels or policies: it lies beneath them. Errors and
bookings are never remembered.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

import orjson
from aiocache.base import BaseCache  # type: ignore[import-untyped]  # it has no types
from aiocache.serializers import NullSerializer  # type: ignore[import-untyped]  # nor here
from cachebox import VTTLCache

from adapters.base import (
    Adapter,
    Condition,
    Draft,
    Filter,
    Only,
    Page,
    Query,
    Record,
    Watched,
)
from adapters.problems import Problem

T = TypeVar("T")

# A free time may be taken at the practice's own desk at any moment: so long at most is it told.
SLOTS_AT_MOST = 5.0
# Bytes that an entry costs beside its key and its value.
ENTRY = 200
# Vets share so many counters of bookings: with few a booking drops a little more than it must.
COUNTERS = 1024
_NOTHING = (-math.inf, b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """For how many seconds the answers to one kind of read are remembered; 0 for never.

    `only` are filters that every such read has: where several kinds fit a query, the one with the
    most of them is meant.
    """

    resource: str
    many: bool
    seconds: float
    only: frozenset[Filter] = frozenset()


class Memory(BaseCache):  # type: ignore[misc]  # it has no types
    """Remembers bytes in this process: at most `entries`, and at most `size` bytes in all.

    Where there is no room, what ends soonest goes first; what is larger than all is not taken.
    """

    NAME = "bounded memory"

    def __init__(
        self, entries: int, size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(serializer=NullSerializer(), timeout=0)
        self._entries = entries
        self._clock = clock
        # each value with its end: by `clock`, which does not jump
        self._kept: VTTLCache[str, tuple[float, bytes]] = VTTLCache(
            size, getsizeof=lambda key, value: ENTRY + len(key) + len(value[1])
        )

    async def _get(self, key: str, encoding: object = None, _conn: object = None) -> bytes | None:
        end, value = self._kept.get(key, _NOTHING)
        return value if self._clock() < end else None

    async def _set(
        self,
        key: str,
        value: bytes,
        ttl: float,
        _cas_token: object = None,
        _conn: object = None,
    ) -> bool:
        self._kept.pop(key, None)
        if len(self._kept) >= self._entries:
            self._kept.expire()
        if len(self._kept) >= self._entries:
            self._kept.popitem()
        try:
            self._kept.insert(key, (self._clock() + ttl, value), ttl=ttl)
        except OverflowError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Form(Generic[T]):
    """A kind of answer, to bytes and back."""

    many: bool
    write: Callable[[T], bytes]
    read: Callable[[bytes], T]


def _page(data: bytes) -> Page:
    records, after, skipped = orjson.loads(data)
    return Page(records=records, after=after, skipped=skipped)


_ONE: _Form[Record] = _Form(False, orjson.dumps, orjson.loads)
_MANY: _Form[Page] = _Form(
    True, lambda page: orjson.dumps([page.records, page.after, page.skipped]), _page
)


class Cached:
    """The inner adapter, asked once for what many want to read at about the same time.

    Who asks for what is being read waits for that answer, which comes even where the one who
    asked first has gone. A booking drops the free times of its vet and all appointments, before
    and after: what is under way meanwhile is told to those who asked before, and to nobody else.
    """

    def __init__(self, inner: Adapter, kept: Iterable[Kept], cache: BaseCache) -> None:
        self._inner = inner
        self._cache = cache
        self._kinds: dict[tuple[str, bool], list[Kept]] = {}
        for each in sorted(kept, key=lambda kind: -len(kind.only)):
            self._kinds.setdefault((each.resource, each.many), []).append(each)
        for kind, found in list(self._kinds.items()):
            if not any(each.seconds for each in found):
                del self._kinds[kind]
        self._bookings = [0] * COUNTERS
        self._all_bookings = 0
        self._reads: dict[str, asyncio.Task[Any]] = {}

    @property
    def resources(self) -> frozenset[str]:
        return self._inner.resources

    @property
    def filterable(self) -> Mapping[str, frozenset[str]]:
        return self._inner.filterable

    @property
    def excludes(self) -> bool:
        return self._inner.excludes

    @property
    def settle(self) -> float:
        return self._inner.settle

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        """As it is."""
        return self._inner.narrows(resource, only)

    async def read_one(self, query: Query) -> Record:
        """The record, perhaps as it was some seconds ago."""
        seconds = self._seconds(query, many=False)
        if not seconds:
            return await self._inner.read_one(query)
        return await self._remembered(query, seconds, _ONE, self._inner.read_one)

    async def read_many(self, query: Query) -> Page:
        """The page, perhaps as it was; a free time that has begun since is not told."""
        seconds = self._seconds(query, many=True)
        if not seconds:
            return await self._inner.read_many(query)
        page = await self._remembered(query, seconds, _MANY, self._inner.read_many)
        return _later(page, query.now) if query.resource == "slots" else page

    async def create_appointment(self, draft: Draft) -> Record:
        """As it is; whatever became of it, nothing older is told thereafter."""
        self._drop(draft.vet_id)
        try:
            return await self._inner.create_appointment(draft)
        finally:
            self._drop(draft.vet_id)

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """As it is; an appointment that is found may be newer than what is remembered."""
        try:
            return await self._inner.find_appointments(draft, since)
        finally:
            self._drop(draft.vet_id)

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        """As it is."""
        return await self._inner.find_overwritten(appointments)

    async def check(self) -> None:
        """As it is."""
        await self._inner.check()

    async def ping(self) -> None:
        """As it is."""
        await self._inner.ping()

    async def aclose(self) -> None:
        """End what nobody waits for any more, and let go of the inner adapter."""
        reads = list(self._reads.values())
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        await self._cache.close()
        await self._inner.aclose()

    def _seconds(self, query: Query, *, many: bool) -> float:
        for kind in self._kinds.get((query.resource, many), ()):
            if not kind.only or kind.only.issubset(query.filters):
                slots = query.resource == "slots"
                return min(kind.seconds, SLOTS_AT_MOST) if slots else kind.seconds
        return 0

    def _drop(self, vet: str) -> None:
        self._bookings[hash(vet) % COUNTERS] += 1
        self._all_bookings += 1

    def _version(self, query: Query) -> int:
        """What a booking changes: part of the key of all that it makes old."""
        if query.resource == "slots":
            return self._bookings[hash(query.values.get("vetId")) % COUNTERS]
        return self._all_bookings if query.resource == "appointments" else 0

    async def _remembered(
        self, query: Query, seconds: float, form: _Form[T], ask: Callable[[Query], Awaitable[T]]
    ) -> T:
        key = _key(query, form.many, self._version(query))
        if key is None:
            return await ask(query)
        kept = await self._cache.get(key)
        if kept is None:
            read = self._reads.get(key)
            if read is None:
                read = asyncio.create_task(self._read(key, seconds, form, lambda: ask(query)))
                self._reads[key] = read
                read.add_done_callback(lambda done: self._reads.pop(key))
            kept = await asyncio.shield(read)
        # each gets records of its own
        return form.read(kept) if isinstance(kept, bytes) else deepcopy(kept)

    async def _read(
        self, key: str, seconds: float, form: _Form[T], ask: Callable[[], Awaitable[T]]
    ) -> bytes | T:
        """The answer as bytes, remembered; as it is where it holds what JSON does not have."""
        answer = await ask()
        try:
            data = form.write(answer)
        except TypeError:
            return answer
        await self._cache.set(key, data, ttl=seconds)
        return data


def _key(query: Query, many: bool, version: int) -> str | None:
    """All of a query that changes the answer, in one spelling; None where it has none.

    `now` is no part of it: of what is remembered only free times look at it.
    """
    try:
        filters = sorted(map(orjson.dumps, query.filters))
        parts = [
            many,
            query.resource,
            query.id,
            [each.decode() for each in filters],
            [list(map(_spelt, only)) for only in (query.only, query.within_only)],
            query.within,
            query.values,
            query.limit,
            query.after,
            version,
        ]
        return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        return None


def _spelt(condition: Condition) -> tuple[str, str, Any]:
    """JSON has no decimals; no other value is one, so a text may stand for it."""
    value = condition.value
    bound = str(value) if isinstance(value, Decimal) else value
    return condition.field, condition.test, bound


def _later(page: Page, now: datetime) -> Page:
    """The free times that have not begun."""
    shown = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    records = [each for each in page.records if not _begun(each, shown)]
    return Page(records=records, after=page.after, skipped=page.skipped)


def _begun(slot: Record, now: str) -> bool:
    start = slot.get("startTime")
    return isinstance(start, str) and start <= now
