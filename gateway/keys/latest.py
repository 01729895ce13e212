"""The latest time that the store has seen: keys end by it, and a clock set back revives none."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from gateway.keys.store import KeyStore

# Seconds by which the wall clock must leave the other one to have been set.
JUMP = 60.0
# Seconds for which a time is not told to the store after the clock was set ahead: where that was a
# mistake, it may be mended meanwhile.
REST = 3600.0


def utc_now() -> datetime:
    """This machine's time."""
    return datetime.now(UTC)


class Watcher(Protocol):
    """Who is told, once, of a clock that is behind by over a minute."""

    def behind(self, now: datetime, latest: datetime) -> None:
        """The machine's clock is behind the latest time that the store has seen."""


class LatestTime:
    """As one process knows it."""

    def __init__(
        self,
        store: KeyStore,
        watcher: Watcher,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._watcher = watcher
        self._now = now
        self._clock = clock
        self._seen: datetime | None = None
        self._ahead: float | None = None
        self._rests_until = 0.0
        self._said = False

    def at(self, now: datetime) -> datetime:
        """The time by which keys end, at a time of this machine's clock."""
        return now if self._seen is None or self._seen < now else self._seen

    async def turn(self) -> None:
        """Tell the store of this machine's time, and learn of the others'. StoreError."""
        now = self._now()
        if self._may_tell(now):
            stored = await self._store.advance_time(now)
        else:
            stored = await self._store.latest_time() or now
        # less than before: somebody has accepted an earlier time
        self._seen = stored
        is_behind = (stored - now).total_seconds() > JUMP
        if is_behind and not self._said:
            self._watcher.behind(now, stored)
        self._said = is_behind

    def _may_tell(self, now: datetime) -> bool:
        """Whether the clock has not been set ahead lately."""
        clock = self._clock()
        ahead = now.timestamp() - clock
        leap = 0.0 if self._ahead is None else ahead - self._ahead
        if leap > JUMP:
            self._rests_until = clock + REST
        elif leap < -JUMP:
            self._rests_until = clock
        self._ahead = ahead
        return clock >= self._rests_until
