"""How the sample clinic writes its rows: days, moments, money, quantities and flags as text."""

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from random import Random

NO_DAY = "0000-00-00"
NO_MOMENT = "0000-00-00 00:00:00"
YEAR = 365

# A row in the order of its table's columns: schema.sql says what they hold.
Row = tuple[str | int | None, ...]


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


def opening_moment(today: date) -> datetime:
    """'Now' for the generated data: eleven in the morning, with half a day's work done."""
    return datetime.combine(today, time(11))


def takeover(today: date) -> datetime:
    """When the older half of the data came over from the product before, all in one moment."""
    return datetime.combine(today - timedelta(days=8 * YEAR), time(4))


def desk_moment(rng: Random, day: date) -> datetime:
    """Some moment of `day` at which somebody sits at the desk."""
    return datetime.combine(day, time(8)) + timedelta(seconds=rng.randrange(11 * 3600))


def registered(rng: Random, today: date, *, oldest: int, newest: int) -> datetime:
    """When a record was made, `oldest` to `newest` days ago; never before the takeover."""
    day = today - timedelta(days=rng.randrange(newest, oldest))
    return max(desk_moment(rng, day), takeover(today))


def changed(rng: Random, since: datetime, today: date) -> str | None:
    """A DT_MODIF: nothing, zeros, or a later day; the product has known all three."""
    draw = rng.random()
    if draw < 0.35:
        return None
    days = (today - since.date()).days
    if draw < 0.6 or days < 2:
        return NO_MOMENT
    return stamp(desk_moment(rng, since.date() + timedelta(days=rng.randrange(1, days))))


def awake(moment: datetime) -> datetime:
    """Keep clear of two to three at night, the hour that the clocks skip or strike twice."""
    return moment.replace(hour=3) if moment.hour == 2 else moment
