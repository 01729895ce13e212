"""How the sample clinic writes its values: days, moments, money, quantities and flags as text."""

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from random import Random
from typing import NamedTuple

NO_DAY = "0000-00-00"
NO_MOMENT = "0000-00-00 00:00:00"
YEAR = 365


class Extra(NamedTuple):
    """A row of CHAMPS_SUPPL: one value of one record that has no column of its own."""

    id_champ: int
    table_nom: str
    id_fiche: int
    champ: str
    type_val: str
    valeur: str


def stamp(moment: datetime) -> str:
    """A wall-clock moment as the product keeps it: '2026-03-01 09:00:00'."""
    return moment.isoformat(sep=" ", timespec="seconds")


def unstamp(text: str) -> datetime:
    """The moment behind a text that `stamp` wrote."""
    return datetime.fromisoformat(text)


def flag(value: bool) -> str:
    """'O' (oui) or 'N' (non)."""
    return "O" if value else "N"


def money(cents: int) -> str:
    """Cents as '1 234,50': a comma, and a blank between thousands."""
    whole, rest = divmod(abs(cents), 100)
    sign = "-" if cents < 0 else ""
    return f"{sign}{whole:,}".replace(",", " ") + f",{rest:02d}"


def quantity(tenths: int) -> str:
    """Tenths as '12' or '1,5'."""
    whole, rest = divmod(abs(tenths), 10)
    sign = "-" if tenths < 0 else ""
    return f"{sign}{whole},{rest}" if rest else f"{sign}{whole}"


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


def numbered(extras: Iterable[Extra]) -> list[Extra]:
    """Give the extra fields of all tables one sequence of ids."""
    return [row._replace(id_champ=number) for number, row in enumerate(extras, 1)]
