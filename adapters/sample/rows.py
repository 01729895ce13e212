"""How the sample clinic writes its rows, and the chance that they are drawn by."""

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
# A row in the order of its table's columns: schema.sql says what they hold.
Row = Any


def row_of(table: str) -> Any:
    """The class of a table's rows, with a name for each column; what is not given is None."""
    [columns] = re.findall(rf"^CREATE TABLE {table} \((.*?)^\);", SCHEMA.read_text("utf-8"), _LINES)
    names = re.findall(r"^    (\w+)", columns.lower(), _LINES)
    make: Any = namedtuple
    return make(table, names, defaults=[None] * len(names))


class Chance(Random):
    """A source of chance that knows which day it is in the clinic.

    `now` is eleven in the morning, with half a day's work done; at `takeover` the older half of
    the data came over from the product before, all in one moment.
    """

    def __init__(self, seed: str, today: date) -> None:
        super().__init__(seed)
        self.today = today
        self.now = datetime.combine(today, time(11))
        self.takeover = datetime.combine(self.ago(8 * YEAR), time(4))

    def ago(self, days: int) -> date:
        return self.today - timedelta(days=days)

    def at_desk(self, day: date) -> datetime:
        """Some moment of `day` at which somebody sits at the desk."""
        return datetime.combine(day, time(8)) + timedelta(seconds=self.randrange(11 * 3600))

    def registered(self, *, oldest: int, newest: int) -> datetime:
        """When a record was made, `oldest` to `newest` days ago; never before the takeover."""
        return max(self.at_desk(self.ago(self.randrange(newest, oldest))), self.takeover)

    def changed(self, since: datetime) -> str | None:
        """A DT_MODIF: nothing, zeros, or a later day; the product has known all three."""
        draw = self.random()
        if draw < 0.35:
            return None
        days = (self.today - since.date()).days
        if draw < 0.6 or days < 2:
            return NO_MOMENT
        return stamp(self.at_desk(since.date() + timedelta(days=self.randrange(1, days))))


def numbered(rows: Iterable[Row]) -> list[Row]:
    """The rows with their key in front: 1, 2, 3."""
    return [(number, *row) for number, row in enumerate(rows, 1)]


def stamp(moment: datetime) -> str:
    """A wall-clock moment as the product keeps it: '2026-03-01 09:00:00'."""
    return moment.isoformat(sep=" ", timespec="seconds")


def flag(value: bool) -> str:
    """'O' (oui) or 'N' (non)."""
    return "O" if value else "N"


def money(cents: int) -> str:
    """Cents as '1 234,50': a comma, and a blank between thousands."""
    return f"{cents / 100:,.2f}".replace(",", " ").replace(".", ",")


def quantity(tenths: int) -> str:
    """Tenths as '12' or '1,5'."""
    return f"{tenths / 10:g}".replace(".", ",")


def awake(moment: datetime) -> datetime:
    """Keep clear of two to three at night, the hour that the clocks skip or strike twice."""
    return moment.replace(hour=3) if moment.hour == 2 else moment
