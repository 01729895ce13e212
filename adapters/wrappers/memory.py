"""Where the answers of a practice system are remembered: in this process, or where others do."""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from cachebox import VTTLCache

from adapters.wrappers import without


class Remembered(NamedTuple):
    """What is remembered, and which it is of all that was dropped: None where nothing is kept."""

    version: bytes | None
    data: bytes | None


class Memory(Protocol):
    """Remembers bytes. None of its verbs ever fails: what cannot be found is not remembered.

    What is kept under a mark is found until that mark is dropped; what was read before that and
    is kept after it is not found either, as it is kept with the version from before.
    """

    async def look(self, key: str, mark: str) -> Remembered:
        """What is remembered under the key, and the version of the mark that it stands under."""

    async def keep(self, key: str, mark: str, found: Remembered, seconds: float) -> None:
        """Remember the data for so long, as of that version."""

    async def drop(self, marks: Sequence[str]) -> None:
        """From now on nothing is found that is kept under these."""

    async def aclose(self) -> None:
        """Let go of it."""


# aiocache would import the driver of Redis wherever it is installed: half a second of every start
with without("redis"):
    from aiocache.base import BaseCache  # type: ignore[import-untyped]  # it has no types
    from aiocache.serializers import NullSerializer  # type: ignore[import-untyped]  # nor here

# Bytes that an entry costs beside its key and its value.
ENTRY = 200
# Marks share so many counters of what was dropped: with few a bit more is dropped than must be.
COUNTERS = 1024
_NOTHING = (-math.inf, b"")


class Bounded(BaseCache):  # type: ignore[misc]  # it has no types
    """Remembers bytes in this process: at most `entries`, and at most `size` bytes in all.

    Where there is no room, what ends soonest goes first; what is larger than all is not taken.
    """

    NAME = "bounded memory"

    def __init__(
        self, entries: int, size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(serializer=NullSerializer(), timeout=0)
        self._entries = entries
        self._clock = clock
        # each value with its end: by `clock`, which does not jump
        self.kept: VTTLCache[str, tuple[float, bytes]] = VTTLCache(
            size, getsizeof=lambda key, value: ENTRY + len(key) + len(value[1])
        )

    async def _get(self, key: str, encoding: object = None, _conn: object = None) -> bytes | None:
        end, value = self.kept.get(key, _NOTHING)
        return value if self._clock() < end else None

    async def _set(
        self,
        key: str,
        value: bytes,
        ttl: float,
        _cas_token: object = None,
        _conn: object = None,
    ) -> bool:
        self.kept.pop(key, None)
        if len(self.kept) >= self._entries:
            self.kept.expire()
        if len(self.kept) >= self._entries:
            self.kept.popitem()
        try:
            self.kept.insert(key, (self._clock() + ttl, value), ttl=ttl)
        except OverflowError:
            return False
        return True


class LocalMemory:
    """A Memory that no other process shares."""

    def __init__(
        self, entries: int, size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.cache = Bounded(entries, size, clock)
        self._drops = [0] * COUNTERS

    @property
    def entries(self) -> int:
        """How many answers are kept."""
        return len(self.cache.kept)

    @property
    def size(self) -> int:
        """Bytes that they take."""
        return self.cache.kept.current_size()

    async def look(self, key: str, mark: str) -> Remembered:
        version = b"%d" % (self._drops[hash(mark) % COUNTERS] if mark else 0)
        return Remembered(version, await self.cache.get(_name(key, version)))

    async def keep(self, key: str, mark: str, found: Remembered, seconds: float) -> None:
        if found.version is not None:
            await self.cache.set(_name(key, found.version), found.data, ttl=seconds)

    async def drop(self, marks: Sequence[str]) -> None:
        for mark in marks:
            self._drops[hash(mark) % COUNTERS] += 1

    async def aclose(self) -> None:
        await self.cache.close()


def _name(key: str, version: bytes) -> str:
    return f"{version.decode()} {key}"


def open_shared(url: str, *, secret: bytes, scope: bytes, most: float) -> Memory:
    """The memory in the Redis at that address; ValueError, in a sentence, without its driver."""
    try:
        from adapters.wrappers.redis import RedisMemory  # noqa: PLC0415 - its driver is optional
    except ModuleNotFoundError as error:
        raise ValueError(
            "cache.url: Redis needs a driver: pip install 'clinic-gateway[redis]'"
        ) from error
    return RedisMemory(url, secret=secret, scope=scope, most=most)
