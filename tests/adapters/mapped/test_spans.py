"""Lengths and ends as a diary writes them."""

from datetime import UTC, datetime, timedelta

import pytest

from adapters.base import BackendNonsense
from adapters.mapped.slots import Block, Interval
from adapters.mapped.spans import lasting, narrowed, type_lasts, whole_day
from adapters.values.convert import Unreadable

LENGTHS = {30: 30, "30": 30, "0:30": 30, "01:30:00": 90, 2880: 2880, " 45 ": 45}


@pytest.mark.parametrize(("written", "minutes"), LENGTHS.items())
def test_a_length_is_minutes_or_a_clocks_hours(written: object, minutes: int) -> None:
    assert lasting(written) == timedelta(minutes=minutes)


@pytest.mark.parametrize("written", [None, "", " ", 0, "0", "00:00", 0.0])
def test_nothing_and_nought_say_no_length(written: object) -> None:
    assert lasting(written) is None


@pytest.mark.parametrize("written", [-5, 2881, "49:00", "soon", [30], {}, float("nan")])
def test_a_length_without_sense_is_unreadable(written: object) -> None:
    with pytest.raises(Unreadable):
        lasting(written)


@pytest.mark.parametrize(("minutes", "lasts"), [(None, 0), (0, 0), (2880, 2880)])
def test_a_type_lasts_as_long_as_it_says(minutes: int | None, lasts: int) -> None:
    assert (type_lasts(minutes) or timedelta()) == timedelta(minutes=lasts)


def test_a_type_that_lasts_less_than_nothing_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        type_lasts(-1)


@pytest.mark.parametrize("minutes", [2881, 10**30])
def test_no_type_lasts_longer_than_two_days(minutes: int) -> None:
    with pytest.raises(BackendNonsense, match="two days"):
        type_lasts(minutes)


ENDS = {
    "2026-03-04": "2026-03-05",
    " 2026-02-28 ": "2026-03-01",
    "2026-03-04 10:00": "2026-03-04 10:00",
    "2026-02-30": "2026-02-30",
    "9999-12-31": "9999-12-31",
    None: None,
    20260304: 20260304,
}


@pytest.mark.parametrize(("written", "end"), ENDS.items())
def test_an_end_that_is_a_day_is_when_it_is_over(written: object, end: object) -> None:
    assert whole_day(written) == end


def span(start: int, end: int) -> Interval:
    night = datetime(2027, 10, 31, tzinfo=UTC)
    return Interval(night + timedelta(minutes=start), night + timedelta(minutes=end))


# 02:15 to 03:00 on the wall
READINGS = [Block(span(15, 60)), Block(span(75, 120)), Block(span(15, 120), is_likely=False)]


def test_the_booked_one_of_several_times_blocks_alone() -> None:
    assert narrowed(READINGS, span(75, 120)) == [Block(span(75, 120))]
    assert narrowed(READINGS, span(15, 60)) == [Block(span(15, 60))]


def test_a_row_that_lasts_longer_than_was_booked_blocks_all_that_time() -> None:
    assert narrowed(READINGS, span(15, 75)) == [Block(span(15, 120))]


@pytest.mark.parametrize("booked", [span(30, 60), span(75, 135)])
def test_a_row_that_is_not_as_it_was_booked_blocks_all_that_it_may_mean(booked: Interval) -> None:
    assert narrowed(READINGS, booked) == READINGS


def test_a_booked_time_without_a_length_decides_the_start_alone() -> None:
    assert narrowed(READINGS, span(15, 15)) == [READINGS[0], READINGS[2]]
