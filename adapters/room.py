"""Room for so many calls at once: who does not fit in waits by turn, and not for long."""

import asyncio
from collections import deque

from adapters.base import BackendUnavailable


class Room:
    """At most `most` are inside at once; at most `queue` wait, none longer than `patience`.

    Who waits comes in by turn. `take` is for the call that need not wait: it costs no task switch,
    nor a coroutine, as a semaphore does.
    """

    def __init__(self, most: int, queue: int, patience: float) -> None:
        self._most = self._free = most
        self._queue = queue
        self._patience = patience
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def in_use(self) -> int:
        """How many are inside."""
        return self._most - self._free

    @property
    def waiting(self) -> int:
        """How many wait to come in."""
        return len(self._waiting)

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
        if len(self._waiting) >= self._queue:
            raise BackendUnavailable("too much is waiting for the practice system already")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(self._patience):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():  # it came at that very moment
                self.leave()
            elif place in self._waiting:
                self._waiting.remove(place)
            if isinstance(error, TimeoutError):
                text = "the practice system was busy with other calls"
                raise BackendUnavailable(text) from error
            raise

    def leave(self) -> None:
        """Make room: for who has waited longest, if anybody does."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1
