"""The circuit breaker: stops calls to a system that keeps failing, then tries it with one call."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from adapters.base import LeftAlone


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
