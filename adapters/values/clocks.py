"""Tells by many times which clock wrote them: one on a wall, or one that shows UTC."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, datetime, timedelta
from zoneinfo import ZoneInfo

# How many times of each half of a year prove something by themselves, and beside another column.
MANY, SOME = 70, 20
# The share of the earliest and of the latest times that may be emergencies.
ODD = 0.04
# In minutes: how far the working day seems to move between winter and summer on a clock that shows
# UTC, and on the clinic's own.
MOVED, STILL = (40, 80), 20
# How near a change of the clock tells it from hours of the season, which begin on other days, and
# how far in minutes both changes have to move the working day there.
BESIDE, CLEAR = timedelta(weeks=2), 50


@dataclass(frozen=True, slots=True)
class ShownClock:
    """What times show: whether their clock is UTC's (None: unknown), and whether that is proven.

    UTC's is likely where too few times are near the changes of the clock to prove it or deny it.
    """

    is_utc: bool | None
    is_proven: bool
    is_likely: bool = False


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
    early, late = _moved(*halves)
    middle = (early + late) / 2
    is_many = fewest >= MANY
    if MOVED[0] <= middle <= MOVED[1]:
        is_shown = is_many and min(early, late) >= STILL
        moves = _moves_with_clock(times, zone) if is_shown else False
        return ShownClock(is_utc=True, is_proven=bool(moves), is_likely=moves is None)
    if abs(middle) <= STILL:
        is_proven = is_many and max(abs(early), abs(late)) <= 2 * STILL
        return ShownClock(is_utc=False, is_proven=is_proven)
    return unknown


def _moved(winter: Sequence[int], summer: Sequence[int]) -> list[int]:
    """Returns by how many minutes the working day begins and ends later in winter."""
    return [
        winter[int(share * (len(winter) - 1))] - summer[int(share * (len(summer) - 1))]
        for share in (ODD, 1 - ODD)
    ]


def _moves_with_clock(times: Sequence[datetime], zone: ZoneInfo) -> bool | None:
    """Returns whether the working day moves at both changes of the clock; None for too few."""
    sides = defaultdict[tuple[bool, bool], list[int]](list)
    for time in times:
        if MINYEAR < time.year < MAXYEAR:
            before, offset, after = (
                (time + step).replace(tzinfo=zone).utcoffset() or timedelta()
                for step in (-BESIDE, timedelta(), BESIDE)
            )
            if before != after:
                is_summer = offset == max(before, after)
                sides[before < after, is_summer].append(time.hour * 60 + time.minute)
    moves = []
    for is_spring in (True, False):
        winter, summer = (sorted(sides[is_spring, is_summer]) for is_summer in (False, True))
        if min(len(winter), len(summer)) < SOME:
            return None
        moves.append(sum(_moved(winter, summer)) / 2)
    return min(moves) >= STILL and sum(moves) / 2 >= CLEAR
