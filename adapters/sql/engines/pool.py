"""Databases behind an asynchronous driver: one pool of connections reads, another one books.

Each attempt is one transaction. However it ends, its connection goes back to the pool clean, or
is given up.
"""

import asyncio
import errno
import random
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from adapters.base import AdapterError, OutcomeUnknown
from adapters.sql.engines.base import (
    BOOKERS,
    HALF,
    INSPECTION_PATIENCE,
    MOST_WAITING,
    PING_PATIENCE,
    READERS,
    UNTIL,
    Engine,
    ErrorKind,
    Speech,
    T,
    Work,
    explaining,
    failed,
)
from adapters.wrappers.admission import CallLimiter
from adapters.wrappers.unreachable import reason

MOST_COLLISIONS = 3
# A booking that finds its row there already looks again: then it sees who was quicker.
COLLISIONS = (ErrorKind.AGAIN, ErrorKind.DUPLICATE)
# Seconds, times the number of collisions: those who collided are not to meet again.
JITTER = (0.01, 0.06)
# Seconds past the deadline in which the server may stop a statement itself, and so keep the
# connection; then the connection is given up.
GRACE = 0.4
# Seconds for the ROLLBACK of a connection that is to be kept.
CLEANING = 2.0
# In a connection's `info`: whether it had work before, and the limit of its statements.
_USED, _LIMIT = "clinic_used", "clinic_limit"
DriverError = SQLAlchemyError | OSError | UnicodeError


class PoolDriver(Protocol):
    """What one kind of database does in its own way."""

    speech: Speech
    begin_read: str
    begin_booking: str

    def pool(self, size: int, *, booking: bool) -> AsyncEngine:
        """A `connection_pool` of so many connections at the most."""

    def limit(self, connection: Connection, tenths: int) -> None:
        """From now on the server stops each statement that takes more tenths of a second."""

    def settle(self, connection: Connection) -> None:
        """Let go of what outlives a transaction, if anything does."""

    async def stop(self, info: dict[Any, Any]) -> None:
        """See that nothing of a connection that is given up runs on; `info` is its own."""


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


def pooled_engine(driver: PoolDriver, *, timeout: float, booking_timeout: float) -> Engine:
    """An Engine of two pools.

    A dead connection costs another try, on a fresh one. A booking has a task of its own, which a
    caller who leaves does not end.
    """
    reading = driver.pool(READERS + 3, booking=False)
    booking = driver.pool(BOOKERS, booking=True)

    async def dispose() -> None:
        await reading.dispose()
        await booking.dispose()

    return Engine(
        speech=driver.speech,
        reader=PoolLane(driver, reading, READERS, timeout),
        searcher=PoolLane(driver, reading, 1, timeout),
        inspector=PoolLane(driver, reading, 1, max(timeout, INSPECTION_PATIENCE)),
        booker=PoolLane(driver, booking, BOOKERS, booking_timeout, booking=True),
        pinger=PoolLane(driver, reading, 1, min(timeout, PING_PATIENCE)),
        ask=text("SELECT 1"),
        dispose=dispose,
    )


class PoolLane:
    """So many connections for one kind of work."""

    def __init__(
        self,
        driver: PoolDriver,
        engine: AsyncEngine,
        size: int,
        patience: float,
        *,
        booking: bool = False,
    ) -> None:
        self._driver, self._engine, self._booking = driver, engine, booking
        self._room = CallLimiter(size, MOST_WAITING, patience)
        self._patience = patience
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, work: Work[T]) -> T:
        deadline = asyncio.get_running_loop().time() + self._patience
        task = asyncio.create_task(self._in_turn(work, deadline))
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

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may have left

    async def _in_turn(self, work: Work[T], deadline: float) -> T:
        if not self._room.take():
            await self._room.enter()
        try:
            return await self._attempts(work, deadline)
        finally:
            self._room.leave()

    async def _attempts(self, work: Work[T], deadline: float) -> T:
        collisions = 0
        while True:
            attempt = TransactionAttempt(self._driver, self._engine, deadline, self._booking)
            try:
                return await attempt.run(work)
            except (SQLAlchemyError, OSError, UnicodeError) as error:
                kind = attempt.kind(error)
                collisions += kind in COLLISIONS
                # nobody gains by guessing it
                pause = random.uniform(*JITTER) * collisions  # noqa: S311  # nosec B311
                left = deadline - asyncio.get_running_loop().time()
                if left <= pause or not self._worth_another(attempt, kind, collisions):
                    raise self._failed(attempt, kind, error) from error
            await asyncio.sleep(pause if collisions else 0)

    def _worth_another(
        self, attempt: "TransactionAttempt", kind: ErrorKind, collisions: int
    ) -> bool:
        """A collision left nothing; a dead connection of the pool got nothing of a booking."""
        if attempt.half or (kind is ErrorKind.DUPLICATE and not self._booking):
            return False
        if kind in COLLISIONS:
            return collisions < MOST_COLLISIONS
        return kind is ErrorKind.DOWN and attempt.reused and not (self._booking and attempt.begun)

    def _failed(
        self, attempt: "TransactionAttempt", kind: ErrorKind, error: DriverError
    ) -> AdapterError:
        number = error.errno if isinstance(error, OSError) else None
        code = errno.errorcode.get(number or 0, type(error).__name__)
        if isinstance(error, DBAPIError):
            code = self._driver.speech.code(error)
        if attempt.half:
            return OutcomeUnknown(f"a booking could not be taken back whole ({code})")
        booking, committing = self._booking, attempt.committing
        return failed(kind, code, booking=booking, committing=committing, why=reason(error))


class TransactionAttempt:
    """One transaction of one piece of work; `deadline` by the loop's clock."""

    def __init__(
        self, driver: PoolDriver, engine: AsyncEngine, deadline: float, booking: bool
    ) -> None:
        self._driver, self._engine = driver, engine
        self._booking, self._deadline = booking, deadline
        self._connection: AsyncConnection | None = None
        self._info: dict[Any, Any] = {}
        self._connected = False
        self.reused = self.begun = self.committing = False

    async def run(self, work: Work[T]) -> T:
        """The work's result; SQLAlchemyError, OSError (TimeoutError too) or the work's own."""
        try:
            async with asyncio.timeout_at(self._deadline + GRACE):
                self._connection = await self._engine.connect()
                self._connected = True
                result = await self._connection.run_sync(self._transaction, work)
        except BaseException as error:
            await _undisturbed(self._clean(keep=_is_whole(error)))
            raise
        await _undisturbed(self._clean(keep=True))
        return result

    def _transaction(self, connection: Connection, work: Work[T]) -> T:
        driver, self._info = self._driver, connection.info
        self.reused = _USED in self._info
        self._info[_USED] = True
        self._info.pop(HALF, None)
        left = max(0.0, self._deadline - asyncio.get_running_loop().time())
        self._info[UNTIL] = time.monotonic() + left
        tenths = int(left * 10) + 1
        if self._info.get(_LIMIT) != tenths:  # most calls have all of their time left
            driver.limit(connection, tenths)
            self._info[_LIMIT] = tenths
        connection.exec_driver_sql(driver.begin_booking if self._booking else driver.begin_read)
        self.begun = True
        result = work(connection)
        self.committing = self._booking
        connection.exec_driver_sql("COMMIT")
        self.begun = self.committing = False
        return result

    async def _clean(self, *, keep: bool) -> None:
        connection = self._connection
        if connection is None:
            return
        if keep and not connection.invalidated:
            with suppress(SQLAlchemyError, OSError):
                async with asyncio.timeout(CLEANING):
                    await connection.run_sync(self._settle)
                    await connection.close()
                    return
        await self._driver.stop(self._info)
        with suppress(SQLAlchemyError, OSError):
            await connection.invalidate()
            await connection.close()

    def _settle(self, connection: Connection) -> None:
        if self.begun:
            connection.exec_driver_sql("ROLLBACK")
        self._driver.settle(connection)

    @property
    def half(self) -> bool:
        """Whether the work left something behind though it failed."""
        return HALF in self._info

    def kind(self, error: DriverError) -> ErrorKind:
        """What ended the attempt."""
        if isinstance(error, TimeoutError) and self._connected:
            return ErrorKind.TIMEOUT
        if isinstance(error, OSError):
            return ErrorKind.DOWN
        if isinstance(error, DBAPIError):
            down = error.connection_invalidated
            return ErrorKind.DOWN if down else self._driver.speech.kind(error)
        return ErrorKind.OTHER


def _is_whole(error: BaseException) -> bool:
    """Whether the connection is still in a known state: an answer came to all that was asked."""
    if isinstance(error, DBAPIError):
        return not error.connection_invalidated
    return isinstance(error, Exception) and not isinstance(error, OSError)


async def _undisturbed(cleaning: Coroutine[Any, Any, None]) -> None:
    """Wait for it to its end, also when the waiting is cancelled."""
    task = asyncio.ensure_future(cleaning)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
