"""How long a booking takes its vet: as long as the appointment's type says."""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from adapters.base import Adapter, AdapterError, Query

# Where nobody says it, or as the longest type: what is blocked for too long is free again later,
# what is not may be lost.
IN_DOUBT = timedelta(hours=2)
LONGEST = timedelta(days=2)
# Seconds for which the types are as they were, and between two looks for one that is not there.
KEPT, AGAIN = 300.0, 5.0
AT_ONCE = 200
MOST_PAGES = 50


class Lengths:
    """Reads the appointment types now and then."""

    def __init__(self, adapter: Adapter, clock: Callable[[], float] = time.monotonic) -> None:
        self._adapter = adapter
        self._clock = clock
        self._known: dict[str, timedelta] = {}
        self._read_at: float | None = None
        self._turn = asyncio.Lock()

    async def of(self, type_id: str | None, now: datetime) -> timedelta:
        """What an appointment of the type lasts, or one without a type.

        Where that cannot be known, the longest there is; IN_DOUBT at least.
        """
        if type_id is None:
            return self._adapter.default_length or IN_DOUBT
        if type_id in self._known:
            if self._is_due(type_id):
                await self._read(now)
        else:  # who asks meanwhile waits for the same answer
            async with self._turn:
                if self._is_due(type_id):
                    await self._read(now)
        return self._known.get(type_id) or max([IN_DOUBT, *self._known.values()])

    def _is_due(self, type_id: str) -> bool:
        if self._read_at is None:
            return True
        return self._clock() - self._read_at >= (KEPT if type_id in self._known else AGAIN)

    async def _read(self, now: datetime) -> None:
        """All types; where they cannot be read, what is known stays."""
        self._read_at = self._clock()
        after: str | None = None
        found: dict[str, timedelta] = {}
        try:
            for _ in range(MOST_PAGES):
                query = Query(resource="appointmentTypes", now=now, limit=AT_ONCE, after=after)
                page = await self._adapter.read_many(query)
                found |= {
                    each["id"]: min(timedelta(minutes=minutes), LONGEST)
                    for each in page.records
                    if isinstance(minutes := each.get("durationMinutes"), int) and minutes > 0
                }
                after = page.after
                if after is None:
                    break
        except (AdapterError, OverflowError):
            return
        self._known = found
