"""Until when an attempt that nobody works on any more may still be made in the practice system."""

import asyncio
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path

from adapters.base import Adapter
from gateway.booking.first_seen import read_first_seen, write_first_seen
from gateway.booking.outcomes import in_time
from gateway.booking.row import Row

# So many are remembered; of those seen longest ago the counting begins anew.
MOST = 10_000


class Deadlines:
    """Counts from when each attempt was first seen left behind.

    When it was sent only another clock says. `lands` is the seconds of the longest attempt. `me` is
    this process where it asks the adapter through which it books, else "". `file` is where the
    process that reconciles the ledger keeps since when it has seen them.
    """

    def __init__(
        self, me: str, lands: float, clock: Callable[[], float], file: Path | None = None
    ) -> None:
        self._me = me
        self._lands = lands
        self._clock = clock
        self._file = file
        self._since: dict[str, float] = {}

    def left(self, adapter: Adapter, row: Row) -> float:
        """Seconds in which it may still be made, where a look-up finds nothing; 0 for none.

        An adapter knows this of its own calls, and of another process's where it locks.
        """
        if adapter.excludes or row.sender == self._me:
            return 0.0
        now = self._clock()
        if row.sending not in self._since:
            self._since[row.sending] = self._earlier(now).get(row.sending, now)
            if len(self._since) > MOST:
                del self._since[next(iter(self._since))]
        return max(0.0, self._since[row.sending] + self._lands + adapter.settle - now)

    async def count_only(self, sendings: AbstractSet[str]) -> None:
        """Count for just these, from now or from earlier, and write that for other processes.

        Who only looks for one, and finds nothing, does not make it younger. StoreError.
        """
        if self._since.keys() == sendings:
            return
        now = self._clock()
        known = self._earlier(now) | self._since
        self._since = {sending: known.get(sending, now) for sending in sendings}
        if self._file is not None:
            writing = asyncio.to_thread(write_first_seen, self._file, dict(self._since))
            await in_time(writing)

    def _earlier(self, now: float) -> dict[str, float]:
        return {} if self._file is None else read_first_seen(self._file, now)
