"""Where the answers of a practice system are remembered: in this process, or where others do."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from cachebox import VTTLCache


class Memory(Protocol):
    """Remembers bytes. None of its verbs ever fails: what cannot be found is not remembered.

    What is kept under a mark is found until that mark is dropped; what was read before that and
    is kept after it is not found either, as it is kept with the version from before.
    """

    async def look(self, key: str, mark: str) -> tuple[bytes | None, bytes | None]:
        """The mark's version, None where nothing can be kept, and what is remembered as of it."""

    async def keep(self, key: str, version: bytes, data: bytes, seconds: float) -> None:
        """Remember the data for so long, as of that version."""

    async def drop(self, marks: Sequence[str]) -> None:
        """From now on nothing is found that is kept under these."""

    async def aclose(self) -> None:
        """Let go of it."""


# Bytes that an entry costs beside its key and its value.
ENTRY = 200
# Marks share so many counters of what was dropped: with few a bit more is dropped than must be.
COUNTERS = 1024
_NOTHING = (-math.inf, None, b"")


class LocalMemory:
    """A Memory that no other process shares: at most `entries`, and at most `size` bytes in all.

    Where there is no room, what ends soonest goes first; what is larger than all is not taken.
    """

    def __init__(
        self, entries: int, size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._entries, self._clock = entries, clock
        # when each ends, by `clock`, which does not jump; the value; the version that it is of
        self.kept: VTTLCache[str, tuple[float, bytes, bytes]] = VTTLCache(
            size, getsizeof=lambda key, value: ENTRY + len(key) + len(value[1])
        )
        self._drops = [0] * COUNTERS

    async def look(self, key: str, mark: str) -> tuple[bytes | None, bytes | None]:
        version = b"%d" % (self._drops[hash(mark) % COUNTERS] if mark else 0)
        end, data, as_of = self.kept.get(key, _NOTHING)
        return version, data if as_of == version and self._clock() < end else None

    async def keep(self, key: str, version: bytes, data: bytes, seconds: float) -> None:
        self.kept.pop(key, None)
        if len(self.kept) >= self._entries:
            self.kept.expire()
        if len(self.kept) >= self._entries:
            self.kept.popitem()
        with suppress(OverflowError):
            self.kept.insert(key, (self._clock() + seconds, data, version), ttl=seconds)

    async def drop(self, marks: Sequence[str]) -> None:
        for mark in marks:
            self._drops[hash(mark) % COUNTERS] += 1

    async def aclose(self) -> None:
        self.kept.clear()


def open_shared(url: str, *, secret: bytes, scope: bytes, most: float) -> Memory:
    """The memory in the Redis at that address; ValueError, in a sentence, without its driver."""
    try:
        from adapters.wrappers.redis import RedisMemory  # noqa: PLC0415 - its driver is optional
    except ModuleNotFoundError as error:
        raise ValueError(
            "cache.url: Redis needs a driver: pip install 'clinic-gateway[redis]'"
        ) from error
    return RedisMemory(url, secret=secret, scope=scope, most=most)
