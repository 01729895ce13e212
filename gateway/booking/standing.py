"""How many bookings stand in the ledger in each state, and since when the oldest is unknown."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from datetime import datetime

from gateway.booking.row import STATES
from gateway.booking.rows import Rows
from gateway.store.base import Store, StoreError

EVERY = 5.0
PATIENCE = 1.0


class LedgerStanding:
    """Looks into the ledger when it is asked to, at most every five seconds.

    While the store cannot be read, what was seen last is told.
    """

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._rows = Rows(store)
        self._now = now
        self._looked = -EVERY
        self._counts: Mapping[str, int] = dict.fromkeys(STATES, 0)
        self._unknown_since: datetime | None = None

    async def look(self) -> None:
        """Within a second."""
        if time.monotonic() - self._looked < EVERY:
            return
        self._looked = time.monotonic()
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                self._counts, self._unknown_since = await self._rows.states()

    def states(self) -> Mapping[tuple[str, ...], float]:
        """How many in each."""
        return {(state,): count for state, count in self._counts.items()}

    def oldest_unknown(self) -> float:
        """Seconds since the oldest unknown one was begun; 0 where there is none."""
        if self._unknown_since is None:
            return 0.0
        return max(0.0, (self._now() - self._unknown_since).total_seconds())
