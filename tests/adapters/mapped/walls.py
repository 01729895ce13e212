"""An independent model of free times: every minute in UTC, and what the clock shows in it.

Nothing here knows of folds or gaps: each wall-clock time is looked up among the minutes that show
it, so that an hour that comes twice has two, and one that does not exist has none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
Span = tuple[datetime, datetime]


@dataclass(frozen=True)
class Row:
    """What blocks, as a practice's clock shows it: a start, and an end or a length, or both."""

    start: datetime
    end: datetime | None
    minutes: int | None


@dataclass(frozen=True)
class Week:
    """A shift of every week: ISO weekday, start, and an end that may be on the next day."""

    weekday: int
    start: time
    end: time


class Walls:
    """The days round one day, minute by minute."""

    def __init__(self, zone: ZoneInfo, day: date) -> None:
        self.day = day
        begin = datetime.combine(day - 3 * DAY, time(), UTC)
        minutes = [begin + number * MINUTE for number in range(6 * 24 * 60)]
        self.shown = {each: each.astimezone(zone).replace(tzinfo=None) for each in minutes}
        self.moments: dict[datetime, list[datetime]] = {}
        for moment, shown in self.shown.items():
            self.moments.setdefault(shown, []).append(moment)
        self.days = {each.date() for each in self.shown.values()}

    def readings(self, wall: datetime) -> list[datetime]:
        """Every minute that shows it; where none does, as if the clock had not been put forward."""
        if wall in self.moments:
            return self.moments[wall]
        before = max(each for each, shown in self.shown.items() if shown < wall)
        # of the minutes that show less, the last before the clock jumped over it
        jumped = min(each for each, shown in self.shown.items() if shown > wall)
        before = min(before, jumped - MINUTE)
        return [before + (wall - self.shown[before])]

    def shifts(self, weeks: Sequence[Week]) -> Iterator[Span]:
        """When they work, from the first minute that shows the start on."""
        for begins in sorted(self.days)[1:-2]:
            for week in weeks:
                if week.weekday == begins.isoweekday():
                    last = begins if week.end > week.start else begins + DAY
                    start, end = (
                        self.readings(datetime.combine(*each))[0]
                        for each in ((begins, week.start), (last, week.end))
                    )
                    yield start, end

    def spans(self, row: Row, default: int) -> list[Span]:
        """Every time that the row may mean; of its length only what it says without an end."""
        starts = self.readings(row.start)
        ends = [] if row.end is None else self.readings(row.end)
        found = [(start, end) for start in starts for end in ends if start < end]
        length = (row.minutes or default) * MINUTE
        return found or [(start, start + length) for start in starts]

    def slots(
        self, weeks: Sequence[Week], taken: Sequence[Span], length: int, step: int
    ) -> list[datetime]:
        """When a slot of the day begins, in order."""
        found = set()
        for start, end in self.shifts(weeks):
            many = max(0, int((end - start) / MINUTE) - length) // step + 1
            for begins in (start + number * step * MINUTE for number in range(many)):
                ends = begins + length * MINUTE
                free = not any(since < ends and begins < until for since, until in taken)
                if ends <= end and free and self.shown[begins].date() == self.day:
                    found.add(begins)
        return sorted(found)
