"""Bounds how many calls are with the practice system at once; the others queue by partner."""

import asyncio
from collections import OrderedDict, deque

from adapters.base import BackendUnavailable
from adapters.call_notes import CALL_NOTES

BUSY = "the practice system was busy with other calls"
TOO_MUCH = "too much is waiting for the practice system already"


def bookings_of(in_flight: int) -> int:
    """Returns how many of the calls that may be under way at once may be bookings: half."""
    return max(1, in_flight // 2)


def searches_of(in_flight: int) -> int:
    """Returns how many of them may be searches, which may look at every row: a quarter."""
    return max(1, in_flight // 4)


class CallLimiter:
    """Lets `most` calls in at once; at most `queue` wait, none longer than `patience` seconds.

    Partners take turns, and each partner's calls come in by their order. Where `queue` calls wait,
    a new one may take the place of the last call of the partner that has most.

    `take` is for a call that need not wait: it costs no task switch and no coroutine, as a
    semaphore would.
    """

    def __init__(self, most: int, queue: int, patience: float) -> None:
        self._most = self._free = most
        self._queue = queue
        self._patience = patience
        # by partner; it is the first one's turn
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def in_use(self) -> int:
        return self._most - self._free

    @property
    def waiting(self) -> int:
        return sum(map(len, self._lines.values()))

    def take(self) -> bool:
        """Takes a place and returns True where one is free; else returns False."""
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    async def enter(self) -> None:
        """Waits for a place. Raises BackendUnavailable where there is none in time."""
        if self.take():
            return
        partner = CALL_NOTES.get().partner
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
                raise BackendUnavailable(BUSY) from error
            raise

    def leave(self) -> None:
        """Gives the place to the next call that waits, or frees it."""
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
        """Turns away the last of the longest line; BackendUnavailable if that is the newcomer."""
        own = len(self._lines.get(newcomer, ()))
        longest = max(self._lines.values(), key=len, default=None)
        if longest is None or own + 1 >= len(longest):
            raise BackendUnavailable(TOO_MUCH)
        place = longest.pop()
        if not place.done():
            place.set_exception(BackendUnavailable(TOO_MUCH))

    def _forget(self, partner: str, place: asyncio.Future[None]) -> None:
        line = self._lines.get(partner, deque())
        if place in line:
            line.remove(place)
        if not line:
            self._lines.pop(partner, None)
