"""The limiter of several processes on one machine: a table of counters, made before they fork.

It is exact, and gone with the last of them. Each key has a place in one of the table's buckets. A
bucket is written under a lock of its own, which the kernel takes away from a process that ends.
After every single write the table can be read, so that a process that ends in the middle of a call
has counted it or has not.
"""

import asyncio
import fcntl
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import blake2b

from gateway.limits import base

BUCKETS = 4096
SLOTS = 16  # keys in a bucket
# The words of a slot: two of the key's hash, when its window ends, the calls admitted in it.
_WORDS, _END, _CALLS = 4, 2, 3
_SECOND = 1_000_000_000
_WINDOW = base.WINDOW * _SECOND
MOST_PLACES = 10_000
# A write takes a few microseconds: a busy bucket is tried so often at once, and then after pauses
# of so many seconds.
LOOKS = 20
PAUSE = 0.001
PEEKED_AT_ONCE = 500  # keys that are read before other tasks have a turn


class Counters(base.Limiter):
    """The counters that a process shares with all that inherit them by a fork.

    A slot whose window has ended is taken for another key, so that the table bounds the keys of an
    hour and not of all times. `clock` is the same in all processes of a machine, in nanoseconds,
    and nobody sets it.
    """

    def __init__(
        self, buckets: int = BUCKETS, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._clock = clock
        # a file without a name, in memory where possible, gone with the last process that has it
        if hasattr(os, "memfd_create"):
            self._file = os.memfd_create("clinic-gateway counters")
        else:
            with tempfile.TemporaryFile() as file:
                self._file = os.dup(file.fileno())
        size = buckets * SLOTS * _WORDS * 8
        os.ftruncate(self._file, size)
        self._memory = mmap.mmap(self._file, size)
        self._words = memoryview(self._memory).cast("Q")
        self.place = lru_cache(MOST_PLACES)(partial(_place, buckets))

    async def hit(self, key_id: str, limit: int) -> base.Quota:
        """Counts one call. Raises LimiterFull; LimiterDown while a stopped process blocks it."""
        deadline, looks = time.monotonic() + base.PATIENCE, 0
        while (quota := self.try_hit(key_id, limit, self._clock())) is None:
            looks += 1
            if looks > LOOKS:
                if time.monotonic() >= deadline:
                    raise base.LimiterDown("another process holds the counters and does not let go")
                await asyncio.sleep(PAUSE)
        return quota

    def hit_at_once(self, key_id: str, limit: int) -> base.Quota | None:
        with suppress(base.LimiterFull):
            return self.try_hit(key_id, limit, self._clock())
        return None

    async def peek(self, key_ids: Sequence[str]) -> Mapping[str, base.Used]:
        """Returns what the keys have used of the hours that run; only reads, so takes no lock."""
        used, words = dict[str, base.Used](), self._words
        for start in range(0, len(key_ids), PEEKED_AT_ONCE):
            now = self._clock()
            for key_id in key_ids[start : start + PEEKED_AT_ONCE]:
                bucket, *first_words = self.place(key_id)
                if (at := self._at(bucket, *first_words)) >= 0:
                    end, calls = words[at + _END], words[at + _CALLS]
                    # the slot may have become another key's meanwhile, and the window with it
                    if [words[at], words[at + 1]] == first_words and end > now:
                        used[key_id] = base.Used(calls, base.whole_seconds((end - now) / _SECOND))
            await asyncio.sleep(0)
        return used

    def try_hit(self, key_id: str, limit: int, now: int) -> base.Quota | None:
        """Counts one call; returns None where another process is writing. Raises LimiterFull."""
        bucket, first, second = self.place(key_id)
        if not self.lock(bucket):
            return None
        try:
            at, words = self._slot(bucket, first, second, now), self._words
            calls = words[at + _CALLS]
            reset = base.whole_seconds((words[at + _END] - now) / _SECOND)
            if calls >= limit:
                return base.Quota(limit, 0, reset, admitted=False)
            words[at + _CALLS] = calls + 1
            return base.Quota(limit, limit - calls - 1, reset, admitted=True)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, bucket)

    def lock(self, bucket: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, bucket)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Closes this process's view of the table; `aclose` leaves that to the table's maker."""
        self._words.release()
        self._memory.close()
        os.close(self._file)

    def _at(self, bucket: int, first: int, second: int) -> int:
        """Returns where the key's slot begins; -1 where it has none."""
        words, begin = self._words, bucket * SLOTS * _WORDS
        for at in range(begin, begin + SLOTS * _WORDS, _WORDS):
            if words[at] == first and words[at + 1] == second:
                return at
            if not words[at]:
                break
        return -1

    def _slot(self, bucket: int, first: int, second: int, now: int) -> int:
        """Returns where the key's slot begins, with a window that runs. Raises LimiterFull."""
        at, words = self._at(bucket, first, second), self._words
        if at < 0:
            begin = bucket * SLOTS * _WORDS
            slots = range(begin, begin + SLOTS * _WORDS, _WORDS)
            at = next((free for free in slots if words[free + _END] <= now), -1)
            if at < 0:
                raise base.LimiterFull("there are more keys than its table has room for")
            words[at], words[at + 1] = first, second
        if words[at + _END] <= now:
            # the calls first: nobody reads them while the window has ended
            words[at + _CALLS] = 0
            words[at + _END] = now + _WINDOW
        return at


def _place(buckets: int, key_id: str) -> tuple[int, int, int]:
    """Returns the key's bucket, and the words that its slot begins with."""
    digest = blake2b(key_id.encode(), digest_size=16).digest()
    first, second = int.from_bytes(digest[:8]), int.from_bytes(digest[8:])
    # a slot that begins with 0 was never used
    return first % buckets, first | 1, second
