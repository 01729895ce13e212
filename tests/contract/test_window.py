"""The booking window: what may be booked, by the clinic's calendar."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.contract.openapi import document
from gateway.contract.window import BookingWindow

PARIS = ZoneInfo("Europe/Paris")
# 00:30 on the 4th in Paris.
NOW = datetime(2026, 3, 3, 23, 30, tzinfo=UTC)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def window(horizon: int = 10, lead_time: int = 0) -> BookingWindow:
    return BookingWindow(horizon=horizon, lead_time=lead_time, zone=PARIS)


def test_the_horizon_counts_days_of_the_clinics_calendar() -> None:
    assert window().last_day(NOW) == date(2026, 3, 14)
    last = datetime(2026, 3, 14, 23, 59, tzinfo=PARIS)
    assert window().problem(last, NOW) is None
    problem = window().problem(last + timedelta(minutes=1), NOW)
    assert problem == "must be at most 10 days ahead"
    assert window(1).problem(last, NOW) == "must be at most 1 day ahead"


def test_the_last_day_ends_with_the_second_of_two_equal_hours() -> None:
    santiago = BookingWindow(horizon=1, lead_time=0, zone=ZoneInfo("America/Santiago"))
    now = datetime(2026, 4, 3, 12, tzinfo=UTC)
    midnight = datetime(2026, 4, 5, 4, tzinfo=UTC)  # an hour later than by the old offset
    assert santiago.problem(midnight - timedelta(minutes=1), now) is None
    assert santiago.problem(midnight, now) == "must be at most 1 day ahead"


def test_the_lead_time_is_counted_in_minutes_to_the_start() -> None:
    late = window(lead_time=90)
    assert late.problem(NOW + timedelta(minutes=90), NOW) is None
    problem = late.problem(NOW + timedelta(minutes=89, seconds=59), NOW)
    assert problem == "must be at least 90 minutes from now"
    assert window(lead_time=1).earliest == "at least 1 minute from now"
    assert late.problem(NOW, NOW) == window().problem(NOW, NOW) == "must be in the future"


@pytest.mark.parametrize("start", [FIRST, LAST, LAST - timedelta(hours=1)])
def test_no_end_of_the_calendar_is_a_fault(start: datetime) -> None:
    assert window().problem(start, NOW)
    assert window(36_500).problem(start, NOW)
    assert window(36_500).last_day(LAST - timedelta(days=2)) == date.max


def test_partners_are_told_of_it() -> None:
    told = document(public_url="https://x.example", window=window(lead_time=90))
    slots = told["paths"]["/appointments/available-slots"]["get"]["parameters"]
    [day] = [each for each in slots if each["name"] == "date"]
    assert day["description"] == "The clinic's local day. At most 10 days ahead."
    body = told["components"]["schemas"]["CreateAppointmentRequest"]["properties"]
    bounds = "At least 90 minutes from now, at most 10 days ahead."
    assert body["scheduledAt"]["description"].endswith(bounds)
    told = document(public_url="https://x.example", window=window())
    body = told["components"]["schemas"]["CreateAppointmentRequest"]["properties"]
    assert body["scheduledAt"]["description"].endswith("slots. At most 10 days ahead.")
