"""Working hours and closed days as a mapping writes them: mon-fri, 08:30-12:00, 2026-12-25."""

import re
from dataclasses import dataclass
from datetime import date, time, timedelta

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS = re.compile("([0-2]?[0-9]:[0-5][0-9])-([0-2]?[0-9]:[0-5][0-9])").fullmatch
MOST_CLOSED = 3660


@dataclass(frozen=True, slots=True)
class Shift:
    """Weekly working hours: ISO weekday (1 is Monday), or those of one `day`; wall-clock times.

    An end that is not after the start belongs to the next day. None begins on a `closed` day.
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
    """The weekdays (1 is Monday) of `mon` or `mon-fri`; ValueError for anything else."""
    first, dash, last = text.strip().lower().partition("-")
    try:
        begin, end = WEEKDAYS.index(first), WEEKDAYS.index(last if dash else first)
    except ValueError as error:
        said = f"is no day of the week: write one of {' '.join(WEEKDAYS)}, or mon-fri"
        raise ValueError(f"{text} {said}") from error
    return tuple(number % 7 + 1 for number in range(begin, end + (7 if end < begin else 0) + 1))


def hours_of_day(text: str) -> tuple[time, time]:
    """Start and end of `08:30-12:00`; ValueError for anything else. 24:00 is midnight."""
    found = _HOURS(text.replace(" ", ""))
    times = [each.rjust(5, "0") for each in found.groups()] if found else []
    if not times or max(times) > "24:00":
        raise ValueError(f"{text} are no hours: write them as 08:30-12:00")
    begin, end = (time.fromisoformat(each.replace("24:00", "00:00")) for each in times)
    return begin, end


def closed_days(text: str) -> tuple[date, ...]:
    """The days of `2026-12-25` or `2026-12-24..2027-01-02`; ValueError for anything else."""
    first, dots, last = (part.strip() for part in text.partition(".."))
    try:
        begin = date.fromisoformat(first)
        end = date.fromisoformat(last) if dots else begin
    except ValueError as error:
        said = "is no day: write 2026-12-25, or 2026-12-24..2027-01-02"
        raise ValueError(f"{text} {said}") from error
    if not 0 <= (end - begin).days < MOST_CLOSED:
        raise ValueError(f"{text} ends before it begins, or lasts longer than ten years")
    return tuple(begin + timedelta(days=number) for number in range((end - begin).days + 1))
