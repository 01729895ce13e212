"""When a booking may begin: after the clinic's lead time, and within its horizon."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

DAY = timedelta(days=1)
NOT_TO_COME = "must be in the future"


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingWindow:
    """The times that may be booked, as seen from a moment.

    `horizon` counts days of the clinic's calendar from today, by the clock of `zone`; `lead_time`
    is the number of minutes between a booking and its start.
    """

    horizon: int
    lead_time: int
    zone: tzinfo

    def last_day(self, now: datetime) -> date:
        """The last day of the clinic's calendar that can be booked."""
        today = now.astimezone(self.zone).date()
        return today + min(timedelta(days=self.horizon), date.max - today)

    def day(self, now: datetime) -> tuple[datetime, datetime]:
        """Where the present day of the clinic's calendar begins, and where it ends."""
        today = now.astimezone(self.zone).date()
        begins, ends = (datetime.combine(each, time(), self.zone) for each in (today, today + DAY))
        return begins.astimezone(UTC), ends.astimezone(UTC)

    def bounds(self, now: datetime) -> tuple[datetime, datetime]:
        """The first and the last moment at which a booking may begin."""
        first = now + max(timedelta(minutes=self.lead_time), datetime.resolution)
        # the later one of an evening that the clock shows twice
        end_of_day = time.max.replace(fold=1)
        last = datetime.combine(self.last_day(now), end_of_day, self.zone)
        return first, last.astimezone(UTC)

    def problem(self, start: datetime, now: datetime) -> str | None:
        """Why nothing can be booked at that time, as the end of a sentence; None where it can."""
        first, last = self.bounds(now)
        if start <= now:
            return NOT_TO_COME
        if start < first:
            return f"must be {self.earliest}"
        return f"must be {self.latest}" if start > last else None

    @property
    def earliest(self) -> str:
        """The lead time in words."""
        return "in the future" if not self.lead_time else f"{_minutes(self.lead_time)} from now"

    @property
    def latest(self) -> str:
        """The horizon in words."""
        return f"at most {self.horizon} day{'' if self.horizon == 1 else 's'} ahead"


def _minutes(number: int) -> str:
    return f"at least {number} minute{'' if number == 1 else 's'}"
