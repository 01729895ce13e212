"""Runs work on the practice's database: one transaction for each piece of work, in a lane.

Work is a plain function of a SQLAlchemy connection. Each kind of work has a lane: a pool of
connections for an asynchronous driver, a few threads for one that blocks. However an attempt ends,
its connection is left clean, or is given up.
"""

import asyncio
import errno
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any, ClassVar

from sqlalchemy import Connection
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from adapters import base
from adapters.sql.engines.base import HALF, UNTIL, ErrorKind, Speech, T, Work
from adapters.wrappers.call_limiter import BUSY, CallLimiter
from adapters.wrappers.connection_errors import reason

MOST_WAITING = 256
# What a driver raises, besides what the work itself raises.
DRIVER_ERRORS = (SQLAlchemyError, OSError, UnicodeError, OverflowError)
MOST_COLLISIONS = 3
# A booking whose row is there already runs again, and then sees the other booking.
COLLISIONS = (ErrorKind.AGAIN, ErrorKind.DUPLICATE)
# Seconds, times the number of collisions, so that those who collided do not meet again.
JITTER = (0.01, 0.06)
# Seconds past the deadline in which the server may still stop a statement itself, which keeps the
# connection. After them the connection is given up.
GRACE = 0.4
# Seconds for the ROLLBACK of a connection that is to be kept.
CLEANING = 2.0
_UNDONE = (ErrorKind.DOWN, ErrorKind.TIMEOUT, ErrorKind.BUSY, ErrorKind.AGAIN)
# In a connection's `info`: whether it had work before, and the limit of its statements.
_USED, _LIMIT = "clinic_used", "clinic_limit"


@dataclass(slots=True)
class Attempt:
    """A piece of work in a transaction, tried until it ends or time.monotonic is past `until`."""

    lane: "Lane"
    until: float
    collisions: int = 0
    connected: bool = False
    info: dict[Any, Any] = field(default_factory=dict)
    reused: bool = False
    begun: bool = False
    committing: bool = False

    @property
    def left(self) -> float:
        return max(0.0, self.until - time.monotonic())

    def run(self, connection: Connection, work: Work[T]) -> T:
        """Returns the work's result, committed. Raises DRIVER_ERRORS and what the work raises."""
        lane, self.info = self.lane, connection.info
        self.reused = _USED in self.info
        self.info[_USED] = True
        self.info.pop(HALF, None)
        self.info[UNTIL] = self.until
        tenths = int(self.left * 10) + 1
        if self.info.get(_LIMIT) != tenths:  # most calls have all of their time left
            lane.limit(connection, tenths)
            self.info[_LIMIT] = tenths
        connection.exec_driver_sql(lane.begin_booking if lane.booking else lane.begin_read)
        self.begun = True
        result = work(connection)
        if lane.booking:
            lane.before_commit(connection)
            self.committing = True
        connection.exec_driver_sql("COMMIT" if lane.booking else lane.end_read)
        self.begun = self.committing = False
        return result

    def settle(self, connection: Connection) -> bool:
        """Undoes what is not committed. Returns True, as the connection is then clean."""
        if self.begun:
            connection.exec_driver_sql(self.lane.rollback)
        self.lane.settle(connection)
        return True

    def leaves_whole(self, error: BaseException) -> bool:
        """Returns whether the connection's state is known, as all that was asked was answered."""
        if isinstance(error, DBAPIError):
            return self._kind(error) is not ErrorKind.DOWN
        lost: tuple[type[Exception], ...] = (OSError, *self.lane.unreadable)
        return isinstance(error, Exception) and not isinstance(error, lost)

    def pause_after(self, error: Exception) -> float:
        """Returns seconds until another attempt; raises the AdapterError where one would harm."""
        kind, half = self._kind(error), HALF in self.info
        self.collisions += kind in COLLISIONS
        # it is no secret
        pause = random.uniform(*JITTER) * self.collisions  # noqa: S311  # nosec B311
        if kind in COLLISIONS:  # it left nothing
            harmless = self.collisions < MOST_COLLISIONS
            harmless = harmless and (self.lane.booking or kind is ErrorKind.AGAIN)
        else:  # a connection that was dead already got nothing of a booking
            harmless = kind is ErrorKind.DOWN and self.reused
            harmless = harmless and not (self.lane.booking and self.begun)
        if half or not harmless or self.left <= pause:
            raise self._failure(kind, error, half=half) from error
        self.connected = self.reused = self.begun = self.committing = False
        return pause

    def _kind(self, error: BaseException) -> ErrorKind:
        if isinstance(error, DBAPIError):
            down = error.connection_invalidated
            return ErrorKind.DOWN if down else self.lane.speech.kind(error)
        if isinstance(error, TimeoutError) and self.connected:
            return ErrorKind.TIMEOUT
        return ErrorKind.DOWN if isinstance(error, OSError) else ErrorKind.OTHER

    def _failure(self, kind: ErrorKind, error: Exception, *, half: bool) -> base.AdapterError:
        code = errno.errorcode.get(getattr(error, "errno", 0), type(error).__name__)
        if isinstance(error, DBAPIError):
            code = self.lane.speech.code(error)
        if half:
            return base.OutcomeUnknown(f"a booking could not be taken back whole ({code})")
        text = self.lane.explained(kind, code, error)
        if self.committing and kind not in self.lane.never_committed:
            return base.OutcomeUnknown(f"the booking's end is not known: {text}")
        if kind is ErrorKind.TIMEOUT and not self.lane.booking:
            return base.BackendTimeout(text)
        return base.BackendUnavailable(text) if kind in _UNDONE else base.BackendNonsense(text)


class Lane(ABC):
    """Does one kind of work on one kind of database, `size` pieces at a time.

    Each piece has `patience` seconds in all. A piece that waits too long for its turn, or finds too
    many waiting, is BackendUnavailable.

    Kinds of databases differ in these. `never_committed`: the kinds of errors of a COMMIT that
    prove that there is no booking. `unreadable`: what the driver raises beside DRIVER_ERRORS for a
    broken answer. `question`: what a ping asks. `inspection`: the seconds for all statements of a
    mapping, each of which takes its time over a slow line. `books_singly`: whether a booking holds
    the whole database, so that more of them at once would only wait in it.
    """

    speech: ClassVar[Speech]
    begin_read: ClassVar[str] = "BEGIN"
    begin_booking: ClassVar[str] = "BEGIN"
    end_read: ClassVar[str] = "COMMIT"
    rollback: ClassVar[str] = "ROLLBACK"
    never_committed: ClassVar = frozenset({ErrorKind.AGAIN, ErrorKind.DUPLICATE, ErrorKind.REFUSED})
    unreadable: ClassVar[tuple[type[Exception], ...]] = ()
    question: ClassVar[str] = "SELECT 1"
    books_singly: ClassVar[bool] = False
    inspection: ClassVar[float] = 30.0

    def __init__(self, address: URL, size: int, patience: float, *, booking: bool = False) -> None:
        self.address, self.size, self.patience, self.booking = address, size, patience, booking
        self._room = CallLimiter(size, MOST_WAITING, patience)
        self._raised: tuple[type[Exception], ...] = DRIVER_ERRORS + self.unreadable

    @abstractmethod
    async def run(self, work: Work[T]) -> T:
        """Returns the work's result or raises its AdapterError."""

    @abstractmethod
    async def aclose(self) -> None:
        """Waits for running work and closes every connection."""

    @abstractmethod
    def limit(self, connection: Connection, tenths: int) -> None:
        """Makes the server stop each later statement that takes more tenths of a second."""

    def before_commit(self, connection: Connection) -> None:
        """Raises an AdapterError where a booking must not be committed after all."""
        return

    def settle(self, connection: Connection) -> None:
        """Lets go of what outlives a transaction, if anything does."""
        return

    def explained(self, kind: ErrorKind, code: str, error: Exception) -> str:
        """Returns what went wrong, never in the driver's words, which may quote values."""
        why = reason(error) if kind is ErrorKind.DOWN else None
        if why:
            return f"the database can't be reached: {why}; see backend.url"
        return f"{kind} ({code})"


class PoolLane(Lane):
    """A lane with a pool of connections.

    A dead connection costs another try, on a fresh one. A booking has a task of its own, which goes
    on where its caller leaves.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._engine = self.pool()
        self._tasks: set[asyncio.Task[Any]] = set()

    @abstractmethod
    def pool(self) -> AsyncEngine:
        """Returns the engine that makes and keeps the lane's `connections`."""

    def connections(self, address: Any, **arguments: Any) -> AsyncEngine:
        """Returns an engine in AUTOCOMMIT, as transactions are our own, that resets nothing."""
        return create_async_engine(
            address,
            isolation_level="AUTOCOMMIT",
            pool_size=self.size,
            max_overflow=0,
            pool_reset_on_return=None,
            connect_args=arguments,
        )

    async def stop(self, info: dict[Any, Any]) -> None:
        """Stops what a connection that is given up still runs; `info` is the connection's.

        Does nothing where the driver itself makes the server stop what is cancelled.
        """
        return

    async def run(self, work: Work[T]) -> T:
        attempt = Attempt(self, time.monotonic() + self.patience)
        task = asyncio.create_task(self._in_turn(attempt, work))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not self.booking:
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
                except self._raised as error:
                    pause = attempt.pause_after(error)
                await asyncio.sleep(pause)
        finally:
            self._room.leave()

    async def _transaction(self, attempt: Attempt, work: Work[T]) -> T:
        connection, keep = None, True
        try:
            async with asyncio.timeout(attempt.left + GRACE):
                connection = await self._engine.connect()
                attempt.connected = True
                return await connection.run_sync(attempt.run, work)
        except BaseException as error:
            keep = attempt.leaves_whole(error)
            raise
        finally:
            if connection is not None:
                task = asyncio.ensure_future(self._give_back(connection, attempt, keep=keep))
                try:
                    await asyncio.shield(task)
                except asyncio.CancelledError:
                    await asyncio.wait([task])  # it runs to its end all the same
                    raise

    async def _give_back(self, connection: AsyncConnection, attempt: Attempt, keep: bool) -> None:
        if keep and not connection.invalidated:
            with suppress(SQLAlchemyError, OSError):
                async with asyncio.timeout(CLEANING):
                    await connection.run_sync(attempt.settle)
                    await connection.close()
                    return
        await self.stop(attempt.info)
        with suppress(SQLAlchemyError, OSError):
            await connection.invalidate()
            await connection.close()


class ThreadLane(Lane):
    """A lane with threads, each of which has a connection."""

    # short, as a thread cannot be left alone: `aclose` waits for it
    inspection = 10.0

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._pieces: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._own = threading.local()
        self._opened: set[Connection] = set()

    @abstractmethod
    def connect(self) -> Connection:
        """Returns a new connection."""

    def is_current(self, connection: Connection) -> bool:
        """Returns whether it still leads to the database. Raises AdapterError if that is gone."""
        return True

    async def run(self, work: Work[T]) -> T:
        """Returns the work's result.

        Each piece is handed over once a thread is free for it. So partners take turns, and the
        event loop has a turn between two pieces, without a fight for the interpreter's lock.
        """
        attempt = Attempt(self, time.monotonic() + self.patience)
        if not self._room.take():
            await self._room.enter()
        try:
            self._have_a_thread_free()
        except RuntimeError as error:
            self._room.leave()
            raise base.BackendUnavailable(
                "no thread can be had to ask the practice system"
            ) from error
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        # a queue and one callback: an executor and its futures cost twice as much
        self._pieces.put(partial(self._piece, attempt, work, loop, answer))
        return await answer

    def _have_a_thread_free(self) -> None:
        """Starts a thread unless there is one for each piece of work that has a place.

        Raises RuntimeError where none can be had, as once the lane is closed.
        """
        if self._closed:
            raise RuntimeError("the lane is closed")
        if len(self._threads) < self._room.in_use:
            thread = threading.Thread(target=self._serve, name="practice", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self) -> None:
        """Runs what is handed over to a thread, until that is None."""
        while (piece := self._pieces.get()) is not None:
            piece()
            del piece  # what it holds must not wait for the next one

    def _piece(
        self,
        attempt: Attempt,
        work: Work[T],
        loop: asyncio.AbstractEventLoop,
        answer: "asyncio.Future[T]",
    ) -> None:
        settle: Callable[[], None]
        try:
            settle = partial(answer.set_result, self._tried(attempt, work))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's
            settle = partial(answer.set_exception, error)
        with suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(self._end, answer, settle)

    def _end(self, answer: "asyncio.Future[T]", settle: Callable[[], None]) -> None:
        """Frees the place, and tells the caller unless it has left."""
        self._room.leave()
        if not answer.done():
            settle()

    def _tried(self, attempt: Attempt, work: Work[T]) -> T:
        if not attempt.left:
            raise base.BackendUnavailable(BUSY)
        while True:
            try:
                return self._transaction(attempt, work)
            except self._raised as error:
                time.sleep(attempt.pause_after(error))

    async def aclose(self) -> None:
        self._closed = True
        for _ in self._threads:
            self._pieces.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        for connection in self._opened:
            connection.close()
        self._opened.clear()

    def _transaction(self, attempt: Attempt, work: Work[T]) -> T:
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is not None and not self.is_current(connection):
            self._give_up(connection)
            connection = None
        if connection is None:
            connection = self._own.connection = self.connect()
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
