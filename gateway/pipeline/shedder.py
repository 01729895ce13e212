"""Bounds what is under way at once: further calls wait a moment, or are turned away uncounted."""

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import count
from time import monotonic

from gateway.contract.errors import Crowded
from gateway.events import Events
from gateway.pipeline.call import Call

# Seconds that a call waits for room. So long after a refusal all calls that wait now are gone.
PATIENCE = 1.0
# So many times more calls of one key may wait than may be inside: each holds a connection.
LONGEST = 10
# Seconds for which a key counts as crowded after any of its calls has waited for room.
CROWDED_FOR = 2.0
# An event loop that mostly comes back LATE seconds late has too much to do. Then each look halves
# the places of each key, down to FEWEST; CALM looks in time make them half as many more. A new look
# counts for one part in FORGETS of the mean, at most as twice LATE: one long stop is no overload.
LATE, CALM, FEWEST, FORGETS = 0.03, 20, 2, 4

# Why a call was turned away: too many calls of its key, too many of all, no room for its body.
KEY, PROCESS, BODY = "key", "process", "body"
# The key whose calls wait in a line, and whether they bring bodies.
Line = tuple[str, bool]


class AdaptiveLimit:
    """How many calls one key may have under way at once: `now`, and never more than `most`.

    There are fewer while the event loop comes late by the process's own work. Calls that only wait
    for a slow practice system make no loop late, and a program that takes the core away is no work
    of this one.
    """

    __slots__ = ("_calm", "_events", "_late", "most", "now")

    def __init__(self, most: int, events: Events) -> None:
        self.most = self.now = most
        self._events = events
        self._calm, self._late = 0, 0.0

    def on_lag(self, late: float) -> None:
        """Notes how late the loop came back by own work; called several times a second."""
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
        if places == self.most:
            self._events.report("event_loop_in_time")
        elif self.now == self.most:
            self._events.report("event_loop_late")
        self.now = places


class _WaitingCall:
    """A call that waits: `let_in` is done when it is inside, cancelled where it no longer waits."""

    __slots__ = ("call", "let_in", "number", "size")

    def __init__(self, number: int, call: Call, size: int) -> None:
        self.number, self.call, self.size = number, call, size
        self.let_in: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class LoadShedder:
    """Bounds the calls under way at once, those of one key, and the bytes of bodies.

    A call that is let in stands in `inside` until it leaves. While fewer than `free` do, one
    without a body can be let in without looking at its key. A call without room waits. Next comes
    in a call of the key that has the fewest inside, and of these the one that has waited longest.
    So no call waits behind a key that has too many calls, nor behind too many bodies. `places` are
    those of one key.
    """

    def __init__(
        self,
        most: int,
        most_of_one: int,
        most_bytes: int,
        events: Events,
        *,
        patience: float = PATIENCE,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.inside: set[Call] = set()
        self.places = AdaptiveLimit(most_of_one, events)
        self.free = min(most, most_of_one)
        self._most, self._most_bytes = most, most_bytes
        self._patience = patience
        self._events = events
        self._clock = clock
        self._bytes = 0
        self._sizes: dict[Call, int] = {}
        # how many calls of each key are inside, as long as all `_counted` of them went this way
        self._own: Counter[str | None] | None = None
        self._counted = 0
        self._numbers = count()
        self._lines: dict[Line, dict[_WaitingCall, None]] = {}
        # when a call of a key waited last
        self._waited: dict[str, float] = {}

    async def enter(self, call: Call, key_id: str, size: int = 0) -> None:
        """Lets a call in whose body may have `size` bytes, now or in a while.

        Raises Crowded where there was no room in time, or nobody is left to be answered. Then too
        the call has to leave.
        """
        line = key_id, size > 0
        own = self._own_counts()[key_id]
        if line not in self._lines and self._has_room(own, size):
            self._let_in(call, size)
            return
        self._waited[key_id] = self._clock()
        lines = (self._lines.get((key_id, brings), ()) for brings in (False, True))
        waiting = sum(not other.call.gone for in_line in lines for other in in_line)
        if waiting >= LONGEST * self.places.most:
            self._events.report("calls_turned_away", reason=KEY)
            raise Crowded(self._patience)
        let_in = await self._wait(line, _WaitingCall(next(self._numbers), call, size))
        if let_in and not call.gone:
            return
        if not call.gone:
            why = BODY if size and len(self.inside) < self._most else PROCESS
            why = KEY if self._own_counts()[key_id] >= self.places.now else why
            self._events.report("calls_turned_away", reason=why)
        raise Crowded(self._patience)

    def crowded(self, key_id: str) -> bool:
        """Returns whether a call of that key waits for room, or did so just now."""
        return self._clock() - self._waited.get(key_id, float("-inf")) < CROWDED_FOR

    def leave(self, call: Call) -> None:
        """Takes out a call, however far it came, and lets in those that waited for its room."""
        if self._own is not None and call in self.inside:
            self._own[_key_of(call)] -= 1
            self._counted -= 1
        self.inside.discard(call)
        if self._sizes:
            self._bytes -= self._sizes.pop(call, 0)
        if self._lines:
            self._let_in_who_waits()

    def on_lag(self, late: float) -> None:
        self.places.on_lag(late)
        self.free = min(self._most, self.places.now)
        if self._lines:
            self._let_in_who_waits()
            return
        self._own = None  # nobody waits: calls go in and out uncounted
        if self._waited:
            since = self._clock() - CROWDED_FOR
            self._waited = {key: at for key, at in self._waited.items() if at > since}

    def _own_counts(self) -> Counter[str | None]:
        """Returns how many calls of each key are inside; counts anew where one came in uncounted.

        Each that leaves is taken off, counted or not. So all are counted where as many are inside
        as were counted.
        """
        if self._own is None or self._counted != len(self.inside):
            self._own, self._counted = Counter(map(_key_of, self.inside)), len(self.inside)
        return self._own

    def _has_room(self, own: int, size: int) -> bool:
        return (
            own < self.places.now
            and len(self.inside) < self._most
            and (not size or self._bytes + size <= self._most_bytes)
        )

    def _let_in(self, call: Call, size: int) -> None:
        self._own_counts()[_key_of(call)] += 1
        self._counted += 1
        self.inside.add(call)
        if size:
            self._sizes[call] = size
            self._bytes += size

    async def _wait(self, line: Line, waiting: _WaitingCall) -> bool:
        """Returns whether the call was let in before its patience was over."""
        self._lines.setdefault(line, {})[waiting] = None
        waiting.call.waits_since = monotonic()
        try:
            async with asyncio.timeout(self._patience):
                await waiting.let_in
        except TimeoutError:  # it may have come in at the last moment
            return not waiting.let_in.cancelled()
        finally:
            waiting.call.waits_since = None
            self._waited[line[0]] = self._clock()
            self._forget(line, waiting)
        return True

    def _forget(self, line: Line, waiting: _WaitingCall) -> None:
        in_line = self._lines.get(line, {})
        in_line.pop(waiting, None)
        if not in_line:
            self._lines.pop(line, None)

    def _let_in_who_waits(self) -> None:
        while len(self.inside) < self._most and (first := self._first()) is not None:
            line, waiting = first
            self._forget(line, waiting)
            if not waiting.let_in.done():  # else its caller has just gone, or waited too long
                self._let_in(waiting.call, waiting.size)
                waiting.let_in.set_result(None)

    def _first(self) -> tuple[Line, _WaitingCall] | None:
        """Returns the call whose turn it is, and its line, of those that there is room for."""
        own = self._own_counts()
        firsts = ((line, next(iter(in_line))) for line, in_line in self._lines.items())
        fit = (first for first in firsts if self._has_room(own[first[0][0]], first[1].size))
        return min(fit, key=lambda first: (own[first[0][0]], first[1].number), default=None)


def _key_of(call: Call) -> str | None:
    return None if call.key is None else call.key.id
