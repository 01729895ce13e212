"""Where a practice system's answers are cached: in this process, or shared with others."""

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from cachebox import VTTLCache

from adapters.call_notes import CachedAnswer


class Memory(Protocol):
    """Remembers bytes. None of its verbs ever fails: what cannot be reached counts as not there.

    What is kept under a mark is found until the mark is dropped. What was read before that and is
    kept after it is not found either, as it is kept with the version from before. `hits` counts
    what was found and used.
    """

    hits: int

    async def look(self, key: str, mark: str) -> tuple[bytes | None, CachedAnswer | None]:
        """Returns the mark's version (None where nothing can be kept) and the answer as of it."""

    async def keep(
        self, key: str, mark: str, version: bytes, data: bytes, seconds: float
    ) -> CachedAnswer:
        """Remembers the data for so long, as of that version of the mark; returns the answer."""

    async def drop(self, marks: Sequence[str]) -> None:
        """Makes all that is kept under these marks unfindable from now on."""

    async def aclose(self) -> None:
        """Closes it."""


# The bytes of an entry, and of a view, beside its key and its value.
ENTRY = 200
# Views of one answer. Where there are so many, no other is kept: as many again, asked for in turn,
# would only drive out one another.
MOST_VIEWS = 32
# The counters of drops that all marks share. With fewer, more would be dropped than needed.
COUNTERS = 1024


class LocalAnswer(CachedAnswer):
    """An answer in a LocalMemory, of `size` bytes with its views, until `end` by the clock."""

    __slots__ = ("_counter", "_drops", "_memory", "end", "key", "sizes")

    def __init__(
        self, memory: "LocalMemory", key: str, counter: int, data: bytes, end: float
    ) -> None:
        super().__init__(data)
        self._memory, self._counter, self._drops = memory, counter, memory.drops[counter]
        self.key, self.end = key, end
        self.sizes: dict[Hashable, int] = {}

    @property
    def size(self) -> int:
        return len(self.data) + sum(self.sizes.values())

    @property
    def is_current(self) -> bool:
        memory = self._memory
        return memory.clock() < self.end and memory.drops[self._counter] == self._drops

    def use(self) -> bool:
        memory = self._memory
        if memory.clock() >= self.end or memory.drops[self._counter] != self._drops:
            return False
        memory.hits += 1
        return True

    def add_view(self, name: Hashable, view: object, size: int) -> bool:
        if len(self.views) >= MOST_VIEWS:
            return False
        self.views[name], self.sizes[name] = view, size + ENTRY
        if self.is_current and self._memory.resize(self):
            return True
        del self.views[name], self.sizes[name]
        return False


class LocalMemory:
    """A Memory that no other process shares: at most `entries`, and at most `size` bytes in all.

    Where there is no room, what ends soonest goes first. What is larger than `size` is not kept.
    """

    def __init__(
        self, entries: int, size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        # a clock that does not jump
        self._entries, self.clock = entries, clock
        self.kept: VTTLCache[str, LocalAnswer] = VTTLCache(
            size, getsizeof=lambda key, answer: ENTRY + len(key) + answer.size
        )
        # the last counter is that of answers without a mark
        self.drops = [0] * (COUNTERS + 1)
        self.hits = 0

    async def look(self, key: str, mark: str) -> tuple[bytes | None, CachedAnswer | None]:
        answer: LocalAnswer | None = self.kept.get(key)
        found = answer if answer is not None and answer.use() else None
        return b"%d" % self.drops[_counter(mark)], found

    async def keep(
        self, key: str, mark: str, version: bytes, data: bytes, seconds: float
    ) -> CachedAnswer:
        self.kept.pop(key, None)
        counter = _counter(mark)
        if version != b"%d" % self.drops[counter]:
            return CachedAnswer(data)
        if len(self.kept) >= self._entries:
            self.kept.expire()
        if len(self.kept) >= self._entries:
            self.kept.popitem()
        answer = LocalAnswer(self, key, counter, data, self.clock() + seconds)
        return answer if self._insert(answer, seconds) else CachedAnswer(data)

    def resize(self, answer: LocalAnswer) -> bool:
        """Makes room for what was added to the answer; returns False where there is none."""
        if self.kept.get(answer.key) is not answer:
            return False
        return self._insert(answer, answer.end - self.clock())

    def _insert(self, answer: LocalAnswer, seconds: float) -> bool:
        try:
            self.kept.insert(answer.key, answer, ttl=seconds)
        except OverflowError:
            return False
        return True

    async def drop(self, marks: Sequence[str]) -> None:
        for mark in marks:
            self.drops[_counter(mark)] += 1

    async def aclose(self) -> None:
        self.kept.clear()


def _counter(mark: str) -> int:
    return hash(mark) % COUNTERS if mark else COUNTERS


def open_shared(url: str, *, secret: bytes, scope: bytes, most: float) -> Memory:
    """Returns the memory in the Redis at that address. Raises ValueError without its driver."""
    try:
        from adapters.wrappers.redis import RedisMemory  # noqa: PLC0415 - its driver is optional
    except ModuleNotFoundError as error:
        raise ValueError(
            "cache.url: Redis needs a driver: pip install '.[redis]' in the clone's folder"
        ) from error
    return RedisMemory(url, secret=secret, scope=scope, most=most)
