"""Databases behind a driver that blocks: threads that take work in turn, a connection each."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import ClassVar, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from adapters.base import BackendUnavailable
from adapters.sql.engines.base import T, Work
from adapters.sql.engines.engine import DRIVER_ERRORS, Attempt, Driver, Lane


class ThreadLane(Lane):
    """A few threads, each with a connection."""

    def __init__(
        self, driver: "ThreadDriver", size: int, patience: float, *, booking: bool = False
    ) -> None:
        super().__init__(driver, size, patience, booking=booking)
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="practice")
        self._own = threading.local()
        self._opened: set[Connection] = set()

    async def run(self, work: Work[T]) -> T:
        """The work's result.

        Each piece is handed over once a thread is free for it: partners have turns so, and between
        two pieces the event loop has one, which else would fight with the threads for the lock of
        the interpreter.
        """
        attempt = Attempt(self._driver, self._booking, time.monotonic() + self._patience)
        given_up = False

        def begin() -> T:
            if given_up or not attempt.left:
                raise BackendUnavailable("the practice system was busy with other calls")
            return self._done(attempt, work)

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
        for connection in self._opened:
            connection.close()
        self._opened.clear()

    def _done(self, attempt: Attempt, work: Work[T]) -> T:
        while True:
            try:
                return self._transaction(attempt, work)
            except DRIVER_ERRORS as error:
                time.sleep(attempt.pause_after(error))

    def _transaction(self, attempt: Attempt, work: Work[T]) -> T:
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is not None and not self._driver.is_current(connection):
            self._give_up(connection)
            connection = None
        if connection is None:
            connection = self._own.connection = self._driver.connect(booking=self._booking)
            self._opened.add(connection)
        try:
            return attempt.run(connection, work)
        except BaseException as error:
            try:
                clean = attempt.leaves_whole(error) and attempt.settle(connection)
            except SQLAlchemyError:
                clean = False
            if not clean:
                self._give_up(connection)
            raise

    def _give_up(self, connection: Connection) -> None:
        self._opened.discard(connection)
        self._own.connection = None
        with suppress(SQLAlchemyError):
            connection.invalidate()
            connection.close()


class ThreadDriver(Driver, Protocol):
    """A Driver of connections that block."""

    lane: ClassVar[type[Lane]] = ThreadLane
    # a thread is not to be left: who closes waits for it
    inspection: ClassVar[float] = 10.0

    def connect(self, *, booking: bool) -> Connection:
        """A new connection."""

    def is_current(self, connection: Connection) -> bool:
        """Whether the connection still leads to the database; AdapterError where none is there."""
        return True
