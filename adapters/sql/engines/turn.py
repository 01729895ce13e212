"""One transaction of one piece of work, on a connection of an asynchronous pool.

However it ends, the connection goes back to the pool clean, or is given up.
"""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.sql.engines.base import HALF, UNTIL, Kind, Speech, T, Work

# Seconds past the deadline in which the server may stop a statement itself, and so keep the
# connection; then the connection is given up.
GRACE = 0.4
# Seconds for the ROLLBACK of a connection that is to be kept.
CLEANING = 2.0
_USED = "clinic_used"


class Driver(Protocol):
    """What the turns of one kind of database do each in their own way."""

    @property
    def speech(self) -> Speech: ...

    @property
    def begin_read(self) -> str: ...

    @property
    def begin_booking(self) -> str: ...

    def pool(self, size: int, *, booking: bool) -> AsyncEngine:
        """An engine in AUTOCOMMIT of so many connections at the most, without a reset."""

    def limit(self, connection: Connection, seconds: float) -> None:
        """From now on the server stops each statement that takes longer."""

    def settle(self, connection: Connection) -> None:
        """Let go of what outlives a transaction."""

    async def stop(self, info: dict[Any, Any]) -> None:
        """See that nothing of a connection that is given up runs on; `info` is its own."""


class Turn:
    """One attempt; `deadline` by the loop's clock."""

    def __init__(
        self, driver: Driver, engine: AsyncEngine, *, booking: bool, deadline: float
    ) -> None:
        self._driver, self._engine = driver, engine
        self._booking, self._deadline = booking, deadline
        self._connection: AsyncConnection | None = None
        self._info: dict[Any, Any] = {}
        self.connected = False
        self.reused = False
        self.begun = False
        self.committing = False

    async def run(self, work: Work[T]) -> T:
        """The work's result; SQLAlchemyError, OSError (TimeoutError too) or the work's own."""
        try:
            async with asyncio.timeout_at(self._deadline + GRACE):
                self._connection = await self._engine.connect()
                self.connected = True
                result = await self._connection.run_sync(self._transaction, work)
        except BaseException as error:
            await _undisturbed(self._clean(keep=_is_whole(error)))
            raise
        await _undisturbed(self._clean(keep=True))
        return result

    def _transaction(self, connection: Connection, work: Work[T]) -> T:
        self._info = connection.info
        self.reused = _USED in self._info
        self._info[_USED] = True
        self._info.pop(HALF, None)
        left = max(0.0, self._deadline - asyncio.get_running_loop().time())
        self._info[UNTIL] = time.monotonic() + left
        self._driver.limit(connection, left)
        driver = self._driver
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
                    await connection.run_sync(self._settled)
                    await connection.close()
                    return
        await self._driver.stop(self._info)
        with suppress(SQLAlchemyError, OSError):
            await connection.invalidate()
            await connection.close()

    def _settled(self, connection: Connection) -> None:
        if self.begun:
            connection.exec_driver_sql("ROLLBACK")
        self._driver.settle(connection)

    @property
    def half(self) -> bool:
        """Whether the work left something behind though it failed."""
        return HALF in self._info

    def kind(self, error: SQLAlchemyError | OSError | UnicodeError) -> Kind:
        """What ended the turn."""
        if isinstance(error, TimeoutError) and self.connected:
            return Kind.TIMEOUT
        if isinstance(error, OSError):
            return Kind.DOWN
        if isinstance(error, DBAPIError):
            return Kind.DOWN if error.connection_invalidated else self._driver.speech.kind(error)
        return Kind.OTHER


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
