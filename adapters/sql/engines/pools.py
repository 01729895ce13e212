"""A lane of connections that are kept open, for an asynchronous driver."""

import asyncio
import time
from abc import abstractmethod
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from adapters.sql.engines.base import T
from adapters.sql.engines.connection import LoopConnection, OpenConnection, WorkConnection
from adapters.sql.engines.lanes import Attempt, Flow, Lane
from adapters.wrappers.deadline import CallSpan, Deadline

# Seconds past the deadline in which the server may still stop a statement itself, which keeps the
# connection. After them the connection is given up.
GRACE = 0.4
# Seconds for the ROLLBACK of a connection that is to be kept.
CLEANING = 2.0


class PoolLane(Lane):
    """A lane with connections that are kept for the next piece of work.

    A dead connection costs another try, on a fresh one. A booking has a task of its own, which goes
    on where its caller leaves.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._engine = self.pool()
        self._idle: list[LoopConnection] = []
        self._deadline = Deadline(self.patience + GRACE)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._emptied: asyncio.Event | None = None

    @abstractmethod
    def pool(self) -> AsyncEngine:
        """Returns the engine that makes the lane's `connections`."""

    def connections(self, address: Any, **arguments: Any) -> AsyncEngine:
        """Returns an engine in AUTOCOMMIT, as transactions are our own, that keeps nothing."""
        return create_async_engine(
            address, isolation_level="AUTOCOMMIT", poolclass=NullPool, connect_args=arguments
        )

    async def stop(self, info: dict[Any, Any]) -> None:
        """Stops what a connection that is given up still runs; `info` is the connection's.

        Does nothing where the driver itself makes the server stop what is cancelled.
        """
        return

    def opened(self, connection: Connection) -> OpenConnection:
        return WorkConnection(self, connection)

    async def ask(self, flow: Flow[T], *, alone: bool = False) -> T:
        attempt = Attempt(self, time.monotonic() + self.patience, alone)
        if not self.booking:
            return await self._in_time(attempt, flow)
        return await asyncio.shield(self._started(self._in_time(attempt, flow)))

    async def aclose(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._room.in_use:
            self._emptied = asyncio.Event()
            await self._emptied.wait()
        for opened in self._idle:
            with suppress(SQLAlchemyError, OSError):
                await opened.owner.close()
        self._idle.clear()
        await self._engine.dispose()

    def _started(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may have left

    def _leave(self, _: object = None) -> None:
        self._room.leave()
        if self._emptied is not None and not self._room.in_use:
            self._emptied.set()

    async def _in_time(self, attempt: Attempt, flow: Flow[T]) -> T:
        """Runs the work once there is room; what is late is given up, and raises."""
        cleaning: list[asyncio.Task[None]] = []
        try:
            with CallSpan(self._deadline):
                return await self._in_turn(attempt, flow, cleaning)
        except TimeoutError as error:
            if cleaning:
                await asyncio.shield(cleaning[-1])
            raise attempt.failure(error) from error

    async def _in_turn(
        self, attempt: Attempt, flow: Flow[T], cleaning: list[asyncio.Task[None]]
    ) -> T:
        if not self._room.take():
            await self._room.enter()
        try:
            while True:
                try:
                    return await self._tried(attempt, flow, cleaning)
                except self._raised as error:
                    pause = attempt.pause_after(error)
                await asyncio.sleep(pause)
        finally:
            if cleaning and not cleaning[-1].done():  # its connection is not free yet
                cleaning[-1].add_done_callback(self._leave)
            else:
                self._leave()

    async def _tried(
        self, attempt: Attempt, flow: Flow[T], cleaning: list[asyncio.Task[None]]
    ) -> T:
        """Runs the work once; where it fails, its connection is cleaned or given up in a task."""
        opened = self._idle.pop() if self._idle else await self._open()
        attempt.connected = True
        try:
            result = await attempt.run(opened, flow)
            if self.booking:
                await self.settle(opened)
        except BaseException as error:
            keep = attempt.leaves_whole(error)
            cleaning.append(self._started(self._give_back(opened, attempt, keep=keep)))
            if isinstance(error, Exception):
                await asyncio.shield(cleaning[-1])
            raise
        self._idle.append(opened)
        return result

    async def _open(self) -> LoopConnection:
        return LoopConnection(self, await self._engine.connect())

    async def _give_back(self, opened: LoopConnection, attempt: Attempt, *, keep: bool) -> None:
        if keep and not opened.connection.invalidated:
            with suppress(SQLAlchemyError, OSError):
                async with asyncio.timeout(CLEANING):
                    await attempt.settle(opened)
                    self._idle.append(opened)
                    return
        await self.stop(opened.info)
        # what the server did to one connection it may have done to those that wait, too
        given_up, self._idle = [opened, *self._idle], []
        for each in given_up:
            with suppress(SQLAlchemyError, OSError):
                await each.owner.invalidate()
                await each.owner.close()
