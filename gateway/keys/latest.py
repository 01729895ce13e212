"""The latest time that the store has seen: keys end by it, and a clock set back revives none."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from gateway.keys.store import KeyStore

# Seconds by which the wall clock must be ahead of the expected time to be doubted.
JUMP = 60.0
# Seconds for which a clock that is ahead is doubted, and its time not told to the store: where that
# is a mistake, it may be mended meanwhile.
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
        # by how much the wall clock is ahead of the steady one: when last looked at, and believed
        self._offset: float | None = None
        self._believed = 0.0
        self._leapt_at = 0.0
        self._said = False

    def at(self, now: datetime) -> datetime:
        """The time by which keys end, at a time of this machine's clock."""
        return now if self._seen is None or self._seen < now else self._seen

    async def turn(self) -> None:
        """Tell the store of this machine's time, and learn of the others'. StoreError."""
        now = self._now()
        stored = await self._store.latest_time()
        if stored is None or self._is_believed(now, stored):
            stored = await self._store.advance_time(now)
        # less than before: somebody has accepted an earlier time
        self._seen = stored
        is_behind = (stored - now).total_seconds() > JUMP
        if is_behind and not self._said:
            self._watcher.behind(now, stored)
        self._said = is_behind

    def _is_believed(self, now: datetime, stored: datetime) -> bool:
        """Whether the clock is not ahead, or has been for an hour in which this process served.

        At its start the time that the store has seen is the expected one, and then its own.
        """
        clock = self._clock()
        offset = now.timestamp() - clock
        if self._offset is None:
            self._offset = self._believed = stored.timestamp() - clock
        if offset - self._offset > JUMP:
            self._leapt_at = clock
        self._offset = offset
        if offset - self._believed > JUMP and clock - self._leapt_at < REST:
            return False
        self._believed = offset
        return True
