"""Firebird 3 and later, through its own blocking driver: a few threads, each with a connection.

The smallest rights that an account needs, in the clinic's database:

    GRANT SELECT ON each_table_that_the_mapping_reads TO USER gateway;
    GRANT INSERT ON each_table_that_a_booking_inserts_into TO USER gateway;
    GRANT UPDATE ON each_table_that_a_booking_updates TO USER gateway;
    GRANT UPDATE ON the_table_of_the_vets TO USER gateway;
    GRANT USAGE ON GENERATOR each_sequence_that_the_mapping_names TO USER gateway;

Firebird has no lock by name: a booking locks the row of its vet or schedule, which is an update to
it that changes nothing. A statement is stopped by a request on its connection (cancel).
"""

import codecs
import ctypes
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from struct import error as StructError  # noqa: N812 - it is a class
from typing import Any

import sqlalchemy as sa
from firebird.driver import (
    TPB,
    DataError,
    Error,
    Isolation,
    TraAccessMode,
    connect,
    driver_config,
)
from firebird.driver.core import CHARSET_MAP
from firebird.driver.types import CancelType, SQLDataType
from sqlalchemy import Connection, Executable, case, event, func, literal_column, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool
from sqlalchemy_firebird.types import FBDOUBLE_PRECISION, FBVARCHAR

from adapters.base import BackendUnavailable
from adapters.sql.engines import base
from adapters.sql.engines.base import Criterion, ErrorKind, Expression, Plan, Speech, quoted
from adapters.sql.engines.connection import OpenConnection
from adapters.sql.engines.threads import ThreadLane
from adapters.values.convert import LONGEST_FOLDED, WHOLE_LETTERS

# It takes letters with and without their accents, and in both cases, for the same.
COLLATION = "UNICODE_CI_AI"
# Letters of a text that a condition looks at.
LONGEST = 2_000
# Seconds for a connection to be made.
CONNECTING = 10
# By the codes of the server, of which an error has several, then by its SQLSTATE.
_NUMBERS = {
    ErrorKind.DOWN: (
        *(335544344, 335544375, 335544421, 335544472, 335544528, 335544648, 335544721, 335544722),
        *(335544726, 335544727, 335544741, 335544856, 335545106),
    ),
    ErrorKind.TIMEOUT: (335544794, 335545161),
    ErrorKind.BUSY: (335544510, 335544345),
    ErrorKind.DENIED: (335544352,),
    ErrorKind.DUPLICATE: (335544665, 335544349),
    ErrorKind.AGAIN: (335544336, 335544451, 335544878),
    ErrorKind.REFUSED: (335544347, 335544466, 335544517, 335544558, 335544838, 335544848),
    # a transaction that only reads was asked to write
    ErrorKind.OTHER: (335544361,),
}
KINDS = {number: kind for kind, numbers in _NUMBERS.items() for number in numbers}
STATES = {
    "08": ErrorKind.DOWN,
    "40001": ErrorKind.AGAIN,
    "23": ErrorKind.REFUSED,
    **dict.fromkeys(("22003", "22007", "22008", "22018", "22021"), ErrorKind.UNFIT),
    "22001": ErrorKind.LONG,
    **dict.fromkeys(("07", "22", "39", "42", "HY004"), ErrorKind.STATEMENT),
}
# What a connection cannot be used after.
LOST = frozenset({335544721, 335544726, 335544727, 335544741, 335544856, 335544528, 335544648})
BEGIN_READ, BEGIN_BOOKING = "BEGIN READING", "BEGIN BOOKING"
_NOT_THERE, _MALFORMED = 335544344, 335544849
_HIDDEN = re.compile("Dynamic SQL Error|SQL error code|At line|At block|invalid request BLR").match
_ACCESS = re.compile(r'Table "([^"]+)"(?: as "[^"]+")? (Full Scan|Access)|Index "([^"]+)"').finditer
_MOMENT = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:").match
_BYTES = re.compile("[\udc80-\udcff]").search
# The type and the size of a FLOAT, in the description of a column.
_SHORT = (float, 4)
_TIMES = (datetime, date, time)
# Bytes that hold more than a handler of a signal, as the system describes one.
_ROOM_FOR_A_HANDLER = 512
# What the driver raises for a value that does not fit its column.
_UNFIT = (TypeError, AttributeError, ValueError, OverflowError, StructError)

_ONE: Expression = literal_column("1")
_CLOCK = text("SELECT SUBSTRING(CURRENT_TIMESTAMP FROM 1 FOR 19) FROM RDB$DATABASE")
_ROLE = text("SELECT TRIM(CURRENT_USER), TRIM(CURRENT_ROLE), TRIM(MON$OWNER) FROM MON$DATABASE")
_TABLES = text(
    "SELECT TRIM(r.RDB$RELATION_NAME), IIF(r.RDB$OWNER_NAME = CURRENT_USER, 1, 0)"
    " FROM RDB$RELATIONS r WHERE COALESCE(r.RDB$SYSTEM_FLAG, 0) = 0"
    " AND (r.RDB$OWNER_NAME = CURRENT_USER OR EXISTS (SELECT 1 FROM RDB$USER_PRIVILEGES p"
    " WHERE p.RDB$RELATION_NAME = r.RDB$RELATION_NAME AND p.RDB$PRIVILEGE = 'D'"
    " AND p.RDB$USER IN (CURRENT_USER, CURRENT_ROLE, 'PUBLIC'))) ORDER BY 1"
)
_WRITABLE = text(
    "SELECT DISTINCT IIF(p.RDB$PRIVILEGE = 'I', 'INSERT', 'UPDATE'), TRIM(r.RDB$RELATION_NAME)"
    " FROM RDB$USER_PRIVILEGES p JOIN RDB$RELATIONS r ON r.RDB$RELATION_NAME = p.RDB$RELATION_NAME"
    " WHERE COALESCE(r.RDB$SYSTEM_FLAG, 0) = 0 AND r.RDB$OWNER_NAME <> CURRENT_USER"
    " AND p.RDB$OBJECT_TYPE = 0 AND p.RDB$PRIVILEGE IN ('I', 'U')"
    " AND p.RDB$USER IN (CURRENT_USER, CURRENT_ROLE, 'PUBLIC') ORDER BY 1, 2"
)
_USAGE = text(
    "SELECT COUNT(*) FROM RDB$GENERATORS g WHERE g.RDB$GENERATOR_NAME = :name"
    " AND (g.RDB$OWNER_NAME = CURRENT_USER OR CURRENT_USER = 'SYSDBA'"
    " OR EXISTS (SELECT 1 FROM RDB$USER_PRIVILEGES p"
    " WHERE p.RDB$RELATION_NAME = g.RDB$GENERATOR_NAME AND p.RDB$PRIVILEGE = 'G'"
    " AND p.RDB$USER IN (CURRENT_USER, CURRENT_ROLE, 'PUBLIC')))"
)
# Columns that are identities, and keys of tables in which a trigger draws a number for each row.
_NUMBERED = text(
    "SELECT LOWER(TRIM(f.RDB$RELATION_NAME)), LOWER(TRIM(f.RDB$FIELD_NAME))"
    " FROM RDB$RELATION_FIELDS f WHERE f.RDB$IDENTITY_TYPE IS NOT NULL UNION"
    " SELECT LOWER(TRIM(c.RDB$RELATION_NAME)), LOWER(TRIM(s.RDB$FIELD_NAME))"
    " FROM RDB$RELATION_CONSTRAINTS c"
    " JOIN RDB$INDEX_SEGMENTS s ON s.RDB$INDEX_NAME = c.RDB$INDEX_NAME"
    " JOIN RDB$TRIGGERS t ON t.RDB$RELATION_NAME = c.RDB$RELATION_NAME"
    " WHERE c.RDB$CONSTRAINT_TYPE = 'PRIMARY KEY' AND t.RDB$TRIGGER_TYPE = 1"
    " AND COALESCE(t.RDB$TRIGGER_INACTIVE, 0) = 0 AND COALESCE(t.RDB$SYSTEM_FLAG, 0) = 0"
    " AND (t.RDB$TRIGGER_SOURCE CONTAINING 'GEN_ID' OR"
    " t.RDB$TRIGGER_SOURCE CONTAINING 'NEXT VALUE') AND (SELECT COUNT(*)"
    " FROM RDB$INDEX_SEGMENTS o WHERE o.RDB$INDEX_NAME = c.RDB$INDEX_NAME) = 1"
)
MOST_NAMED = 5


class FirebirdSpeech(Speech):
    """Firebird's spelling, for a connection of one character set."""

    binary = "UCS_BASIC"
    kinds = {}  # noqa: RUF012 - an error has several codes
    now = _CLOCK
    misfits = frozenset({"22001", "22003", "22018"})
    locks_names, locks_rows = False, True
    spelling = base.Spelling(
        last_number="SELECT GEN_ID({0}, 0), GEN_ID({0}, 0) FROM RDB$DATABASE",
    )
    columns = text(
        "SELECT TRIM(f.RDB$RELATION_NAME), TRIM(f.RDB$FIELD_NAME) FROM RDB$RELATION_FIELDS f"
        " WHERE COALESCE(f.RDB$SYSTEM_FLAG, 0) = 0"
    )
    unknown_table = "Table unknown: (\\S+)"
    unknown_column = "Column unknown: (\\S+)"
    numbered = _NUMBERED
    folds_names, first_row = True, "FIRST 1"

    def __init__(self, charset: str) -> None:
        self._charset = charset
        codec = CHARSET_MAP.get(charset) or "ascii"
        self._has = partial(_can_write, codec)

    def _text(self, expression: Expression, longest: int = LONGEST) -> Expression:
        """Returns the beginning as a text in UTF-8; a column without letters has the driver's."""
        kept: Expression = func.substring(expression, _ONE, literal_column(str(longest)))
        for charset in dict.fromkeys((self._charset, "UTF8")):
            kept = sa.cast(kept, FBVARCHAR(length=longest, charset=charset))
        return sa.type_coerce(kept, sa.types.NullType())

    def searchable(self, expression: Expression) -> Expression:
        plain = func.lower(func.coalesce(self._text(expression, LONGEST_FOLDED), quoted("")))
        for letter, several in WHOLE_LETTERS.items():
            if self._has(letter):
                plain = func.replace(plain, quoted(letter), quoted(several))
        for mark in filter(self._has, base.PUNCTUATION + base.CONTROLS):
            plain = func.replace(plain, quoted(mark), quoted(" "))
        # a text of ours in it has the connection's character set, whose collations are others
        wide = FBVARCHAR(length=4 * LONGEST_FOLDED, charset="UTF8")
        whole = sa.cast(quoted(" ").op("||")(plain), wide)
        return sa.type_coerce(whole, sa.types.NullType()).collate(COLLATION)

    def trimmed(self, expression: Expression) -> Expression:
        """Cuts a text where its copy, with one blank for each of the BLANKS, has other signs."""
        kept = self._text(expression)
        bare = kept
        for blank in base.BLANKS[1:]:
            bare = func.replace(bare, quoted(blank), quoted(" "))
        left = func.char_length(func.trim(literal_column("LEADING").op("FROM")(bare)))
        begin = func.char_length(bare) - left + _ONE
        return func.substring(kept, begin, func.char_length(func.trim(bare)))

    def number(self, expression: Expression) -> Expression:
        bare = self._text(expression, 40)
        for mark in (*base.BLANKS, "'"):
            bare = func.replace(bare, quoted(mark), quoted(""))
        # nosemgrep: sql-is-never-put-together-as-text - constants of ours
        pattern: Expression = literal_column(r"'[\-\+]?[0-9]{1,15}([.,][0-9]{0,15})?' ESCAPE '\'")
        plain = bare.op("SIMILAR TO", is_comparison=True)(pattern)
        pointed = func.replace(bare, quoted(","), quoted("."))
        return case((plain, sa.cast(pointed, FBDOUBLE_PRECISION())))

    def constant(self, number: Decimal) -> str:
        # a literal of more than 18 digits is none
        return f"{number:E}" if abs(number) >= 1 else f"CAST('{number:f}' AS DOUBLE PRECISION)"

    def undated(self, expression: Expression) -> Criterion:
        pattern: Expression = literal_column(r"'[0-9]{4}\-[0-9]{2}\-[0-9]{2}%' ESCAPE '\'")
        return self._text(expression, 40).op("NOT SIMILAR TO", is_comparison=True)(pattern)

    def explain(self, connection: Connection, statement: Executable, bound: dict[str, Any]) -> Plan:
        """Prepares the statement, and reads the plan that it has then."""
        compiled = statement.compile(connection, column_keys=list(bound) or None)  # type: ignore[attr-defined]
        whole = compiled.construct_expanded_state(bound)
        raw: Any = connection.connection.driver_connection
        try:
            with closing(raw.cursor()) as cursor, cursor.prepare(whole.statement) as prepared:
                return tuple(_accesses(prepared.detailed_plan or ""))
        except Error as error:
            raise DBAPIError(None, None, error, connection_invalidated=is_lost(error)) from error

    def kind(self, error: DBAPIError) -> ErrorKind:
        codes = frozenset(_codes(error.orig))
        for number, kind in KINDS.items():
            if number in codes:
                return kind
        state = self.code(error)
        fitting = filter(state.startswith, STATES)
        return STATES.get(max(fitting, key=len, default=""), ErrorKind.OTHER)

    def code(self, error: DBAPIError) -> str:
        return str(getattr(error.orig, "sqlstate", "") or type(error.orig).__name__)

    def sentence(self, error: DBAPIError) -> object:
        lines = (line.removeprefix("-").strip() for line in str(error.orig).splitlines())
        return ": ".join(line for line in lines if line and not _HIDDEN(line))

    def lock(self, connection: Connection, name: str) -> None:
        """Does nothing, as a booking locks rows."""

    def row_lock(self, rows: sa.Select[Any]) -> sa.Select[Any]:
        return rows.with_for_update(nowait=True)  # WITH LOCK, in this dialect

    def clock(self, connection: Connection) -> base.ServerClock:
        """Returns the server's wall clock alone, as Firebird 3 has no UTC."""
        return base.ServerClock(str(connection.scalar(_CLOCK)), "", "its machine's")

    def rights(self, connection: Connection) -> Sequence[str]:
        user, role, owner = connection.execute(_ROLE).one()
        if user == "SYSDBA":
            return ["the account is SYSDBA, who may do everything"]
        excess = ["the account owns the database"] if user == owner else []
        if role == "RDB$ADMIN":
            excess.append("the account has the role RDB$ADMIN")
        tables = connection.execute(_TABLES).all()
        for may, owned in (("owns tables and may drop them", 1), ("may delete rows", 0)):
            names = [name for name, owns in tables if owns == owned]
            rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            if names:
                excess.append(f"the account {may}: {', '.join(names[:MOST_NAMED])}{rest}")
        return excess

    def writable(self, connection: Connection) -> Sequence[tuple[str, str]]:
        return [(right, name) for right, name in connection.execute(_WRITABLE)]

    def may_use(self, connection: Connection, sequence: str) -> bool:
        bare = sequence.strip('"') if sequence.startswith('"') else sequence.upper()
        return bool(connection.scalar(_USAGE, {"name": bare}))


def _can_write(codec: str, letter: str) -> bool:
    return bool(letter.encode(codec, errors="ignore"))


def _accesses(plan: str) -> Iterator[base.TableAccess]:
    """Yields the tables of a plan, each with the first index that stands below it."""
    table, scans, index = "", False, ""
    for found in _ACCESS(plan):
        if found[3]:
            index = index or found[3]
            continue
        if table:
            yield base.TableAccess(table, scans, index)
        table, scans, index = found[1], found[2] == "Full Scan", ""
    if table:
        yield base.TableAccess(table, scans, index)


def _codes(error: BaseException | None) -> Sequence[int]:
    return getattr(error, "gds_codes", None) or ()


def is_lost(error: BaseException | None) -> bool:
    """Returns whether the error says that the connection is lost."""
    return any(code in LOST for code in _codes(error))


def _given(value: Any) -> Any:
    """Returns a parameter that any column can be compared with: a text, which the server reads.

    A truth stays a number, which a column of truths takes, and of numbers, and of texts.
    """
    if value is None or isinstance(value, str | bytes):
        return value
    return int(value) if value in (0, 1) else str(value)


def _fitting(prepared: Any, bound: Sequence[Any]) -> Iterator[Any]:
    """Yields parameters; a time beside a DATE is cut to its day, as other databases do."""
    for number, value in enumerate(map(_given, bound)):
        is_time = isinstance(value, str) and _MOMENT(value)
        kind = prepared._in_meta.get_type(number) if is_time else None  # noqa: SLF001 - as above
        yield value[:10] if kind is SQLDataType.DATE else value


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        # a text in another character set stays bytes, for a converter
        return value.encode(errors="surrogateescape") if _BYTES(value) else value
    if isinstance(value, Decimal):
        return base.plain_number(str(value)) if value == value.to_integral_value() else value
    return str(value) if isinstance(value, _TIMES) else value


def _rounded(row: tuple[Any, ...], short: Sequence[int]) -> tuple[Any, ...]:
    """Returns the row with numbers of seven digits as their column shows them."""
    values = list(row)
    for number in short:
        if values[number] is not None:
            values[number] = float(f"{values[number]:.7g}")
    return tuple(values)


def _tolerant(name: str) -> codecs.CodecInfo | None:
    """Returns a codec of the driver's that keeps the bytes which are no letters."""
    if not name.startswith("clinic_"):
        return None
    codec = name.removeprefix("clinic_")
    return codecs.CodecInfo(
        lambda letters, errors="strict": (letters.encode(codec, errors), len(letters)),
        lambda raw, _="strict": (bytes(raw).decode(codec, "surrogateescape"), len(raw)),
        name=name,
    )


codecs.register(_tolerant)
_FIRST = threading.Lock()
_HANDLED: list[bool] = []


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keeps this process's handlers of the signals that end it, at the first connection.

    The client library puts its own in their place, which end every connection at once, while calls
    still run.
    """
    if _HANDLED:
        yield
        return
    system, kept = ctypes.CDLL(None), ctypes.create_string_buffer(_ROOM_FOR_A_HANDLER)
    with _FIRST:
        before = []
        for number in (signal.SIGINT, signal.SIGTERM):
            system.sigaction(number, None, kept)
            before.append((number, kept.raw))
        try:
            yield
        finally:
            for number, handler in before:
                system.sigaction(number, handler, None)
            _HANDLED.append(True)


class FirebirdLane(ThreadLane):
    """A connection for each thread, whose statement another thread stops when it is late.

    The address may carry ?charset=WIN1252, for texts that are kept without their character set,
    and ?role=NAME.
    """

    begin_read, begin_booking = BEGIN_READ, BEGIN_BOOKING
    errors = (Error,)
    question = "SELECT 1 FROM RDB$DATABASE"

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        query = self.address.query
        self._charset = str(query.get("charset", "UTF8")).upper()
        self.speech = FirebirdSpeech(self._charset)
        codec = CHARSET_MAP.get(self._charset) or "ascii"
        if not codec.startswith("clinic_"):
            CHARSET_MAP[self._charset] = f"clinic_{codec}"
        driver_config.db_defaults.timeout.value = CONNECTING
        self._engine = sa.create_engine("firebird://", creator=self._connect, poolclass=NullPool)
        dialect: Any = self._engine.dialect
        dialect.is_disconnect = lambda error, *_: is_lost(error)
        dialect.do_terminate = dialect.do_close  # the driver has no other way
        event.listen(self._engine, "before_cursor_execute", _with_texts, retval=True)

    def _connect(self) -> Any:
        address, host = self.address, self.address.host or ""
        host = f"[{host}]" if ":" in host else host
        try:
            with _own_signals():
                return connect(
                    f"inet://{host}:{address.port or 3050}/{address.database}",
                    user=address.username,
                    password=address.password,
                    charset=self._charset,
                    role=address.query.get("role"),
                )
        except Error:
            raise
        except Exception as error:
            if "client library" not in str(error).lower():
                raise
            raise BackendUnavailable(
                "Firebird's client library is missing: apt-get install libfbclient2"
            ) from error

    def connect(self) -> Connection:
        connection = self._engine.connect()
        self._rolled_back(connection.connection.driver_connection)
        return connection

    def _rolled_back(self, raw: Any) -> None:
        if raw.is_active():
            raw.rollback()

    def fetch(
        self, opened: OpenConnection, text: str, bound: Sequence[Any] | None
    ) -> Sequence[Any]:
        raw = opened.raw
        if bound is None:
            self._control(opened, text)
            return ()
        try:
            if not raw.is_active():
                raw.begin()
            with closing(raw.cursor()) as cursor, cursor.prepare(text) as prepared:
                cursor.stream_blob_threshold = sys.maxsize
                cursor.execute(prepared, list(_fitting(prepared, bound)))
                if cursor.description is None:
                    return ()
                rows = [tuple(map(_plain, row)) for row in cursor.fetchall()]
                short = [n for n, each in enumerate(cursor.description) if each[1:4:2] == _SHORT]
                return [_rounded(row, short) for row in rows] if short else rows
        except _UNFIT as error:
            raise DataError("a value does not fit its column", sqlstate="22018") from error

    def _control(self, opened: OpenConnection, text: str) -> None:
        """Begins or ends a transaction, which the driver does by no statement."""
        raw = opened.raw
        if text == "COMMIT":
            raw.commit()
            return
        self._rolled_back(raw)
        if text == BEGIN_READ:
            raw.begin(
                TPB(isolation=Isolation.SNAPSHOT, access_mode=TraAccessMode.READ).get_buffer()
            )
        elif text == BEGIN_BOOKING:
            # What the desk commits meanwhile is seen when a booking looks again. It waits for
            # locks without a bound of the server's, which would not look for deadlocks then.
            raw.begin(TPB(isolation=Isolation.READ_COMMITTED_RECORD_VERSION).get_buffer())

    def is_lost(self, opened: OpenConnection, error: Exception) -> bool:
        return is_lost(error)

    async def limit(self, opened: OpenConnection, tenths: int) -> None:
        """Does nothing, as a late statement is stopped from outside."""

    def stop(self, opened: OpenConnection) -> None:
        opened.raw._att.cancel_operation(CancelType.RAISE)  # noqa: SLF001 - it has no other way

    def explained(self, kind: ErrorKind, code: str, error: Exception) -> str:
        codes = _codes(getattr(error, "orig", None))
        if _NOT_THERE in codes:
            return "the database can't be reached: the server has none of that name or path"
        if _MALFORMED in codes:
            return "texts are kept in another character set: add ?charset=WIN1252 or the like"
        return super().explained(kind, code, error)


def _with_texts(*call: Any) -> tuple[str, Any]:
    """Makes texts of what SQLAlchemy hands over, too."""
    _, _, statement, parameters, *_ = call
    return statement, tuple(map(_given, parameters or ()))
