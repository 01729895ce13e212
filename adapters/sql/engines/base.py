"""How a database spells what the adapter needs, says what went wrong, and explains a statement."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, Protocol, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import NullType

T = TypeVar("T")
Work = Callable[[sa.Connection], T]
Expression = sa.ColumnElement[Any]
Criterion = sa.ColumnElement[bool]

# What stands for a blank in old tables, beside the blank.
BLANKS = " \t\n\v\f\r"
# A number without blanks that needs no guess: one mark at the most, which parts off the fraction.
PLAIN_NUMBER = "^[-+]?[0-9]{1,15}([.,][0-9]{0,15})?$"
# The beginning of a text with a date.
DATED = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_WHOLE = re.compile("-?[0-9]{1,18}").fullmatch
# In a connection's `info`: the time.monotonic() by which the work is to end.
UNTIL = "clinic_until"
# There too: whether the work has written what no ROLLBACK undoes, and has not taken it back.
HALF = "clinic_half"


class ErrorKind(StrEnum):
    """What a database's complaint is about, as a sentence without its own words."""

    DOWN = "the database can't be reached or gave up the connection"
    TIMEOUT = "the statement took too long and was stopped"
    BUSY = "the database kept something locked for too long"
    # a deadlock or the like: undone, and worth another try
    AGAIN = "the statement collided with others"
    # or an interval that may stand there once only
    DUPLICATE = "the database has such a row already"
    # a trigger's rule included
    REFUSED = "a rule of the database refused a row"
    # a missing grant
    DENIED = "the account may not do that"
    STATEMENT = "a statement failed: an unknown name, or bad grammar"
    OTHER = "a statement failed"


@dataclass(frozen=True, slots=True)
class TableAccess:
    """How a plan comes at a table: `rows` is an estimate, 0 where there is none."""

    table: str
    scans: bool
    index: str = ""
    rows: int = 0


Plan = tuple[TableAccess, ...]


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

    `kinds`: by the beginning of an error's code, the longest that fits holds. `binary`: the
    collation that tells all letters apart. `now`: what a ServerClock shows.
    `loose_types`: whether a number and a text of its digits are two values, whatever the column.
    `times_as_text`: whether it has no times of its own. `bits_are_letters`: whether the number in
    a BIT column becomes the letter of that number, as a text. `first_day`: what no day is before.
    `misfits`: the codes of a value that is none of the column's kind, or too large for it.

    What the doctor and the draft need besides. `columns`: names each column of each table but the
    server's own. `unknown_table`, `unknown_column`: patterns that find the name in the sentence
    that says so. `numbered`: names the keys that have a number without a default. `folds_names`:
    whether a name with capitals needs quotes. `limits_by_top`: whether it writes TOP 1 for LIMIT
    1. `reflects_indexes`: whether the driver reads what it says of indexes.
    """

    kinds: ClassVar[Mapping[str, ErrorKind]]
    binary: ClassVar[str]
    now: ClassVar[sa.TextClause]
    loose_types: ClassVar[bool] = False
    times_as_text: ClassVar[bool] = False
    bits_are_letters: ClassVar[bool] = False
    first_day: ClassVar[str] = "0001-01-01"
    misfits: ClassVar[frozenset[str]] = frozenset()
    columns: ClassVar[sa.TextClause]
    unknown_table: ClassVar[str]
    unknown_column: ClassVar[str]
    numbered: ClassVar[sa.TextClause | None] = None
    folds_names: ClassVar[bool] = False
    limits_by_top: ClassVar[bool] = False
    reflects_indexes: ClassVar[bool] = True

    def searchable(self, expression: Expression) -> Expression:
        """The text as `fold` has it; never NULL."""

    def trimmed(self, expression: Expression) -> Expression:
        """As a text, without the BLANKS at both ends."""

    def exact(self, text: Expression) -> Expression:
        """The text as it is compared and sorted letter by letter, by case and accents too."""
        return text.collate(self.binary)

    def number(self, expression: Expression) -> Expression:
        """The number that it is, or that its text plainly is (`1 234,50`); NULL of all else."""

    def undated(self, expression: Expression) -> Criterion:
        """Whether the text does not begin with YYYY-MM-DD."""

    def explain(
        self, connection: sa.Connection, statement: sa.Executable, bound: dict[str, Any]
    ) -> Plan:
        """The plan of a statement that is not run.

        DBAPIError when the database does not know something in it; the transaction goes on.
        """

    def code(self, error: DBAPIError) -> str:
        """The database's own code of what went wrong; it quotes no value."""

    def sentence(self, error: DBAPIError) -> object:
        """The database's own words for what went wrong."""
        return error.orig

    def kind(self, error: DBAPIError) -> ErrorKind:
        code = self.code(error)
        fitting = filter(code.startswith, self.kinds)
        return self.kinds.get(max(fitting, key=len, default=""), ErrorKind.OTHER)

    def complaint(self, error: DBAPIError) -> str | None:
        """The database's sentence about an explained statement; None about anything else."""
        if self.kind(error) not in (ErrorKind.STATEMENT, ErrorKind.DENIED):
            return None
        return " ".join(str(self.sentence(error)).split())

    def lock(self, connection: sa.Connection, name: str) -> None:
        """Inside a booking: hold the name until its end, alone among all who ask for it.

        BackendUnavailable when others hold it for too long.
        """

    def clock(self, connection: sa.Connection) -> ServerClock:
        return ServerClock(*connection.execute(self.now).one())

    def rights(self, connection: sa.Connection) -> Sequence[str]:
        """What the account may do beyond its needs, as sentences."""
        return []

    def may_use(self, connection: sa.Connection, sequence: str) -> bool:
        """Whether the account may take a number of the sequence, whose name is in quotes."""
        return True

    def may_number(self, connection: sa.Connection, table: str, column: str) -> bool:
        """The same of what numbers the column of a new row, if anything does."""
        return True

    def transactional(self, connection: sa.Connection, tables: Sequence[str]) -> Sequence[str]:
        """Those of the tables that have no transactions."""
        return []

    def schemas(self, inspector: sa.Inspector) -> Sequence[str]:
        """The schemas that are not the server's own, where a database may have several."""
        return []


def columns_beside(*schemas: str) -> sa.TextClause:
    """Each table and column of all schemas but these, which are the server's own."""
    return sa.text(
        "SELECT CAST(table_name AS CHAR(128)), CAST(column_name AS CHAR(128))"
        " FROM information_schema.columns WHERE table_schema NOT IN :theirs"
    ).bindparams(sa.bindparam("theirs", schemas, expanding=True))


def given(name: str | None, *value: Any, expanding: bool = False) -> sa.BindParameter[Any]:
    """A parameter whose type is the database's to find, from what it is compared with.

    So one name can be compared with one type only. Without a value it gets one with each execution.
    """
    return sa.bindparam(name, *value, type_=NullType(), expanding=expanding)  # type: ignore[misc]


def quoted(value: str, prefix: str = "") -> Expression:
    """A constant of ours within a statement."""
    doubled = value.replace("'", "''")
    # nosemgrep: sql-is-never-put-together-as-text - constants of ours, quoted
    return sa.literal_column(f"{prefix}'{doubled}'")


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


def seconds_left(connection: sa.Connection) -> float:
    """How long the work on the connection may still take."""
    until: float = connection.info.get(UNTIL, 0.0)
    return max(0.0, until - time.monotonic())


def explain(
    connection: sa.Connection, words: str, statement: sa.Executable, parameters: dict[str, Any]
) -> sa.CursorResult[Any, *tuple[Any, ...]]:
    """What the database answers to the statement with words such as EXPLAIN before it."""
    names = list(parameters) or None
    compiled = statement.compile(connection, column_keys=names)  # type: ignore[attr-defined]
    whole = compiled.construct_expanded_state(parameters)
    bound = whole.positional_parameters if compiled.positional else whole.parameters
    return connection.exec_driver_sql(f"{words} {whole.statement}", bound)
