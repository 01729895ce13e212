"""Tells by many times which clock wrote them: one on a wall, or one that shows UTC."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

# How many times of each half of a year prove something by themselves, and beside another column.
MANY, SOME = 70, 20
# The share of the earliest and of the latest times that may be emergencies.
ODD = 0.04
# In minutes: how far the working day seems to move between winter and summer on a clock that shows
# UTC, and on the clinic's own.
MOVED, STILL = (40, 80), 20


@dataclass(frozen=True, slots=True)
class ShownClock:
    """What times show: whether their clock is UTC's (None: unknown), and whether that is proven."""

    is_utc: bool | None
    is_proven: bool


def clock_of(times: Sequence[datetime], zone: ZoneInfo) -> ShownClock:
    """Returns what times as they are written, without a zone, show of their clock."""
    offsets = [time.replace(tzinfo=zone).utcoffset() or timedelta() for time in times]
    unknown = ShownClock(is_utc=None, is_proven=False)
    winter, summer = min(offsets, default=None), max(offsets, default=None)
    if winter == summer:
        return unknown
    halves = [
        sorted(
            time.hour * 60 + time.minute
            for time, offset in zip(times, offsets, strict=True)
            if offset == half
        )
        for half in (winter, summer)
    ]
    fewest = min(map(len, halves))
    if fewest < SOME:
        return unknown
    early, late = (
        halves[0][int(share * (len(halves[0]) - 1))] - halves[1][int(share * (len(halves[1]) - 1))]
        for share in (ODD, 1 - ODD)
    )
    middle = (early + late) / 2
    is_many = fewest >= MANY
    if MOVED[0] <= middle <= MOVED[1]:
        return ShownClock(is_utc=True, is_proven=is_many and min(early, late) >= STILL)
    if abs(middle) <= STILL:
        is_proven = is_many and max(abs(early), abs(late)) <= 2 * STILL
        return ShownClock(is_utc=False, is_proven=is_proven)
    return unknown
