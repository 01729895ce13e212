"""Leaves alone a practice system that keeps failing: purgatory's circuit, one probe at a time."""

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress

from adapters.base import LeftAlone
from adapters.wrappers.unloaded import without

# purgatory would import the driver of Redis wherever it is installed
with without("redis"):
    from purgatory.domain.model import CLOSED, OPENED, Context, HalfOpenedState

_NAMES = {"closed": "closed", "opened": "open", "half-opened": "half-open"}


class Breaker:
    """Closed until `failures` calls in a row have failed; then open for `pause` seconds.

    Thereafter it is half-open: one call goes through, and its end closes or opens it again. A
    failure counts only where nothing was answered since its call began, so that many slow calls
    that end together open nothing while others are answered. `changed` hears each new state.

    Meanwhile others may wait for the end of that one with `probed`.

    What a call learns is told with the turn that `enter` gave it, so that one that began before
    the last change changes nothing any more. While it is `closed`, the next turn is `turn`.
    """

    def __init__(
        self,
        failures: int,
        pause: float,
        *,
        changed: Callable[[str], None] = lambda state: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # its own pause is one of the wall's clock, which may jump: ours is `_clock`'s
        self._circuit = Context("practice system", failures, ttl=math.inf)
        self._pause = pause
        self._changed = changed
        self._clock = clock
        self.turn = self._changed_at = 0
        self._open_until = 0.0
        # while one call tries it: when that ends at the latest, and that it has ended
        self._probe_until: float | None = None
        self._probed = asyncio.Event()
        # whether anything has failed since the last answer
        self._failing = False
        self.closed = True

    @property
    def state(self) -> str:
        """`closed`, `open` or `half-open`; what was open is half-open once it is entered again."""
        return _NAMES[self._circuit.state]

    @property
    def wait(self) -> float:
        """Seconds until a call may go through, as far as that is known; 0 where it may now."""
        if self.closed:
            return 0.0
        until = self._open_until if self._circuit.state == OPENED else self._probe_until
        return 0.0 if until is None else max(0.0, until - self._clock())

    def check(self) -> None:
        """LeftAlone, at once, where no call goes through."""
        if self.closed:
            return
        if self._circuit.state == OPENED and self._clock() < self._open_until:
            text = "it failed too often in a row and is left alone for a while"
            raise LeftAlone(text, self.wait)
        if self._probe_until is not None:
            text = "it failed too often in a row and is being tried by one call"
            raise LeftAlone(text, self.wait)

    async def probed(self, patience: float) -> None:
        """Wait for the end of the call that tries it, where there is one, for so many seconds."""
        if self._probe_until is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._probed.wait()

    def enter(self, seconds: float) -> int:
        """The turn of a call that goes through, the one probe included; else as `check`.

        The call takes so many seconds at most.
        """
        if not self.closed:
            self.check()
            self.end_pause()
            self._probe_until = self._clock() + seconds
            self._probed.clear()
        return self.turn

    def answered(self, turn: int) -> None:
        """The practice system has answered, be it with a no."""
        if turn < self._changed_at:
            return
        self.turn += 1
        if self._failing:
            self._failing = False
            self._circuit.handle_end_request()
            self._settle()

    def failed(self, turn: int, error: Exception) -> None:
        """It has not."""
        if turn == self.turn:
            self._failing = True
            self._circuit.handle_exception(error)
            self._settle()

    def left(self, turn: int) -> None:
        """The call ended and nothing was learned: it was cancelled, or the adapter has a fault."""
        if turn >= self._changed_at:
            self._end_probe()

    def end_pause(self) -> None:
        """The next call may be the probe, whatever is left of the pause."""
        if self._circuit.state == OPENED:
            self._circuit.set_state(HalfOpenedState())
            self._settle()

    def _end_probe(self) -> None:
        self._probe_until = None
        self._probed.set()

    def _settle(self) -> None:
        """Take in what the circuit has made of it."""
        changes = [each for each in self._circuit.messages if hasattr(each, "state")]
        self._circuit.messages.clear()
        if not changes:
            return
        self.closed = self._circuit.state == CLOSED
        self._end_probe()
        self.turn += 1
        self._changed_at = self.turn
        if self._circuit.state == OPENED:
            self._open_until = self._clock() + self._pause
        self._changed(self.state)
