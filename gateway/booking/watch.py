"""Watches what became of our bookings: the practice's desk may write over one at any time.

It takes no lock of ours, and nothing forbids it; so the coming bookings are looked at again now and
then, and the clinic is told of those over which something else was written.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime

from sqlalchemy import select

from adapters.base import WATCHED_AT_ONCE, Adapter, AdapterError
from gateway.background import ended
from gateway.store.base import Store
from gateway.store.tables import bookings

EVERY = 60.0  # seconds between two looks
MOST = 5_000


class Watch:
    """Asks the adapter about the coming bookings.

    `found` is called with each appointment's public id once, when it is first seen written over;
    `unreadable` likewise with one that is there and cannot be read; `failed` with what kept it from
    looking.
    """

    def __init__(
        self,
        store: Store,
        adapter: Adapter,
        found: Callable[[str], None],
        unreadable: Callable[[str], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._store = store
        self._adapter = adapter
        self._found = found
        self._unreadable = unreadable
        self._failed = failed
        self._known: frozenset[str] = frozenset()
        self._unread: frozenset[str] = frozenset()
        self._task: asyncio.Task[None] | None = None

    @property
    def overwritten(self) -> int:
        """How many coming bookings something else is written over, as of the last look."""
        return len(self._known)

    def start(self, now: Callable[[], datetime]) -> None:
        """Look now and then, until `aclose`."""
        self._task = asyncio.create_task(self._keep_looking(now), name="watch the bookings")

    async def aclose(self) -> None:
        """Stop looking."""
        await ended(self._task)

    async def look(self, now: datetime) -> None:
        """Ask about every booking that is not over. StoreError."""
        coming = await self._coming(now)
        seen: set[str] = set()
        unread: set[str] = set()
        for start in range(0, len(coming), WATCHED_AT_ONCE):
            some = coming[start : start + WATCHED_AT_ONCE]
            try:
                watched = await self._adapter.find_overwritten(some)
            except AdapterError as error:  # what is known of these stays known
                self._failed(error)
                seen.update(self._known.intersection(some))
                unread.update(self._unread.intersection(some))
                continue
            # of what cannot be read now, what was seen before stays known too
            seen.update(watched.overwritten, self._known.intersection(watched.unreadable))
            unread.update(watched.unreadable)
        _tell(self._found, seen - self._known)
        _tell(self._unreadable, unread - self._unread)
        self._known, self._unread = frozenset(seen), frozenset(unread)

    async def _coming(self, now: datetime) -> list[str]:
        wanted = (
            select(bookings.c.appointment_id)
            .where(bookings.c.state == "done", bookings.c.ends_at > now)
            .order_by(bookings.c.ends_at)
            .limit(MOST)
        )
        async with self._store.begin() as connection:
            found = (await connection.execute(wanted)).scalars()
            return [each for each in found if each is not None]

    async def _keep_looking(self, now: Callable[[], datetime]) -> None:
        while True:
            try:
                await self.look(now())
            except Exception as error:  # noqa: BLE001 - the watch must outlive an adapter's fault
                self._failed(error)
            await asyncio.sleep(EVERY)


def _tell(tell: Callable[[str], None], new: Iterable[str]) -> None:
    for each in sorted(new):
        tell(each)
