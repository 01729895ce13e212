"""Something that takes a while to find out: a page shows what was told last, and asks anew."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from gateway.background import ended

# Seconds that a page waits for news: where it has something older to show, and where it has not.
MOMENT, FIRST = 0.25, 2.5
# What took long is not asked again before so many times as long.
REST = 20.0
T = TypeVar("T")


class Asked(Generic[T]):
    """One question, asked by one at a time.

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
        """An answer that is no older than that, as far as it comes in a moment."""
        if self._task is None and self._is_due(seconds):
            self._task = asyncio.create_task(self._run(), name="find something out for the panel")
        if self._task is not None:
            patience = FIRST if self.value is None else MOMENT
            await asyncio.wait([self._task], timeout=patience)

    async def aclose(self) -> None:
        """Ask no more."""
        await ended(self._task)

    def _is_due(self, seconds: float) -> bool:
        if self._asked is None:
            return True
        return self._clock() - self._asked >= max(seconds, self._took * REST)

    async def _run(self) -> None:
        self._asked = began = self._clock()
        try:
            self.value = await self._ask()
            self.has_failed, self._took = False, self._clock() - began
        except Exception:  # noqa: BLE001 - the page says so, and it is asked again
            self.has_failed, self._took = True, 0.0
        finally:
            self._task = None
