"""SQLite: the practice's database is a file, read and written in threads, with true deadlines.

Reads run in a snapshot on connections that cannot write; bookings run one at a time in a
transaction that holds the write lock from its start. The file's owner and mode are its grants.
"""

import re
import sqlite3
import threading
import time
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Executable, LargeBinary, case, cast, create_engine, func, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    OutcomeUnknown,
)
from adapters.sql.engines.base import (
    BLANKS,
    Criterion,
    Engine,
    ErrorKind,
    Expression,
    ServerClock,
    Speech,
    T,
    TableAccess,
    Work,
    as_text,
    explain,
    explaining,
    one_line,
    quoted,
)
from adapters.sql.engines.threads import threaded_engine
from adapters.values.convert import Unreadable, fold
from adapters.values.numbers import decimal

OPCODES_BETWEEN_LOOKS = 5_000
# It works in this very process, where more threads would not do more, but hold up the event loop.
READERS = 2
DATED = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*"
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
# By the beginning of the error's name; the first that fits holds.
KINDS = {
    "SQLITE_INTERRUPT": ErrorKind.TIMEOUT,
    "SQLITE_CONSTRAINT_UNIQUE": ErrorKind.DUPLICATE,
    "SQLITE_CONSTRAINT_PRIMARYKEY": ErrorKind.DUPLICATE,
    "SQLITE_CONSTRAINT": ErrorKind.REFUSED,
    "SQLITE_ERROR": ErrorKind.STATEMENT,
    **dict.fromkeys(DOWN, ErrorKind.DOWN),
    **dict.fromkeys(("SQLITE_BUSY", "SQLITE_LOCKED"), ErrorKind.BUSY),
}
_NOW = text("SELECT datetime('now', 'localtime'), datetime('now')")
_LITERAL = re.compile("'(?:[^']|'')*'").sub
_QUOTED = re.compile('"([^"]+)"').findall
_STEP = re.compile(
    "(SCAN|SEARCH) (.+?)(?: USING (?:(?:AUTOMATIC )?(?:PARTIAL )?(?:COVERING )?INDEX"
    " ?([^( ]*)|(INTEGER PRIMARY KEY)).*)?"
).fullmatch


class SqliteSpeech(Speech):
    """SQLite's spelling; clinic_fold and clinic_number come with the engine's connections."""

    loose_types = True
    times_as_text = True

    def searchable(self, expression: Expression) -> Expression:
        # as bytes: a text in another encoding must not fail the search for all others
        return func.clinic_fold(cast(expression, LargeBinary))

    def trimmed(self, expression: Expression) -> Expression:
        return func.trim(expression, BLANKS)

    def exact(self, text: Expression) -> Expression:
        return text.collate("BINARY")

    def number(self, expression: Expression) -> Expression:
        is_number = func.typeof(expression).in_((quoted("integer"), quoted("real")))
        read = func.clinic_number(cast(expression, LargeBinary))
        return case((is_number, expression), else_=read)

    def undated(self, expression: Expression) -> Criterion:
        return expression.op("NOT GLOB", is_comparison=True)(DATED)

    def explain(
        self, connection: Connection, statement: Executable, parameters: dict[str, Any]
    ) -> tuple[TableAccess, ...]:
        """Both kinds of EXPLAIN: one shows the plan, the other a name taken for a text."""
        _refuse_names_as_texts(connection, statement, parameters)
        plan = explain(connection, "EXPLAIN QUERY PLAN", statement, parameters)
        found = [_STEP(row[3]) for row in plan if "CONSTANT ROW" not in row[3]]
        return tuple(
            TableAccess(step[2], step[1] == "SCAN", step[3] or step[4] or "")
            for step in found
            if step is not None
        )

    def kind(self, error: DBAPIError) -> ErrorKind:
        name = error_name(error)
        kinds = (kind for beginning, kind in KINDS.items() if name.startswith(beginning))
        return next(kinds, ErrorKind.OTHER)

    def code(self, error: DBAPIError) -> str:
        return error_name(error)

    def complaint(self, error: DBAPIError) -> str | None:
        return one_line(error.orig) if error_name(error) == "SQLITE_ERROR" else None

    def lock(self, connection: Connection, name: str) -> None:
        """Nothing: a booking holds the write lock of the whole file."""

    def clock(self, connection: Connection) -> ServerClock:
        local, utc = connection.execute(_NOW).one()
        return ServerClock(local, utc, "")


def error_name(error: Exception) -> str:
    """SQLite's own name of what went wrong; without one, the class of the error."""
    orig = error.orig if isinstance(error, DBAPIError) else None
    return getattr(orig, "sqlite_errorname", "") or type(orig or error).__name__


def _refuse_names_as_texts(connection: Connection, statement: Executable, parameters: Any) -> None:
    """A name in quotes that is none: SQLite prepares the statement and loads the name as a text."""
    compiled = str(statement.compile(connection))  # type: ignore[attr-defined]
    names = _QUOTED(_LITERAL("", compiled))
    if not names:
        return
    program = explain(connection, "EXPLAIN", statement, parameters)
    texts = {row[5] for row in program if row[1] == "String8"}
    for name in names:
        if name in texts:
            lost = sqlite3.OperationalError(f'no such column: "{name}"')
            lost.sqlite_errorname = "SQLITE_ERROR"
            raise OperationalError(compiled, None, lost)


def open_sqlite(address: URL, *, timeout: float, booking_timeout: float) -> Engine:
    driver = SqliteDriver(Path(address.database or ""))
    return threaded_engine(
        driver, readers=READERS, bookers=1, timeout=timeout, booking_timeout=booking_timeout
    )


class SqliteDriver:
    """A connection for each thread: a few that read, one that books, one that asks."""

    def __init__(self, path: Path) -> None:
        self.speech: Speech = SqliteSpeech()
        # needs the file but no table
        self.ask = text("SELECT count(*) FROM sqlite_master")
        self._path = path
        self._engine = create_engine("sqlite://", creator=self._open, poolclass=NullPool)
        explaining(self._engine)
        self._local = threading.local()
        self._opened: set[_FileConnection] = set()

    async def dispose(self) -> None:
        for opened in self._opened:
            opened.connection.close()
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

    def read(self, work: Work[T], deadline: float) -> T:
        try:
            return self._connection(deadline, read_only=True).transact("BEGIN", work)
        except (SQLAlchemyError, UnicodeError, OverflowError) as error:
            raise self._translated(error) from error

    def book(self, work: Work[T], deadline: float) -> T:
        try:
            opened = self._connection(deadline, read_only=False)

            def in_same_file(connection: Connection) -> T:
                result = work(connection)
                if self._file() != opened.file:
                    raise BackendUnavailable(
                        f"{self._path} was replaced in the middle of a booking"
                    )
                return result

            return opened.transact("BEGIN IMMEDIATE", in_same_file)
        except (SQLAlchemyError, UnicodeError, OverflowError) as error:
            translated = self._translated(error)
            if isinstance(translated, BackendTimeout):  # undone: nothing was written
                raise BackendUnavailable(str(translated)) from error
            raise translated from error

    def _connection(self, deadline: float, *, read_only: bool) -> "_FileConnection":
        """The thread's connection, by its deadline."""
        opened: _FileConnection | None = getattr(self._local, "opened", None)
        file = self._file()
        if opened is not None and opened.file != file:  # another one was put in its place
            self._give_up(opened)
            opened = None
        if opened is None:
            opened = _FileConnection(self._engine.connect(), file, read_only=read_only)
            self._local.opened = opened
            self._opened.add(opened)
        opened.until(deadline)
        return opened

    def _file(self) -> tuple[int, int]:
        """Which file now has the database's name."""
        try:
            found = self._path.stat()
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            why = "does not exist; is backend.url the right file?" if gone else "can't be reached"
            raise BackendUnavailable(f"{self._path} {why}") from error
        return found.st_dev, found.st_ino

    def _give_up(self, opened: "_FileConnection") -> None:
        self._opened.discard(opened)
        opened.connection.invalidate()
        opened.connection.close()
        self._local.opened = None

    def _translated(self, error: SQLAlchemyError | UnicodeError | OverflowError) -> AdapterError:
        """What the driver said, as an adapter's error; the thread's connection is given up.

        The driver's own words stay out: they may quote a value.
        """
        opened: _FileConnection | None = getattr(self._local, "opened", None)
        unsure = opened is not None and opened.committing
        if opened is not None:
            self._give_up(opened)
        name = error_name(error)
        if name == "SQLITE_INTERRUPT":
            return BackendTimeout("the statement took too long and was stopped")
        down = next((said for start, said in DOWN.items() if name.startswith(start)), None)
        if down is None:
            return BackendNonsense(f"{self._path}: a statement failed ({name})")
        text = f"{self._path} {down} ({name})"
        if unsure and not name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return OutcomeUnknown(text)
        return BackendUnavailable(text)


class _FileConnection:
    """One thread's connection, its deadline, and whether it is in the middle of a commit."""

    def __init__(self, connection: Connection, file: tuple[int, int], *, read_only: bool) -> None:
        self.connection = connection
        self.file = file
        self.committing = False
        self._deadline = 0.0
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
        self._deadline = deadline
        # in tenths of a second: most calls have all of their time left, and ask for nothing new
        left = max(0, ceil((deadline - time.monotonic()) * 10))
        if left != self._left:
            # nosemgrep: sql-is-never-put-together-as-text - a number of ours
            self._raw.execute(f"PRAGMA busy_timeout = {left * 100}")
            self._left = left

    def transact(self, begin: str, work: Work[T]) -> T:
        self.connection.exec_driver_sql(begin)
        try:
            result = work(self.connection)
        except BaseException:
            if self._raw.in_transaction:
                self._raw.rollback()
            raise
        self.committing = True
        self.connection.exec_driver_sql("COMMIT")
        self.committing = False
        return result

    def _overdue(self) -> bool:
        return time.monotonic() >= self._deadline


def _number(raw: bytes | None) -> float | None:
    """The number that a text is; None where it is none."""
    try:
        found = decimal(raw)
    except Unreadable:
        return None
    return None if found is None else float(found)
