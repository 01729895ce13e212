"""Tells the clock that wrote times by the seasons, and not by hours that change with them."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from random import Random
from zoneinfo import ZoneInfo

import pytest

from adapters.values.clocks import ShownClock, clock_of

ZONE = ZoneInfo("Europe/Berlin")


def year(opens: Callable[[date], int], written: tzinfo | None = None) -> list[datetime]:
    """Returns times within ten hours of each day, as the wall clock or another shows them."""
    draw, times = Random(5), [datetime.max]  # noqa: DTZ901 - a row that never ends
    for number in range(365):
        day = date(2025, 1, 1) + timedelta(days=number)
        for _ in range(8):
            minutes = opens(day) * 60 + draw.randrange(600)
            shown = datetime(day.year, day.month, day.day, tzinfo=ZONE) + timedelta(minutes=minutes)
            times.append((shown.astimezone(written) if written else shown).replace(tzinfo=None))
    return times


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        (date(2025, 4, 1), date(2025, 10, 1)),
        (date(2025, 4, 1), date(2025, 11, 1)),
        (date(2025, 4, 15), date(2025, 10, 15)),
        (date(2025, 3, 15), date(2025, 10, 26)),
        (date(2025, 5, 1), date(2025, 10, 1)),
    ],
)
def test_hours_of_the_season_are_no_proof_of_a_clock_in_utc(begins: date, ends: date) -> None:
    seen = clock_of(year(lambda day: 7 if begins <= day < ends else 8), ZONE)
    assert not seen.is_proven
    assert not seen.is_likely


def test_a_clock_in_utc_is_proven_where_the_day_moves_with_the_clock() -> None:
    assert clock_of(year(lambda _: 8, UTC), ZONE) == ShownClock(is_utc=True, is_proven=True)


def test_with_few_times_near_its_changes_a_clock_in_utc_is_likely() -> None:
    few = year(lambda _: 8, UTC)[::15]
    assert clock_of(few, ZONE) == ShownClock(is_utc=True, is_proven=False, is_likely=True)


def test_the_clinic_s_clock_is_proven_where_the_day_stays() -> None:
    assert clock_of(year(lambda _: 8), ZONE) == ShownClock(is_utc=False, is_proven=True)
