"""Each converter undoes one way of writing a value, and reads back what it writes."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import convert, times
from adapters.convert import Boolean, Codes, UnknownCode, Unreadable
from adapters.ids import Id, SealedIds
from adapters.seal import Sealer
from adapters.times import LocalTime

PARIS = LocalTime(ZoneInfo("Europe/Paris"))
SEALED = Id(SealedIds(Sealer(b"k" * 32, "clients")))
ALERTS = convert.SplitText()
STATES = Codes({"V": "VALIDATED", "v": "VALIDATED", "E": "IN_PROGRESS"})
READ: list[tuple[convert.Converter, Any, Any]] = [
    (convert.Text(), "  Zoé ", "Zoé"),
    (convert.Text(), "   ", None),
    (convert.Text(), None, None),
    (convert.Text(), 12, "12"),
    (convert.Email(), " a@example.fr ", "a@example.fr"),
    (ALERTS, "Agressif; Allergie ;;", ["Agressif", "Allergie"]),
    (ALERTS, "", None),
    (STATES, " V ", "VALIDATED"),
    (STATES, None, None),
    (Boolean(("O",), ("N",)), "O ", True),
    (Boolean(("O",), ("N",)), "N", False),
    (Boolean(("O",), ("N",)), None, None),
    (Boolean((-1, 1), (0,)), -1, True),
    (Boolean(), b"\x00", False),
    (convert.Number(), "4,2", 4.2),
    (convert.Number(), "10", 10),
    (convert.Number(), 0.1, 0.1),
    (convert.Integer(), 30.0, 30),
    (convert.Money(), "1 234,50", "1234.50"),
    (convert.Money(), "1.234,50", "1234.50"),
    (convert.Money(), "-12", "-12.00"),
    (convert.Money(), "", None),
    (convert.Money(), "1,234.50", "1234.50"),
    (convert.Money(), "1,234,567.5", "1234567.50"),
    (convert.Money(), "1.234.567", "1234567.00"),
    (convert.Money(), "-0", "0.00"),
    (convert.Money(), "-0,001", "0.00"),
    (convert.Money(cents=True), 6726, "67.26"),
    (convert.Colour(), 0x2E86AB, "#2E86AB"),
    (convert.Colour(), "#2e86ab", "#2e86ab"),
    (PARIS, "2026-03-01 10:00:00", "2026-03-01T09:00:00Z"),
    (PARIS, "2026-07-01T10:00", "2026-07-01T08:00:00Z"),
    (PARIS, "2026-03-01", "2026-02-28T23:00:00Z"),
    (PARIS, "0000-00-00 00:00:00", None),
    (PARIS, "1900-01-01", None),
    (PARIS, "2026-03-29 02:30:00", "2026-03-29T01:30:00Z"),  # does not exist: moved on
    (PARIS, "2026-10-25 02:30:00", "2026-10-25T00:30:00Z"),  # twice: the first
    (times.UtcTime(), "2026-03-01 10:00:00", "2026-03-01T10:00:00Z"),
    (times.Day(), "2020-02-29", "2020-02-29"),
    (times.Day(), "0000-00-00", None),
]
UNREADABLE: list[tuple[convert.Converter, Any]] = [
    (convert.Text(), b"\xff\xfe"),
    (convert.Email(), "none"),
    (convert.Number(), "about 3"),
    (convert.Number(), "NaN"),
    (convert.Number(), "1_000"),
    (convert.Number(), "1,2.3,4"),
    (convert.Text(), "x" * 100_001),
    (convert.Number(), "1e99"),
    (convert.Integer(), "3,5"),
    (convert.Colour(), 1 << 24),
    (convert.Colour(), "red"),
    (PARIS, "2026-02-30 10:00:00"),
    (PARIS, "tomorrow"),
    (times.Day(), "2026-W01-1"),
    (SEALED, "much too long"),
    (SEALED, 1 << 64),
]


@pytest.mark.parametrize(("converter", "raw", "value"), READ)
def test_a_raw_value_reads_as(converter: convert.Converter, raw: Any, value: Any) -> None:
    found = converter.decode(raw)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(("converter", "raw"), UNREADABLE)
def test_what_cannot_be_read_is_said_and_never_passed_on(
    converter: convert.Converter, raw: Any
) -> None:
    with pytest.raises(Unreadable):
        converter.decode(raw)


@pytest.mark.parametrize("converter", [STATES, Boolean(("O",), ("N",))])
def test_an_unknown_code_is_told_apart(converter: convert.Converter) -> None:
    with pytest.raises(UnknownCode):
        converter.decode("Z")


def test_a_filter_by_a_coded_value_finds_every_code_of_it() -> None:
    assert STATES.encode("VALIDATED") == ("V", "v")
    assert STATES.encode("UNHEARD_OF") == ()


MOMENTS = st.integers(631_152_000, 2_840_140_800).map(
    lambda seconds: datetime.fromtimestamp(seconds, UTC)
)


@given(MOMENTS)
def test_a_local_time_reads_back_as_written_but_for_the_hour_that_comes_twice(
    moment: datetime,
) -> None:
    back = PARIS.instant(PARIS.encode(moment)[0])
    twice = moment.astimezone(PARIS.zone).fold == 1
    assert back == (moment - timedelta(hours=1) if twice else moment)


@given(
    st.one_of(
        MOMENTS,
        st.integers(0, 7_200).map(
            lambda seconds: datetime(2026, 10, 24, 23, 30, tzinfo=UTC) + timedelta(seconds=seconds)
        ),
    ),
    st.integers(-7_200, 7_200),
)
def test_since_bounds_just_the_rows_that_read_as_that_moment_or_later(
    moment: datetime, seconds: int
) -> None:
    row = PARIS.encode(moment + timedelta(seconds=seconds))[0]
    read = PARIS.instant(row)
    assert read is not None
    assert (row >= PARIS.since(moment)) == (read >= moment)


def test_since_survives_the_ends_of_the_calendar() -> None:
    assert PARIS.since(datetime(1, 1, 1, tzinfo=UTC)).startswith("0001-01-01")
    assert PARIS.since(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)) > "9999-12-31"
