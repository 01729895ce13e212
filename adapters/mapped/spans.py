"""How long what stands in a diary lasts, however its length and its end are written."""

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
MOST_MINUTES = 1_000_000
is_day = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch


def lasting(raw: Any) -> timedelta | None:
    """So long: minutes, or a text HH:MM or HH:MM:SS; None where it is not said, or nought.

    Unreadable for less than nothing and for more than two days.
    """
    found = length(raw)
    if not found:
        return None
    if not timedelta() < found <= LONGEST_OPEN:
        raise Unreadable
    return found


def spans_of(starts: Sequence[datetime], ends: Sequence[datetime]) -> list[Interval]:
    """All times from one of the starts to one of the ends behind it."""
    return [Interval(start, end) for start in starts for end in ends if start < end]


def readings(
    starts: Sequence[datetime],
    ends: Sequence[datetime],
    lasts: timedelta | None,
    zone: ZoneInfo,
) -> Iterator[tuple[Interval, bool]]:
    """All times that a row may mean, and of each whether a clock on the wall alone would say it.

    Nothing where no end comes after a start. A length (`lasts`) decides where the start is clear,
    or where it counts the change of the clocks: whoever writes 02:45 to 02:15 and 30 minutes knows
    of it, whoever writes 02:30 to 03:30 and 60 minutes may not.
    """

    def crosses(span: Interval) -> bool:
        """Whether the clocks change in between."""
        return len({each.astimezone(zone).utcoffset() for each in (span.start, span.end)}) > 1

    spans = spans_of(starts, ends)
    known = [span for span in spans if span.end - span.start == lasts]
    decided = known if len(starts) == 1 else list(filter(crosses, known))
    plain = [span.end - span.start for span in spans if not crosses(span)]
    if decided or len(spans) == 1 or not plain:
        yield from ((span, True) for span in decided or spans)
        return
    shown = {Interval(start, start + min(plain)) for start in starts}
    yield from ((span, True) for span in sorted(shown))
    yield from ((span, False) for span in spans if span not in shown)


def narrowed(blocks: Sequence[Block], booked: Interval) -> Sequence[Block]:
    """Of the times that a row may mean the one that was booked; all where none is that.

    It begins then, and lasts as long, or longer. Where it is not known how long the booked time
    lasts (it has no length), all that begin then.
    """
    fitting = [
        block
        for block in blocks
        if block.interval.start == booked.start and block.interval.end >= booked.end
    ]
    if not fitting or booked.start == booked.end:
        return fitting or blocks
    return [replace(min(fitting, key=lambda block: block.interval), is_likely=True)]


def type_lasts(minutes: int | None, default: int) -> timedelta:
    """How long an appointment of a type lasts; `default` minutes where it does not say.

    BackendNonsense for more than two days.
    """
    if minutes and timedelta(minutes=min(minutes, MOST_MINUTES)) > LONGEST_OPEN:
        raise BackendNonsense("an appointment type lasts longer than two days")
    return timedelta(minutes=minutes if minutes and minutes > 0 else default)


def whole_day(end: Any) -> Any:
    """An end that is a day without a time lasts until that day is over."""
    shown = end.strip() if isinstance(end, str) else end
    if isinstance(shown, str) and is_day(shown):
        with suppress(ValueError, OverflowError):
            return (date.fromisoformat(shown) + ONE_DAY).isoformat()
    return end
