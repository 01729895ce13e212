"""What values and rows came to, counted one by one, whichever way they were fetched."""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from adapters.base import Record
from adapters.mapped.records import RowValue
from adapters.values.convert import UnknownCode, Unreadable, plain
from adapters.values.wall_clock import ZERO_DATES

# By what name a record of a list has its parent, and what stands there where it has none.
PARENT, NO_PARENT = "(parent)", "none"
MOST_IDS = 3
MOST_CODES = 20
BEFORE = "1902"
# What old programs write for no date; the first three are none anyway.
PLACEHOLDERS = ("0001-01-01", "1753-01-01", "1899-12-30", "1899-12-31", "1901-01-01", "9999-12-31")
_SPELLINGS = (
    "{0}-{1}-{2}",
    "{0}/{1}/{2}",
    "{0}{1}{2}",
    "{2}-{1}-{0}",
    "{2}.{1}.{0}",
    "{2}/{1}/{0}",
    "{1}/{2}/{0}",
)
# How the days that mean none may be spelt.
NO_DATES = frozenset(
    spelling.format(*day.split("-"))
    for day in (*ZERO_DATES, *PLACEHOLDERS)
    for spelling in _SPELLINGS
)


@dataclass(slots=True)
class FieldTally:
    """What the values of one field came to; `is_selected` is whether a sub-select makes it."""

    value: RowValue
    is_selected: bool = False
    present: int = 0
    unreadable: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    odd_days: Counter[str] = field(default_factory=Counter)
    more_codes: int = 0
    no_dates: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)
    first: Any = None
    is_alike: bool = True

    @property
    def is_time(self) -> bool:
        return hasattr(self.value.converter, "zero")

    @property
    def unknown(self) -> int:
        return self.codes.total() + self.more_codes

    @property
    def count(self) -> int:
        """How many rows have a value, of whatever kind."""
        return self.present + self.unreadable + self.unknown

    def take(self, row: Any, shown: str | None) -> Any:
        """Returns the row's value, counted; None where it cannot be read.

        `shown` is the public id to tell the row by.
        """
        try:
            value = self.value.read(row)
        except Unreadable as error:
            if shown and len(self.ids) < MOST_IDS:
                self.ids.append(shown)
            self._count_unread(error, row)
            return None
        if value is not None:
            self.first = value if self.first is None else self.first
            self.is_alike = self.is_alike and value == self.first
            self.present += 1
        if isinstance(value, str) and (
            value[:10] in PLACEHOLDERS or (self.is_time and value[:4] < BEFORE)
        ):
            self.odd_days[value[:10]] += 1
        return value

    def _count_unread(self, error: Unreadable, row: Any) -> None:
        raw = None
        with suppress(Unreadable):  # what is no plain value has no code, and no day
            raw = self.value.plain(row)
        code = code_of(raw[0] if isinstance(raw, tuple) else raw)
        if not isinstance(error, UnknownCode):
            self.unreadable += 1
            if self.is_time:
                day = code.partition(" ")[0].partition("T")[0]
                self.no_dates[day if day in NO_DATES else ""] += 1
        # more different ones than could be told are no codes: they are only counted
        elif code in self.codes or len(self.codes) <= MOST_CODES:
            self.codes[code] += 1
        else:
            self.more_codes += 1


def code_of(raw: Any) -> str:
    try:
        return plain(raw) or ""
    except Unreadable:
        return ""


class RowTaken(NamedTuple):
    """A row, the public id to tell it by, and what no two rows share.

    `parent` is the public id of the record that a row of a list says it is of.
    """

    row: Any
    shown: str | None
    key: Any
    parent: str | None = None


@dataclass(slots=True)
class RowTally:
    """What the rows of a resource, or of a list inside its records, came to.

    Of a key no more is kept than 64 bits.
    """

    names: Iterable[str]
    fields: dict[str, FieldTally]
    count: int = 0
    nameless: int = 0
    known: set[int] = field(default_factory=set)
    doubled: dict[int, str | None] = field(default_factory=dict)

    def take(self, rows: Iterable[RowTaken]) -> list[Record]:
        """Returns the rows as records, each value counted."""
        records = []
        for row, shown, key, parent in rows:
            mark = hash(key)
            if mark in self.known:
                self.doubled[mark] = shown if len(self.doubled) < MOST_IDS else None
            self.known.add(mark)
            self.nameless += shown is None
            record: Record = dict.fromkeys(self.names) | {"id": shown}
            if parent is not None:
                record[PARENT] = parent
            for name, tally in self.fields.items():
                record[name] = tally.take(row, shown)
            records.append(record)
        self.count += len(records)
        return records
