"""How a database spells what the adapter needs, reports errors, and explains statements."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, NoSuchTableError
from sqlalchemy.types import NullType

from adapters.sql.inspection import inspected

T = TypeVar("T")
Work = Callable[[sa.Connection], T]
Expression = sa.ColumnElement[Any]
Criterion = sa.ColumnElement[bool]

# What counts as a blank in old tables.
BLANKS = " \t\n\v\f\r"
# What parts words beside them, where a database has no class of letters for it.
PUNCTUATION = "'\"-.,;:/\\()[]_&+*!?#@%=<>|~^`´’‘“”–—«»"  # noqa: RUF001 - they are meant
CONTROLS = "\t\n\v\f\r\N{NO-BREAK SPACE}"
# An unambiguous number without blanks: at most one mark, which begins the fraction.
PLAIN_NUMBER = "^[-+]?[0-9]{1,15}([.,][0-9]{0,15})?$"
# The beginning of a text with a date.
DATED = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_WHOLE = re.compile("-?[0-9]{1,18}").fullmatch
# In a connection's `info`: the time.monotonic() by which the work is to end.
UNTIL = "clinic_until"
# There too, while the work has written what no ROLLBACK undoes, and has not taken it back.
HALF = "clinic_half"


class ErrorKind(StrEnum):
    """What a database's error is about, as a sentence without the database's own words."""

    DOWN = "the database can't be reached or gave up the connection"
    TIMEOUT = "the statement took too long and was stopped"
    BUSY = "the database kept something locked for too long"
    # a deadlock or the like: undone, and worth another try
    AGAIN = "the statement collided with others"
    # or an interval that may be there only once
    DUPLICATE = "the database has such a row already"
    # a trigger's rule included
    REFUSED = "a rule of the database refused a row"
    # a missing grant
    DENIED = "the account may not do that"
    # a value of a row, or of a booking
    UNFIT = "a value could not be converted (its type, or letters the column's character set lacks)"
    LONG = "a text is too long for its column"
    STATEMENT = "a statement failed: an unknown name, or bad grammar"
    OTHER = "a statement failed"


_COMPLAINTS = frozenset({ErrorKind.STATEMENT, ErrorKind.DENIED, ErrorKind.UNFIT, ErrorKind.LONG})


@dataclass(frozen=True, slots=True)
class TableAccess:
    """How a plan reads a table; `rows` is an estimate, 0 where there is none."""

    table: str
    scans: bool
    index: str = ""
    rows: int = 0


Plan = tuple[TableAccess, ...]


@dataclass(frozen=True, slots=True)
class ServerClock:
    """The server's wall clock and UTC, both as `YYYY-MM-DD HH:MM:SS`, and the name of its zone.

    The name is "" for a database that has this machine's zone, and UTC for one that tells none.
    """

    local: str
    utc: str
    zone: str


class Spelling(NamedTuple):
    """How one kind of database writes values of a booking that are learned from the desk.

    `joined`: two texts as one. `digits`: a number as a text, and `padded`: as one of a width, with
    zeros. `uuid`: a new UUID. `length`: `:minutes` as hours and minutes, with `seconds` behind them
    where these are written. `last_number`: selects the last number that a sequence gave, as the
    lowest and the highest that it may be.
    Where one is "", it cannot be written.
    """

    joined: str = "{} || {}"
    digits: str = "{}"
    padded: str = "LPAD({}, {}, '0')"
    uuid: str = ""
    length: str = ""
    seconds: str = ":00"
    last_number: str = ""


class Speech(Protocol):
    """How one kind of database spells what the adapter needs.

    `kinds`: the kinds of errors by the beginning of their code, of which the longest match holds.
    `binary`: the collation that tells all letters apart. `now`: selects a ServerClock.
    `loose_types`: whether a number and a text of its digits are two values in every column.
    `times_as_text`: whether it has no type for times. `bits_are_letters`: whether the number in a
    BIT column becomes, as text, the letter with that number. `first_day`: its earliest day.
    `misfits`: the codes for a value of another type than its column, or too large for it.
    `locks_names`: whether `lock` keeps others away, or `begin_booking` does. `locks_rows`: whether
    a booking locks rows of the practice's instead.

    For the doctor and the draft: `tries_all`: whether `explain` tries what writes and what locks.
    `has_plans`: whether it returns plans. `columns`: selects each column of each table but the
    server's own. `unknown_table`, `unknown_column`: patterns that find the name in a complaint.
    `numbered`: selects the keys that get a number without a default. `folds_names`: whether a name
    with capitals needs quotes. `first_row`: how LIMIT 1 is written behind SELECT, where it is.
    `limits_by_top`: whether a limit stands there, and takes no parameter.
    `reflects_indexes`: whether its indexes can be read through the driver. `spelling`: how a
    booking that was learned writes its values. `grants`: what lets an `{account}` read the
    `{database}`; none where a file has no accounts. `grants_in`: what stands before a table's name
    in a grant. `grants_sequences`: whether a sequence needs one of its own.
    """

    kinds: ClassVar[Mapping[str, ErrorKind]]
    binary: ClassVar[str]
    now: ClassVar[sa.TextClause]
    loose_types: ClassVar[bool] = False
    times_as_text: ClassVar[bool] = False
    bits_are_letters: ClassVar[bool] = False
    first_day: ClassVar[str] = "0001-01-01"
    misfits: ClassVar[frozenset[str]] = frozenset()
    locks_names: ClassVar[bool] = True
    locks_rows: ClassVar[bool] = False
    tries_all: ClassVar[bool] = True
    has_plans: ClassVar[bool] = True
    columns: ClassVar[sa.TextClause]
    unknown_table: ClassVar[str]
    unknown_column: ClassVar[str]
    numbered: ClassVar[sa.TextClause | None] = None
    folds_names: ClassVar[bool] = False
    first_row: ClassVar[str] = ""
    limits_by_top: ClassVar[bool] = False
    reflects_indexes: ClassVar[bool] = True
    spelling: ClassVar[Spelling] = Spelling()
    grants: ClassVar[tuple[str, ...]] = (
        "GRANT SELECT ON TABLE_NAME TO {account};  -- for each table that is read",
    )
    grants_in: ClassVar[str] = ""
    grants_sequences: ClassVar[bool] = False

    def searchable(self, expression: Expression) -> Expression:
        """Returns the text as `fold` makes it; never NULL."""

    def trimmed(self, expression: Expression) -> Expression:
        """Returns the expression as a text without the BLANKS at both ends."""

    def exact(self, text: Expression) -> Expression:
        """Returns the text with a collation that compares and sorts it letter by letter."""
        return text.collate(self.binary)

    def number(self, expression: Expression) -> Expression:
        """Returns the number that it is, or that its text plainly is (`1 234,50`); else NULL."""

    def constant(self, number: Decimal) -> str:
        """Returns a number as SQL, as a driver would have to guess a parameter's type."""
        return f"{number:f}"

    def undated(self, expression: Expression) -> Criterion:
        """Returns the condition that the text does not begin with YYYY-MM-DD."""

    def explain(
        self, connection: sa.Connection, statement: sa.Executable, bound: dict[str, Any]
    ) -> Plan:
        """Returns a statement's plan without running it; DBAPIError for what the database lacks."""

    def code(self, error: DBAPIError) -> str:
        """Returns the database's own code for an error; it quotes no value."""

    def sentence(self, error: DBAPIError) -> object:
        """Returns the database's own words for an error."""
        return error.orig

    def kind(self, error: DBAPIError) -> ErrorKind:
        code = self.code(error)
        fitting = filter(code.startswith, self.kinds)
        return self.kinds.get(max(fitting, key=len, default=""), ErrorKind.OTHER)

    def complaint(self, error: DBAPIError) -> str | None:
        """Returns the database's sentence about an explained statement; None for another error."""
        if self.kind(error) not in _COMPLAINTS:
            return None
        return " ".join(str(self.sentence(error)).split())

    def lock(self, connection: sa.Connection, name: str) -> None:
        """Locks the name until the booking ends; raises BackendUnavailable or DBAPIError.

        It does nothing where `begin_booking` makes bookings that collide fail as AGAIN.
        """

    def row_lock(self, rows: sa.Select[Any]) -> sa.Select[Any]:
        """Returns a query that locks the rows that it selects, until the transaction ends."""
        return rows.with_for_update()

    def clock(self, connection: sa.Connection) -> ServerClock | None:
        """Returns what the server's clock shows; None where it cannot be told."""
        return ServerClock(*connection.execute(self.now).one())

    def rights(self, connection: sa.Connection) -> Sequence[str] | None:
        """Returns what the account may do beyond its needs; None where it cannot be told."""
        return []

    def writable(self, connection: sa.Connection) -> Sequence[tuple[str, str]] | None:
        """Returns INSERT or UPDATE with each table that the account may write so and not owns.

        A table `*` stands for all of them. Returns None where it cannot be told.
        """
        return []

    def may_use(self, connection: sa.Connection, sequence: str) -> bool:
        """Returns whether the account may draw from the sequence, whose name is in quotes."""
        return True

    def may_number(self, connection: sa.Connection, table: str, column: str) -> bool:
        """Returns whether it may draw from the sequence, if any, that numbers the column."""
        return True

    def unsafe_tables(self, connection: sa.Connection, tables: Sequence[str]) -> Sequence[str]:
        """Returns those of the tables that have no transactions."""
        return []

    def indexes(self, connection: sa.Connection, table: str) -> Sequence[Sequence[str]]:
        """Returns the columns of each index of the table, its keys included."""
        schema, _, bare = table.rpartition(".")
        with inspected(connection) as inspector:
            try:
                key = inspector.get_pk_constraint(bare, schema or None)["constrained_columns"]
                known: list[Any] = [*inspector.get_unique_constraints(bare, schema or None)]
                known += inspector.get_indexes(bare, schema or None)
            except (NoSuchTableError, NotImplementedError):
                return []
        return [key, *([name or "" for name in each["column_names"]] for each in known)]

    def schemas(self, inspector: sa.Inspector) -> Sequence[str]:
        """Returns the schemas that are not the server's own, where a database may have several."""
        return []


def columns_beside(*schemas: str) -> sa.TextClause:
    """Returns a query for the tables and columns of all schemas but the server's own."""
    return sa.text(
        "SELECT CAST(table_name AS CHAR(128)), CAST(column_name AS CHAR(128))"
        " FROM information_schema.columns WHERE table_schema NOT IN :theirs"
    ).bindparams(sa.bindparam("theirs", schemas, expanding=True))


def given(name: str | None, *value: Any, expanding: bool = False) -> sa.BindParameter[Any]:
    """Returns a parameter whose type the database infers from what it is compared with.

    So one name can be compared with one type only. Without a value it gets one at each execution.
    """
    return sa.bindparam(name, *value, type_=NullType(), expanding=expanding)  # type: ignore[misc]


def quoted(value: str, prefix: str = "") -> Expression:
    """Returns a constant of ours as SQL, in quotes."""
    doubled = value.replace("'", "''")
    # nosemgrep: sql-is-never-put-together-as-text - constants of ours, quoted
    return sa.literal_column(f"{prefix}'{doubled}'")


def as_text(raw: bytes) -> str | bytes:
    """Returns the server's text; in another encoding it stays bytes, for a converter."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def plain_number(shown: str | bytes) -> int | Decimal:
    """Returns an int for a number of up to 18 digits without a fraction, else a Decimal."""
    text = shown.decode() if isinstance(shown, bytes) else shown
    return int(text) if _WHOLE(text) else Decimal(text)


def seconds_left(connection: sa.Connection) -> float:
    """Returns the seconds that the work on the connection may still take."""
    until: float = connection.info.get(UNTIL, 0.0)
    return max(0.0, until - time.monotonic())


def explain(
    connection: sa.Connection, words: str, statement: sa.Executable, parameters: dict[str, Any]
) -> sa.CursorResult[Any, *tuple[Any, ...]]:
    """Runs the statement with words such as EXPLAIN before it, and returns the answer."""
    names = list(parameters) or None
    compiled = statement.compile(connection, column_keys=names)  # type: ignore[attr-defined]
    whole = compiled.construct_expanded_state(parameters)
    bound = whole.positional_parameters if compiled.positional else whole.parameters
    return connection.exec_driver_sql(f"{words} {whole.statement}", bound)
