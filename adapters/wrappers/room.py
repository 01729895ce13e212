"""Room for so many calls at once: who does not fit in waits by turn, and not for long."""

import asyncio
from collections import OrderedDict, deque

from adapters.asking import ASKING
from adapters.base import BackendUnavailable


class Room:
    """At most `most` are inside at once; at most `queue` wait, none longer than `patience`.

    Where so many wait, one more of a partner that has fewer takes the place of the last of whoever
    has most.

    Who waits comes in by turn: the partners one after the other, and of each partner who came
    first. `take` is for the call that need not wait: it costs no task switch, nor a coroutine, as a
    semaphore does.
    """

    def __init__(self, most: int, queue: int, patience: float) -> None:
        self._most = self._free = most
        self._queue = queue
        self._patience = patience
        # by partner; the first is the next whose turn it is
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def in_use(self) -> int:
        """How many are inside."""
        return self._most - self._free

    @property
    def waiting(self) -> int:
        """How many wait to come in."""
        return sum(map(len, self._lines.values()))

    def take(self) -> bool:
        """Whether there is room for this call, at once."""
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    async def enter(self) -> None:
        """BackendUnavailable where there is no room, nor in time."""
        if self.take():
            return
        partner = ASKING.get().partner
        if self.waiting >= self._queue:
            self._turn_away(partner)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(partner, deque()).append(place)
        try:
            async with asyncio.timeout(self._patience):
                await place
        except BaseException as error:
            if not place.done() or place.cancelled():
                self._forget(partner, place)
            elif place.exception() is None:  # its turn came at that very moment
                self.leave()
            if isinstance(error, TimeoutError):
                text = "the practice system was busy with other calls"
                raise BackendUnavailable(text) from error
            raise

    def leave(self) -> None:
        """Make room: for who is next, if anybody waits."""
        while self._lines:
            partner, line = self._lines.popitem(last=False)
            place = line.popleft()
            if line:
                self._lines[partner] = line
            if not place.done():
                place.set_result(None)
                return
        self._free += 1

    def _turn_away(self, newcomer: str) -> None:
        """The last of the longest line; BackendUnavailable where that is who comes now."""
        own = len(self._lines.get(newcomer, ()))
        longest = max(self._lines.values(), key=len, default=None)
        if longest is None or own + 1 >= len(longest):
            raise _too_much()
        place = longest.pop()
        if not place.done():
            place.set_exception(_too_much())

    def _forget(self, partner: str, place: asyncio.Future[None]) -> None:
        line = self._lines.get(partner)
        if line is not None and place in line:
            line.remove(place)
            if not line:
                del self._lines[partner]


def _too_much() -> BackendUnavailable:
    return BackendUnavailable("too much is waiting for the practice system already")
