"""Reads working hours and closed days of a mapping: mon-fri, 08:30-12:00, 2026-12-25."""

import re
from dataclasses import dataclass
from datetime import date, time, timedelta

from adapters.documents.problems import Misfit

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
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
