"""Is there room: what would be too much at once waits a moment, or is turned away uncounted."""

import asyncio
from collections import Counter, OrderedDict
from itertools import count
from time import monotonic

from gateway.contract.errors import Crowded
from gateway.pipeline.call import Call

RETRY_AFTER = 1  # seconds
# Seconds that a call waits for room.
PATIENCE = 1.0
# So many times as many calls of one key may wait as may be inside: each holds a connection.
LONGEST = 10
# An event loop that mostly comes back so late (seconds) has too much to do: then each key has half
# as many places with each look, but never fewer than FEWEST, and half as many more after every CALM
# looks that found it in time. Of all looks before one that comes makes up one part in FORGETS.
LATE, CALM, FEWEST, FORGETS = 0.03, 20, 2, 4
# Seconds for which it counts as crowded after anybody has waited for room.
CROWDED_FOR = 2.0


class _Waiting:
    """A call that waits: `let_in` becomes true when it stands inside, false when it may not."""

    __slots__ = ("call", "let_in", "number", "size")

    def __init__(self, number: int, call: Call, size: int) -> None:
        self.number, self.call, self.size = number, call, size
        self.let_in: asyncio.Future[bool] = asyncio.get_running_loop().create_future()


class Gate:
    """How many calls may be under way at once, how many of one key, and how many bytes of bodies.

    Whoever is let in stands in `inside` until it leaves. While there are fewer than `free`, nobody
    who brings no body need be asked whose they are. Who finds no room waits, in the order of
    arrival; but nobody waits behind a key whose own calls are too many.

    One key's calls must not take all of the process from the others: while the event loop comes
    late, a key has fewer places (`places`). Calls that only wait for a slow practice system make no
    loop late.
    """

    __slots__ = (
        "_bytes",
        "_calm",
        "_late",
        "_lines",
        "_most",
        "_most_bytes",
        "_most_of_one",
        "_numbers",
        "_patience",
        "_sizes",
        "_waited_at",
        "free",
        "inside",
        "places",
    )

    def __init__(
        self, most: int, most_of_one: int, most_bytes: int, patience: float = PATIENCE
    ) -> None:
        self.inside: set[Call] = set()
        # how many calls one key may have under way now
        self.places = most_of_one
        self.free = min(most, most_of_one)
        self._calm, self._late = 0, 0.0
        self._waited_at = float("-inf")
        self._most, self._most_of_one, self._most_bytes = most, most_of_one, most_bytes
        self._patience = patience
        self._bytes = 0
        self._sizes: dict[Call, int] = {}
        self._numbers = count()
        # who waits, by key
        self._lines: dict[str, OrderedDict[_Waiting, None]] = {}

    async def enter(self, call: Call, key_id: str, size: int = 0) -> None:
        """Let a call in whose body may have that size, now or in a while.

        Crowded where there was no room in time. It leaves all the same.
        """
        own = sum(_key_of(each) == key_id for each in self.inside)
        if key_id not in self._lines and self._has_room(own, size):
            self._let_in(call, size)
            return
        many = len(self._lines.get(key_id, ())) >= LONGEST * self.places
        if many or not await self._wait(key_id, _Waiting(next(self._numbers), call, size)):
            raise Crowded(RETRY_AFTER)

    @property
    def crowded(self) -> bool:
        """Whether anybody waits for room, or did so just now."""
        return monotonic() - self._waited_at < CROWDED_FOR

    def leave(self, call: Call) -> None:
        """It has ended, however far it came; who waited for its room is let in."""
        self.inside.discard(call)
        if self._sizes:
            self._bytes -= self._sizes.pop(call, 0)
        if self._lines:
            self._let_in_who_waits()

    def hear(self, late: float) -> None:
        """The loop came back so many seconds late; told several times a second."""
        self._late += (late - self._late) / FORGETS
        if self._late >= LATE:
            self._calm = 0
            self._give(max(min(FEWEST, self._most_of_one), self.places // 2))
        elif self.places < self._most_of_one:
            self._calm += 1
            if self._calm >= CALM:
                self._calm = 0
                self._give(min(self._most_of_one, self.places + max(1, self.places // 2)))

    def _give(self, places: int) -> None:
        self.places = places
        self.free = min(self._most, places)
        if self._lines:
            self._let_in_who_waits()

    def _has_room(self, own: int, size: int) -> bool:
        return (
            own < self.places
            and len(self.inside) < self._most
            and (not size or self._bytes + size <= self._most_bytes)
        )

    def _let_in(self, call: Call, size: int) -> None:
        self.inside.add(call)
        if size:
            self._sizes[call] = size
            self._bytes += size

    async def _wait(self, key_id: str, waiting: _Waiting) -> bool:
        self._lines.setdefault(key_id, OrderedDict())[waiting] = None
        waiting.call.waits_since = self._waited_at = monotonic()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._patience, self._give_up, key_id, waiting)
        try:
            return await waiting.let_in
        finally:
            timer.cancel()
            waiting.call.waits_since = None
            self._forget(key_id, waiting)

    def _give_up(self, key_id: str, waiting: _Waiting) -> None:
        if not waiting.let_in.done():
            self._forget(key_id, waiting)
            waiting.let_in.set_result(False)

    def _forget(self, key_id: str, waiting: _Waiting) -> None:
        line = self._lines.get(key_id)
        if line is not None:
            line.pop(waiting, None)
            if not line:
                del self._lines[key_id]

    def _let_in_who_waits(self) -> None:
        while len(self.inside) < self._most and (first := self._first()) is not None:
            key_id, waiting = first
            self._forget(key_id, waiting)
            if not waiting.let_in.done():  # else its caller was cut off just now
                self._let_in(waiting.call, waiting.size)
                waiting.let_in.set_result(True)

    def _first(self) -> tuple[str, _Waiting] | None:
        """Who has waited for the longest, of those that there is room for."""
        own = Counter(map(_key_of, self.inside))
        firsts = ((key_id, next(iter(line))) for key_id, line in self._lines.items())
        fit = (each for each in firsts if self._has_room(own[each[0]], each[1].size))
        return min(fit, key=lambda each: each[1].number, default=None)


def _key_of(call: Call) -> str | None:
    return None if call.key is None else call.key.id
