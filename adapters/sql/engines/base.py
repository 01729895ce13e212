"""What every engine offers, and how a driver's trouble becomes an adapter's error.

An Engine runs work on the practice's database; its Speech says how that database spells what the
adapter needs. Work is a plain function of a SQLAlchemy connection.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from sqlalchemy import BindParameter, ColumnElement, Connection, Executable, bindparam
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
_NOTHING = object()
# In a connection's `info`: the time.monotonic() by which the work is to end.
UNTIL = "clinic_until"
# There too: whether the work has written what no ROLLBACK undoes, and has not taken it back.
HALF = "clinic_half"


class Kind(StrEnum):
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
    Kind.DOWN: "the database can't be reached or gave up the connection",
    Kind.TIMEOUT: "the statement took too long and was stopped",
    Kind.BUSY: "the database kept something locked for too long",
    Kind.AGAIN: "the statement collided with others",
    Kind.DUPLICATE: "the database has such a row already",
    Kind.REFUSED: "a rule of the database refused a row",
    Kind.DENIED: "the account may not do that",
}
UNDONE = (Kind.DOWN, Kind.TIMEOUT, Kind.BUSY, Kind.AGAIN)
# What an error of a COMMIT proves: that there is no booking.
NEVER_COMMITTED = (Kind.AGAIN, Kind.DUPLICATE, Kind.REFUSED)


@dataclass(frozen=True, slots=True)
class Step:
    """How a table is come at: `rows` is an estimate, 0 where there is none."""

    table: str
    scans: bool
    index: str = ""
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Clock:
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

    @property
    def loose_types(self) -> bool: ...

    @property
    def times_as_text(self) -> bool: ...

    @property
    def bits_are_letters(self) -> bool: ...

    @property
    def first_day(self) -> str: ...

    def searchable(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        """The text as `fold` has it; never NULL."""

    def trimmed(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        """As a text, without the BLANKS at both ends."""

    def exact(self, text: ColumnElement[Any]) -> ColumnElement[Any]:
        """The text as it is compared and sorted letter by letter, by case and accents too."""

    def number(self, expression: ColumnElement[Any]) -> ColumnElement[Any]:
        """The number that it is, or that its text plainly is (`1 234,50`); NULL of all else."""

    def undated(self, expression: ColumnElement[Any]) -> ColumnElement[bool]:
        """Whether the text does not begin with YYYY-MM-DD."""

    def explain(
        self, connection: Connection, statement: Executable, parameters: dict[str, Any]
    ) -> tuple[Step, ...]:
        """The plan of a statement that is not run.

        DBAPIError when the database does not know something in it; the transaction goes on.
        """

    def kind(self, error: DBAPIError) -> Kind: ...

    def code(self, error: DBAPIError) -> str:
        """The database's own code of what went wrong; it quotes no value."""

    def complaint(self, error: DBAPIError) -> str | None:
        """The database's sentence about an explained statement; None about anything else."""

    def lock(self, connection: Connection, name: str) -> None:
        """Inside a booking: hold the name until its end, alone among all who ask for it.

        BackendUnavailable when others hold it for too long.
        """

    def rights(self, connection: Connection) -> Sequence[str]:
        """What the account may do beyond its needs, as sentences."""

    def clock(self, connection: Connection) -> Clock: ...

    def transactional(self, connection: Connection, tables: Sequence[str]) -> Sequence[str]:
        """Those of the tables that have no transactions."""


class Engine(Protocol):
    """Runs work on the practice's database; every verb raises AdapterErrors.

    A deadline counts from the moment of the call. What waits too long for its turn, and what finds
    too much waiting, is BackendUnavailable: nothing was asked of the database.
    """

    @property
    def speech(self) -> Speech: ...

    async def read(self, work: Work[T]) -> T:
        """The work's result, in one snapshot that cannot write."""

    async def inspect(self, work: Work[T]) -> T:
        """The same for work of many statements that no call waits for."""

    async def search(self, work: Work[T]) -> T:
        """The same for work that looks at every row of a table."""

    async def book(self, work: Work[T]) -> T:
        """The same, writing: committed when the work returns, else undone.

        The work may be called again when the database undid it for a collision.
        """

    async def ping(self) -> None:
        """Whether the database answers."""

    async def aclose(self) -> None:
        """Wait for what runs, and let go of every connection."""


def given(
    name: str | None, value: Any = _NOTHING, *, expanding: bool = False
) -> BindParameter[Any]:
    """A parameter whose type is the database's to find, from what it is compared with.

    So one name can be compared with one type only.
    """
    if value is _NOTHING:
        return bindparam(name, type_=NullType(), expanding=expanding)
    return bindparam(name, value, type_=NullType(), expanding=expanding)


def as_text(raw: bytes) -> str | bytes:
    """A text of the server's; one in another encoding stays bytes, for a converter."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def failed(
    kind: Kind, code: str, *, booking: bool, committing: bool, why: str | None = None
) -> AdapterError:
    """The adapter's error for a database's; never in the driver's words: they may quote values.

    `why` is what is known of a database that can't be reached, with the code behind it.
    """
    if committing and kind not in NEVER_COMMITTED:
        return OutcomeUnknown(f"the booking's end is not known: {SAID.get(kind, kind)} ({code})")
    if kind is Kind.TIMEOUT and not booking:
        return BackendTimeout(SAID[kind])
    if kind is Kind.DOWN and why:
        return BackendUnavailable(f"the database can't be reached: {why}; see backend.url")
    if kind in UNDONE:
        return BackendUnavailable(f"{SAID[kind]} ({code})")
    return BackendNonsense(f"{SAID.get(kind, 'a statement failed')} ({code})")


def one_line(sentence: object) -> str:
    return " ".join(str(sentence).split())
