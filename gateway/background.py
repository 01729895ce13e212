"""Runs work in the background again and again, ends it, and tells whether a clock is trusted."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.events import Events

# Seconds that a cancelled task has to end before it is cancelled again.
AGAIN = 2.0
# A wall clock that moves by more seconds against the steady one has been set, and may be set back:
# it is not trusted for a day.
JUMP = 60.0
RESTS = 24 * 3600.0

Work = Callable[[], Awaitable[object]]


async def ended(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancels tasks until they have ended; raises what else one of them raised.

    Once is not enough: a cancellation that meets the end of a transaction may come out of the
    database's driver as an error like any other, after which a task that outlives errors goes on.
    """
    going = {task for task in tasks if task is not None}
    while running := {task for task in going if not task.done()}:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=AGAIN)
    for task in going:
        if not task.cancelled():
            task.result()


@dataclass(slots=True)
class Attempts:
    """Attempts at one thing, each in a `with`, which swallows errors of that `kind`.

    The first failure is reported as the event `failed`, and the next success as `back`. An event
    without a name is not reported.
    """

    events: Events | None = None
    failed: str = ""
    back: str = ""
    kind: type[Exception] = Exception
    failing: bool = False

    def __enter__(self) -> None:
        """Does nothing: a beginning is not reported."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is not None and not isinstance(error, self.kind):
            return False
        is_news, self.failing = self.failing != (error is not None), error is not None
        event = self.failed if self.failing else self.back
        if is_news and event and self.events is not None:
            self.events.report(event, error)
        return True


class Periodic:
    """Work that is done every so many seconds, whatever it raises; Attempts reports failures.

    `every` may be a function, which is asked before each pause. `first` is done at once, before the
    first pause. A class that does one thing again and again derives from this one.
    """

    def __init__(
        self,
        every: float | Callable[[], float],
        work: Work,
        events: Events | None = None,
        *,
        name: str,
        first: Work | None = None,
        failed: str = "",
        back: str = "",
    ) -> None:
        self._every = every
        self._work = work
        self._name = name
        self._first = first
        self._attempts = Attempts(events, failed, back)
        self._wake = asyncio.Event()
        self._ending = False
        self._task: asyncio.Task[None] | None = None

    @property
    def failing(self) -> bool:
        """Whether the last turn raised something."""
        return self._attempts.failing

    def start(self) -> None:
        """Begins, until `aclose` or `finish`."""
        self._task = asyncio.create_task(self._go_on(), name=self._name)

    def soon(self) -> None:
        """Makes the next turn begin now, or right after the one that runs."""
        self._wake.set()

    async def turn(self, work: Work | None = None) -> None:
        """Does the work, or another of the same kind, once; what it raises is reported."""
        with self._attempts:
            await (work or self._work)()

    async def aclose(self) -> None:
        """Stops at once, even in the middle of a turn."""
        await ended(self._task)

    async def finish(self) -> None:
        """Stops once the turn that runs has ended."""
        self._ending = True
        self._wake.set()
        if self._task is not None:
            await self._task

    async def _go_on(self) -> None:
        if self._first is not None:
            await self.turn(self._first)
        while not self._ending:
            every = self._every() if callable(self._every) else self._every
            with suppress(TimeoutError):
                async with asyncio.timeout(every):
                    await self._wake.wait()
            self._wake.clear()
            if not self._ending:
                await self.turn()


class WallClock:
    """A comparison of the wall clock with the steady one, made each time that it is asked."""

    def __init__(self, clock: Callable[[], float], now: datetime | None = None) -> None:
        self._clock = clock
        self._ahead = None if now is None else now.timestamp() - clock()
        self._trusted_at = clock()

    def is_trusted(self, now: datetime) -> bool:
        """Returns whether the wall clock was not set within the last day, as far as was seen."""
        clock = self._clock()
        ahead = now.timestamp() - clock
        if self._ahead is not None and abs(ahead - self._ahead) > JUMP:
            self._trusted_at = clock + RESTS
        self._ahead = ahead
        return clock >= self._trusted_at
