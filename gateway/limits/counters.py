"""A table of counters in memory that the processes of one machine share: made before they fork.

Each key has a place in one of the table's buckets. A bucket is written under a lock of its own,
which the kernel takes away from a process that ends; every single write leaves the table as one
that may be read, so that whoever ends in the middle of a call has counted it or has not.
"""

import fcntl
import mmap
import os
import tempfile
from collections.abc import Iterable
from hashlib import blake2b

from gateway.limits.base import WINDOW, LimiterFull, Quota, Used

BUCKETS = 4096
SLOTS = 16  # keys in a bucket
# The words of a slot: two of the key's hash, when its window ends, the calls admitted in it.
_WORDS, _END, _CALLS = 4, 2, 3
_SECOND = 1_000_000_000
_WINDOW = WINDOW * _SECOND
MOST_PLACES = 10_000

Place = tuple[int, int, int]


class Counters:
    """Whoever inherits it by a fork counts together with all others; times are in nanoseconds.

    A slot whose window has ended is taken for another key, so that the table bounds the keys of
    an hour and not of all times.
    """

    def __init__(self, buckets: int = BUCKETS) -> None:
        self._buckets = buckets
        self._file = _nameless()
        size = buckets * SLOTS * _WORDS * 8
        os.ftruncate(self._file, size)
        self._memory = mmap.mmap(self._file, size)
        self._words = memoryview(self._memory).cast("Q")
        self._places: dict[str, Place] = {}

    def hit(self, key_id: str, limit: int, now: int) -> Quota | None:
        """Count one call; None where another process is just writing. LimiterFull."""
        bucket, first, second = self._places.get(key_id) or self._place(key_id)
        if not self.lock(bucket):
            return None
        try:
            return self._count(self._slot(bucket, first, second, now), limit, now)
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, bucket)

    def peek(self, key_ids: Iterable[str], now: int) -> dict[str, Used]:
        """What is used of the hours that run; without a lock, as nothing is written."""
        found = {}
        for key_id in key_ids:
            used = self._seen(*(self._places.get(key_id) or self._place(key_id)), now)
            if used is not None:
                found[key_id] = used
        return found

    def lock(self, bucket: int) -> bool:
        """Whether this process has the bucket now."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, bucket)
        except BlockingIOError:
            return False
        return True

    def bucket_of(self, key_id: str) -> int:
        """Where the key is counted."""
        return self._place(key_id)[0]

    def close(self) -> None:
        """Let go of this process's view of the table."""
        self._words.release()
        self._memory.close()
        os.close(self._file)

    def _place(self, key_id: str) -> Place:
        digest = blake2b(key_id.encode(), digest_size=16).digest()
        first, second = int.from_bytes(digest[:8]), int.from_bytes(digest[8:])
        # a slot that begins with 0 was never used
        place = first % self._buckets, first | 1, second
        if len(self._places) >= MOST_PLACES:
            self._places.clear()
        self._places[key_id] = place
        return place

    def _slot(self, bucket: int, first: int, second: int, now: int) -> int:
        """The key's slot, with a window that runs."""
        words, free = self._words, -1
        begin = bucket * SLOTS * _WORDS
        for at in range(begin, begin + SLOTS * _WORDS, _WORDS):
            if words[at] == first and words[at + 1] == second:
                if words[at + _END] <= now:
                    self._start(at, now)
                return at
            if free < 0 and words[at + _END] <= now:
                free = at
            if not words[at]:
                break
        if free < 0:
            raise LimiterFull("there are more keys than its table has room for")
        words[free], words[free + 1] = first, second
        self._start(free, now)
        return free

    def _seen(self, bucket: int, first: int, second: int, now: int) -> Used | None:
        words = self._words
        begin = bucket * SLOTS * _WORDS
        for at in range(begin, begin + SLOTS * _WORDS, _WORDS):
            if not words[at]:
                break
            if words[at] == first and words[at + 1] == second:
                end, calls = words[at + _END], words[at + _CALLS]
                # it may have become another key's meanwhile, whose window that is
                is_its_own = words[at] == first and words[at + 1] == second
                return Used(calls, _reset(end, now)) if is_its_own and end > now else None
        return None

    def _start(self, at: int, now: int) -> None:
        # the calls first: of a window that has ended they may be anything
        self._words[at + _CALLS] = 0
        self._words[at + _END] = now + _WINDOW

    def _count(self, at: int, limit: int, now: int) -> Quota:
        calls = self._words[at + _CALLS]
        reset = _reset(self._words[at + _END], now)
        if calls >= limit:
            return Quota(limit, 0, reset, admitted=False)
        self._words[at + _CALLS] = calls + 1
        return Quota(limit, limit - calls - 1, reset, admitted=True)


def _reset(end: int, now: int) -> int:
    """Whole seconds to the end."""
    return min(max(-(-(end - now) // _SECOND), 1), WINDOW)


def _nameless() -> int:
    """A file in memory that has no name, and is gone with the last process that has it."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("clinic-gateway counters")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
