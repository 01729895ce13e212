"""Reads working hours and closed days of a mapping: mon-fri, 08:30-12:00, 2026-12-25."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from adapters.documents.problems import Misfit
from adapters.values.convert import Unreadable

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EVERY_DAY = tuple(range(1, 8))
_SEVERAL = re.compile(r"[\s,;|/+]+").split
# 1 is Monday; Sunday is 7 or 0
_NUMBERS = re.compile("0*([0-7])(?:-0*([0-7]))?").fullmatch
_HOURS = re.compile("([0-2]?[0-9]:[0-5][0-9])-([0-2]?[0-9]:[0-5][0-9])").fullmatch
MOST_CLOSED = 3660


@dataclass(frozen=True, slots=True)
class Shift:
    """Working hours on a weekday (1 is Monday) or on one `day`, in wall clock times.

    An end that is not after the start belongs to the next day. No shift begins on a `closed` day.
    """

    weekday: int
    start: time
    end: time
    day: date | None = None
    closed: frozenset[date] = frozenset()

    @property
    def lasts(self) -> timedelta:
        """How long it is where the clocks do not change."""
        begins, ends = (datetime.combine(date.min, at) for at in (self.start, self.end))
        return (ends - begins) % timedelta(days=1) or timedelta(days=1)

    def begins_on(self, day: date) -> bool:
        if day in self.closed:
            return False
        return self.day == day if self.day is not None else self.weekday == day.isoweekday()


def days_of_week(text: str) -> tuple[int, ...]:
    """Returns the weekdays (1 is Monday) of `mon` or `mon-fri`; ValueError for anything else."""
    first, dash, last = text.strip().lower().partition("-")
    try:
        begin, end = WEEKDAYS.index(first), WEEKDAYS.index(last if dash else first)
    except ValueError as error:
        remedy = f"write one of {' '.join(WEEKDAYS)}, or mon-fri"
        raise Misfit("bad-hours", f"{text} is no day of the week: {remedy}") from error
    return tuple(number % 7 + 1 for number in range(begin, end + (7 if end < begin else 0) + 1))


def weekdays_of(raw: Any, decode: Callable[[Any], Any]) -> tuple[int, ...]:
    """Returns the weekdays of a column: one, a list, or a text such as `1-5`, `1,3,5` or `mon-fri`.

    `decode` reads the whole or, where that fails, each part. Raises ValueError, TypeError or
    Unreadable for what is no weekday.
    """
    try:
        return _weekdays(decode(raw))
    except (ValueError, TypeError, Unreadable):
        parts = list(filter(None, _SEVERAL(raw))) if isinstance(raw, str) else raw
        if not isinstance(parts, list | tuple) or parts in ([], [raw]):
            raise
    return tuple(dict.fromkeys(day for part in parts for day in _weekdays(decode(part))))


def _weekdays(read: Any) -> tuple[int, ...]:
    if not isinstance(read, str):
        first = last = int(read)
    elif numbers := _NUMBERS(read.strip()):
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
    else:
        return days_of_week(read)
    if not 0 <= first <= 7:
        raise ValueError(f"{first} is no weekday")
    return tuple((day - 1) % 7 + 1 for day in range(first, last + (7 if last < first else 0) + 1))


def hours_of_day(text: str) -> tuple[time, time]:
    """Returns start and end of `08:30-12:00`; ValueError for anything else. 24:00 is midnight."""
    match = _HOURS(text.replace(" ", ""))
    times = [clock.rjust(5, "0") for clock in match.groups()] if match else []
    if not times or max(times) > "24:00":
        raise Misfit("bad-hours", f"{text} are no hours: write them as 08:30-12:00")
    begin, end = (time.fromisoformat(clock.replace("24:00", "00:00")) for clock in times)
    return begin, end


def closed_days(text: str) -> tuple[date, ...]:
    """Returns the days of `2026-12-25` or `2026-12-24..2027-01-02`; ValueError for others."""
    first, dots, last = (part.strip() for part in text.partition(".."))
    try:
        begin = date.fromisoformat(first)
        end = date.fromisoformat(last) if dots else begin
    except ValueError as error:
        remedy = "write 2026-12-25, or 2026-12-24..2027-01-02"
        raise Misfit("bad-hours", f"{text} is no day: {remedy}") from error
    if not 0 <= (end - begin).days < MOST_CLOSED:
        raise Misfit("bad-hours", f"{text} ends before it begins, or lasts longer than ten years")
    return tuple(begin + timedelta(days=number) for number in range((end - begin).days + 1))
