"""A practice database as a draft sees it: its tables, columns and keys, and some of its rows."""

from dataclasses import dataclass, field
from typing import Any

# How many different values a column with codes may have.
CODES = 20
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; `codes` are its different values where they are few and short, else empty."""

    name: str
    kind: str
    nullable: bool = True
    has_default: bool = False
    zoned: bool = False
    length: int | None = None
    codes: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns that refer to another table's."""

    columns: tuple[str, ...]
    table: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; `rows` is counted up to MOST_COUNTED, `seen` are rows in the columns' order."""

    name: str
    schema: str | None = None
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    rows: int = 0
    seen: tuple[Row, ...] = field(default=(), repr=False)

    def column(self, name: str) -> Column:
        return next(each for each in self.columns if each.name == name)

    def values(self, name: str) -> tuple[Any, ...]:
        """The values that were seen in a column, blanks among them."""
        place = [each.name for each in self.columns].index(name)
        return tuple(row[place] for row in self.seen)


@dataclass(frozen=True, slots=True)
class Database:
    """What was found; `dialect` is SQLAlchemy's name of the engine."""

    dialect: str
    tables: tuple[Table, ...]
    sequences: tuple[str, ...] = ()
