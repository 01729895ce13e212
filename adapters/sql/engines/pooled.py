"""Databases behind an asynchronous driver: connections that read, that search, that book."""

import asyncio
import errno
import random
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.base import AdapterError, OutcomeUnknown
from adapters.sql.engines.base import (
    BOOKERS,
    INSPECTION_PATIENCE,
    MOST_WAITING,
    PING_PATIENCE,
    READERS,
    Kind,
    Speech,
    T,
    Work,
    failed,
)
from adapters.sql.engines.turn import Driver, Turn
from adapters.wrappers.admission import CallLimiter
from adapters.wrappers.unreachable import reason

MOST_COLLISIONS = 3
# A booking that finds its row there already looks again: then it sees who was quicker.
COLLISIONS = (Kind.AGAIN, Kind.DUPLICATE)
# Seconds, times the number of collisions: those who collided are not to meet again.
JITTER = (0.01, 0.06)
_PING = text("SELECT 1")


class PooledEngine:
    """An Engine of two pools: one whose connections read, one whose connections book."""

    def __init__(self, driver: Driver, *, timeout: float, booking_timeout: float) -> None:
        self._driver = driver
        # searches look at every row: they wait for one another, and no other read for them
        reading = driver.pool(READERS + 3, booking=False)
        self._readers = Lane(driver, reading, READERS, timeout)
        self._searcher = Lane(driver, reading, 1, timeout)
        self._inspector = Lane(driver, reading, 1, max(timeout, INSPECTION_PATIENCE))
        # behind many slow reads it would say that nothing answers
        self._pinger = Lane(driver, reading, 1, min(timeout, PING_PATIENCE))
        booking = driver.pool(BOOKERS, booking=True)
        self._booker = Lane(driver, booking, BOOKERS, booking_timeout, booking=True)
        self._pools = (reading, booking)

    @property
    def speech(self) -> Speech:
        return self._driver.speech

    async def read(self, work: Work[T]) -> T:
        """A dead connection of the pool costs another try, on a fresh one."""
        return await self._readers.run(work)

    async def inspect(self, work: Work[T]) -> T:
        return await self._inspector.run(work)

    async def search(self, work: Work[T]) -> T:
        return await self._searcher.run(work)

    async def book(self, work: Work[T]) -> T:
        """In a task of its own, which a caller who leaves does not end."""
        return await self._booker.run(work)

    async def ping(self) -> None:
        await self._pinger.run(_ping)

    async def aclose(self) -> None:
        for lane in (self._readers, self._searcher, self._inspector, self._pinger, self._booker):
            await lane.aclose()
        for pool in self._pools:
            await pool.dispose()


def _ping(connection: Connection) -> Any:
    return connection.execute(_PING).scalar()


class Lane:
    """So many connections for one kind of work, and a bounded queue of who waits for them."""

    def __init__(
        self,
        driver: Driver,
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
            return await self._tried(work, deadline)
        finally:
            self._room.leave()

    async def _tried(self, work: Work[T], deadline: float) -> T:
        collisions = 0
        while True:
            turn = Turn(self._driver, self._engine, booking=self._booking, deadline=deadline)
            try:
                return await turn.run(work)
            except (SQLAlchemyError, OSError, UnicodeError) as error:
                kind = turn.kind(error)
                collisions += kind in COLLISIONS
                # nobody gains by guessing it
                pause = random.uniform(*JITTER) * collisions  # noqa: S311  # nosec B311
                left = deadline - asyncio.get_running_loop().time()
                if left <= pause or not self._worth_another(turn, kind, collisions):
                    raise self._failed(turn, kind, error) from error
            await asyncio.sleep(pause if collisions else 0)

    def _worth_another(self, turn: Turn, kind: Kind, collisions: int) -> bool:
        """A collision left nothing; a dead connection of the pool got nothing of a booking."""
        if turn.half or (kind is Kind.DUPLICATE and not self._booking):
            return False
        if kind in COLLISIONS:
            return collisions < MOST_COLLISIONS
        return kind is Kind.DOWN and turn.reused and not (self._booking and turn.begun)

    def _failed(
        self, turn: Turn, kind: Kind, error: SQLAlchemyError | OSError | UnicodeError
    ) -> AdapterError:
        code = self._code(error)
        if turn.half:
            return OutcomeUnknown(f"a booking could not be taken back whole ({code})")
        booking, committing = self._booking, turn.committing
        return failed(kind, code, booking=booking, committing=committing, why=reason(error))

    def _code(self, error: SQLAlchemyError | OSError | UnicodeError) -> str:
        if isinstance(error, DBAPIError):
            return self._driver.speech.code(error)
        number = error.errno if isinstance(error, OSError) else None
        return errno.errorcode.get(number or 0, type(error).__name__)
