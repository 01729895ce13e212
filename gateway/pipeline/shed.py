"""Is there room: what would be too much at once waits a moment, or is turned away uncounted."""

import asyncio
from collections import Counter, OrderedDict
from itertools import count

from gateway.contract.errors import Unavailable
from gateway.pipeline.call import Call

RETRY_AFTER = 1  # seconds
# Seconds that a call waits for room.
PATIENCE = 1.0


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
    """

    __slots__ = (
        "_bytes",
        "_lines",
        "_most",
        "_most_bytes",
        "_most_of_one",
        "_numbers",
        "_patience",
        "_sizes",
        "free",
        "inside",
    )

    def __init__(
        self, most: int, most_of_one: int, most_bytes: int, patience: float = PATIENCE
    ) -> None:
        self.inside: set[Call] = set()
        self.free = min(most, most_of_one)
        self._most, self._most_of_one, self._most_bytes = most, most_of_one, most_bytes
        self._patience = patience
        self._bytes = 0
        self._sizes: dict[Call, int] = {}
        self._numbers = count()
        # who waits, by key
        self._lines: dict[str, OrderedDict[_Waiting, None]] = {}

    async def enter(self, call: Call, key_id: str, size: int = 0) -> None:
        """Let a call in whose body may have that size, now or in a while.

        Unavailable where there was no room in time. It leaves all the same.
        """
        own = sum(_key_of(each) == key_id for each in self.inside)
        if key_id not in self._lines and self._has_room(own, size):
            self._let_in(call, size)
        elif not await self._wait(key_id, _Waiting(next(self._numbers), call, size)):
            raise Unavailable(RETRY_AFTER)

    def leave(self, call: Call) -> None:
        """It has ended, however far it came; who waited for its room is let in."""
        self.inside.discard(call)
        if self._sizes:
            self._bytes -= self._sizes.pop(call, 0)
        if self._lines:
            self._let_in_who_waits()

    def _has_room(self, own: int, size: int) -> bool:
        return (
            own < self._most_of_one
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
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._patience, self._give_up, key_id, waiting)
        try:
            return await waiting.let_in
        finally:
            timer.cancel()
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
