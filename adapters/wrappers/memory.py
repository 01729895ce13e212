"""Where a practice system's answers are cached: in this process, or shared with others."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from cachebox import VTTLCache


class Memory(Protocol):
    """Remembers bytes. None of its verbs ever fails: what cannot be reached counts as not there.

    What is kept under a mark is found until the mark is dropped. What was read before that and is
    kept after it is not found either, as it is kept with the version from before.
    """

    async def look(self, key: str, mark: str) -> tuple[bytes | None, bytes | None]:
        """Returns the mark's version (None where nothing can be kept) and the data as of it."""

    async def keep(self, key: str, version: bytes, data: bytes, seconds: float) -> None:
        """Remembers the data for so long, as of that version."""

    async def drop(self, marks: Sequence[str]) -> None:
        """Makes all that is kept under these marks unfindable from now on."""

    async def aclose(self) -> None:
        """Closes it."""


# The bytes of an entry beside its key and its value.
ENTRY = 200
# The counters of drops that all marks share. With fewer, more would be dropped than needed.
COUNTERS = 1024
_NOTHING = (-math.inf, None, b"")


class LocalMemory:
    """A Memory that no other process shares: at most `entries`, and at most `size` bytes in all.

    Where there is no room, what ends soonest goes first. What is larger than `size` is not kept.
    """

    def __init__(
        self, entries: int, size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._entries, self._clock = entries, clock
        # the end of each by `clock`, which does not jump; the data; the version that it is of
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
    """Returns the memory in the Redis at that address. Raises ValueError without its driver."""
    try:
        from adapters.wrappers.redis import RedisMemory  # noqa: PLC0415 - its driver is optional
    except ModuleNotFoundError as error:
        raise ValueError(
            "cache.url: Redis needs a driver: pip install 'clinic-gateway[redis]'"
        ) from error
    return RedisMemory(url, secret=secret, scope=scope, most=most)
