"""Databases behind an asynchronous driver: each kind of work has a pool of connections."""

import asyncio
import time
from contextlib import suppress
from typing import Any, ClassVar, Protocol

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from adapters.sql.engines.base import T, Work, explaining
from adapters.sql.engines.engine import DRIVER_ERRORS, Attempt, Driver, Lane

# Seconds past the deadline in which the server may stop a statement itself, and so keep the
# connection; then the connection is given up.
GRACE = 0.4
# Seconds for the ROLLBACK of a connection that is to be kept.
CLEANING = 2.0


def connection_pool(address: Any, size: int, **arguments: Any) -> AsyncEngine:
    """An engine in AUTOCOMMIT, as transactions are our own, that explains and resets nothing."""
    engine = create_async_engine(
        address,
        isolation_level="AUTOCOMMIT",
        pool_size=size,
        max_overflow=0,
        pool_reset_on_return=None,
        connect_args=arguments,
    )
    explaining(engine.sync_engine)
    return engine


class PoolLane(Lane):
    """So many connections for one kind of work.

    A dead connection costs another try, on a fresh one. A booking has a task of its own, which a
    caller who leaves does not end.
    """

    def __init__(
        self, driver: "PoolDriver", size: int, patience: float, *, booking: bool = False
    ) -> None:
        super().__init__(driver, size, patience, booking=booking)
        self._engine = driver.pool(size, booking=booking)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, work: Work[T]) -> T:
        attempt = Attempt(self._driver, self._booking, time.monotonic() + self._patience)
        task = asyncio.create_task(self._in_turn(attempt, work))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not self._booking:
                task.cancel()
            raise

    async def aclose(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._engine.dispose()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may have left

    async def _in_turn(self, attempt: Attempt, work: Work[T]) -> T:
        if not self._room.take():
            await self._room.enter()
        try:
            while True:
                try:
                    return await self._transaction(attempt, work)
                except DRIVER_ERRORS as error:
                    pause = attempt.pause_after(error)
                await asyncio.sleep(pause)
        finally:
            self._room.leave()

    async def _transaction(self, attempt: Attempt, work: Work[T]) -> T:
        connection, keep = None, False
        try:
            async with asyncio.timeout(attempt.left + GRACE):
                connection = await self._engine.connect()
                attempt.connected = True
                result = await connection.run_sync(attempt.run, work)
            keep = True
        except BaseException as error:
            keep = attempt.leaves_whole(error)
            raise
        finally:
            if connection is not None:
                task = asyncio.ensure_future(self._give_back(connection, attempt, keep=keep))
                try:
                    await asyncio.shield(task)
                except asyncio.CancelledError:
                    await asyncio.wait([task])  # to its end all the same
                    raise
        return result

    async def _give_back(
        self, connection: AsyncConnection, attempt: Attempt, *, keep: bool
    ) -> None:
        if keep and not connection.invalidated:
            with suppress(SQLAlchemyError, OSError):
                async with asyncio.timeout(CLEANING):
                    await connection.run_sync(attempt.settle)
                    await connection.close()
                    return
        await self._driver.stop(attempt.info)
        with suppress(SQLAlchemyError, OSError):
            await connection.invalidate()
            await connection.close()


class PoolDriver(Driver, Protocol):
    """A Driver of asynchronous connections."""

    lane: ClassVar[type[Lane]] = PoolLane

    def pool(self, size: int, *, booking: bool) -> AsyncEngine:
        """A `connection_pool` of so many connections at the most."""

    async def stop(self, info: dict[Any, Any]) -> None:
        """See that nothing of a connection that is given up runs on; `info` is its own."""
