"""A lane of threads, for a driver that blocks.

A thread works in shifts. It takes pieces of work one after the other, and the event loop hears of
their ends all at once. So a call wakes neither a thread nor the event loop by itself where there
are many, and the two do not fight for the interpreter's lock, which costs several times the work.

A driver that speaks to a server may hang. At the end of its time the piece is stopped; where that
does not help, its thread is left alone with it, and the caller is told.
"""

import asyncio
import threading
import time
from abc import abstractmethod
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
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
# Seconds between stopping a piece that is late and leaving its thread alone with it.
GRACE = 0.4
# Seconds for the connections of a lane to close.
CLOSING = 2.0
# Seconds between two looks at whether the threads have ended.
LOOKING = 0.002
# Threads that may be left alone, for each piece that may run at once.
MOST_LEFT = 4


@dataclass(eq=False, slots=True)
class Job:
    """Work that waits for a thread or has one, and whom its end is told.

    `lock` guards `ended` and `left`, of which only one comes true. `stopping` is held while the
    work is stopped from outside, and by its thread before it does anything after the work.
    """

    attempt: Attempt
    flow: Flow[Any]
    answer: "asyncio.Future[Any]"
    thread: threading.Thread | None = None
    opened: OpenConnection | None = None
    ended: bool = False
    left: bool = False
    stopped: bool = False
    timer: asyncio.TimerHandle | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopping: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, thread: threading.Thread) -> bool:
        """Gives it a thread; returns whether it still wants one."""
        with self.lock:
            self.thread = thread
            return not self.left

    def end(self) -> bool:
        """Ends it; returns whether its thread was not left alone before."""
        with self.lock:
            self.ended = not self.left
            return self.ended

    def leave(self) -> bool:
        """Leaves its thread alone; returns whether it has not ended before."""
        with self.lock:
            self.left = not self.ended
            return self.left


class Ended(NamedTuple):
    """What a piece of work came to."""

    job: Job
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

    # short, as `aclose` waits for it
    inspection = 10.0
    # whether the database works in this process, and not on a server
    in_process: ClassVar[bool] = False

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._at_once, self._lasts = (1, SHIFT) if self.in_process else (self.size, 0.0)
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._own = threading.local()
        # between the event loop and the threads
        self._shifts: SimpleQueue[WorkShift] = SimpleQueue()
        self._jobs: deque[Job] = deque()
        self._ended: deque[Ended] = deque()
        # of the event loop alone: how many shifts are under way, when it looks after them, and
        # whether any piece ended since it did
        self._working = 0
        self._look_at: asyncio.TimerHandle | None = None
        self._went_on = False
        self.left_alone = 0
        """How many threads are left alone in the driver."""

    @abstractmethod
    def connect(self) -> Connection:
        """Returns a new connection."""

    def opened(self, connection: Connection) -> OpenConnection:
        return ThreadConnection(self, connection)

    def is_current(self, opened: OpenConnection) -> bool:
        """Returns whether it still leads to the database. Raises AdapterError if that is gone."""
        return True

    def stop(self, opened: OpenConnection) -> None:
        """Stops the statement that the connection runs; called from another thread.

        Does nothing where the driver stops it in time by itself.
        """
        return

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
        except base.BackendUnavailable:
            self._room.leave()
            raise
        job = Job(attempt, flow, answer)
        self._jobs.append(job)
        if not self.in_process:
            job.timer = loop.call_later(attempt.left, self._stop_late, loop, job)
        if begins:
            self._begin(loop)
        elif self._look_at is None:
            self._look_at = loop.call_later(SHORT, self._look, loop)
        return await answer

    def _may_begin(self) -> bool:
        """Returns whether a shift may begin; then a thread is free for it.

        Raises RuntimeError where none can be had, as once the lane is closed, and
        BackendUnavailable where too many do not come back.
        """
        if self._closed:
            raise RuntimeError("the lane is closed")
        if self.left_alone >= MOST_LEFT * self.size:
            raise base.BackendUnavailable(
                f"the database's driver hangs: {self.left_alone} calls have not come back,"
                " and no other is begun before one of them has"
            )
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
            job, result, error = self._ended.popleft()
            self._went_on = True
            self._room.leave()
            if job.timer is not None:
                job.timer.cancel()
            if job.answer.done():
                continue
            if error is None:
                job.answer.set_result(result)
            else:
                job.answer.set_exception(error)

    def _stop_late(self, loop: asyncio.AbstractEventLoop, job: Job) -> None:
        """Has a piece stopped whose time is over, by a thread as this may take long as well."""
        job.timer = loop.call_later(GRACE, self._leave_alone, loop, job)
        with suppress(RuntimeError):  # no thread can be had
            threading.Thread(target=self._stopped, args=(job,), name="stop", daemon=True).start()

    def _stopped(self, job: Job) -> None:
        with job.stopping:
            if job.ended or job.opened is None:
                return
            job.stopped = True
            with suppress(*self._raised, *self.errors):
                self.stop(job.opened)

    def _leave_alone(self, loop: asyncio.AbstractEventLoop, job: Job) -> None:
        """Leaves a thread alone with a piece that cannot be stopped, and tells the caller."""
        if not job.leave():
            return
        if job.thread is None:  # it never had one
            with suppress(ValueError):
                self._jobs.remove(job)
        else:
            self._threads.remove(job.thread)
            self._working -= 1
            self.left_alone += 1
        self._room.leave()
        if not job.answer.done():
            job.answer.set_exception(job.attempt.failure(TimeoutError()))

    def _came_back(self) -> None:
        """Counts a thread out that was left alone."""
        self.left_alone -= 1

    def _serve(self) -> None:
        """Works in shifts up to the last one."""
        is_last = is_left = False
        while not is_last and not is_left:
            loop, is_last = self._shifts.get()
            is_left = self._work(until=None if is_last else time.monotonic() + self._lasts)
            with suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(*((self._came_back,) if is_left else (self._end, loop)))
        opened: OpenConnection | None = getattr(self._own, "opened", None)
        if opened is not None:
            with suppress(*self._raised, *self.errors):
                opened.connection.close()

    def _work(self, until: float | None) -> bool:
        """Does what waits, and begins nothing once time.monotonic is past `until`.

        Returns whether the thread was left alone meanwhile.
        """
        while True:
            try:
                job = self._jobs.popleft()
            except IndexError:
                return False
            if not job.begin(threading.current_thread()):
                continue
            self._own.job = job
            try:
                # who left before it began wants nothing of it
                ended = Ended(job, None if job.answer.done() else self._tried(job))
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's
                ended = Ended(job, None, error)
            if not job.end():
                return True
            self._ended.append(ended)
            if until is not None and time.monotonic() >= until:
                return False

    def _tried(self, job: Job) -> Any:
        attempt = job.attempt
        if not attempt.left:
            raise base.BackendUnavailable(BUSY)
        while True:
            try:
                return self._transaction(job)
            except self._raised as error:
                time.sleep(attempt.pause_after(error))

    def before_commit(self, opened: OpenConnection) -> None:
        """Raises BackendUnavailable where the caller was told already that nothing came of it."""
        job: Job = self._own.job
        with job.lock:
            if job.left:
                raise base.BackendUnavailable("the booking came too late")

    async def aclose(self) -> None:
        """Lets running work end and every connection close, for as long as a server may take."""
        self._closed = True
        loop = asyncio.get_running_loop()
        until = time.monotonic() + self.patience + GRACE + CLOSING
        for _ in self._threads:
            self._shifts.put(WorkShift(loop, is_last=True))
        while any(thread.is_alive() for thread in self._threads):
            if not self.in_process and time.monotonic() > until:
                return  # they end with the process
            await asyncio.sleep(LOOKING)

    def _transaction(self, job: Job) -> Any:
        opened: OpenConnection | None = getattr(self._own, "opened", None)
        if opened is not None and not self.is_current(opened):
            self._give_up(opened)
            opened = None
        opened = opened or self._connected()
        job.attempt.connected, job.opened = True, opened
        try:
            result = complete(job.attempt.run(opened, job.flow))
        except BaseException as error:
            clean = job.attempt.leaves_whole(error) and self._is_untouched(job)
            try:
                if clean:
                    complete(job.attempt.settle(opened))
            except SQLAlchemyError:
                clean = False
            if not clean:
                self._give_up(opened)
            raise
        if not self._is_untouched(job) or not self._is_settled(opened):
            self._give_up(opened)
        return result

    def _connected(self) -> OpenConnection:
        opened: OpenConnection
        opened = self._own.opened = self.opened(self.connect())
        return opened

    def _is_settled(self, opened: OpenConnection) -> bool:
        """Lets go of what outlives a booking; returns whether that worked."""
        try:
            if self.booking:
                complete(self.settle(opened))
        except self._raised:
            return False
        return True

    def _is_untouched(self, job: Job) -> bool:
        """Returns whether nothing was stopped, which could hit what the connection does next.

        From here on nothing is.
        """
        with job.stopping:
            job.opened = None
            return not job.stopped

    def _give_up(self, opened: OpenConnection) -> None:
        self._own.opened = None
        with suppress(*self._raised, *self.errors):
            opened.connection.invalidate()
            opened.connection.close()
