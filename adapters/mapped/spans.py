"""Works out how long a row of a diary lasts, however its length and its end are written."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import BackendNonsense
from adapters.mapped.slots import ONE_DAY, Block, Interval
from adapters.values.convert import Unreadable
from adapters.values.times import length

LONGEST_OPEN = timedelta(days=2)
# The shortest and the longest step of a schedule.
STEPS = (timedelta(minutes=5), timedelta(minutes=240))
MOST_MINUTES = 1_000_000
looks_like_day = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch


def lasting(raw: Any) -> timedelta | None:
    """Returns a length of minutes, or of a text HH:MM or HH:MM:SS; None for none or zero.

    Raises Unreadable for less than zero and for more than two days.
    """
    lasts = length(raw)
    if not lasts:
        return None
    if not timedelta() < lasts <= LONGEST_OPEN:
        raise Unreadable
    return lasts


def spans_of(starts: Sequence[datetime], ends: Sequence[datetime]) -> list[Interval]:
    """Returns all times from one of the starts to one of the ends after it."""
    return [Interval(start, end) for start in starts for end in ends if start < end]


def readings(
    starts: Sequence[datetime], ends: Sequence[datetime], lasts: timedelta | None, zone: ZoneInfo
) -> Iterator[tuple[Interval, bool]]:
    """Yields all times that a row may mean, each with whether a wall clock alone would say it.

    Yields nothing where no end comes after a start. A length (`lasts`) decides where the start is
    clear, or where the length counts the change of the clocks: 02:45 to 02:15 with 30 minutes does,
    02:30 to 03:30 with 60 minutes may not.
    """

    def crosses_change(span: Interval) -> bool:
        return len({moment.astimezone(zone).utcoffset() for moment in (span.start, span.end)}) > 1

    spans = spans_of(starts, ends)
    known = [span for span in spans if span.end - span.start == lasts]
    decided = known if len(starts) == 1 else list(filter(crosses_change, known))
    plain = [span.end - span.start for span in spans if not crosses_change(span)]
    if decided or len(spans) == 1 or not plain:
        yield from ((span, True) for span in decided or spans)
        return
    shown = {Interval(start, start + min(plain)) for start in starts}
    yield from ((span, True) for span in sorted(shown))
    yield from ((span, False) for span in spans if span not in shown)


def narrowed(blocks: Sequence[Block], booked: Interval) -> Sequence[Block]:
    """Returns only the block that was booked, of all that a row may mean; all where none was.

    It begins at the booked start, and lasts as long or longer. A booked time without a length
    stands for one that is not known: then all that begin at its start are returned.
    """
    fitting = [
        block
        for block in blocks
        if block.interval.start == booked.start and block.interval.end >= booked.end
    ]
    if not fitting or booked.start == booked.end:
        return fitting or blocks
    return [replace(min(fitting, key=lambda block: block.interval), is_likely=True)]


def type_lasts(minutes: int | None) -> timedelta | None:
    """Returns a type's length; None for none or zero.

    Raises Unreadable for less than zero, and BackendNonsense for more than two days.
    """
    if minutes and timedelta(minutes=min(minutes, MOST_MINUTES)) > LONGEST_OPEN:
        raise BackendNonsense("an appointment type lasts longer than two days")
    return lasting(minutes)


def grid(raw: Any) -> timedelta | None:
    """Returns the step of a schedule; None for none or zero. Raises Unreadable beyond STEPS."""
    step = lasting(raw)
    if step is not None and not STEPS[0] <= step <= STEPS[1]:
        raise Unreadable
    return step


def whole_day(end: Any) -> Any:
    """Returns an end; one that is a day without a time lasts until that day is over."""
    shown = end.strip() if isinstance(end, str) else end
    if isinstance(shown, str) and looks_like_day(shown):
        with suppress(ValueError, OverflowError):
            return (date.fromisoformat(shown) + ONE_DAY).isoformat()
    return end
