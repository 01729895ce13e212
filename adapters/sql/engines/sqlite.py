"""SQLite: the practice's database is a file, read and written in threads, with true deadlines.

Reads run in a snapshot on connections that cannot write; bookings run one at a time in a
transaction that holds the write lock from its start. The file's owner and mode are its grants.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    OutcomeUnknown,
)
from adapters.sql.engines.base import T, Work, as_text
from adapters.sql.engines.explained import explaining
from adapters.sql.engines.sqlite_speech import SqliteSpeech, error_name
from adapters.sql.engines.threads import ThreadedEngine
from adapters.values.convert import Unreadable, fold
from adapters.values.numbers import decimal

OPCODES_BETWEEN_LOOKS = 5_000
# It works in this very process, where more threads would not do more, but hold up the event loop.
READERS = 2
DOWN = {
    "SQLITE_BUSY": "is locked by another program",
    "SQLITE_LOCKED": "is locked by another program",
    "SQLITE_CANTOPEN": "can't be opened",
    "SQLITE_IOERR": "can't be read or written",
    "SQLITE_FULL": "can't be written: the disk is full",
    "SQLITE_CORRUPT": "is damaged",
    "SQLITE_NOTADB": "is no SQLite database",
    "SQLITE_READONLY": "can't be written",
}


def wrong_with(address: URL) -> Iterator[str]:
    """What keeps an address from being a file's."""
    if not address.database or address.host or address.database.startswith(":"):
        yield "must name the database's file, such as sqlite:////srv/clinic.db"
    elif address.query:
        yield "takes nothing behind a ?; a ? in a path is written %3F"


class SqliteEngine(ThreadedEngine):
    """Threads, each with its own connection: a few that read, one that books, one that asks."""

    speech = SqliteSpeech()
    # needs the file but no table
    _ask = text("SELECT count(*) FROM sqlite_master")

    def __init__(self, path: str, *, timeout: float, booking_timeout: float) -> None:
        super().__init__(
            readers=READERS, bookers=1, timeout=timeout, booking_timeout=booking_timeout
        )
        self._path = Path(path)
        self._engine = create_engine("sqlite://", creator=self._open, poolclass=NullPool)
        explaining(self._engine)
        self._local = threading.local()
        self._opened: set[_Lane] = set()

    async def aclose(self) -> None:
        """Wait for what runs and close every connection."""
        await super().aclose()
        for lane in self._opened:
            lane.connection.close()
        self._opened.clear()
        self._engine.dispose()

    def _open(self) -> sqlite3.Connection:
        # mode=rw: a path that is wrong must not make an empty database
        return sqlite3.connect(
            f"file:{quote(str(self._path))}?mode=rw",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )

    def _read(self, work: Work[T], deadline: float) -> T:
        try:
            with self._lane(read_only=True, deadline=deadline).transaction("BEGIN") as connection:
                return work(connection)
        except (SQLAlchemyError, UnicodeError, OverflowError) as error:
            raise self._translated(error) from error

    def _book(self, work: Work[T], deadline: float) -> T:
        try:
            lane = self._lane(read_only=False, deadline=deadline)
            with lane.transaction("BEGIN IMMEDIATE") as connection:
                result = work(connection)
                if self._file() != lane.file:
                    raise BackendUnavailable(
                        f"{self._path} was replaced in the middle of a booking"
                    )
        except (SQLAlchemyError, UnicodeError, OverflowError) as error:
            translated = self._translated(error)
            if isinstance(translated, BackendTimeout):  # undone: nothing was written
                raise BackendUnavailable(str(translated)) from error
            raise translated from error
        return result

    def _lane(self, *, read_only: bool, deadline: float) -> "_Lane":
        lane: _Lane | None = getattr(self._local, "lane", None)
        file = self._file()
        if lane is not None and lane.file != file:  # another one was put in its place
            self._give_up(lane)
            lane = None
        if lane is None:
            lane = _Lane(self._engine.connect(), file, read_only=read_only)
            self._local.lane = lane
            self._opened.add(lane)
        lane.until(deadline)
        return lane

    def _file(self) -> tuple[int, int]:
        """Which file now has the database's name."""
        try:
            found = self._path.stat()
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            why = "does not exist; is backend.url the right file?" if gone else "can't be reached"
            raise BackendUnavailable(f"{self._path} {why}") from error
        return found.st_dev, found.st_ino

    def _give_up(self, lane: "_Lane") -> None:
        self._opened.discard(lane)
        lane.connection.invalidate()
        lane.connection.close()
        self._local.lane = None

    def _translated(self, error: SQLAlchemyError | UnicodeError | OverflowError) -> AdapterError:
        """What the driver said, as an adapter's error; the thread's connection is given up.

        The driver's own words stay out: they may quote a value.
        """
        lane: _Lane | None = getattr(self._local, "lane", None)
        unsure = lane is not None and lane.committing
        if lane is not None:
            self._give_up(lane)
        name = error_name(error)
        if name == "SQLITE_INTERRUPT":
            return BackendTimeout("the statement took too long and was stopped")
        down = next((said for each, said in DOWN.items() if name.startswith(each)), None)
        if down is None:
            return BackendNonsense(f"{self._path}: a statement failed ({name})")
        text = f"{self._path} {down} ({name})"
        if unsure and not name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return OutcomeUnknown(text)
        return BackendUnavailable(text)


class _Lane:
    """One thread's connection, its deadline, and whether it is in the middle of a commit."""

    def __init__(self, connection: Connection, file: tuple[int, int], *, read_only: bool) -> None:
        self.connection = connection
        self.file = file
        self.deadline = 0.0
        self.committing = False
        self._left = -1
        raw = connection.connection.driver_connection
        if not isinstance(raw, sqlite3.Connection):
            raise TypeError(raw)
        raw.text_factory = as_text
        raw.create_function("clinic_fold", 1, fold, deterministic=True)
        raw.create_function("clinic_number", 1, _number, deterministic=True)
        raw.set_progress_handler(self._overdue, OPCODES_BETWEEN_LOOKS)
        # nosemgrep: sql-is-never-put-together-as-text - a number of ours
        raw.execute(f"PRAGMA query_only = {int(read_only)}")
        self._raw = raw

    def until(self, deadline: float) -> None:
        """From now on everything is to end by then, waiting for locks included."""
        self.deadline = deadline
        # in tenths of a second: most calls have all of their time left, and ask for nothing new
        left = max(0, ceil((deadline - time.monotonic()) * 10))
        if left != self._left:
            # nosemgrep: sql-is-never-put-together-as-text - a number of ours
            self._raw.execute(f"PRAGMA busy_timeout = {left * 100}")
            self._left = left

    def transaction(self, begin: str) -> "_Transaction":
        return _Transaction(self, self._raw, begin)

    def _overdue(self) -> bool:
        return time.monotonic() >= self.deadline


def _number(raw: bytes | None) -> float | None:
    """The number that a text is; None where it is none."""
    try:
        found = decimal(raw)
    except Unreadable:
        return None
    return None if found is None else float(found)


class _Transaction:
    """BEGIN, and COMMIT or ROLLBACK, said to the driver itself."""

    def __init__(self, lane: _Lane, raw: sqlite3.Connection, begin: str) -> None:
        self._lane, self._raw, self._begin = lane, raw, begin

    def __enter__(self) -> Connection:
        self._lane.connection.exec_driver_sql(self._begin)
        return self._lane.connection

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            if self._raw.in_transaction:
                self._raw.rollback()
            return
        self._lane.committing = True
        self._lane.connection.exec_driver_sql("COMMIT")
        self._lane.committing = False
