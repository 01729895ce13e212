"""How many calls each key makes, and how they end: counted in memory, and once a minute stored."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from gateway.background import Periodic, WallClock
from gateway.events import Events
from gateway.store.base import Store
from gateway.usage.store import KEPT, CallSums, Slot, add, drop, minute_of

# So many sums (a minute, a key, an operation) wait while the store cannot be written; then the
# oldest go.
MOST_WAITING = 50_000
WRITTEN_AT_ONCE = 1_000  # of them in one transaction
DROP_EVERY = 3600.0  # seconds between two looks at what is old, and before the first
# Seconds after which a call was a slow one.
SLOW = 1.0
# Whose call it is where no key is known: counted like any other, so that this takes as long, and
# then forgotten.
NOBODY = ""


@dataclass(eq=False)
class Usage(Periodic):
    """The calls of this process, written at the end of each minute; for the event loop's thread."""

    store: Store
    events: Events
    now: Callable[[], datetime]
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        # (key id, operation, status) -> calls of one minute, that of the first of them, the seconds
        # that they took in all, and how many were slow
        self._open: dict[tuple[str, str, int], list[float]] = {}
        self._minute = 0
        self._waiting: dict[Slot, CallSums] = {}
        self._missing = 0
        self._wall_clock = WallClock(self.clock, self.now())
        self._drop_at = self.clock() + DROP_EVERY
        self._turning = asyncio.Lock()
        super().__init__(
            lambda: max(0.1, 60 - self.now().timestamp() % 60),  # to the end of the minute
            self._turn,
            self.events,
            name="write the usage",
            failed="usage_unwritten",
        )

    def count(self, key_id: str, operation: str, status: int, seconds: float) -> None:
        """One call that has ended, and how long it took."""
        call = (key_id, operation, status)
        counted = self._open.get(call)
        if counted is None:
            if not self._open:
                self._minute = minute_of(self.now())
            counted = self._open[call] = [0, 0.0, 0]
        counted[0] += 1
        counted[1] += seconds
        if seconds > SLOW:
            counted[2] += 1

    async def aclose(self) -> None:
        """Write the rest. A write that runs is waited for: cut off, it might be made twice."""
        await self.finish()
        await self.turn()
        self._let_go(len(self._waiting))
        self._tell()

    async def _turn(self) -> None:
        """End the minute: write what is counted, and drop what is old now and then."""
        async with self._turning:
            self._end_minute()
            while self._waiting:
                some = dict(islice(self._waiting.items(), WRITTEN_AT_ONCE))
                await add(self.store, some)
                for slot in some:
                    del self._waiting[slot]
                self._tell()
            now, clock = self.now(), self.clock()
            # once an hour; not by a wall clock that was set less than a day ago
            if self._wall_clock.is_trusted(now) and clock >= self._drop_at:
                self._drop_at = clock + DROP_EVERY
                # in steps, so that whoever else writes has its turn in between
                while not self._ending and await drop(self.store, now - KEPT):
                    pass

    def _end_minute(self) -> None:
        counted, self._open = self._open, {}
        for (key_id, operation, status), (calls, seconds, slow) in counted.items():
            if key_id == NOBODY:
                continue
            sums = self._waiting.setdefault((self._minute, key_id, operation), CallSums())
            sums.count(status, int(calls))
            sums.micros += round(seconds * 1e6)
            sums.slow += int(slow)
        self._let_go(len(self._waiting) - MOST_WAITING)

    def _let_go(self, sums: int) -> None:
        """Give up that many, the oldest first."""
        if sums <= 0:
            return
        calls = sum(self._waiting.pop(slot).calls for slot in [*islice(self._waiting, sums)])
        self._missing += calls
        self.events.report("usage_dropped", calls=calls)

    def _tell(self) -> None:
        if self._missing:
            self.events.report("usage_lost", calls=self._missing)
            self._missing = 0
