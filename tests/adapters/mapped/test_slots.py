"""Free slots: the calendar's hard days, half-open intervals, shifts past midnight."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.mapped.slots import FreeDay, Interval, day_window
from adapters.mapping.hours import Shift, closed_days, days_of_week, hours_of_day

PARIS = ZoneInfo("Europe/Paris")
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
HALF = timedelta(minutes=30)
MONDAY = date(2026, 3, 2)
ALL_DAY = [Shift(weekday, time(), time()) for weekday in range(1, 8)]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text + "+00:00")


def local(day: date, shifts: list[Shift], **more: object) -> list[str]:
    """The slots' starts on the clinic's wall clock."""
    options: dict[str, Any] = {"lasts": HALF, "now": LONG_AGO, "busy": (), **more}
    found = FreeDay(day, PARIS, **options).worked(shifts, QUARTER)
    return [each.start.astimezone(PARIS).strftime("%H:%M") for each in found]


def test_a_slot_stands_at_every_step_where_the_whole_duration_fits() -> None:
    shift = [Shift(1, time(9), time(10))]
    assert local(MONDAY, shift) == ["09:00", "09:15", "09:30"]
    assert local(MONDAY, shift, lasts=timedelta(minutes=90)) == []
    assert local(MONDAY + timedelta(days=1), shift) == []


def test_what_blocks_takes_all_that_overlap_and_nothing_that_touches() -> None:
    busy = [Interval(utc("2026-03-02T08:30:00"), utc("2026-03-02T08:45:00"))]
    shift = [Shift(1, time(9), time(10, 30))]  # 08:00 to 09:30 in UTC
    assert local(MONDAY, shift, busy=busy) == ["09:00", "09:45", "10:00"]


def test_what_has_begun_is_no_longer_offered() -> None:
    shift = [Shift(1, time(9), time(10))]
    assert local(MONDAY, shift, now=utc("2026-03-02T08:15:00")) == ["09:30"]


def test_a_night_shift_gives_its_morning_to_the_next_day() -> None:
    night = [Shift(1, time(22), time(1))]
    assert local(MONDAY, night)[-1] == "23:45"
    assert local(MONDAY + timedelta(days=1), night) == ["00:00", "00:15", "00:30"]


def test_the_day_of_23_hours_and_the_day_of_25_have_just_their_slots() -> None:
    for day, hours in ((date(2026, 3, 29), 23), (date(2026, 10, 25), 25), (MONDAY, 24)):
        found = FreeDay(day, PARIS, QUARTER, LONG_AGO, ()).worked(ALL_DAY, QUARTER)
        assert len(found) == len(set(found)) == hours * 4
        assert found[0].start == day_window(day, PARIS).start


def test_the_offset_is_that_of_the_day_not_of_today() -> None:
    day = FreeDay(date(2026, 7, 6), PARIS, HALF, LONG_AGO, ())
    summer = day.worked([Shift(1, time(9), time(9, 30))], QUARTER)
    assert summer == [Interval(utc("2026-07-06T07:00:00"), utc("2026-07-06T07:30:00"))]


@given(
    day=st.dates(date(2025, 1, 1), date(2027, 12, 31)),
    starts=st.lists(st.integers(0, 1500), max_size=6),
    length=st.integers(5, 240),
)
def test_no_free_slot_ever_overlaps_what_blocks(day: date, starts: list[int], length: int) -> None:
    begin = day_window(day, PARIS).start
    busy = [
        Interval(begin + timedelta(minutes=each), begin + timedelta(minutes=each + length))
        for each in starts
    ]
    found = FreeDay(day, PARIS, HALF, LONG_AGO, busy).worked(ALL_DAY, QUARTER)
    assert not [each for each in found for other in busy if each.overlaps(other)]
    assert all(each.start.astimezone(PARIS).date() == day for each in found)


def test_hours_of_one_day_open_that_day_alone_and_nothing_opens_on_a_closed_one() -> None:
    dated = [Shift(0, time(9), time(10), day=MONDAY)]
    assert local(MONDAY, dated) == ["09:00", "09:15", "09:30"]
    assert local(MONDAY + timedelta(days=7), dated) == []
    weekly = [Shift(1, time(22), time(1), closed=frozenset({MONDAY}))]
    assert local(MONDAY, weekly) == []
    assert local(MONDAY + timedelta(days=1), weekly) == []
    assert local(MONDAY + timedelta(days=7), weekly)[0] == "22:00"


@pytest.mark.parametrize(
    ("text", "days"),
    [("mon", (1,)), ("Mon-Fri", (1, 2, 3, 4, 5)), ("sat-mon", (6, 7, 1)), ("sun-sun", (7,))],
)
def test_days_of_the_week_are_written_by_their_names(text: str, days: tuple[int, ...]) -> None:
    assert days_of_week(text) == days


def test_hours_and_closed_days_are_written_as_people_write_them() -> None:
    assert hours_of_day("8:30-12:00") == (time(8, 30), time(12))
    assert hours_of_day("14:00 - 24:00") == (time(14), time())
    assert closed_days("2026-12-31..2027-01-01") == (date(2026, 12, 31), date(2027, 1, 1))
    assert closed_days("2026-12-25") == (date(2026, 12, 25),)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (days_of_week, "monday"),
        (days_of_week, "mon-"),
        (hours_of_day, "8-12"),
        (hours_of_day, "08:30-24:30"),
        (closed_days, "25.12.2026"),
        (closed_days, "2026-12-25..2026-12-24"),
        (closed_days, "2026-12-25..2099-12-24"),
    ],
)
def test_what_makes_no_sense_is_refused_with_an_example(read: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r"write|ends before"):
        read(text)
