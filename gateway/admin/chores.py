"""What takes longer than a page may: work in the background, and questions asked now and then."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from gateway.background import ended
from gateway.events import Events
from gateway.settings import StartRefused

# Seconds that a page waits for news: where it has something older to show, and where it has not.
MOMENT, FIRST = 0.25, 2.5
# What took long is not asked again before so many times as long.
REST = 20.0
T = TypeVar("T")
# What a deed's last line in the audit says more than its first.
Noted = dict[str, Any]
NotedDeed = AbstractAsyncContextManager[Noted]
Work = Callable[[Noted], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class UnderWay(Generic[T]):
    """A run: whose, since when, and how far it is."""

    who: str
    since: datetime
    progress: T


class Chore(Generic[T]):
    """One kind of work, one run at a time; `under_way` is None where nobody has it done."""

    def __init__(self, events: Events) -> None:
        self.under_way: UnderWay[T] | None = None
        self._events = events
        self._task: asyncio.Task[None] | None = None

    async def begin(self, run: UnderWay[T], deed: NotedDeed, work: Work) -> bool:
        """Returns whether it begins now, once the audit knows of it; False where one goes on.

        Raises what kept the deed from being begun.
        """
        if self.under_way is not None:
            return False
        self.under_way, ending = run, AsyncExitStack()
        try:
            noted = await ending.enter_async_context(deed)
        except BaseException:
            self.under_way = None
            raise
        self._task = asyncio.create_task(self._do(ending, work, noted), name="a chore of the panel")
        return True

    async def _do(self, ending: AsyncExitStack, work: Work, noted: Noted) -> None:
        try:
            async with ending:
                try:
                    await work(noted)
                except (OSError, StartRefused) as error:
                    noted["why"] = str(error)
                    raise
        except Exception as error:  # noqa: BLE001 - it is said, and can be tried again
            self._events.report("panel_chore_failed", error)
        finally:
            self.under_way = None

    async def aclose(self) -> None:
        await ended(self._task)


class Question(Generic[T]):
    """Something that takes a while to find out: asked by one at a time.

    `value` is the last answer, None before the first; `has_failed` says that the last try was in
    vain. `clock` is steady, in seconds.
    """

    def __init__(
        self, ask: Callable[[], Awaitable[T]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.value: T | None = None
        self.has_failed = False
        self._ask = ask
        self._clock = clock
        self._asked: float | None = None
        self._took = 0.0
        self._task: asyncio.Task[None] | None = None

    async def fresh(self, seconds: float) -> None:
        """Asks anew what is older than that, and waits for a moment."""
        rest = max(seconds, self._took * REST)
        is_due = self._asked is None or self._clock() - self._asked >= rest
        if self._task is None and is_due:
            self._task = asyncio.create_task(self._run(), name="find something out for the panel")
        if self._task is not None:
            patience = FIRST if self.value is None else MOMENT
            await asyncio.wait([self._task], timeout=patience)

    async def aclose(self) -> None:
        await ended(self._task)

    async def _run(self) -> None:
        self._asked = began = self._clock()
        try:
            self.value = await self._ask()
            self.has_failed, self._took = False, self._clock() - began
        except Exception:  # noqa: BLE001 - the page says so, and it is asked again
            self.has_failed, self._took = True, 0.0
        finally:
            self._task = None
