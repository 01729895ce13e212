"""Runs work on the practice's database: one transaction for each piece of work, in a lane.

Work is a flow: a coroutine of an open connection, which asks the driver itself. It may also be a
plain function of SQLAlchemy's connection. Each kind of work has a lane: a pool of connections for
an asynchronous driver (`pools`), threads for one that blocks (`threads`). However an attempt ends,
its connection is left clean, or is given up.
"""

import errno
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sqlalchemy import Connection
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from adapters import base
from adapters.sql.engines.base import HALF, UNTIL, ErrorKind, Speech, T, Work
from adapters.sql.engines.connection import OpenConnection
from adapters.sql.engines.statements import Statements
from adapters.wrappers.call_limiter import CallLimiter
from adapters.wrappers.connection_errors import reason

MOST_WAITING = 256
# What a driver raises, besides what the work itself raises.
DRIVER_ERRORS = (SQLAlchemyError, OSError, UnicodeError, OverflowError)
MOST_COLLISIONS = 3
# A booking whose row is there already runs again, and then sees the other booking.
COLLISIONS = (ErrorKind.AGAIN, ErrorKind.DUPLICATE)
# Seconds, times the number of collisions, so that those who collided do not meet again.
JITTER = (0.01, 0.06)
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
            self.committing = True  # first, for who asks meanwhile
            lane.before_commit(opened)
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

    speech: Speech
    errors: tuple[type[Exception], ...]
    begin_read: str = "BEGIN"
    begin_booking: str = "BEGIN"
    end_read: str = "COMMIT"
    rollback: str = "ROLLBACK"
    never_committed: ClassVar = frozenset(
        {
            *(ErrorKind.AGAIN, ErrorKind.DUPLICATE, ErrorKind.REFUSED),
            *(ErrorKind.UNFIT, ErrorKind.LONG),
        }
    )
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
