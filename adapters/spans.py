"""How long what stands in a diary lasts, however its length and its end are written."""

import re
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

from adapters.base import BackendNonsense
from adapters.convert import Unreadable
from adapters.slots import ONE_DAY
from adapters.wall_clock import length

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
