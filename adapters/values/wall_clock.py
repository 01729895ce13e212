"""What a calendar and a clock on the wall show, read from whatever a database keeps."""

import re
from datetime import date, datetime, time, timedelta
from typing import Any

from adapters.values.convert import Unreadable, plain
from adapters.values.numbers import decimal

ZERO_DATES = ("0000-00-00", "1900-01-01", "1000-01-01")
PATTERN = "%Y-%m-%d %H:%M:%S"
_WALL = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.[0-9]+)?)?"
).fullmatch
_CLOCK = re.compile(r"([0-9]{1,2}):?([0-9]{2})(?::?([0-9]{2})(?:\.[0-9]+)?)?").fullmatch
_LENGTH = re.compile(r"([0-9]{1,3}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?").fullmatch
# What a pattern may hold so that its texts sort as their times do.
_SORTED = "YmdHMS"


def wall(raw: Any, zero: tuple[str, ...], pattern: str = PATTERN) -> datetime | None:
    """What a calendar and a clock on the wall show; None for a zero date."""
    if isinstance(raw, tuple):
        return _of_two(raw, zero, pattern)
    if isinstance(raw, datetime):
        return None if raw.date().isoformat() in zero else raw.replace(tzinfo=None)
    if isinstance(raw, date):
        return None if raw.isoformat() in zero else datetime.combine(raw, time())
    text = plain(raw)
    if text is None or text[:10] in zero or text in zero:
        return None
    found = _WALL(text)
    try:
        if found is not None:
            return datetime.fromisoformat(f"{found[1]} {found[2] or '00:00'}")
        if pattern != PATTERN:
            return datetime.strptime(text, pattern).replace(tzinfo=None)  # noqa: DTZ007 - a wall clock
    except ValueError as error:
        raise Unreadable from error
    raise Unreadable


def _of_two(raw: tuple[Any, ...], zero: tuple[str, ...], pattern: str) -> datetime | None:
    """A day, and the time of day beside it; a time of day by itself is Unreadable."""
    day = wall(raw[0], zero, pattern.partition(" ")[0])
    if day is None:
        return None
    shown = datetime.combine(day, clock(raw[1]))
    try:
        return shown + timedelta(days=1) if (plain(raw[1]) or "").startswith("24") else shown
    except OverflowError as error:
        raise Unreadable from error


def clock(raw: Any) -> time:
    """A time of day: 9:00, 09:00:00, 0900, or the one within a date and time; Unreadable."""
    text = plain(raw)
    found = _CLOCK((text or "").rpartition(" ")[2])
    if found is None:
        raise Unreadable
    if int(found[1]) == 24:
        return time()
    try:
        return time(int(found[1]), int(found[2]), int(found[3] or 0))
    except ValueError as error:
        raise Unreadable from error


def length(raw: Any) -> timedelta | None:
    """So long: minutes as a number, or a text HH:MM or HH:MM:SS; None for no value."""
    text = plain(raw)
    if text is None:
        return None
    found = _LENGTH(text)
    if found is not None:
        return timedelta(hours=int(found[1]), minutes=int(found[2]), seconds=int(found[3] or 0))
    minutes = decimal(text)
    if minutes is None or abs(minutes) > 1_000_000:
        raise Unreadable
    return timedelta(minutes=float(minutes))


def sorts(pattern: str) -> bool:
    """Whether texts by that pattern sort as their times do."""
    letters = re.findall("%(.)", pattern)
    return letters == list(_SORTED[: len(letters)]) and len(letters) >= 3


def written(moment: date, pattern: str) -> str:
    """The moment by a strftime pattern, with four digits for every year."""
    return moment.strftime(pattern.replace("%Y", f"{moment.year:04d}"))
