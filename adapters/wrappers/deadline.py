"""The deadline of a call, with one timer for all calls."""

import asyncio
from typing import Any


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
        loop, deadline = asyncio.get_running_loop(), self._deadline
        task: Any = asyncio.current_task(loop)
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
