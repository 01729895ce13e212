"""Admits calls to the practice system: few at once, and none while it keeps failing."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from adapters.base import BackendUnavailable, LeftAlone
from adapters.call_notes import CALL_NOTES

BUSY = "the practice system was busy with other calls"
TOO_MUCH = "too much is waiting for the practice system already"


class Breaker:
    """A circuit breaker: closed until `failures` calls in a row fail, open for `pause` seconds.

    After that it is half-open: one call goes through, and its end closes or opens it again. A
    failure counts only where nothing was answered since its call began, so that many slow calls
    that end together open nothing while others are answered. `changed` hears each new state.

    A call reports its end with the turn that `enter` gave it, so that one that began before the
    last change has no effect. While it is `closed`, the next turn is `turn`.
    """

    def __init__(
        self,
        failures: int,
        pause: float,
        *,
        changed: Callable[[str], None] = lambda state: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures, self._pause = failures, pause
        self._changed, self._clock = changed, clock
        self.state, self.closed = "closed", True
        """`closed`, `open` or `half-open`; what was open is half-open once it is entered again."""
        self.turn = self._changed_at = 0
        self._failed_in_a_row = 0
        # when the pause is over, or when the call that tries it ends at the latest
        self._until = 0.0
        self._probed = asyncio.Event()
        self._probed.set()

    @property
    def wait(self) -> float:
        """Seconds until a call may go through, as far as that is known; 0 where it may now."""
        return max(0.0, self._until - self._clock())

    def check(self) -> None:
        """Raises LeftAlone where no call goes through."""
        wait = self.wait
        if self.state == "open" and wait:
            raise LeftAlone("it failed too often in a row and is left alone for a while", wait)
        if not self._probed.is_set():
            raise LeftAlone("it failed too often in a row and is being tried by one call", wait)

    async def probed(self, patience: float) -> None:
        """Waits for the end of the call that tries it, where there is one, for so many seconds."""
        if not self._probed.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._probed.wait()

    def enter(self, seconds: float) -> int:
        """Returns the turn of a call of so many seconds at most; LeftAlone where none may go."""
        if not self.closed:
            self.check()
            self.end_pause()
            self._until = self._clock() + seconds
            self._probed.clear()
        return self.turn

    def answered(self, turn: int) -> None:
        """Notes that the practice system has answered, be it with a refusal."""
        if turn >= self._changed_at:
            self.turn += 1
            self._failed_in_a_row = 0
            if not self.closed:
                self._become("closed")

    def failed(self, turn: int) -> None:
        if turn == self.turn:
            self._failed_in_a_row += 1
            if not self.closed or self._failed_in_a_row >= self._failures:
                self._become("open")

    def left(self, turn: int) -> None:
        """Notes an end that tells nothing: the call was cancelled, or the adapter has a fault."""
        if turn >= self._changed_at:
            self._until = 0.0
            self._probed.set()

    def end_pause(self) -> None:
        """Lets the next call be the probe, whatever is left of the pause."""
        if self.state == "open":
            self._become("half-open")

    def _become(self, state: str) -> None:
        self.state, self.closed = state, state == "closed"
        self._until = self._clock() + self._pause if state == "open" else 0.0
        self._probed.set()
        self.turn += 1
        self._changed_at = self.turn
        self._changed(state)


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


class Deadline:
    """The seconds that each call has, from where its `with CallSpan(deadline)` begins.

    A late call is cancelled, and raises TimeoutError unless it still answers or raises an error of
    its own. One timer serves all calls, as one for each would cost more than all other guards.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # in the order of their deadlines
        self.running: dict[CallSpan, None] = {}
        self.timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Ends the late calls, and looks again when the next one is late."""
        loop, self.timer = asyncio.get_running_loop(), None
        for span in list(self.running):
            if span.until > loop.time():
                self.timer = loop.call_at(span.until, self.look)
                break
            span.end()


class CallSpan:
    """The time of one call; `late` once it is over."""

    __slots__ = ("_cancelling", "_deadline", "_task", "late", "until")

    def __init__(self, deadline: Deadline) -> None:
        self._deadline, self.late = deadline, False

    def __enter__(self) -> "CallSpan":
        task: Any = asyncio.current_task()
        loop, deadline = task.get_loop(), self._deadline
        self._task, self._cancelling = task, task.cancelling()
        self.until = loop.time() + deadline.seconds
        deadline.running[self] = None
        if deadline.timer is None:
            deadline.timer = loop.call_at(self.until, deadline.look)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self.late:
            del self._deadline.running[self]
            return
        others = self._task.uncancel() > self._cancelling
        if kind is not None and issubclass(kind, asyncio.CancelledError) and not others:
            raise TimeoutError

    def end(self) -> None:
        self.late = True
        del self._deadline.running[self]
        self._task.cancel()
