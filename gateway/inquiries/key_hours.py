"""The last hour of each key: who calls most, and who has nearly used up what it may."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest

from gateway.inquiries.key_book import KeyBook
from gateway.keys.key import Key
from gateway.limits.base import Used
from gateway.store import Store
from gateway.usage.store import CallSums, recent

HOUR = timedelta(hours=1)
# Who has used as much of its hour is told of; and so many keys are told at most.
NEAR = 0.8
MOST = 10


@dataclass(frozen=True, slots=True)
class KeyHour:
    """A key's calls of the last hour; `key` is None where nothing is known of it."""

    key_id: str
    key: Key | None
    sums: CallSums


@dataclass(frozen=True, slots=True)
class NearLimit:
    """A key that has used most of the hour that it may."""

    key: Key
    used: Used

    @property
    def share(self) -> float:
        """Of its limit; more than 1 where that was lowered meanwhile."""
        return self.used.calls / max(1, self.key.limit)


@dataclass(frozen=True, slots=True)
class KeyHours:
    """As of a moment: the keys with most calls, and those near their limit, the fullest first.

    `near` is None where what counts cannot be asked; `many` are all that called, and all that are
    near. `names` are those of all keys.
    """

    at: datetime
    top: Sequence[KeyHour]
    near: Sequence[NearLimit] | None
    many: tuple[int, int]
    names: Mapping[str, str]


async def read(
    store: Store,
    book: KeyBook,
    used: Callable[[Sequence[str]], Awaitable[Mapping[str, Used] | None]],
    now: datetime,
) -> KeyHours:
    """StoreError. What was called is counted up to a minute ago, what is used up to now."""
    sums = await recent(store, now - HOUR)
    keys = await book.keys()
    counted = await used([key_id for key_id in sums if key_id in keys])
    top = nlargest(MOST, sums, key=lambda key_id: (sums[key_id].calls, key_id))
    near = None if counted is None else _near(keys, counted)
    return KeyHours(
        now,
        [KeyHour(key_id, keys.get(key_id), sums[key_id]) for key_id in top],
        None if near is None else near[:MOST],
        (len(sums), len(near or ())),
        {key_id: key.name for key_id, key in keys.items()},
    )


def _near(keys: Mapping[str, Key], counted: Mapping[str, Used]) -> list[NearLimit]:
    found = (
        NearLimit(keys[key_id], used)
        for key_id, used in counted.items()
        if used.calls and used.calls >= NEAR * keys[key_id].limit
    )
    return sorted(found, key=lambda each: (-each.share, each.key.name))
