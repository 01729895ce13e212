"""Whether the wall clock may be gone by to forget for good: not for a day after it was set."""

from collections.abc import Callable
from datetime import datetime

# A wall clock that leaves the steady one by more than that was set, and may be set right again.
JUMP = 60.0
RESTS = 24 * 3600.0


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
