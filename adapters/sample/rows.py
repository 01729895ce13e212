"""Defines how the sample clinic writes its rows, and the chance that they are drawn by."""

import re
from collections import namedtuple
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from pathlib import Path
from random import Random
from typing import Any

NO_DAY = "0000-00-00"
NO_MOMENT = "0000-00-00 00:00:00"
YEAR = 365

SCHEMA = Path(__file__).with_name("schema.sql")
_LINES = re.MULTILINE | re.DOTALL
# A row in the order of its table's columns, which schema.sql explains.
Row = Any


def row_of(table: str) -> Any:
    """Returns the class of a table's rows, with a name for each column; each defaults to None."""
    [columns] = re.findall(rf"^CREATE TABLE {table} \((.*?)^\);", SCHEMA.read_text("utf-8"), _LINES)
    names = re.findall(r"^    (\w+)", columns.lower(), _LINES)
    make: Any = namedtuple
    return make(table, names, defaults=[None] * len(names))


class Chance(Random):
    """A source of chance that knows which day it is in the clinic.

    `now` is 11:00, with half a day's work done. At `takeover` the older half of the data was
    imported from the product before, all at one moment.
    """

    def __init__(self, seed: str, today: date) -> None:
        super().__init__(seed)
        self.today = today
        self.now = datetime.combine(today, time(11))
        self.takeover = datetime.combine(self.ago(8 * YEAR), time(4))

    def ago(self, days: int) -> date:
        return self.today - timedelta(days=days)

    def at_desk(self, day: date) -> datetime:
        """Returns a moment of `day` at which somebody sits at the desk."""
        return datetime.combine(day, time(8)) + timedelta(seconds=self.randrange(11 * 3600))

    def registered(self, *, oldest: int, newest: int) -> datetime:
        """Returns when a record was made, `oldest` to `newest` days ago, or at the takeover."""
        return max(self.at_desk(self.ago(self.randrange(newest, oldest))), self.takeover)

    def changed(self, since: datetime) -> str | None:
        """Returns a DT_MODIF: nothing, zeros, or a later day; the product has used all three."""
        draw = self.random()
        if draw < 0.35:
            return None
        days = (self.today - since.date()).days
        if draw < 0.6 or days < 2:
            return NO_MOMENT
        return stamp(self.at_desk(since.date() + timedelta(days=self.randrange(1, days))))


def numbered(rows: Iterable[Row]) -> list[Row]:
    """Returns the rows with their keys in front: 1, 2, 3."""
    return [(number, *row) for number, row in enumerate(rows, 1)]


def stamp(moment: datetime) -> str:
    """Returns a wall-clock moment as the product keeps it: '2026-03-01 09:00:00'."""
    return moment.isoformat(sep=" ", timespec="seconds")


def flag(value: bool) -> str:
    """Returns 'O' (oui) or 'N' (non)."""
    return "O" if value else "N"


def money(cents: int) -> str:
    """Returns cents as '1 234,50', with a comma, and a blank between thousands."""
    return f"{cents / 100:,.2f}".replace(",", " ").replace(".", ",")


def quantity(tenths: int) -> str:
    """Returns tenths as '12' or '1,5'."""
    return f"{tenths / 10:g}".replace(".", ",")


def awake(moment: datetime) -> datetime:
    """Returns the moment, an hour later between 2 and 3 a.m., which clocks skip or repeat."""
    return moment.replace(hour=3) if moment.hour == 2 else moment
