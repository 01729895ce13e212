"""Runs work on the practice's database: one transaction for each piece of work, in a lane.

Work is a flow: a coroutine of an open connection, which asks the driver itself. It may also be a
plain function of SQLAlchemy's connection. Each kind of work has a lane: a pool of connections for
an asynchronous driver, threads for one that blocks. However an attempt ends, its connection is left
clean, or is given up.
"""

import asyncio
import errno
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any, ClassVar

from sqlalchemy import Connection
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from adapters import base
from adapters.mapped.session import complete
from adapters.sql.engines.base import HALF, UNTIL, ErrorKind, Speech, T, Work
from adapters.sql.engines.connection import (
    LoopConnection,
    OpenConnection,
    ThreadConnection,
    WorkConnection,
)
from adapters.sql.engines.statements import Statements
from adapters.wrappers.call_limiter import BUSY, CallLimiter
from adapters.wrappers.connection_errors import reason
from adapters.wrappers.deadline import CallSpan, Deadline

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
# Seconds that a piece of work in this process waits for the one before it.
SHORT = 0.005
_UNDONE = (ErrorKind.DOWN, ErrorKind.TIMEOUT, ErrorKind.BUSY, ErrorKind.AGAIN)
# In a connection's `info`: whether it had work before, and the limit of its statements.
_USED, _LIMIT = "clinic_used", "clinic_limit"

Flow = Callable[[OpenConnection], Awaitable[T]]


@dataclass(slots=True)
class Attempt:
    """A piece of work in a transaction, tried until it ends or time.monotonic is past `until`.

    Work that is one question `alone` needs none where a statement by itself is a snapshot.
    """

    lane: "Lane"
    until: float
    alone: bool = False
    collisions: int = 0
    connected: bool = False
    info: dict[Any, Any] = field(default_factory=dict)
    reused: bool = False
    begun: bool = False
    committing: bool = False

    @property
    def left(self) -> float:
        return max(0.0, self.until - time.monotonic())

    async def run(self, opened: OpenConnection, flow: Flow[T]) -> T:
        """Returns the work's result, committed. Raises DRIVER_ERRORS and what the work raises."""
        lane, info = self.lane, opened.info
        self.info = info
        self.reused = _USED in info
        info[_USED] = True
        info.pop(HALF, None)
        info[UNTIL] = self.until
        tenths = int(self.left * 10) + 1
        if info.get(_LIMIT) != tenths:  # most calls have all of their time left
            await lane.limit(opened, tenths)
            info[_LIMIT] = tenths
        if self.alone and lane.reads_alone:
            return await flow(opened)
        await opened.run(lane.begin_booking if lane.booking else lane.begin_read)
        self.begun = True
        result = await flow(opened)
        if lane.booking:
            lane.before_commit(opened)
            self.committing = True
        await opened.run("COMMIT" if lane.booking else lane.end_read)
        self.begun = self.committing = False
        return result

    async def settle(self, opened: OpenConnection) -> None:
        """Undoes what is not committed. The connection is clean then."""
        if self.begun:
            await opened.run(self.lane.rollback)
        await self.lane.settle(opened)

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
            raise self.failure(error) from error
        self.connected = self.reused = self.begun = self.committing = False
        return pause

    def _kind(self, error: BaseException) -> ErrorKind:
        if isinstance(error, DBAPIError):
            down = error.connection_invalidated
            return ErrorKind.DOWN if down else self.lane.speech.kind(error)
        if isinstance(error, TimeoutError) and self.connected:
            return ErrorKind.TIMEOUT
        return ErrorKind.DOWN if isinstance(error, OSError) else ErrorKind.OTHER

    def failure(self, error: Exception) -> base.AdapterError:
        """Returns what the work's failure is to the caller."""
        kind, half = self._kind(error), HALF in self.info
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
    mapping, each of which takes its time over a slow line. `reads_alone`: whether a statement of a
    reading connection, outside of any transaction, is one snapshot and cannot write.
    `books_singly`: whether a booking holds the whole database, so that more of them at once would
    only wait in it.
    """

    speech: ClassVar[Speech]
    errors: tuple[type[Exception], ...]
    begin_read: ClassVar[str] = "BEGIN"
    begin_booking: ClassVar[str] = "BEGIN"
    end_read: ClassVar[str] = "COMMIT"
    rollback: ClassVar[str] = "ROLLBACK"
    never_committed: ClassVar = frozenset({ErrorKind.AGAIN, ErrorKind.DUPLICATE, ErrorKind.REFUSED})
    unreadable: ClassVar[tuple[type[Exception], ...]] = ()
    question: ClassVar[str] = "SELECT 1"
    reads_alone: ClassVar[bool] = False
    books_singly: ClassVar[bool] = False
    inspection: ClassVar[float] = 30.0

    def __init__(self, address: URL, size: int, patience: float, *, booking: bool = False) -> None:
        self.address, self.size, self.patience, self.booking = address, size, patience, booking
        self.statements = Statements()
        self._room = CallLimiter(size, MOST_WAITING, patience)
        self._raised: tuple[type[Exception], ...] = DRIVER_ERRORS + self.unreadable

    async def run(self, work: Work[T]) -> T:
        """Returns what a function makes of SQLAlchemy's connection, or raises its AdapterError."""
        return await self.ask(lambda opened: opened.work(work))

    @abstractmethod
    async def ask(self, flow: Flow[T], *, alone: bool = False) -> T:
        """Returns the flow's result or raises its AdapterError; `alone`: it asks one question."""

    @abstractmethod
    def opened(self, connection: Connection) -> OpenConnection:
        """Returns the connection that the work of `run` has, for questions."""

    @abstractmethod
    async def aclose(self) -> None:
        """Waits for running work and closes every connection."""

    @abstractmethod
    def fetch(self, opened: OpenConnection, text: str, bound: Sequence[Any] | None) -> Any:
        """Returns a statement's rows, or what is to be awaited for them."""

    def is_lost(self, opened: OpenConnection, error: Exception) -> bool:
        dialect: Any = opened.connection.dialect
        return bool(dialect.is_disconnect(error, None, None))

    @abstractmethod
    async def limit(self, opened: OpenConnection, tenths: int) -> None:
        """Makes the server stop each later statement that takes more tenths of a second."""

    def before_commit(self, opened: OpenConnection) -> None:
        """Raises an AdapterError where a booking must not be committed after all."""
        return

    async def settle(self, opened: OpenConnection) -> None:
        """Lets go of what outlives a transaction, if anything does."""
        return

    def explained(self, kind: ErrorKind, code: str, error: Exception) -> str:
        """Returns what went wrong, never in the driver's words, which may quote values."""
        why = reason(error) if kind is ErrorKind.DOWN else None
        if why:
            return f"the database can't be reached: {why}; see backend.url"
        return f"{kind} ({code})"


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


class ThreadLane(Lane):
    """A lane with threads, each of which has a connection."""

    # short, as a thread cannot be left alone: `aclose` waits for it
    inspection = 10.0
    # whether the database works in this process, and not on a server
    in_process: ClassVar[bool] = False

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._pieces: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._turn = threading.Lock()
        self._own = threading.local()
        self._opened: set[OpenConnection] = set()

    @abstractmethod
    def connect(self) -> Connection:
        """Returns a new connection."""

    def opened(self, connection: Connection) -> OpenConnection:
        return ThreadConnection(self, connection)

    def is_current(self, opened: OpenConnection) -> bool:
        """Returns whether it still leads to the database. Raises AdapterError if that is gone."""
        return True

    async def ask(self, flow: Flow[T], *, alone: bool = False) -> T:
        """Returns the flow's result.

        Each piece is handed over once a thread is free for it. So partners take turns, and the
        event loop has a turn between two pieces, without a fight for the interpreter's lock.
        """
        attempt = Attempt(self, time.monotonic() + self.patience, alone)
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
        self._pieces.put(partial(self._piece, attempt, flow, loop, answer))
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
        flow: Flow[T],
        loop: asyncio.AbstractEventLoop,
        answer: "asyncio.Future[T]",
    ) -> None:
        settle: Callable[[], None]
        try:
            with self._own_turn():
                settle = partial(answer.set_result, self._tried(attempt, flow))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's
            settle = partial(answer.set_exception, error)
        with suppress(RuntimeError):  # the loop has ended already
            loop.call_soon_threadsafe(self._end, answer, settle)

    def _end(self, answer: "asyncio.Future[T]", settle: Callable[[], None]) -> None:
        """Frees the place, and tells the caller unless it has left."""
        self._room.leave()
        if not answer.done():
            settle()

    @contextmanager
    def _own_turn(self) -> Iterator[None]:
        """Waits for the piece that runs, if it is a short one.

        Threads that work in this process at once fight for the interpreter's lock, at several times
        the cost. One that takes long holds the others up for no more than a moment each.
        """
        got = self.in_process and self._turn.acquire(timeout=SHORT)
        try:
            yield
        finally:
            if got:
                self._turn.release()

    def _tried(self, attempt: Attempt, flow: Flow[T]) -> T:
        if not attempt.left:
            raise base.BackendUnavailable(BUSY)
        while True:
            try:
                return self._transaction(attempt, flow)
            except self._raised as error:
                time.sleep(attempt.pause_after(error))

    async def aclose(self) -> None:
        self._closed = True
        for _ in self._threads:
            self._pieces.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        for opened in self._opened:
            opened.connection.close()
        self._opened.clear()

    def _transaction(self, attempt: Attempt, flow: Flow[T]) -> T:
        opened: OpenConnection | None = getattr(self._own, "opened", None)
        if opened is not None and not self.is_current(opened):
            self._give_up(opened)
            opened = None
        if opened is None:
            opened = self._own.opened = self.opened(self.connect())
            self._opened.add(opened)
        try:
            return complete(attempt.run(opened, flow))
        except BaseException as error:
            clean = attempt.leaves_whole(error)
            try:
                if clean:
                    complete(attempt.settle(opened))
            except SQLAlchemyError:
                clean = False
            if not clean:
                self._give_up(opened)
            raise

    def _give_up(self, opened: OpenConnection) -> None:
        self._opened.discard(opened)
        self._own.opened = None
        with suppress(SQLAlchemyError):
            opened.connection.invalidate()
            opened.connection.close()
