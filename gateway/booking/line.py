"""Lines up the bookings of this process that are for the same time of the same vet.

One of them at a time is worked on. Where the practice system refuses it as the time is taken, all
that stood behind it when its work began are refused too: none of them, sent in its place, would
have been booked. However else it ends (booked, failed, not known), the next one is sent.
"""

import asyncio
from collections import defaultdict
from datetime import datetime
from typing import Any, Self

from gateway.booking.base import BookingRefused, BookingRequest
from gateway.contract.errors import Unavailable

# The vet, the start, and the type of appointment, which decides how long it takes.
Slot = tuple[str, datetime, str | None]
TAKEN = "SlotTaken"


class Lines:
    """The lines of one process, by what is to be booked."""

    def __init__(self) -> None:
        self._turns: defaultdict[Slot, list[Turn]] = defaultdict(list)

    def turn(self, request: BookingRequest) -> "Turn":
        """Returns a turn that takes its place in the line once it is waited for."""
        draft = request.draft
        return Turn(self, (draft.vet_id, draft.scheduled_at, draft.appointment_type_id))

    def join(self, turn: "Turn") -> None:
        line = self._turns[turn.slot]
        line.append(turn)
        if len(line) == 1:
            turn.come()

    def behind(self, turn: "Turn") -> list["Turn"]:
        """Returns who stands behind the first one."""
        return self._turns[turn.slot][1:]

    def leave(self, turn: "Turn") -> None:
        """Takes the turn out of its line; whoever is first then, comes."""
        line = self._turns[turn.slot]
        line.remove(turn)
        if line:
            line[0].come()
        else:
            del self._turns[turn.slot]


class Turn:
    """One call's place in a line, as a context manager; it ends with the task that `works` on it.

    `is_taken` tells whether the practice system said since the call began that the time is taken.
    """

    def __init__(self, lines: Lines, slot: Slot) -> None:
        self.slot, self.is_taken = slot, False
        self._lines = lines
        self._came: asyncio.Future[None] | None = None
        self._works = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._works:
            self._leave()

    async def comes(self, until: float) -> bool:
        """Returns True at once where it is this turn, else False once it has come.

        Raises Unavailable where it does not come by `until`, a time of the event loop.
        """
        if self._came is None:
            self._came = asyncio.get_running_loop().create_future()
            self._lines.join(self)
        if self._came.done():
            return True
        try:
            async with asyncio.timeout_at(until):
                await self._came
        except TimeoutError as error:
            raise Unavailable(1) from error
        return False

    def come(self) -> None:
        if self._came is not None and not self._came.done():
            self._came.set_result(None)

    def works(self, task: asyncio.Task[Any]) -> None:
        """Ends the turn with the task; what that is told of the time holds for who waits now."""
        if self._came is None:  # a row that was there before: it stands in no line
            return
        self._works, waiting = True, self._lines.behind(self)
        task.add_done_callback(lambda ended: self._ended(ended, waiting))

    def _ended(self, task: asyncio.Task[Any], waiting: list["Turn"]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, BookingRefused) and error.error == TAKEN and not error.replayed:
            for turn in waiting:
                turn.is_taken = True
                turn.come()
        self._leave()

    def _leave(self) -> None:
        if self._came is not None:
            self._came = None
            self._lines.leave(self)
