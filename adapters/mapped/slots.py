"""Works out free slots: working hours minus what blocks. It uses no clock and no database.

Steps are counted in real time from the start of a shift, so that the night on which the clocks
change gives neither double nor lost slots. Intervals are half open.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from adapters.mapping.hours import Shift

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The time from `start` up to, not including, `end`. Both are aware, in UTC."""

    start: datetime
    end: datetime

    def overlaps(self, other: "Interval") -> bool:
        return self.start < other.end and other.start < self.end

    def is_covered(self, spans: Sequence["Interval"], gap: timedelta = timedelta()) -> bool:
        """Returns whether sorted spans leave no longer gap in it."""
        until = self.start
        for span in spans:
            if span.start <= until + gap:
                until = max(until, span.end)
        return until + gap >= self.end


@dataclass(frozen=True, slots=True)
class Block:
    """A time that is taken; `key` is the appointment's raw key, where the source names one.

    `schedule` is the one that it blocks; None blocks the vet in all schedules. A row in an hour
    that comes twice has several blocks; those that a wall clock alone would tell are likely.
    """

    interval: Interval
    key: Any = None
    schedule: Any = None
    is_likely: bool = True


def day_window(day: date, zone: ZoneInfo) -> Interval:
    """Returns a local day from its first midnight to its last: 23, 24 or 25 hours.

    It is empty for a day that a zone has left out. Where clocks go back over midnight it contains
    moments of another day.
    """
    ends = datetime.combine(day + ONE_DAY, time(), zone)
    return Interval(
        datetime.combine(day, time(), zone).astimezone(UTC),
        max(ends.replace(fold=fold).astimezone(UTC) for fold in (0, 1)),
    )


def is_on(moment: datetime, day: date, zone: ZoneInfo) -> bool:
    """Returns whether a clock on the wall shows that day."""
    return moment.astimezone(zone).date() == day


def working_times(day: date, zone: ZoneInfo, shifts: Iterable[Shift]) -> Iterator[Interval]:
    """Yields the shifts that may reach into the day, each with the offsets of its own date.

    None begins on a day that the zone has left out. One that would end on it reaches behind it.
    """
    for shift in shifts:
        for begins in (day - 2 * ONE_DAY, day - ONE_DAY, day):
            if not shift.begins_on(begins):
                continue
            noon = datetime.combine(begins, time(12), zone).astimezone(UTC)
            if is_on(noon, begins, zone):
                ends = begins if shift.end > shift.start else begins + ONE_DAY
                yield Interval(
                    datetime.combine(begins, shift.start, zone).astimezone(UTC),
                    datetime.combine(ends, shift.end, zone).astimezone(UTC),
                )


@dataclass(frozen=True, slots=True)
class FreeDay:
    """A day's free times after `now`, each `lasts` long and clear of all that is `busy`."""

    day: date
    zone: ZoneInfo
    lasts: timedelta
    now: datetime
    busy: Sequence[Interval]

    def is_free(self, slot: Interval, taken: Interval | None = None) -> bool:
        """Returns whether a slot starts on the day after `now`, and all it takes is free."""
        begins = slot.start > self.now and is_on(slot.start, self.day, self.zone)
        return begins and not any(map((taken or slot).overlaps, self.busy))

    def worked(self, shifts: Iterable[Shift], step: timedelta) -> list[Interval]:
        """Returns the free slots within the shifts, step by step, in order and without doubles."""
        window = day_window(self.day, self.zone)
        return self._slots(
            shift.start + number * step
            for shift in working_times(self.day, self.zone, shifts)
            if shift.overlaps(window)
            for number in range((shift.end - shift.start - self.lasts) // step + 1)
        )

    def covered(self, offered: Iterable[Interval]) -> list[Interval]:
        """Returns the free slots that start where an offered span does and that spans cover."""
        spans = sorted(offered)
        starts = {span.start for span in spans}
        return self._slots(
            start for start in starts if Interval(start, start + self.lasts).is_covered(spans)
        )

    def _slots(self, starts: Iterable[datetime]) -> list[Interval]:
        slots = {Interval(start, start + self.lasts) for start in starts}
        return sorted(filter(self.is_free, slots))


def free_slots(
    day: date, zone: ZoneInfo, shifts: Iterable[Shift], busy: Iterable[Interval], *,
    duration: timedelta, step: timedelta, now: datetime,
) -> list[Interval]:  # fmt: skip
    """Returns the free slots of a local day; it is there for adapters that clinics write."""
    return FreeDay(day, zone, duration, now, tuple(busy)).worked(shifts, step)
