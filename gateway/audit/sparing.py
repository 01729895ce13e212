"""Which calls have lines of their own: a flood of such as count against no limit has few.

Whoever is turned away before a call counts can call as often as the line carries, and needs no key
for it. A line for each would fill the disk; without room there, nobody is served.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping

# So many calls of one key, and of all who have none, have lines at once, and one more each second.
AT_ONCE, PER_SECOND = 100.0, 1.0


class Sparing:
    """Gives lines, by key id; `None` stands for all who have no usable key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # how many lines are left, and as of when
        self._left: dict[str | None, tuple[float, float]] = {}
        self._spared: Counter[str | None] = Counter()

    def spares(self, key_id: str | None) -> bool:
        """Whether this call goes without, and is only counted."""
        now = self._clock()
        left, since = self._left.get(key_id, (AT_ONCE, now))
        left = min(AT_ONCE, left + (now - since) * PER_SECOND)
        if left < 1:
            self._left[key_id] = left, now
            self._spared[key_id] += 1
            return True
        self._left[key_id] = left - 1, now
        return False

    def told(self) -> Mapping[str | None, int]:
        """How many calls went without since this was asked last."""
        spared, self._spared = self._spared, Counter()
        return spared
