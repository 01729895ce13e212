"""Is there room: what would be too much at once waits a moment, or is turned away uncounted."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable
from itertools import count
from time import monotonic

from gateway.contract.errors import Crowded
from gateway.pipeline.call import Call
from gateway.pipeline.places import Changed, Places

# Seconds that a call waits for room: so long after a refusal everybody who waits now is gone.
PATIENCE = 1.0
# So many times as many calls of one key may wait as may ever be inside: each holds a connection.
LONGEST = 10
# Seconds for which it counts as crowded for a key after any of its calls has waited for room.
CROWDED_FOR = 2.0

# Why a call was turned away: its key had too many under way, or waiting; the process had; or there
# was no room for its body. Names for `told`.
KEY, PROCESS, BODY = "key", "process", "body"
# Whose calls wait in a line, and whether they bring bodies.
Line = tuple[str, bool]


class _Waiting:
    """A call that waits: `let_in` becomes true when it stands inside, false when it may not."""

    __slots__ = ("call", "let_in", "number", "size")

    def __init__(self, number: int, call: Call, size: int) -> None:
        self.number, self.call, self.size = number, call, size
        self.let_in: asyncio.Future[bool] = asyncio.get_running_loop().create_future()


class Gate:
    """How many calls may be under way at once, how many of one key, and how many bytes of bodies.

    Whoever is let in stands in `inside` until it leaves. While there are fewer than `free`, nobody
    who brings no body need be asked whose they are. Who finds no room waits; who comes in is of the
    key that has the fewest calls inside, and of these who has waited for the longest. So nobody
    waits behind a key whose own calls are too many, nor behind bodies that are.

    `places` are those of one key. `told` hears why a call was turned away.
    """

    __slots__ = (
        "_bytes",
        "_clock",
        "_lines",
        "_most",
        "_most_bytes",
        "_numbers",
        "_patience",
        "_sizes",
        "_told",
        "_waited",
        "free",
        "inside",
        "places",
    )

    def __init__(
        self,
        most: int,
        most_of_one: int,
        most_bytes: int,
        *,
        patience: float = PATIENCE,
        told: Callable[[str], None] = lambda reason: None,
        changed: Changed = lambda places: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.inside: set[Call] = set()
        self.places = Places(most_of_one, changed)
        self.free = min(most, most_of_one)
        self._most, self._most_bytes = most, most_bytes
        self._patience = patience
        self._told = told
        self._clock = clock
        self._bytes = 0
        self._sizes: dict[Call, int] = {}
        self._numbers = count()
        self._lines: dict[Line, OrderedDict[_Waiting, None]] = {}
        # when a call of a key waited last
        self._waited: dict[str, float] = {}

    async def enter(self, call: Call, key_id: str, size: int = 0) -> None:
        """Let a call in whose body may have that size, now or in a while.

        Crowded where there was no room in time, or nobody is left to be answered. It leaves all
        the same.
        """
        line = key_id, size > 0
        own = self._own(key_id)
        if line not in self._lines and self._has_room(own, size):
            self._let_in(call, size)
            return
        self._waited[key_id] = self._clock()
        if self._waiting(key_id) >= LONGEST * self.places.most:
            self._told(KEY)
            raise Crowded(self._patience)
        let_in = await self._wait(line, _Waiting(next(self._numbers), call, size))
        if not let_in and not call.gone:
            self._told(self._why(key_id, size))
        if not let_in or call.gone:
            raise Crowded(self._patience)

    def crowded(self, key_id: str) -> bool:
        """Whether a call of that key waits for room, or did so just now."""
        return self._clock() - self._waited.get(key_id, float("-inf")) < CROWDED_FOR

    def leave(self, call: Call) -> None:
        """It has ended, however far it came; who waited for its room is let in."""
        self.inside.discard(call)
        if self._sizes:
            self._bytes -= self._sizes.pop(call, 0)
        if self._lines:
            self._let_in_who_waits()

    def hear(self, late: float) -> None:
        """The event loop came back so many seconds late; told several times a second."""
        self.places.hear(late)
        self.free = min(self._most, self.places.now)
        if self._lines:
            self._let_in_who_waits()
        elif self._waited:
            self._forget_who_waited()

    def _own(self, key_id: str) -> int:
        return sum(_key_of(each) == key_id for each in self.inside)

    def _waiting(self, key_id: str) -> int:
        """How many calls of a key wait whose callers are still there."""
        there = (self._lines.get((key_id, brings), ()) for brings in (False, True))
        return sum(not each.call.gone for line in there for each in line)

    def _has_room(self, own: int, size: int) -> bool:
        return (
            own < self.places.now
            and len(self.inside) < self._most
            and (not size or self._bytes + size <= self._most_bytes)
        )

    def _why(self, key_id: str, size: int) -> str:
        if self._own(key_id) >= self.places.now:
            return KEY
        return BODY if size and len(self.inside) < self._most else PROCESS

    def _let_in(self, call: Call, size: int) -> None:
        self.inside.add(call)
        if size:
            self._sizes[call] = size
            self._bytes += size

    async def _wait(self, line: Line, waiting: _Waiting) -> bool:
        self._lines.setdefault(line, OrderedDict())[waiting] = None
        waiting.call.waits_since = monotonic()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._patience, self._give_up, line, waiting)
        try:
            return await waiting.let_in
        finally:
            timer.cancel()
            waiting.call.waits_since = None
            self._waited[line[0]] = self._clock()
            self._forget(line, waiting)

    def _forget_who_waited(self) -> None:
        since = self._clock() - CROWDED_FOR
        for key_id in [each for each, at in self._waited.items() if at <= since]:
            del self._waited[key_id]

    def _give_up(self, line: Line, waiting: _Waiting) -> None:
        if not waiting.let_in.done():
            self._forget(line, waiting)
            waiting.let_in.set_result(False)

    def _forget(self, line: Line, waiting: _Waiting) -> None:
        there = self._lines.get(line)
        if there is not None:
            there.pop(waiting, None)
            if not there:
                del self._lines[line]

    def _let_in_who_waits(self) -> None:
        while len(self.inside) < self._most and (first := self._first()) is not None:
            line, waiting = first
            self._forget(line, waiting)
            if not waiting.let_in.done():  # else its caller was cut off just now
                self._let_in(waiting.call, waiting.size)
                waiting.let_in.set_result(True)

    def _first(self) -> tuple[Line, _Waiting] | None:
        """Whose turn it is, of those that there is room for."""
        own = Counter(map(_key_of, self.inside))
        firsts = ((line, next(iter(there))) for line, there in self._lines.items())
        fit = (each for each in firsts if self._has_room(own[each[0][0]], each[1].size))
        return min(fit, key=lambda each: (own[each[0][0]], each[1].number), default=None)


def _key_of(call: Call) -> str | None:
    return None if call.key is None else call.key.id
