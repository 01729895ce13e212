"""Ends what takes too long: one timer for all calls that have the same time.

`asyncio.timeout` makes a timer for each, which costs more than all else that is done for a call.
Of calls with the same time the first to begin is the first to be late: the one timer is the
first one's.
"""

import asyncio
from types import TracebackType


class Deadline:
    """So many seconds for each call, from where its `with deadline.span()` begins.

    What is late is cancelled, and TimeoutError comes out; unless, cancelled, it still answers or
    says itself what became of it.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # in the order of their ends
        self.running: dict[Span, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def span(self) -> "Span":
        return Span(self)

    def watch(self, loop: asyncio.AbstractEventLoop, until: float) -> None:
        """Look at what runs when the first of it is late."""
        if self._timer is None or self._timer.cancelled():
            self._timer = loop.call_at(until, self._look, loop)

    def aclose(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        for span in list(self.running):
            if span.until > loop.time():
                self.watch(loop, span.until)
                break
            span.end()


class Span:
    """One call's time; `late` once it is over."""

    __slots__ = ("_cancelling", "_deadline", "_task", "late", "until")

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self.late = False

    def __enter__(self) -> "Span":
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline is for what runs in a task")
        loop = task.get_loop()
        self._task = task
        self._cancelling = task.cancelling()
        self.until = loop.time() + self._deadline.seconds
        self._deadline.running[self] = None
        self._deadline.watch(loop, self.until)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if not self.late:
            del self._deadline.running[self]
            return
        others = self._task.uncancel() > self._cancelling
        if kind is not None and issubclass(kind, asyncio.CancelledError) and not others:
            raise TimeoutError from error

    def end(self) -> None:
        """The time is over."""
        self.late = True
        del self._deadline.running[self]
        self._task.cancel()
