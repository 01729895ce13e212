"""An adapter around an adapter: free times that nobody may book are not offered."""

from collections.abc import Coroutine
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from adapters.base import Adapter, Page, Query, Record
from adapters.wrappers import Around
from gateway.contract.window import BookingWindow


class Bookable(Around):
    """The inner adapter, but for free times outside the window in which partners may book.

    Of a day beyond the horizon the practice system is not asked.
    """

    def __init__(self, inner: Adapter, window: BookingWindow) -> None:
        super().__init__(inner)
        # as it is: most calls are such reads, and a step less is felt
        self.read_one = inner.read_one
        self._window = window

    def read_many(self, query: Query) -> Coroutine[Any, Any, Page]:
        """As it is; of free times those that may be booked."""
        return self._slots(query) if query.resource == "slots" else self._inner.read_many(query)

    async def _slots(self, query: Query) -> Page:
        day = query.values.get("date")
        if isinstance(day, date) and day > self._window.last_day(query.now):
            return Page(records=[])
        page = await self._inner.read_many(query)
        first, last = self._window.bounds(query.now)
        return replace(page, records=[each for each in page.records if _begins(each, first, last)])


def _begins(slot: Record, first: datetime, last: datetime) -> bool:
    """Whether it begins between them; what cannot be read does not."""
    try:
        return first <= datetime.fromisoformat(slot["startTime"]) <= last
    except (KeyError, TypeError, ValueError):
        return False
