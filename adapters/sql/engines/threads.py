"""Threads that take work in turn, for drivers that block."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import ClassVar

from sqlalchemy import TextClause

from adapters.base import BackendUnavailable
from adapters.sql.engines.base import (
    INSPECTION_PATIENCE,
    MOST_WAITING,
    PING_PATIENCE,
    READERS,
    T,
    Work,
)
from adapters.wrappers.admission import CallLimiter


class Threads:
    """A few threads, each piece of work with `patience` seconds in all."""

    def __init__(self, name: str, number: int, patience: float) -> None:
        self._pool = ThreadPoolExecutor(number, thread_name_prefix=name)
        self._room = CallLimiter(number, MOST_WAITING, patience)
        self._patience = patience

    async def run(self, runner: Callable[[Work[T], float], T], work: Work[T]) -> T:
        """What the runner makes of the work and its deadline (by time.monotonic).

        Each piece is handed over once a thread is free for it: partners have turns so, and between
        two pieces the event loop has one, which else would fight with the threads for the lock of
        the interpreter.
        """
        deadline = time.monotonic() + self._patience

        given_up = False

        def begin() -> T:
            if given_up or time.monotonic() >= deadline:
                raise BackendUnavailable("the practice system was busy with other calls")
            return runner(work, deadline)

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


class EngineThreads:
    """The threads of an engine whose driver blocks, each kind with its own queue."""

    def __init__(
        self, *, readers: int, bookers: int, timeout: float, booking_timeout: float
    ) -> None:
        self.readers = Threads("practice-read", readers, timeout)
        # searches look at every row: they wait for one another, and no other read for them
        self.searcher = Threads("practice-search", 1, timeout)
        # a thread is not to be left: who closes waits for it
        self.inspector = Threads("practice-inspect", 1, max(timeout, INSPECTION_PATIENCE / 3))
        self.bookers = Threads("practice-book", bookers, booking_timeout)
        # behind many slow reads it would say that nothing answers
        self.pinger = Threads("practice-ping", 1, min(timeout, PING_PATIENCE))

    async def aclose(self) -> None:
        """Wait for what runs."""
        for each in (self.readers, self.searcher, self.inspector, self.bookers, self.pinger):
            await each.aclose()


class ThreadedEngine:
    """The verbs of an engine whose driver blocks.

    `_read` and `_book` run in its threads, with the work and its deadline (by time.monotonic);
    `_ask` is what a ping asks.
    """

    _ask: ClassVar[TextClause]

    def __init__(
        self,
        *,
        bookers: int,
        timeout: float,
        booking_timeout: float,
        readers: int = READERS,
    ) -> None:
        self._threads = EngineThreads(
            readers=readers, bookers=bookers, timeout=timeout, booking_timeout=booking_timeout
        )

    async def read(self, work: Work[T]) -> T:
        return await self._threads.readers.run(self._read, work)

    async def inspect(self, work: Work[T]) -> T:
        return await self._threads.inspector.run(self._read, work)

    async def search(self, work: Work[T]) -> T:
        return await self._threads.searcher.run(self._read, work)

    async def book(self, work: Work[T]) -> T:
        return await self._threads.bookers.run(self._book, work)

    async def ping(self) -> None:
        await self._threads.pinger.run(
            self._read, lambda connection: connection.execute(self._ask).scalar()
        )

    async def aclose(self) -> None:
        await self._threads.aclose()

    def _read(self, work: Work[T], deadline: float) -> T:
        raise NotImplementedError

    def _book(self, work: Work[T], deadline: float) -> T:
        raise NotImplementedError
