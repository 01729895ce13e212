"""A lane of threads, for a driver that blocks.

A thread works in shifts. It takes pieces of work one after the other, and the event loop hears of
their ends all at once. So a call wakes neither a thread nor the event loop by itself where there
are many, and the two do not fight for the interpreter's lock, which costs several times the work.
"""

import asyncio
import threading
import time
from abc import abstractmethod
from collections import deque
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from adapters import base
from adapters.mapped.session import complete
from adapters.sql.engines.base import T
from adapters.sql.engines.connection import OpenConnection, ThreadConnection
from adapters.sql.engines.lanes import Attempt, Flow, Lane
from adapters.wrappers.call_limiter import BUSY

# Seconds after which a thread in this process begins no other piece in the same shift.
SHIFT = 0.001
# Seconds that pieces in this process wait for the one that is worked on, and ended ones to be told.
SHORT = 0.005


class Job(NamedTuple):
    """Work that waits for a thread, and whom its end is told."""

    attempt: Attempt
    flow: Flow[Any]
    answer: "asyncio.Future[Any]"


class Ended(NamedTuple):
    """What a piece of work came to."""

    answer: "asyncio.Future[Any]"
    result: Any
    error: BaseException | None = None


class WorkShift(NamedTuple):
    """What a thread is sent for: the loop to tell of its end, and whether it is its last."""

    loop: asyncio.AbstractEventLoop
    is_last: bool = False


class ThreadLane(Lane):
    """A lane with threads, each of which has a connection.

    Where the database is on a server, each piece has a thread at once, and a shift for itself. In
    this process one thread works at a time. A piece that takes long holds the others up for no more
    than a moment, and then other threads go on with them.
    """

    # short, as a thread cannot be left alone: `aclose` waits for it
    inspection = 10.0
    # whether the database works in this process, and not on a server
    in_process: ClassVar[bool] = False

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._at_once, self._lasts = (1, SHIFT) if self.in_process else (self.size, 0.0)
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._own = threading.local()
        self._opened: set[OpenConnection] = set()
        # between the event loop and the threads
        self._shifts: SimpleQueue[WorkShift] = SimpleQueue()
        self._jobs: deque[Job] = deque()
        self._ended: deque[Ended] = deque()
        # of the event loop alone: how many shifts are under way, when it looks after them, and
        # whether any piece ended since it did
        self._working = 0
        self._look_at: asyncio.TimerHandle | None = None
        self._went_on = False

    @abstractmethod
    def connect(self) -> Connection:
        """Returns a new connection."""

    def opened(self, connection: Connection) -> OpenConnection:
        return ThreadConnection(self, connection)

    def is_current(self, opened: OpenConnection) -> bool:
        """Returns whether it still leads to the database. Raises AdapterError if that is gone."""
        return True

    async def ask(self, flow: Flow[T], *, alone: bool = False) -> T:
        """Returns the flow's result, of a thread; what waits for room does so by partner."""
        attempt = Attempt(self, time.monotonic() + self.patience, alone)
        if not self._room.take():
            await self._room.enter()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        try:
            begins = self._may_begin()
        except RuntimeError as error:
            self._room.leave()
            raise base.BackendUnavailable(
                "no thread can be had to ask the practice system"
            ) from error
        self._jobs.append(Job(attempt, flow, answer))
        if begins:
            self._begin(loop)
        elif self._look_at is None:
            self._look_at = loop.call_later(SHORT, self._look, loop)
        return await answer

    def _may_begin(self) -> bool:
        """Returns whether a shift may begin; then a thread is free for it.

        Raises RuntimeError where none can be had, as once the lane is closed.
        """
        if self._closed:
            raise RuntimeError("the lane is closed")
        if self._working >= self._at_once:
            return False
        self._have_a_thread_free()
        return True

    def _have_a_thread_free(self) -> None:
        if self._working >= len(self._threads):
            thread = threading.Thread(target=self._serve, name="practice", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._working += 1
        self._shifts.put(WorkShift(loop))

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ends a shift, after which another begins where pieces wait."""
        self._working -= 1
        self._tell()
        if self._jobs and self._working < self._at_once:
            self._begin(loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Has a thread for each piece that waits, where nothing ended since the last look."""
        self._look_at = None
        self._tell()
        if self._jobs:
            if not self._went_on and not self._closed:
                with suppress(RuntimeError):  # then they wait on
                    for _ in range(min(len(self._jobs), self.size - self._working)):
                        self._have_a_thread_free()
                        self._begin(loop)
            self._look_at = loop.call_later(SHORT, self._look, loop)
        self._went_on = False

    def _tell(self) -> None:
        """Frees the places of the pieces that ended, and tells the callers unless they left."""
        while self._ended:
            answer, result, error = self._ended.popleft()
            self._went_on = True
            self._room.leave()
            if answer.done():
                continue
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)

    def _serve(self) -> None:
        """Works in shifts up to the last one."""
        is_last = False
        while not is_last:
            loop, is_last = self._shifts.get()
            self._work(until=None if is_last else time.monotonic() + self._lasts)
            with suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(self._end, loop)

    def _work(self, until: float | None) -> None:
        """Does what waits, and begins nothing once time.monotonic is past `until`."""
        while True:
            try:
                attempt, flow, answer = self._jobs.popleft()
            except IndexError:
                return
            try:
                # who left before it began wants nothing of it
                ended = Ended(answer, None if answer.done() else self._tried(attempt, flow))
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's
                ended = Ended(answer, None, error)
            self._ended.append(ended)
            if until is not None and time.monotonic() >= until:
                return

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
        loop = asyncio.get_running_loop()
        for _ in self._threads:
            self._shifts.put(WorkShift(loop, is_last=True))
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
