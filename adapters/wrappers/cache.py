"""An adapter around an adapter that caches whole records as bytes, for a number of seconds.

The cache lies beneath keys, levels and policies, and knows nothing of them. Errors and bookings are
never cached.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson

from adapters.base import Adapter, Draft, Filter, Page, Query, Record
from adapters.call_notes import CALL_NOTES, CachedAnswer, timed
from adapters.wrappers import Around
from adapters.wrappers.memory import Memory

Ask = Callable[[Query], Awaitable[Page]]

# The most seconds for free times, which the practice's own desk may book at any moment.
SLOTS_AT_MOST = 5.0
# The mark under which all appointments are cached; free times have one of their vet.
APPOINTMENTS = "appointments"
NEVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRule:
    """For how many seconds the answers to one kind of read are cached; 0 for never.

    `only` are filters that every such read has. Where several rules fit a query, the one with the
    most filters holds.
    """

    resource: str
    many: bool
    seconds: float
    only: frozenset[Filter] = frozenset()


class Cached(Around):
    """Asks the inner adapter once for what many want to read at about the same time.

    A call for what is being read already waits for that answer, which comes even where the first
    caller has gone. A booking drops the free times of its vet and all appointments, before and
    after it. A read that is under way then still answers those who asked before, and nobody else.
    """

    def __init__(self, inner: Adapter, rules: Iterable[CacheRule], memory: Memory) -> None:
        super().__init__(inner)
        self._memory = memory
        all_rules: dict[tuple[str, bool], list[CacheRule]] = {}
        for rule in sorted(rules, key=lambda rule: -len(rule.only)):
            most = SLOTS_AT_MOST if rule.resource == "slots" else rule.seconds
            bounded = replace(rule, seconds=min(rule.seconds, most))
            all_rules.setdefault((rule.resource, rule.many), []).append(bounded)
        # without the kinds that are never cached, so that most calls ask no rule
        self._rules = {
            kind: found for kind, found in all_rules.items() if any(rule.seconds for rule in found)
        }
        self._drops = 0
        self._joined = self._missed = 0
        self._reads: dict[tuple[str, bytes | None, int], asyncio.Task[CachedAnswer | Page]] = {}

    @property
    def outcomes(self) -> dict[str, int]:
        """Cacheable reads: answered from the cache, by another call's answer, and asked."""
        return {"hit": self._memory.hits, "joined": self._joined, "miss": self._missed}

    def read_one(self, query: Query) -> Coroutine[Any, Any, Record]:
        """Returns the record, perhaps as it was some seconds ago."""
        seconds = self._seconds(query, many=False)
        # one await less for what is never cached
        return self._cached_one(query, seconds) if seconds else self._inner.read_one(query)

    async def _cached_one(self, query: Query, seconds: float) -> Record:
        async def ask(query: Query) -> Page:
            return Page(records=[await self._inner.read_one(query)])

        return (await self._remembered(query, seconds, ask, many=False)).records[0]

    async def read_many(self, query: Query) -> Page:
        """Returns the page, perhaps as it was, without free times that have begun since."""
        seconds = self._seconds(query, many=True)
        if not seconds:
            return await self._inner.read_many(query)
        page = await self._remembered(query, seconds, self._inner.read_many, many=True)
        if query.resource != "slots":
            return page
        now = query.now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        records = [slot for slot in page.records if not _has_begun(slot, now)]
        return Page(records=records, after=page.after, skipped=page.skipped)

    async def create_appointment(self, draft: Draft) -> Record:
        """Books, and drops what a booking may have changed, whatever becomes of it."""
        await self._drop(draft.vet_id)
        try:
            return await self._inner.create_appointment(draft)
        finally:
            await self._drop(draft.vet_id)

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """Looks for appointments, and drops what is cached, as they may be newer."""
        try:
            return await self._inner.find_appointments(draft, since)
        finally:
            await self._drop(draft.vet_id)

    async def aclose(self) -> None:
        """Ends reads that nobody waits for any more; closes the memory and the inner adapter."""
        reads = list(self._reads.values())
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        await self._memory.aclose()
        await super().aclose()

    def _seconds(self, query: Query, *, many: bool) -> float:
        for rule in self._rules.get((query.resource, many), ()):
            if rule.only.issubset(query.filters):
                return rule.seconds
        return 0.0

    async def _drop(self, vet: str) -> None:
        self._drops += 1
        await self._memory.drop([_vet(vet), APPOINTMENTS])

    async def _remembered(self, query: Query, seconds: float, ask: Ask, *, many: bool) -> Page:
        query = msgspec.structs.replace(query, fields=None)  # whole records, for all who ask
        key = _key(query, many)
        if key is None:
            return await ask(query)
        version, found = await self._memory.look(key, _mark(query))
        answer: CachedAnswer | Page
        # a call after a booking does not wait for what was read before it
        turn = (key, version, self._drops)
        if found is not None:
            answer = found
        elif (read := self._reads.get(turn)) is not None:
            self._joined += 1
            with timed("seconds"):  # counted as if it asked itself
                answer = await asyncio.shield(read)
        else:
            self._missed += 1
            read = asyncio.create_task(self._read(query, ask, key, version, seconds))
            self._reads[turn] = read
            read.add_done_callback(lambda done: self._reads.pop(turn))
            answer = await asyncio.shield(read)
        # each gets records of its own
        if isinstance(answer, Page):
            return deepcopy(answer)
        if query.resource != "slots":  # which depend on the present
            CALL_NOTES.get().cached = answer
        records, after, skipped = orjson.loads(answer.data)
        return Page(records=records, after=after, skipped=skipped)

    async def _read(
        self, query: Query, ask: Ask, key: str, version: bytes | None, seconds: float
    ) -> CachedAnswer | Page:
        """Caches the answer and returns it as bytes, or as it is where JSON cannot hold it."""
        page = await ask(query)
        try:
            data = orjson.dumps([page.records, page.after, page.skipped])
        except TypeError:
            return page
        if version is None:
            return CachedAnswer(data)
        return await self._memory.keep(key, _mark(query), version, data, seconds)


def _mark(query: Query) -> str:
    """Returns the mark by which a booking drops the answer, if it does."""
    if query.resource == "slots":
        return _vet(query.values.get("vetId"))
    return APPOINTMENTS if query.resource == "appointments" else ""


def _vet(vet: object) -> str:
    return f"vet {vet}"


def _key(query: Query, many: bool) -> str | None:
    """Returns all of a query that changes the answer, in one spelling; None where it has none.

    `now` is no part of it, as it matters only to free times, which `read_many` filters.
    """
    try:
        filters = tuple(sorted(query.filters, key=msgspec.json.encode))
        timeless = msgspec.structs.replace(query, now=NEVER, filters=filters)
        return msgspec.json.encode([many, timeless], order="sorted").decode()
    except (TypeError, ValueError):
        return None


def _has_begun(slot: Record, now: str) -> bool:
    start = slot.get("startTime")
    return isinstance(start, str) and start <= now
