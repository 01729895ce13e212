"""A page that is being filled, row by row, until it is full or enough was looked at."""

import asyncio
from collections.abc import Callable, Sequence

from adapters.base import Filter, Page, Record, Trouble
from adapters.rest.filters import fits


class Filling:
    """A page that is being filled."""

    def __init__(self, limit: int, most: int, patience: float) -> None:
        self._limit, self._most = limit, most
        self._clock: Callable[[], float] = asyncio.get_running_loop().time
        self._until = self._clock() + patience
        self._records: list[Record] = []
        self._skipped = 0
        self._looked = 0
        self._place: str | None = None

    @property
    def is_full(self) -> bool:
        return len(self._records) + self._skipped >= self._limit

    @property
    def is_enough(self) -> bool:
        """Whether this is enough for one call: the page may be short, the next goes on."""
        late = self._place is not None and self._clock() >= self._until
        return self._looked >= self._most or late

    def passed(self, end: str | None) -> None:
        """All of a batch has been looked at, be it that there was nothing in it."""
        self._place = end or self._place

    def take(self, made: Record | Trouble | None, place: str, filters: Sequence[Filter]) -> None:
        self._looked += 1
        self._place = place
        if isinstance(made, Trouble):
            self._skipped += 1
        elif made is not None and counts(made, filters):
            self._records.append(made)

    def page(self, *, more: bool) -> Page:
        after = self._place if more else None
        return Page(records=self._records, after=after, skipped=self._skipped)


def counts(made: Record | Trouble | None, filters: Sequence[Filter]) -> bool:
    """Whether a page tells of it: as a record, or as one that is left out."""
    return isinstance(made, Trouble) or (made is not None and fits(made, filters))
