"""The shape of an engine, and how a driver's error becomes an adapter's.

An Engine runs work on the practice's database; its Speech says how that database spells what the
adapter needs. Work is a plain function of a SQLAlchemy connection.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, Protocol, TypeVar

import sqlalchemy
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    CursorResult,
    Executable,
    TextClause,
    UpdateBase,
    bindparam,
    event,
    literal_column,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import NullType

from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    OutcomeUnknown,
)

T = TypeVar("T")
Work = Callable[[Connection], T]
Expression = ColumnElement[Any]
Criterion = ColumnElement[bool]

READERS = 4
BOOKERS = 4
# Seconds in which it should be told why the practice system does not answer.
PING_PATIENCE = 1.5
# Seconds for all statements of a mapping: over a slow line each takes its time.
INSPECTION_PATIENCE = 30.0
MOST_WAITING = 256
# What stands for a blank in old tables, beside the blank.
BLANKS = " \t\n\v\f\r"
# A number without blanks that needs no guess: one mark at the most, which parts off the fraction.
PLAIN_NUMBER = "^[-+]?[0-9]{1,15}([.,][0-9]{0,15})?$"
# The beginning of a text with a date.
DATED = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_NOTHING = object()
_WHOLE = re.compile("-?[0-9]{1,18}").fullmatch
# In a connection's `info`: the time.monotonic() by which the work is to end.
UNTIL = "clinic_until"
# There too: whether the work has written what no ROLLBACK undoes, and has not taken it back.
HALF = "clinic_half"
# An execution option: the words to put before the statement.
_EXPLAIN = "clinic_explain"


class ErrorKind(StrEnum):
    """What a database's complaint is about."""

    DOWN = "down"  # it cannot be reached, or gave up the connection
    TIMEOUT = "timeout"  # the statement took too long and was stopped
    BUSY = "busy"  # a lock was not to be had in time
    AGAIN = "again"  # a deadlock or the like: undone, and worth another try
    DUPLICATE = "duplicate"  # a value or an interval that may stand there once only
    REFUSED = "refused"  # another rule of the tables, a trigger's included
    DENIED = "denied"  # a missing grant
    STATEMENT = "statement"  # an unknown name, or bad grammar
    OTHER = "other"


SAID = {
    ErrorKind.DOWN: "the database can't be reached or gave up the connection",
    ErrorKind.TIMEOUT: "the statement took too long and was stopped",
    ErrorKind.BUSY: "the database kept something locked for too long",
    ErrorKind.AGAIN: "the statement collided with others",
    ErrorKind.DUPLICATE: "the database has such a row already",
    ErrorKind.REFUSED: "a rule of the database refused a row",
    ErrorKind.DENIED: "the account may not do that",
}
_UNDONE = (ErrorKind.DOWN, ErrorKind.TIMEOUT, ErrorKind.BUSY, ErrorKind.AGAIN)
# What an error of a COMMIT proves: that there is no booking.
_NEVER_COMMITTED = (ErrorKind.AGAIN, ErrorKind.DUPLICATE, ErrorKind.REFUSED)


@dataclass(frozen=True, slots=True)
class TableAccess:
    """How a plan comes at a table: `rows` is an estimate, 0 where there is none."""

    table: str
    scans: bool
    index: str = ""
    rows: int = 0


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The server's present, its wall clock's and UTC: `YYYY-MM-DD HH:MM:SS`; its zone's name.

    A database that has this machine's zone names none: "".
    """

    local: str
    utc: str
    zone: str


class Speech(Protocol):
    """How one kind of database spells what the adapter needs.

    `loose_types`: whether a number and a text of its digits are two values, whatever the column.
    `times_as_text`: whether it has no times of its own. `bits_are_letters`: whether the number in
    a BIT column becomes the letter of that number, as a text. `first_day`: what no day is before.
    """

    loose_types: ClassVar[bool] = False
    times_as_text: ClassVar[bool] = False
    bits_are_letters: ClassVar[bool] = False
    first_day: ClassVar[str] = "0001-01-01"

    def searchable(self, expression: Expression) -> Expression:
        """The text as `fold` has it; never NULL."""

    def trimmed(self, expression: Expression) -> Expression:
        """As a text, without the BLANKS at both ends."""

    def exact(self, text: Expression) -> Expression:
        """The text as it is compared and sorted letter by letter, by case and accents too."""

    def number(self, expression: Expression) -> Expression:
        """The number that it is, or that its text plainly is (`1 234,50`); NULL of all else."""

    def undated(self, expression: Expression) -> Criterion:
        """Whether the text does not begin with YYYY-MM-DD."""

    def explain(
        self, connection: Connection, statement: Executable, parameters: dict[str, Any]
    ) -> tuple[TableAccess, ...]:
        """The plan of a statement that is not run.

        DBAPIError when the database does not know something in it; the transaction goes on.
        """

    def kind(self, error: DBAPIError) -> ErrorKind: ...

    def code(self, error: DBAPIError) -> str:
        """The database's own code of what went wrong; it quotes no value."""

    def complaint(self, error: DBAPIError) -> str | None:
        """The database's sentence about an explained statement; None about anything else."""

    def lock(self, connection: Connection, name: str) -> None:
        """Inside a booking: hold the name until its end, alone among all who ask for it.

        BackendUnavailable when others hold it for too long.
        """

    def clock(self, connection: Connection) -> ServerClock: ...

    def rights(self, connection: Connection) -> Sequence[str]:
        """What the account may do beyond its needs, as sentences."""
        return []

    def transactional(self, connection: Connection, tables: Sequence[str]) -> Sequence[str]:
        """Those of the tables that have no transactions."""
        return []


class Lane(Protocol):
    """Does one kind of work, so many pieces at a time, with a bounded queue of who waits."""

    async def run(self, work: Work[T]) -> T: ...

    async def aclose(self) -> None:
        """Wait for what runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Runs work on the practice's database; every verb raises AdapterErrors.

    A deadline counts from the moment of the call. What waits too long for its turn, and what finds
    too much waiting, is BackendUnavailable: nothing was asked of the database. Searches look at
    every row: they wait for one another, and no other read for them. A ping has a lane of its own,
    as behind many slow reads it would say that nothing answers.
    """

    speech: Speech
    reader: Lane
    searcher: Lane
    inspector: Lane
    booker: Lane
    pinger: Lane
    ask: TextClause
    """What a ping asks."""
    dispose: Callable[[], Awaitable[None]]

    async def read(self, work: Work[T]) -> T:
        """The work's result, in one snapshot that cannot write."""
        return await self.reader.run(work)

    async def inspect(self, work: Work[T]) -> T:
        """The same for work of many statements that no call waits for."""
        return await self.inspector.run(work)

    async def search(self, work: Work[T]) -> T:
        """The same for work that looks at every row of a table."""
        return await self.searcher.run(work)

    async def book(self, work: Work[T]) -> T:
        """The same, writing: committed when the work returns, else undone.

        The work may be called again when the database undid it for a collision.
        """
        return await self.booker.run(work)

    async def ping(self) -> None:
        """Whether the database answers."""
        await self.pinger.run(lambda connection: connection.execute(self.ask).scalar())

    async def aclose(self) -> None:
        """Wait for what runs, and let go of every connection."""
        for lane in (self.reader, self.searcher, self.inspector, self.pinger, self.booker):
            await lane.aclose()
        await self.dispose()


def given(
    name: str | None, value: Any = _NOTHING, *, expanding: bool = False
) -> BindParameter[Any]:
    """A parameter whose type is the database's to find, from what it is compared with.

    So one name can be compared with one type only.
    """
    if value is _NOTHING:
        return bindparam(name, type_=NullType(), expanding=expanding)
    return bindparam(name, value, type_=NullType(), expanding=expanding)


def quoted(value: str, prefix: str = "") -> Expression:
    """A constant of ours within a statement."""
    doubled = value.replace("'", "''")
    # nosemgrep: sql-is-never-put-together-as-text - constants of ours, quoted
    return literal_column(f"{prefix}'{doubled}'")


def as_text(raw: bytes) -> str | bytes:
    """A text of the server's; one in another encoding stays bytes, for a converter."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def plain_number(shown: str | bytes) -> int | Decimal:
    """A decimal: an int where it is whole and has no places, else with the places it has."""
    text = shown.decode() if isinstance(shown, bytes) else shown
    return int(text) if _WHOLE(text) else Decimal(text)


def failed(
    kind: ErrorKind, code: str, *, booking: bool, committing: bool, why: str | None = None
) -> AdapterError:
    """The adapter's error for a database's; never in the driver's words: they may quote values.

    `why` is what is known of a database that can't be reached, with the code behind it.
    """
    if committing and kind not in _NEVER_COMMITTED:
        return OutcomeUnknown(f"the booking's end is not known: {SAID.get(kind, kind)} ({code})")
    if kind is ErrorKind.TIMEOUT and not booking:
        return BackendTimeout(SAID[kind])
    if kind is ErrorKind.DOWN and why:
        return BackendUnavailable(f"the database can't be reached: {why}; see backend.url")
    if kind in _UNDONE:
        return BackendUnavailable(f"{SAID[kind]} ({code})")
    return BackendNonsense(f"{SAID.get(kind, 'a statement failed')} ({code})")


def one_line(sentence: object) -> str:
    return " ".join(str(sentence).split())


def explaining(engine: sqlalchemy.Engine) -> None:
    """From now on the engine's connections can explain."""
    event.listen(engine, "before_cursor_execute", _prefixed, retval=True)


def explain(
    connection: Connection, words: str, statement: Executable, parameters: dict[str, Any]
) -> CursorResult[Any, *tuple[Any, ...]]:
    """What the database answers to the statement with words such as EXPLAIN before it."""
    if not isinstance(statement, UpdateBase):
        return connection.execute(statement, parameters, execution_options={_EXPLAIN: words})
    # by hand: its result would be taken for that of a write
    compiled = statement.compile(connection, column_keys=list(parameters) or None)
    values = compiled.construct_params(parameters)
    names = compiled.positiontup if compiled.positional else None
    bound = values if names is None else tuple(values[name] for name in names)
    return connection.exec_driver_sql(f"{words} {compiled}", bound)


def _prefixed(*call: Any) -> tuple[str, Any]:
    _, _, statement, parameters, context, _ = call
    words = context is not None and context.execution_options.get(_EXPLAIN)
    return (f"{words} {statement}" if words else statement), parameters
