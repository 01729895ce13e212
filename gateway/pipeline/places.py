"""How many calls one key may have under way at once: fewer while the event loop comes late."""

from collections.abc import Callable

# An event loop that mostly comes back so late (seconds) has too much to do: then each key has half
# as many places with each look, but never fewer than FEWEST, and half as many more after every CALM
# looks that found it in time. Of all looks before one that comes makes up one part in FORGETS, and
# none counts as more than twice LATE: a process that stood still for once has not too much to do.
LATE, CALM, FEWEST, FORGETS = 0.03, 20, 2, 4

# Hears how many there are whenever they have become fewer or more.
Changed = Callable[[int], None]


class Places:
    """`now` are so many, `most` as long as there is not too much to do.

    Calls that only wait for a slow practice system make no loop late.
    """

    __slots__ = ("_calm", "_changed", "_late", "most", "now")

    def __init__(self, most: int, changed: Changed = lambda places: None) -> None:
        self.most = self.now = most
        self._changed = changed
        self._calm, self._late = 0, 0.0

    def hear(self, late: float) -> None:
        """The loop came back so many seconds late; told several times a second."""
        self._late += (min(late, 2 * LATE) - self._late) / FORGETS
        if self._late >= LATE:
            self._calm = 0
            self._give(max(min(FEWEST, self.most), self.now // 2))
        elif self.now < self.most:
            self._calm += 1
            if self._calm >= CALM:
                self._calm = 0
                self._give(min(self.most, self.now + max(1, self.now // 2)))

    def _give(self, places: int) -> None:
        if places != self.now:
            self.now = places
            self._changed(places)
