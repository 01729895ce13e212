"""An engine runs work on the practice's database: one transaction for each piece of work.

Work is a plain function of a SQLAlchemy connection. However an attempt ends, its connection is
left clean, or is given up.
"""

import errno
import random
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    OutcomeUnknown,
)
from adapters.sql.engines.base import HALF, SAID, UNTIL, ErrorKind, Speech, T, Work
from adapters.wrappers.admission import CallLimiter
from adapters.wrappers.unreachable import reason

READERS = 4
BOOKERS = 4
MOST_WAITING = 256
# What a driver raises, besides what the work itself does.
DRIVER_ERRORS = (SQLAlchemyError, OSError, UnicodeError, OverflowError)
MOST_COLLISIONS = 3
# A booking that finds its row there already looks again: then it sees who was quicker.
COLLISIONS = (ErrorKind.AGAIN, ErrorKind.DUPLICATE)
# Seconds, times the number of collisions: those who collided are not to meet again.
JITTER = (0.01, 0.06)
# Seconds in which it should be told why the practice system does not answer.
PING_PATIENCE = 1.5
_UNDONE = (ErrorKind.DOWN, ErrorKind.TIMEOUT, ErrorKind.BUSY, ErrorKind.AGAIN)
# In a connection's `info`: whether it had work before, and the limit of its statements.
_USED, _LIMIT = "clinic_used", "clinic_limit"


class Driver(Protocol):
    """What one kind of database does in its own way.

    `never_committed`: what an error of a COMMIT is about that proves that there is no booking.
    `question`: what a ping asks. `inspection`: seconds for all statements of a mapping, as over a
    slow line each takes its time.
    """

    speech: Speech
    lane: ClassVar[type["Lane"]]
    begin_read: ClassVar[str] = "BEGIN"
    begin_booking: ClassVar[str] = "BEGIN"
    end_read: ClassVar[str] = "COMMIT"
    rollback: ClassVar[str] = "ROLLBACK"
    never_committed: ClassVar[frozenset[ErrorKind]] = frozenset(
        {ErrorKind.AGAIN, ErrorKind.DUPLICATE, ErrorKind.REFUSED}
    )
    question: ClassVar[str] = "SELECT 1"
    readers: ClassVar[int] = READERS
    bookers: ClassVar[int] = BOOKERS
    inspection: ClassVar[float] = 30.0

    def limit(self, connection: Connection, tenths: int) -> None:
        """From now on the server stops each statement that takes more tenths of a second."""

    def before_commit(self, connection: Connection) -> None:
        """AdapterError where a booking must not be committed after all."""
        return

    def settle(self, connection: Connection) -> None:
        """Let go of what outlives a transaction, if anything does."""
        return

    def explained(self, kind: ErrorKind, code: str, error: Exception) -> str:
        """What went wrong; never in the driver's words, which may quote values."""
        why = reason(error) if kind is ErrorKind.DOWN else None
        if why:
            return f"the database can't be reached: {why}; see backend.url"
        return f"{SAID.get(kind, 'a statement failed')} ({code})"


@dataclass(slots=True)
class Attempt:
    """A piece of work in a transaction, to end by `until` (of time.monotonic), tried until it does.

    `connected`: whether a connection was had for this try.
    """

    driver: Driver
    booking: bool
    until: float
    collisions: int = 0
    connected: bool = False
    info: dict[Any, Any] = field(default_factory=dict)
    reused: bool = False
    begun: bool = False
    committing: bool = False

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self.until - time.monotonic())

    def run(self, connection: Connection, work: Work[T]) -> T:
        """The work's result, committed; one of DRIVER_ERRORS or the work's own."""
        driver, self.info = self.driver, connection.info
        self.reused = _USED in self.info
        self.info[_USED] = True
        self.info.pop(HALF, None)
        self.info[UNTIL] = self.until
        tenths = int(self.left * 10) + 1
        if self.info.get(_LIMIT) != tenths:  # most calls have all of their time left
            driver.limit(connection, tenths)
            self.info[_LIMIT] = tenths
        connection.exec_driver_sql(driver.begin_booking if self.booking else driver.begin_read)
        self.begun = True
        result = work(connection)
        if self.booking:
            driver.before_commit(connection)
            self.committing = True
        connection.exec_driver_sql("COMMIT" if self.booking else driver.end_read)
        self.begun = self.committing = False
        return result

    def settle(self, connection: Connection) -> bool:
        """Undo what is not committed; True, as the connection is clean then."""
        if self.begun:
            connection.exec_driver_sql(self.driver.rollback)
        self.driver.settle(connection)
        return True

    def leaves_whole(self, error: BaseException) -> bool:
        """Whether the connection is in a known state: an answer came to all that was asked."""
        if isinstance(error, DBAPIError):
            return self._kind(error) is not ErrorKind.DOWN
        return isinstance(error, Exception) and not isinstance(error, OSError)

    def pause_after(self, error: Exception) -> float:
        """Seconds until another attempt where that does no harm; else raises the AdapterError."""
        kind, half = self._kind(error), HALF in self.info
        self.collisions += kind in COLLISIONS
        # nobody gains by guessing it
        pause = random.uniform(*JITTER) * self.collisions  # noqa: S311  # nosec B311
        if kind in COLLISIONS:  # it left nothing
            harmless = self.collisions < MOST_COLLISIONS
            harmless = harmless and (self.booking or kind is ErrorKind.AGAIN)
        else:  # a connection that was dead already got nothing of a booking
            harmless = kind is ErrorKind.DOWN and self.reused
            harmless = harmless and not (self.booking and self.begun)
        if half or not harmless or self.left <= pause:
            raise self._failure(kind, error, half=half) from error
        self.connected = self.reused = self.begun = self.committing = False
        return pause

    def _kind(self, error: BaseException) -> ErrorKind:
        if isinstance(error, DBAPIError):
            down = error.connection_invalidated
            return ErrorKind.DOWN if down else self.driver.speech.kind(error)
        if isinstance(error, TimeoutError) and self.connected:
            return ErrorKind.TIMEOUT
        return ErrorKind.DOWN if isinstance(error, OSError) else ErrorKind.OTHER

    def _failure(self, kind: ErrorKind, error: Exception, *, half: bool) -> AdapterError:
        number = error.errno if isinstance(error, OSError) else None
        code = errno.errorcode.get(number or 0, type(error).__name__)
        if isinstance(error, DBAPIError):
            code = self.driver.speech.code(error)
        if half:
            return OutcomeUnknown(f"a booking could not be taken back whole ({code})")
        said = self.driver.explained(kind, code, error)
        if self.committing and kind not in self.driver.never_committed:
            return OutcomeUnknown(f"the booking's end is not known: {said}")
        if kind is ErrorKind.TIMEOUT and not self.booking:
            return BackendTimeout(said)
        return BackendUnavailable(said) if kind in _UNDONE else BackendNonsense(said)


class Lane(ABC):
    """Does one kind of work, so many pieces at a time, each with `patience` seconds in all.

    What waits too long for its turn, and what finds too much waiting, is BackendUnavailable.
    """

    def __init__(self, driver: Any, size: int, patience: float, *, booking: bool = False) -> None:
        self._driver, self._booking, self._patience = driver, booking, patience
        self._room = CallLimiter(size, MOST_WAITING, patience)

    @abstractmethod
    async def run(self, work: Work[T]) -> T:
        """The work's result, or its AdapterError."""

    @abstractmethod
    async def aclose(self) -> None:
        """Wait for what runs, and let go of every connection."""


class Engine:
    """Runs work on the practice's database; every verb raises AdapterErrors.

    A deadline counts from the moment of the call. Searches look at every row: they wait for one
    another, and no other read for them. A ping has a lane of its own, as behind many slow reads it
    would say that nothing answers.
    """

    def __init__(self, driver: Driver, *, timeout: float, booking_timeout: float) -> None:
        self.speech, lane = driver.speech, driver.lane
        self.reader = lane(driver, driver.readers, timeout)
        searcher = lane(driver, 1, timeout)
        inspector = lane(driver, 1, max(timeout, driver.inspection))
        self.booker = lane(driver, driver.bookers, booking_timeout, booking=True)
        pinger = lane(driver, 1, min(timeout, PING_PATIENCE))
        self._lanes = (self.reader, searcher, inspector, pinger, self.booker)
        self.read = self.reader.run
        """The work's result, in one snapshot that cannot write."""
        self.inspect = inspector.run
        """The same for work of many statements that no call waits for."""
        self.search = searcher.run
        """The same for work that looks at every row of a table."""
        self.book = self.booker.run
        """The same, writing: committed when the work returns, else undone.

        The work may be called again when the database undid it for a collision.
        """
        question = text(driver.question)
        self.ping = partial(pinger.run, lambda connection: connection.scalar(question))
        """Whether the database answers."""

    async def aclose(self) -> None:
        """Wait for what runs, and let go of every connection."""
        for lane in self._lanes:
            await lane.aclose()
