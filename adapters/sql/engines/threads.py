"""Threads that take work in turn, for drivers that block."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from sqlalchemy import TextClause

from adapters.base import BackendUnavailable
from adapters.sql.engines.base import (
    INSPECTION_PATIENCE,
    MOST_WAITING,
    PING_PATIENCE,
    Engine,
    Speech,
    T,
    Work,
)
from adapters.wrappers.admission import CallLimiter


class ThreadLane:
    """A few threads, each piece of work with `patience` seconds in all.

    `runner` gets the work and its deadline (by time.monotonic).
    """

    def __init__(
        self, name: str, number: int, patience: float, runner: Callable[[Work[Any], float], Any]
    ) -> None:
        self._pool = ThreadPoolExecutor(number, thread_name_prefix=f"practice-{name}")
        self._room = CallLimiter(number, MOST_WAITING, patience)
        self._patience = patience
        self._runner = runner

    async def run(self, work: Work[T]) -> T:
        """The work's result.

        Each piece is handed over once a thread is free for it: partners have turns so, and between
        two pieces the event loop has one, which else would fight with the threads for the lock of
        the interpreter.
        """
        deadline = time.monotonic() + self._patience
        given_up = False

        def begin() -> T:
            if given_up or time.monotonic() >= deadline:
                raise BackendUnavailable("the practice system was busy with other calls")
            result: T = self._runner(work, deadline)
            return result

        if not self._room.take():
            await self._room.enter()
        try:
            running = self._pool.submit(begin)
        except RuntimeError as error:  # it waits in the pool all the same, for another thread
            given_up = True
            self._room.leave()
            raise BackendUnavailable("no thread can be had to ask the practice system") from error
        try:
            return await asyncio.wrap_future(running)
        finally:
            if running.done():
                self._room.leave()
            else:  # nobody waits for it any more, but its thread is not free yet
                running.add_done_callback(partial(self._leave, asyncio.get_running_loop()))

    def _leave(self, loop: asyncio.AbstractEventLoop, _: object) -> None:
        with suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(self._room.leave)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._pool.shutdown)


class BlockingDriver(Protocol):
    """What one kind of database does in a thread, by a deadline (by time.monotonic)."""

    speech: Speech
    ask: TextClause

    def read(self, work: Work[T], deadline: float) -> T: ...

    def book(self, work: Work[T], deadline: float) -> T: ...

    async def dispose(self) -> None:
        """Close every connection."""


def threaded_engine(
    driver: BlockingDriver, *, readers: int, bookers: int, timeout: float, booking_timeout: float
) -> Engine:
    """An Engine of threads, each kind of work with its own."""
    # a thread is not to be left: who closes waits for it
    inspection = max(timeout, INSPECTION_PATIENCE / 3)
    return Engine(
        speech=driver.speech,
        reader=ThreadLane("read", readers, timeout, driver.read),
        searcher=ThreadLane("search", 1, timeout, driver.read),
        inspector=ThreadLane("inspect", 1, inspection, driver.read),
        booker=ThreadLane("book", bookers, booking_timeout, driver.book),
        pinger=ThreadLane("ping", 1, min(timeout, PING_PATIENCE), driver.read),
        ask=driver.ask,
        dispose=driver.dispose,
    )
