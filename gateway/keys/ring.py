"""The keys in memory: the hot path looks up a dict, changes arrive from the store by polling."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime

from gateway.keys.key import Key
from gateway.keys.store import Change, KeyStore
from gateway.store.base import StoreError

POLL = 0.3
SAVE_EVERY = 20  # polls between two writes of the times of last use

Entry = tuple[Key, datetime | None]


class MemoryKeyRing:
    """Every key that could be valid, by the digests of its secrets.

    `failed` is called when the store can't be read; the known keys go on.
    """

    def __init__(self, store: KeyStore, failed: Callable[[Exception], None]) -> None:
        self._store = store
        self._failed = failed
        self._entries: dict[bytes, Entry] = {}
        self._digests: dict[str, tuple[bytes, ...]] = {}
        self._revision = 0
        self._used: dict[str, datetime] = {}
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._digests)

    def find(self, digest: bytes, now: datetime) -> Key | None:
        """The valid key behind a digest."""
        entry = self._entries.get(digest)
        if entry is None:
            return None
        key, until = entry
        if not key.active(now) or (until is not None and now >= until):
            return None
        return key

    def touch(self, key_id: str, now: datetime) -> None:
        """Remembered here, written now and then and at the end."""
        self._used[key_id] = now

    async def start(self) -> None:
        """Load every key, then follow the store. StoreError where it can't be read."""
        await self.refresh()
        self._task = asyncio.create_task(self._follow(), name="follow keys")

    async def refresh(self) -> None:
        """Take what changed since the last time."""
        revision, changed = await self._store.changes(self._revision)
        for change in changed:
            self._take(change)
        self._revision = revision

    async def save(self) -> None:
        """Write the times of last use."""
        used, self._used = self._used, {}
        try:
            await self._store.save_last_used(used)
        except BaseException:  # a cancellation too: they are written the next time
            self._used = used | self._used
            raise

    async def aclose(self) -> None:
        """Stop following; write what is not written."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        with contextlib.suppress(StoreError):
            await self.save()

    def _take(self, change: Change) -> None:
        for digest in self._digests.pop(change.key.id, ()):
            self._entries.pop(digest, None)
        if change.key.revoked_at is not None:
            return
        self._digests[change.key.id] = tuple(digest for digest, _ in change.secrets)
        for digest, until in change.secrets:
            self._entries[digest] = (change.key, until)

    async def _follow(self) -> None:
        turn = 0
        while True:
            await asyncio.sleep(POLL)
            turn += 1
            try:
                await self.refresh()
                if turn % SAVE_EVERY == 0 and self._used:
                    await self.save()
            except Exception as error:  # noqa: BLE001 - whatever it is, the keys must be followed on
                self._failed(error)
