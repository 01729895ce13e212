"""Holds the keys in memory: a call looks up a dict, and changes are polled from the store.

Keys end by the latest time that the store has seen: a clock that is set back revives none.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.background import JUMP, Periodic, ended
from gateway.events import Events
from gateway.keys.key import Key
from gateway.keys.store import KeyAndSecrets, KeyStore
from gateway.store.base import StoreError

POLL = 0.3
ASK_EVERY = 3  # polls after which the store is asked though its file looks untouched
TIME_EVERY = 200  # polls between two looks at the latest time that the store has seen
SAVE_EVERY = 6.0  # seconds between two writes of the times of last use

# Seconds since the store was last read after which an unknown secret may be a new one, and after
# which a known key may have been revoked.
UNKNOWN_FOR = 5.0
KNOWN_FOR = 60.0
# Seconds after which the store is read before anybody is answered, and how long that may take.
BEHIND_AFTER = 1.0
CATCH_UP = 0.5

# Seconds for which a wall clock that is ahead is doubted, and its time is not told to the store, so
# that a mistake can be mended meanwhile.
REST = 3600.0
# Digests of former secrets that are remembered, to tell whose they were.
MOST_FORMER = 50_000

# A key, and the moment from which its secret is good no more.
Entry = tuple[Key | None, datetime]
_NEVER_ENDS = datetime.max.replace(tzinfo=UTC)
# What an unknown digest finds, so that it takes as long as one that has ended.
_NOBODY: Entry = (None, datetime.min.replace(tzinfo=UTC))


class KeysUnreadable(Exception):
    """Raised where the keys could not be read for so long that callers are not known any more."""

    retry_after = POLL


class KeysBehind(Exception):
    """Raised where the keys were not read for long, as after a pause of the process: catch up."""


@dataclass(eq=False)
class LatestTime:
    """The latest time that the store has seen, as one process knows it."""

    store: KeyStore
    events: Events
    now: Callable[[], datetime]
    clock: Callable[[], float] = time.monotonic
    _seen: datetime | None = None
    # by how much the wall clock was ahead of the steady one when last seen, and when last believed
    _offset: float | None = None
    _believed: float = 0.0
    _leapt_at: float = 0.0
    _said: bool = False

    def at(self, now: datetime) -> datetime:
        """Returns the time by which keys end, at a time of this machine's clock."""
        return now if self._seen is None or self._seen < now else self._seen

    async def turn(self) -> None:
        """Tells the store of this machine's time, and learns of the others'. Raises StoreError."""
        now = self.now()
        stored = await self.store.latest_time()
        if stored is None or self._is_believed(now, stored):
            stored = await self.store.advance_time(now)
        # it is less than before where somebody has accepted an earlier time
        self._seen = stored
        is_behind = (stored - now).total_seconds() > JUMP
        if is_behind and not self._said:
            clock, latest = (moment.isoformat(timespec="seconds") for moment in (now, stored))
            self.events.report("clock_behind", clock=clock, latest=latest)
        self._said = is_behind

    def _is_believed(self, now: datetime, stored: datetime) -> bool:
        """Returns whether the clock is not ahead, or has been for an hour of this process.

        At the start the expected time is the one that the store has seen, and then this process's
        own.
        """
        clock = self.clock()
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


@dataclass(eq=False)
class KeyRing:
    """The keys that could be valid, by digest; known ones go on for a minute without the store."""

    store: KeyStore
    events: Events
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __post_init__(self) -> None:
        events = self.events
        self._latest = LatestTime(self.store, events, self.now, self.clock)
        self._read_at = self.clock()
        self._mark: object = None
        self._reading = asyncio.Lock()
        self._catching: asyncio.Task[None] | None = None
        self._entries: dict[bytes, Entry] = {}
        self._digests: dict[str, tuple[bytes, ...]] = {}
        self._former: dict[bytes, str] = {}
        self._revision = 0
        self._used: dict[str, datetime] = {}
        self._turns = 0
        name, failed, back = "follow keys", "keys_unreadable", "keys_readable"
        self._following = Periodic(POLL, self._follow, events, name=name, failed=failed, back=back)
        # apart from the following: a store that is locked for writing can still be read
        name, failed = "save when keys were used", "last_use_unwritten"
        self._saving = Periodic(SAVE_EVERY, self.save, events, name=name, failed=failed)

    @property
    def age(self) -> float:
        """Seconds since the keys were last known to be what the store holds."""
        return self.clock() - self._read_at

    def __len__(self) -> int:
        return len(self._digests)

    def find(self, digest: bytes, now: datetime, *, settled: bool = False) -> Key | None:
        """Returns the valid key of a secret's digest; None for unknown, revoked and expired alike.

        Raises KeysBehind where the keys were not read for long, unless the caller has `settled`
        that, and KeysUnreadable where nobody can tell any more.
        """
        age = self.clock() - self._read_at
        if age > BEHIND_AFTER:
            if not settled:
                raise KeysBehind
            if age > KNOWN_FOR:
                raise KeysUnreadable
        key, end = self._entries.get(digest, _NOBODY)
        # the same steps for all, so that the time does not tell which case it is
        is_good = self._latest.at(now) < end
        if age > UNKNOWN_FOR and not is_good:
            raise KeysUnreadable
        return key if is_good else None

    def owner_of(self, digest: bytes) -> str:
        """Returns the id of the key whose secret has, or had, that digest, good or not; else "".

        It is for the figures: a refused caller must not learn it, not even by the time that it
        takes.
        """
        key, _ = self._entries.get(digest, _NOBODY)
        return self._former.get(digest, "") if key is None else key.id

    def touch(self, key_id: str, now: datetime) -> None:
        """Remembers that the key was used, which `save` writes."""
        self._used[key_id] = now

    async def start(self) -> None:
        """Loads every key, then follows the store. Raises StoreError where it cannot be read."""
        await self.refresh()
        await self._latest.turn()
        self._following.start()
        self._saving.start()

    async def refresh(self) -> None:
        """Takes what changed since the last time; all of it where the store was put back."""
        async with self._reading:
            began = self.clock()
            revision, changed = await self.store.changes(self._revision)
            if revision < self._revision:
                revision, changed = await self.store.changes(-1)
                self._entries.clear()
                self._digests.clear()
                self._former.clear()
            for key_id, held in changed.items():
                self._take(key_id, held)
            self._revision = revision
            self._read_at = began

    async def catch_up(self) -> None:
        """Reads the store, once for all who wait, unless it is known to be unreadable."""
        if self._following.failing:
            return
        if self._catching is None or self._catching.done():
            self._catching = asyncio.create_task(self._following.turn(self.refresh))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP):
                await asyncio.shield(self._catching)

    async def save(self) -> None:
        """Writes the times of last use, where there are any."""
        if not self._used:
            return
        used, self._used = self._used, {}
        try:
            await self.store.save_last_used(used)
        except BaseException:  # a cancellation too: they are written the next time
            self._used = used | self._used
            raise

    async def aclose(self) -> None:
        """Stops following, and writes what is not written."""
        await self._following.aclose()
        await self._saving.aclose()
        await ended(self._catching)
        for write in (self._latest.turn, self.save):
            with contextlib.suppress(StoreError):
                await write()

    def _take(self, key_id: str, held: KeyAndSecrets | None) -> None:
        former = self._digests.pop(key_id, ())
        for digest in former:
            self._entries.pop(digest, None)
        key, secrets = held or (None, ())
        digests = tuple(secret.digest for secret in secrets)
        if key is None:
            self.events.report("key_nonsense", key=key_id)
        elif key.revoked_at is not None:
            former += digests
        else:
            self._digests[key_id] = digests
            for secret in secrets:
                ends = (moment or _NEVER_ENDS for moment in (secret.expires_at, key.expires_at))
                self._entries[secret.digest] = key, min(ends)
                self._former.pop(secret.digest, None)
        for digest in former:
            if digest not in self._entries:
                self._former[digest] = key_id
                if len(self._former) > MOST_FORMER:
                    del self._former[next(iter(self._former))]

    async def _follow(self) -> None:
        self._turns += 1
        if self._turns % TIME_EVERY == 0:
            await self._latest.turn()
        # asking the store costs far more than seeing that its file looks untouched; after a failure
        # it is asked in any case
        began, mark = self.clock(), self.store.mark()
        certainly = self._following.failing or self._turns % ASK_EVERY == 0
        if certainly or mark is None or mark != self._mark:
            await self.refresh()
            self._mark = mark
        else:
            self._read_at = began
