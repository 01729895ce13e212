"""Free slots: working hours minus what blocks. Pure: no clock, no database.

Steps are counted in real time from the start of a shift, so that the night on which the clocks
change gives neither double nor lost slots. Intervals are half open.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Shift:
    """Weekly working hours: ISO weekday (1 is Monday), wall-clock times.

    An end that is not after the start belongs to the next day.
    """

    weekday: int
    start: time
    end: time


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """From `start` up to, not including, `end`; aware, in UTC."""

    start: datetime
    end: datetime

    def overlaps(self, other: "Interval") -> bool:
        return self.start < other.end and other.start < self.end


def day_window(day: date, zone: ZoneInfo) -> Interval:
    """A local day from midnight to midnight: 23, 24 or 25 hours."""
    midnight = datetime.combine(day, time(), zone)
    return Interval(
        midnight.astimezone(UTC), datetime.combine(day + ONE_DAY, time(), zone).astimezone(UTC)
    )


def working_times(day: date, zone: ZoneInfo, shifts: Iterable[Shift]) -> Iterator[Interval]:
    """The shifts that begin on the day or the evening before, on that date's own offsets."""
    for shift in shifts:
        for begins in (day - ONE_DAY, day):
            if begins.isoweekday() != shift.weekday:
                continue
            ends = begins if shift.end > shift.start else begins + ONE_DAY
            yield Interval(
                datetime.combine(begins, shift.start, zone).astimezone(UTC),
                datetime.combine(ends, shift.end, zone).astimezone(UTC),
            )


def free_slots(
    day: date,
    zone: ZoneInfo,
    shifts: Iterable[Shift],
    busy: Iterable[Interval],
    *,
    duration: timedelta,
    step: timedelta,
    now: datetime,
) -> list[Interval]:
    """The slots of a local day, in order and without doubles.

    Each starts on `day` and after `now`, lies within a shift, and clashes with nothing in `busy`.
    """
    window = day_window(day, zone)
    blocked = sorted(busy)
    found: set[Interval] = set()
    for shift in working_times(day, zone, shifts):
        start = shift.start
        while start + duration <= shift.end:
            slot = Interval(start, start + duration)
            if window.start <= start < window.end and start > now and _is_free(slot, blocked):
                found.add(slot)
            start += step
    return sorted(found)


def _is_free(slot: Interval, blocked: list[Interval]) -> bool:
    return not any(slot.overlaps(each) for each in blocked)
