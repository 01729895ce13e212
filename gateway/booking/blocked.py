"""An adapter around an adapter: times that may have been booked, nobody knows, are not offered."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from adapters.base import Adapter, Draft, Only, Page, Query, Record, Watched
from adapters.problems import Problem
from gateway.booking.outcomes import in_time
from gateway.booking.rows import Rows
from gateway.store.base import Store, StoreError

# Seconds for which what is read of the ledger counts, and until it is asked again after it failed.
FRESH, AGAIN = 0.5, 2.0
Span = tuple[datetime, datetime]


class Blocked:
    """The inner adapter, but for free times over which a booking's outcome is not known.

    What it says of the ledger is half a second old at most; where the ledger can't be read it is
    what was read before. That nothing is booked there is not its care but the ledger's.
    """

    def __init__(
        self, inner: Adapter, store: Store, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inner = inner
        # as it is: most calls are such reads, and a step less is felt
        self.read_one = inner.read_one
        self._rows = Rows(store)
        self._clock = clock
        self._spans: Mapping[str, Sequence[Span]] = {}
        self._good_until = clock()

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

    async def read_many(self, query: Query) -> Page:
        """As it is; of free times those that are certainly free."""
        page = await self._inner.read_many(query)
        if query.resource != "slots":
            return page
        spans = (await self._blocked()).get(str(query.values.get("vetId")), ())
        if not spans:
            return page
        return replace(page, records=[each for each in page.records if not _is_over(each, spans)])

    async def create_appointment(self, draft: Draft) -> Record:
        """As it is."""
        return await self._inner.create_appointment(draft)

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """As it is."""
        return await self._inner.find_appointments(draft, since)

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
        """Let go of the inner adapter."""
        await self._inner.aclose()

    async def _blocked(self) -> Mapping[str, Sequence[Span]]:
        now = self._clock()
        if now >= self._good_until:
            # set before it is asked: while the ledger hangs one caller waits for it, not all
            self._good_until = now + AGAIN
            try:
                found = await in_time(self._rows.unknown())
            except StoreError:
                return self._spans
            spans: dict[str, list[Span]] = {}
            for vet, start, end in found:
                spans.setdefault(vet, []).append((start, end))
            self._spans, self._good_until = spans, self._clock() + FRESH
        return self._spans


def _is_over(slot: Record, spans: Sequence[Span]) -> bool:
    try:
        start, end = (datetime.fromisoformat(slot[name]) for name in ("startTime", "endTime"))
    except (KeyError, TypeError, ValueError):
        return True
    return any(start < until and since < end for since, until in spans)
