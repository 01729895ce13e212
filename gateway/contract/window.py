"""Bounds when a booking may begin, and tells partners of these bounds."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TypeVar

from gateway.contract.fields import Field
from gateway.contract.operations import Operation, Param

DAY = timedelta(days=1)
Member = TypeVar("Member", Param, Field)
NOT_TO_COME = "must be in the future"


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingWindow:
    """The times at which a booking may begin.

    `horizon` counts days of the clinic's calendar from today, by the clock of `zone`. `lead_time`
    is the number of minutes between a booking and its start.
    """

    horizon: int
    lead_time: int
    zone: tzinfo

    def last_day(self, now: datetime) -> date:
        """Returns the last day of the clinic's calendar that can be booked."""
        today = now.astimezone(self.zone).date()
        return today + min(timedelta(days=self.horizon), date.max - today)

    def day(self, now: datetime) -> tuple[datetime, datetime]:
        """Returns when the present day of the clinic's calendar begins and ends, in UTC."""
        today = now.astimezone(self.zone).date()
        begins, ends = (datetime.combine(day, time(), self.zone) for day in (today, today + DAY))
        return begins.astimezone(UTC), ends.astimezone(UTC)

    def bounds(self, now: datetime) -> tuple[datetime, datetime]:
        """Returns the first and the last moment at which a booking may begin."""
        first = now + max(timedelta(minutes=self.lead_time), datetime.resolution)
        # where the clock shows an evening twice, the later one
        end_of_day = time.max.replace(fold=1)
        last = datetime.combine(self.last_day(now), end_of_day, self.zone)
        return first, last.astimezone(UTC)

    def problem(self, start: datetime, now: datetime) -> str | None:
        """Returns why nothing can begin then, as the end of a sentence; None where it can."""
        first, last = self.bounds(now)
        if start <= now:
            return NOT_TO_COME
        if start < first:
            return f"must be {self.earliest}"
        return f"must be {self.latest}" if start > last else None

    @property
    def earliest(self) -> str:
        """The lead time in words."""
        minutes = f"{self.lead_time} minute{'' if self.lead_time == 1 else 's'}"
        return f"at least {minutes} from now" if self.lead_time else "in the future"

    @property
    def latest(self) -> str:
        """The horizon in words."""
        return f"at most {self.horizon} day{'' if self.horizon == 1 else 's'} ahead"


def bounded(
    operation: Operation, window: BookingWindow | None, bookings_per_day: int | None
) -> Operation:
    """Returns the operation with the booking window, and the key's bookings a day, described."""
    if operation.creates and bookings_per_day is not None:
        own = (
            f"This key may book {bookings_per_day} a day, by the clinic's calendar: beyond that a"
            " new booking is 429 until the day has ended."
        )
        operation = replace(operation, notes=f"{operation.notes} {own}")
    if window is None:
        return operation
    latest = window.latest
    bounds = f"{window.earliest}, {latest}" if window.lead_time else latest
    return replace(
        operation,
        params=tuple(_bounded(param, latest) for param in operation.params),
        body=tuple(_bounded(member, bounds) for member in operation.body),
    )


def _bounded(member: Member, bounds: str) -> Member:
    if not member.to_come:
        return member
    return replace(member, summary=f"{member.summary} {bounds[0].upper()}{bounds[1:]}.")
