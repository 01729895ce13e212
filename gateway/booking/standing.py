"""How many bookings stand in the ledger in each state, and since when the oldest is unknown."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from datetime import datetime

from sqlalchemy import func, select

from gateway.store.base import Store, StoreError
from gateway.store.tables import bookings

STATES = ("intended", "sent", "done", "refused", "unknown")
EVERY = 5.0
PATIENCE = 1.0


class LedgerStanding:
    """Looks into the ledger when it is asked to, at most every five seconds.

    While the store cannot be read, what was seen last is told.
    """

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._looked = -EVERY
        self._counts: dict[str, int] = {}
        self._unknown_since: datetime | None = None

    async def look(self) -> None:
        """Within a second."""
        if time.monotonic() - self._looked < EVERY:
            return
        self._looked = time.monotonic()
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._count()

    async def _count(self) -> None:
        state = bookings.c.state
        statement = select(state, func.count(), func.min(bookings.c.created_at)).group_by(state)
        async with self._store.begin() as connection:
            rows = (await connection.execute(statement)).all()
        self._counts = {state: count for state, count, _ in rows}
        self._unknown_since = next((at for state, _, at in rows if state == "unknown"), None)

    def states(self) -> Mapping[tuple[str, ...], float]:
        """How many in each."""
        return {(state,): self._counts.get(state, 0) for state in STATES}

    def oldest_unknown(self) -> float:
        """Seconds since the oldest unknown one was begun; 0 where there is none."""
        if self._unknown_since is None:
            return 0.0
        return max(0.0, (self._now() - self._unknown_since).total_seconds())
