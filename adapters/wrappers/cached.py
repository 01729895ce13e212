"""An adapter around an adapter that remembers: whole records as bytes, for so many seconds.

What is remembered knows nothing of keys, levels or policies: it lies beneath them. Errors and
bookings are never remembered.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson

from adapters.asking import timed
from adapters.base import Adapter, Draft, Filter, Page, Query, Record
from adapters.wrappers import Around
from adapters.wrappers.memory import Memory

Ask = Callable[[Query], Awaitable[Page]]

# A free time may be taken at the practice's own desk at any moment: so long at most is it told.
SLOTS_AT_MOST = 5.0
# The mark under which all appointments are remembered; free times have one of their vet.
APPOINTMENTS = "appointments"
NEVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRule:
    """For how many seconds the answers to one kind of read are remembered; 0 for never.

    `only` are filters that every such read has: where several kinds fit a query, the one with the
    most of them is meant.
    """

    resource: str
    many: bool
    seconds: float
    only: frozenset[Filter] = frozenset()


class Cached(Around):
    """The inner adapter, asked once for what many want to read at about the same time.

    Who asks for what is being read waits for that answer, which comes even where the one who
    asked first has gone. A booking drops the free times of its vet and all appointments, before
    and after: what is under way meanwhile is told to those who asked before, and to nobody else.
    """

    def __init__(self, inner: Adapter, kept: Iterable[CacheRule], memory: Memory) -> None:
        super().__init__(inner)
        self._memory = memory
        self._kinds: dict[tuple[str, bool], list[CacheRule]] = {}
        for each in sorted(kept, key=lambda kind: -len(kind.only)):
            self._kinds.setdefault((each.resource, each.many), []).append(each)
        self._drops = 0
        # of what may be remembered: told from memory, told with another's answer, asked
        self.outcomes = {"hit": 0, "joined": 0, "miss": 0}
        self._reads: dict[tuple[str, bytes | None, int], asyncio.Task[Any]] = {}

    async def read_one(self, query: Query) -> Record:
        """The record, perhaps as it was some seconds ago."""
        seconds = self._seconds(query, many=False)
        if not seconds:
            return await self._inner.read_one(query)

        async def ask(query: Query) -> Page:
            return Page(records=[await self._inner.read_one(query)])

        return (await self._remembered(query, seconds, ask, many=False)).records[0]

    async def read_many(self, query: Query) -> Page:
        """The page, perhaps as it was; a free time that has begun since is not told."""
        seconds = self._seconds(query, many=True)
        if not seconds:
            return await self._inner.read_many(query)
        page = await self._remembered(query, seconds, self._inner.read_many, many=True)
        if query.resource != "slots":
            return page
        shown = query.now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        records = [slot for slot in page.records if not _has_begun(slot, shown)]
        return Page(records=records, after=page.after, skipped=page.skipped)

    async def create_appointment(self, draft: Draft) -> Record:
        """As it is; whatever became of it, nothing older is told thereafter."""
        await self._drop(draft.vet_id)
        try:
            return await self._inner.create_appointment(draft)
        finally:
            await self._drop(draft.vet_id)

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """As it is; an appointment that is found may be newer than what is remembered."""
        try:
            return await self._inner.find_appointments(draft, since)
        finally:
            await self._drop(draft.vet_id)

    async def aclose(self) -> None:
        """End what nobody waits for any more, and let go of the inner adapter."""
        reads = list(self._reads.values())
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        await self._memory.aclose()
        await super().aclose()

    def _seconds(self, query: Query, *, many: bool) -> float:
        kinds = self._kinds.get((query.resource, many), ())
        seconds = next((kind.seconds for kind in kinds if kind.only.issubset(query.filters)), 0.0)
        return min(seconds, SLOTS_AT_MOST) if query.resource == "slots" else seconds

    async def _drop(self, vet: str) -> None:
        self._drops += 1
        await self._memory.drop([_vet(vet), APPOINTMENTS])

    async def _remembered(self, query: Query, seconds: float, ask: Ask, *, many: bool) -> Page:
        key = _key(query, many)
        if key is None:
            return await ask(query)
        version, data = await self._memory.look(key, _mark(query))
        kept: bytes | Page
        # who asks after a booking does not wait for what was read before it
        turn = (key, version, self._drops)
        if data is not None:
            self.outcomes["hit"] += 1
            kept = data
        elif (read := self._reads.get(turn)) is not None:
            self.outcomes["joined"] += 1
            with timed("seconds"):  # another call's answer is waited for as its own
                kept = await asyncio.shield(read)
        else:
            self.outcomes["miss"] += 1

            read = asyncio.create_task(self._read(query, ask, key, version, seconds))
            self._reads[turn] = read
            read.add_done_callback(lambda done: self._reads.pop(turn))
            kept = await asyncio.shield(read)
        # each gets records of its own
        if isinstance(kept, Page):
            return deepcopy(kept)
        records, after, skipped = orjson.loads(kept)
        return Page(records=records, after=after, skipped=skipped)

    async def _read(
        self, query: Query, ask: Ask, key: str, version: bytes | None, seconds: float
    ) -> bytes | Page:
        """The answer as bytes, remembered; as it is where it holds what JSON does not have."""
        page = await ask(query)
        try:
            data = orjson.dumps([page.records, page.after, page.skipped])
        except TypeError:
            return page
        if version is not None:
            await self._memory.keep(key, version, data, seconds)
        return data


def _mark(query: Query) -> str:
    """What a booking drops of what is remembered."""
    if query.resource == "slots":
        return _vet(query.values.get("vetId"))
    return APPOINTMENTS if query.resource == "appointments" else ""


def _vet(vet: object) -> str:
    return f"vet {vet}"


def _key(query: Query, many: bool) -> str | None:
    """All of a query that changes the answer, in one spelling; None where it has none.

    `now` is no part of it: of what is remembered only free times look at it.
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
