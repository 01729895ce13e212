"""Work in the background: its end, and whether its clock may be gone by to forget for good."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

# Seconds that a task has to end, once it is cancelled, before it is cancelled again.
AGAIN = 2.0
# A wall clock that leaves the steady one by more seconds than that was set, and may be set right
# again: it is not trusted for a day.
JUMP = 60.0
RESTS = 24 * 3600.0


async def ended(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks, those that there are, until they have ended; raises what else one raised.

    Once is not enough: a cancellation that meets the end of a transaction may come out of the
    database's driver as an error like any other, after which a task that outlives errors goes on.
    """
    going = {task for task in tasks if task is not None}
    while running := {task for task in going if not task.done()}:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=AGAIN)
    for task in going:
        if not task.cancelled():
            task.result()


class WallClock:
    """Compares the wall clock with the steady one, each time that it is asked."""

    def __init__(self, clock: Callable[[], float], now: datetime | None = None) -> None:
        self._clock = clock
        self._ahead = None if now is None else now.timestamp() - clock()
        self._trusted_at = clock()

    def is_trusted(self, now: datetime) -> bool:
        """Whether it was not set within the last day, as far as was seen here."""
        clock = self._clock()
        ahead = now.timestamp() - clock
        if self._ahead is not None and abs(ahead - self._ahead) > JUMP:
            self._trusted_at = clock + RESTS
        self._ahead = ahead
        return clock >= self._trusted_at
