"""An adapter around an adapter: times that may have been booked, nobody knows, are not offered."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from adapters.base import Adapter, Page, Query, Record
from adapters.wrappers import Around
from gateway.booking.outcomes import in_time
from gateway.booking.rows import Rows
from gateway.store.base import Store, StoreError

# Seconds for which what is read of the ledger counts, and until it is asked again after it failed.
FRESH, AGAIN = 0.5, 2.0
Span = tuple[datetime, datetime]


class Blocked(Around):
    """The inner adapter, but for free times over which a booking's outcome is not known.

    What it says of the ledger is half a second old at most; where the ledger can't be read it is
    what was read before. That nothing is booked there is not its care but the ledger's.
    """

    def __init__(
        self, inner: Adapter, store: Store, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(inner)
        # as it is: most calls are such reads, and a step less is felt
        self.read_one = inner.read_one
        self._rows = Rows(store)
        self._clock = clock
        self._spans: Mapping[str, Sequence[Span]] = {}
        self._good_until = clock()

    async def read_many(self, query: Query) -> Page:
        """As it is; of free times those that are certainly free."""
        page = await self._inner.read_many(query)
        if query.resource != "slots":
            return page
        spans = (await self._blocked()).get(str(query.values.get("vetId")), ())
        if not spans:
            return page
        return replace(page, records=[each for each in page.records if not _is_over(each, spans)])

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
