"""Runs work on the practice's database: SQLite here, in threads, with true deadlines.

Work is a plain function of a SQLAlchemy connection. Reads run in a snapshot on connections that
cannot write; bookings run one at a time in a transaction that holds the write lock from its start.
"""

import asyncio
import sqlite3
import threading
import time
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    OutcomeUnknown,
)

T = TypeVar("T")
Work = Callable[[Connection], T]

READERS = 4
OPCODES_BETWEEN_LOOKS = 5_000
DOWN = frozenset(
    {
        "SQLITE_BUSY",
        "SQLITE_LOCKED",
        "SQLITE_CANTOPEN",
        "SQLITE_IOERR",
        "SQLITE_FULL",
        "SQLITE_CORRUPT",
        "SQLITE_NOTADB",
        "SQLITE_READONLY",
    }
)


def fold(text: str | bytes | None) -> str:
    """Lower case without accents; all but letters and digits become blanks; one blank before."""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    bare = unicodedata.normalize("NFKD", text or "")
    kept = "".join(letter for letter in bare if not unicodedata.combining(letter))
    return " " + "".join(letter if letter.isalnum() else " " for letter in kept.casefold())


class SqliteRunner:
    """Threads, each with its own connection: a few that read, one that books."""

    def __init__(self, url: str, *, timeout: float, booking_timeout: float) -> None:
        self._path = make_url(url).database or ""
        self._timeout = timeout
        self._booking_timeout = booking_timeout
        self._engine = create_engine("sqlite://", creator=self._open, poolclass=NullPool)
        self._local = threading.local()
        self._opened: set[_Lane] = set()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="practice-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="practice-book")

    async def read(self, work: Work[T]) -> T:
        """The work's result, in one snapshot; BackendTimeout when the time is up."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, work)

    async def book(self, work: Work[T]) -> T:
        """The same under the write lock; committed when the work returns, else undone."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._writer, self._book, work)

    async def aclose(self) -> None:
        """Wait for what runs and close every connection."""
        for pool in (self._readers, self._writer):
            await asyncio.to_thread(pool.shutdown)
        for lane in self._opened:
            lane.connection.close()
        self._opened.clear()
        self._engine.dispose()

    def _open(self) -> sqlite3.Connection:
        # mode=rw: a path that is wrong must not make an empty database
        return sqlite3.connect(
            f"file:{quote(self._path)}?mode=rw",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )

    def _read(self, work: Work[T]) -> T:
        try:
            lane = self._lane(read_only=True, timeout=self._timeout)
            with lane.transaction("BEGIN"):
                return work(lane.connection)
        except SQLAlchemyError as error:
            raise self._translated(error) from error

    def _book(self, work: Work[T]) -> T:
        try:
            lane = self._lane(read_only=False, timeout=self._booking_timeout)
            with lane.transaction("BEGIN IMMEDIATE"):
                result = work(lane.connection)
        except SQLAlchemyError as error:
            translated = self._translated(error)
            if isinstance(translated, BackendTimeout):  # undone: nothing was written
                raise BackendUnavailable(str(translated)) from error
            raise translated from error
        return result

    def _lane(self, *, read_only: bool, timeout: float) -> "_Lane":
        lane: _Lane | None = getattr(self._local, "lane", None)
        if lane is None:
            lane = _Lane(self._engine.connect(), read_only=read_only, patience=timeout)
            self._local.lane = lane
            self._opened.add(lane)
        lane.deadline = time.monotonic() + timeout
        return lane

    def _translated(self, error: SQLAlchemyError) -> AdapterError:
        """What the driver said, as an adapter's error; the thread's connection is given up."""
        lane: _Lane | None = getattr(self._local, "lane", None)
        unsure = lane is not None and lane.committing
        if lane is not None:
            self._opened.discard(lane)
            lane.connection.invalidate()
            lane.connection.close()
            self._local.lane = None
        orig = error.orig if isinstance(error, DBAPIError) else None
        name = getattr(orig, "sqlite_errorname", "") or ""
        text = f"{self._path}: {orig or type(error).__name__}"
        if name == "SQLITE_INTERRUPT":
            return BackendTimeout("the statement took too long and was stopped")
        if any(name.startswith(each) for each in DOWN) or (not name and "open" in text):
            if unsure and not name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                return OutcomeUnknown(text)
            return BackendUnavailable(text)
        return BackendNonsense(text)


def _text(raw: bytes) -> str | bytes:
    """A text as the driver hands it over; one in another encoding stays bytes, for a converter."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


class _Lane:
    """One thread's connection, its deadline, and whether it is in the middle of a commit."""

    def __init__(self, connection: Connection, *, read_only: bool, patience: float) -> None:
        self.connection = connection
        self.deadline = 0.0
        self.committing = False
        raw = connection.connection.driver_connection
        if not isinstance(raw, sqlite3.Connection):
            raise TypeError(raw)
        raw.text_factory = _text
        raw.create_function("clinic_fold", 1, fold, deterministic=True)
        raw.set_progress_handler(self._overdue, OPCODES_BETWEEN_LOOKS)
        raw.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
        raw.execute(f"PRAGMA query_only = {int(read_only)}")
        self._raw = raw

    def transaction(self, begin: str) -> "_Transaction":
        return _Transaction(self, self._raw, begin)

    def _overdue(self) -> bool:
        return time.monotonic() > self.deadline


class _Transaction:
    """BEGIN, and COMMIT or ROLLBACK, said to the driver itself."""

    def __init__(self, lane: _Lane, raw: sqlite3.Connection, begin: str) -> None:
        self._lane, self._raw, self._begin = lane, raw, begin

    def __enter__(self) -> None:
        self._lane.connection.exec_driver_sql(self._begin)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            if self._raw.in_transaction:
                self._raw.rollback()
            return
        self._lane.committing = True
        self._lane.connection.exec_driver_sql("COMMIT")
        self._lane.committing = False
