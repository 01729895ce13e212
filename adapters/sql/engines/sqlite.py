"""SQLite: the practice's database is a file, used in threads, with true deadlines.

Reads run in a snapshot on connections that cannot write; bookings run one at a time in a
transaction that holds the write lock from its start. The file's owner and mode are its grants.
"""

import re
import sqlite3
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Executable, LargeBinary, case, cast, create_engine, func, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from adapters.base import BackendUnavailable
from adapters.sql.engines import base
from adapters.sql.engines.base import Criterion, ErrorKind, Expression, Plan, Speech, quoted
from adapters.sql.engines.connection import OpenConnection
from adapters.sql.engines.threads import ThreadLane
from adapters.values.convert import fold, number_or_none

OPCODES_BETWEEN_LOOKS = 5_000
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
KINDS = {
    "SQLITE_INTERRUPT": ErrorKind.TIMEOUT,
    "SQLITE_CONSTRAINT_UNIQUE": ErrorKind.DUPLICATE,
    "SQLITE_CONSTRAINT_PRIMARYKEY": ErrorKind.DUPLICATE,
    "SQLITE_CONSTRAINT": ErrorKind.REFUSED,
    "SQLITE_MISMATCH": ErrorKind.UNFIT,
    "SQLITE_ERROR": ErrorKind.STATEMENT,
    **dict.fromkeys(DOWN, ErrorKind.DOWN),
    **dict.fromkeys(("SQLITE_BUSY", "SQLITE_LOCKED"), ErrorKind.BUSY),
}
# In a connection's `info`: which file it has open.
_FILE = "clinic_file"
# How the driver's complaint about a text begins.
_NO_UTF8 = "Could not decode to UTF-8"
_LITERAL = re.compile("'(?:[^']|'')*'").sub
_QUOTED = re.compile('"([^"]+)"').findall
_STEP = re.compile(
    "(SCAN|SEARCH) (.+?)(?: USING (?:(?:AUTOMATIC )?(?:PARTIAL )?(?:COVERING )?INDEX"
    " ?([^( ]*)|(INTEGER PRIMARY KEY)).*)?"
).fullmatch


class SqliteSpeech(Speech):
    """SQLite's spelling; clinic_fold and clinic_number come with the engine's connections."""

    grants = ()
    spelling = base.Spelling(
        padded="printf('%0{1}d', {0})",
        length="printf('%02d:%02d{}', :minutes / 60, :minutes % 60)",
    )
    kinds, binary = KINDS, "BINARY"
    now = text("SELECT datetime('now', 'localtime'), datetime('now'), ''")
    loose_types = True
    times_as_text = True
    columns = text(
        "SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p"
        " WHERE m.type IN ('table', 'view')"
    )
    unknown_table = r"""no such table: ["`\[]?([\w.]+)"""
    unknown_column = r"""(?:no such column: ["`\[]?|has no column named )([\w.]+)"""
    # An INTEGER PRIMARY KEY is its own number of the row: of all keys it alone has no index.
    numbered = text(
        "SELECT m.name, k.name FROM sqlite_master m JOIN pragma_table_info(m.name) k ON k.pk = 1"
        " WHERE m.type = 'table' AND NOT EXISTS"
        " (SELECT 1 FROM pragma_index_list(m.name) i WHERE i.origin = 'pk')"
    )

    def searchable(self, expression: Expression) -> Expression:
        # as bytes: a text in another encoding must not fail the search for all others
        return func.clinic_fold(cast(expression, LargeBinary))

    def trimmed(self, expression: Expression) -> Expression:
        return func.trim(expression, base.BLANKS)

    def number(self, expression: Expression) -> Expression:
        is_number = func.typeof(expression).in_((quoted("integer"), quoted("real")))
        read = func.clinic_number(cast(expression, LargeBinary))
        return case((is_number, expression), else_=read)

    def undated(self, expression: Expression) -> Criterion:
        return expression.op("NOT GLOB", is_comparison=True)(DATED)

    def explain(self, connection: Connection, statement: Executable, bound: dict[str, Any]) -> Plan:
        """Runs both kinds of EXPLAIN: one shows the plan, the other a name taken for a text."""
        _refuse_names_as_texts(connection, statement, bound)
        plan = base.explain(connection, "EXPLAIN QUERY PLAN", statement, bound)
        steps = [_STEP(row[3]) for row in plan if "CONSTANT ROW" not in row[3]]
        return tuple(
            base.TableAccess(step[2], step[1] == "SCAN", step[3] or step[4] or "")
            for step in steps
            if step is not None
        )

    def code(self, error: DBAPIError) -> str:
        return getattr(error.orig, "sqlite_errorname", "") or type(error.orig).__name__

    def lock(self, connection: Connection, name: str) -> None:
        """Does nothing, as a booking holds the write lock of the whole file."""


def _refuse_names_as_texts(connection: Connection, statement: Executable, parameters: Any) -> None:
    """Raises for an unknown name in quotes, which SQLite would take for a text."""
    compiled = str(statement.compile(connection))  # type: ignore[attr-defined]
    names = _QUOTED(_LITERAL("", compiled))
    if not names:
        return
    program = base.explain(connection, "EXPLAIN", statement, parameters)
    texts = {row[5] for row in program if row[1] == "String8"}
    for name in names:
        if name in texts:
            lost = sqlite3.OperationalError(f'no such column: "{name}"')
            lost.sqlite_errorname = "SQLITE_ERROR"
            raise OperationalError(compiled, None, lost)


class SqliteLane(ThreadLane):
    """A connection for each thread: a few that read, one that books, one that asks."""

    speech = SqliteSpeech()
    errors = (sqlite3.Error,)
    begin_booking = "BEGIN IMMEDIATE"
    # the transaction stays open where a reader is in its way
    never_committed = ThreadLane.never_committed | {ErrorKind.BUSY}
    # it needs the file but no table
    question = "SELECT count(*) FROM sqlite_master"
    books_singly = in_process = reads_alone = True

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._path = Path(self.address.database or "")
        # mode=rw: a path that is wrong must not make an empty database
        opened = partial(
            sqlite3.connect,
            f"file:{quote(str(self._path))}?mode=rw",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        self._engine = create_engine("sqlite://", creator=opened, poolclass=NullPool)

    def connect(self) -> Connection:
        file = self._file()
        connection = self._engine.connect()
        info = connection.info
        info[_FILE] = file
        raw: Any = connection.connection.driver_connection
        raw.text_factory = base.as_text
        raw.create_function("clinic_fold", 1, fold, deterministic=True)
        raw.create_function("clinic_number", 1, _number, deterministic=True)
        raw.set_progress_handler(
            lambda: time.monotonic() >= info[base.UNTIL], OPCODES_BETWEEN_LOOKS
        )
        # nosemgrep: sql-is-never-put-together-as-text - a number of ours
        raw.execute(f"PRAGMA query_only = {int(not self.booking)}")
        return connection

    def fetch(
        self, opened: OpenConnection, text: str, bound: Sequence[Any] | None
    ) -> Sequence[Any]:
        """Returns the rows. Where a text is no UTF-8 they are read again, with bytes for it."""
        raw, bound = opened.raw, bound or ()
        raw.text_factory = str
        try:
            return raw.execute(text, bound).fetchall()  # type: ignore[no-any-return]
        except sqlite3.OperationalError as error:
            if not str(error).startswith(_NO_UTF8):
                raise
        finally:
            raw.text_factory = base.as_text
        return raw.execute(text, bound).fetchall()  # type: ignore[no-any-return]

    def is_current(self, opened: OpenConnection) -> bool:
        """Returns whether no other file was put in the place of its own."""
        return bool(opened.info[_FILE] == self._file())

    async def limit(self, opened: OpenConnection, tenths: int) -> None:
        """Sets how long a statement waits for a lock; the progress handler stops a slow one."""
        # nosemgrep: sql-is-never-put-together-as-text - a number of ours
        await opened.run(f"PRAGMA busy_timeout = {tenths * 100}")

    def before_commit(self, opened: OpenConnection) -> None:
        super().before_commit(opened)
        if not self.is_current(opened):
            raise BackendUnavailable(f"{self._path} was replaced in the middle of a booking")

    def explained(self, kind: ErrorKind, code: str, error: Exception) -> str:
        why = next((rest for start, rest in DOWN.items() if code.startswith(start)), None)
        rest = f" {why}" if why else f": {kind}"
        return f"{self._path}{rest} ({code})"

    def _file(self) -> tuple[int, int]:
        try:
            status = self._path.stat()
        except OSError as error:
            gone = isinstance(error, FileNotFoundError)
            why = "does not exist; is backend.url the right file?" if gone else "can't be reached"
            raise BackendUnavailable(f"{self._path} {why}") from error
        return status.st_dev, status.st_ino


def _number(raw: bytes | None) -> float | None:
    number = number_or_none(raw)
    return None if number is None else float(number)
