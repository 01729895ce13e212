"""Each converter undoes one way of writing a value, and reads back what it writes."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.ids.seal import Id, SealedIds
from adapters.values import convert, times
from adapters.values.convert import Boolean, Codes, UnknownCode, Unreadable
from adapters.values.times import LocalTime

PARIS = LocalTime(ZoneInfo("Europe/Paris"))
SEALED = Id(SealedIds(b"k" * 32, "clients"))
TWO = LocalTime(ZoneInfo("Europe/Paris"), columns=2)
SLASHED = LocalTime(ZoneInfo("Europe/Paris"), ("00/00/0000",), "%d/%m/%Y %H:%M")
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
    (convert.Colour(), "3049131", "#2E86AB"),
    (convert.Colour("bgr"), 0xAB862E, "#2E86AB"),
    (convert.Text("cp1252"), b"Zo\xe9 \x80", "Zoé €"),
    (convert.JoinedText(" "), (" 1, rue X ", None, "", "Lyon"), "1, rue X Lyon"),
    (convert.JoinedText(), (None, " "), None),
    (convert.PartOfText(",", 1), "Martin, Zoé", "Martin"),
    (convert.PartOfText(",", -1), "Martin, Zoé", "Zoé"),
    (convert.PartOfText(",", 2), "Martin", None),
    (convert.PartOfText(",", 2), "Martin, ", None),
    (convert.PartOfText(",", -3), "Martin, Zoé", None),
    (Codes({"1": "#FF0000"}), b"\x01", "#FF0000"),
    (Codes({"C": 20}), "C", 20),
    (Codes({"X": None, "": "UNKNOWN"}), "X", None),
    (Codes({"X": None, "": "UNKNOWN"}), "  ", "UNKNOWN"),
    (Codes({"true": "A"}), True, "A"),
    (PARIS, "2026-03-01 10:00:00", "2026-03-01T09:00:00Z"),
    (PARIS, "2026-07-01T10:00", "2026-07-01T08:00:00Z"),
    (PARIS, "2026-03-01", "2026-02-28T23:00:00Z"),
    (PARIS, "0000-00-00 00:00:00", None),
    (PARIS, "1900-01-01", None),
    (PARIS, "2026-03-29 02:30:00", "2026-03-29T01:30:00Z"),  # does not exist: moved on
    (PARIS, "2026-10-25 02:30:00", "2026-10-25T00:30:00Z"),  # twice: the first
    (times.UtcTime(), "2026-03-01 10:00:00", "2026-03-01T10:00:00Z"),
    (TWO, ("2026-07-01", "10:00"), "2026-07-01T08:00:00Z"),
    (TWO, ("2026-07-01 00:00:00", "930"), "2026-07-01T07:30:00Z"),
    (TWO, ("2026-07-01", "24:00"), "2026-07-01T22:00:00Z"),
    (TWO, ("0000-00-00", None), None),
    (SLASHED, "01/07/2026 10:00", "2026-07-01T08:00:00Z"),
    (SLASHED, "00/00/0000 00:00", None),
    (times.ZonedTime(), "2026-07-01 10:00:00+02", "2026-07-01T08:00:00Z"),
    (times.ZonedTime(), "2026-07-01T10:00:00.250Z", "2026-07-01T10:00:00Z"),
    (times.ZonedTime(), "2026-07-01 10:00:00.0000000 -03:30", "2026-07-01T13:30:00Z"),
    (times.ZonedTime(zero=("1970-01-01T00:00:00Z",)), "1970-01-01T00:00:00Z", None),
    (times.ZonedTime(zero=("1970-01-01 00:00:00+00",)), " 1970-01-01 00:00:00+00", None),
    (
        times.ZonedTime(zero=("1970-01-01T00:00:00",)),
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
    ),
    (times.Epoch(), 1_772_355_600, "2026-03-01T09:00:00Z"),
    (times.Epoch(), "0", None),
    (times.Epoch(), 0.0, None),
    (times.Epoch(("-1", "never")), Decimal("-1.00"), None),
    (times.Epoch(("-1", "never")), "never", None),
    (times.Epoch(("-1", "never")), 0, "1970-01-01T00:00:00Z"),
    (times.Epoch(()), 0.0, "1970-01-01T00:00:00Z"),
    (times.Epoch(unit="milliseconds"), "1772355600250", "2026-03-01T09:00:00Z"),
    (times.Later(PARIS), ("2026-07-01 10:00:00", "00:45:00"), "2026-07-01T08:45:00Z"),
    (times.Later(PARIS), ("2026-07-01 10:00:00", 20), "2026-07-01T08:20:00Z"),
    (times.Later(PARIS), ("2026-07-01 10:00:00", None), None),
    (times.Later(TWO), ("2026-07-01", "10:00", "90"), "2026-07-01T09:30:00Z"),
    # in real time: the clocks go forward in between
    (times.Later(PARIS), ("2026-03-29 01:30:00", 60), "2026-03-29T01:30:00Z"),
    (times.Day(pattern="%d.%m.%Y"), "29.02.2020", "2020-02-29"),
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
    (TWO, ("2026-07-01", None)),
    (TWO, ("2026-07-01", "10h")),
    (times.Day(), ("9999-12-31", "24:00:00")),
    (SLASHED, "2026/07/01"),
    (times.ZonedTime(), "2026-07-01 10:00:00"),
    (times.Epoch(), "soon"),
    (times.Later(PARIS), ("2026-07-01 10:00:00", "long")),
    (convert.Text("cp1252"), b"\x81"),
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
@pytest.mark.parametrize("raw", ["Z", Decimal("NaN"), Decimal("sNaN")])
def test_an_unknown_code_is_told_apart(converter: convert.Converter, raw: Any) -> None:
    with pytest.raises(UnknownCode):
        converter.decode(raw)


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


@pytest.mark.parametrize("local", [PARIS, LocalTime(PARIS.zone, pattern="%Y%m%d%H%M")])
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
    local: LocalTime, moment: datetime, seconds: int
) -> None:
    row = local.encode(moment + timedelta(seconds=seconds))[0]
    read = local.instant(row)
    assert read is not None
    assert (row >= local.since(moment)) == (read >= moment)


NIGHTS = [
    datetime(2026, month, day, hour)  # noqa: DTZ001 - what a clock on the wall shows
    for month, day in ((3, 8), (3, 29), (4, 5), (10, 4), (10, 25), (11, 1), (12, 31))
    for hour in range(4)
]


@pytest.mark.parametrize("zone", ["Europe/Paris", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"])
@given(
    st.sampled_from(NIGHTS) | st.datetimes(max_value=NIGHTS[-1].replace(year=9999)),
    st.integers(0, 3_599),
    st.sampled_from([" ", "T"]),
)
def test_the_short_way_reads_a_time_as_the_long_one_does(
    zone: str, hour: datetime, seconds: int, sign: str
) -> None:
    shown = hour.replace(minute=0, second=0, microsecond=0) + timedelta(seconds=seconds)
    local = LocalTime(ZoneInfo(zone))
    for converter, end in ((local, ""), (times.UtcTime(), ""), (times.ZonedTime(), "Z")):
        text = f"{shown.isoformat(sign)}{end}"
        try:
            long = times.TimeConverter.decode(converter, text)
        except Unreadable:
            with pytest.raises(Unreadable):
                converter.decode(text)
        else:
            assert converter.decode(text) == long


@given(MOMENTS)
def test_what_is_compared_is_written_as_it_is_kept(moment: datetime) -> None:
    day, clock = TWO.encode(moment)[0]
    assert TWO.instant((day, clock)) == PARIS.instant(f"{day} {clock}")
    assert times.Epoch().instant(times.Epoch().encode(moment)[0]) == moment
    assert times.ZonedTime().instant(times.ZonedTime().encode(moment)[0]) == moment


def test_only_texts_that_sort_as_their_times_do_are_compared() -> None:
    assert PARIS.compares
    assert TWO.compares
    assert LocalTime(PARIS.zone, pattern="%Y%m%d%H%M").compares
    assert not SLASHED.compares
    assert not times.Later(PARIS).compares


@given(
    st.one_of(
        MOMENTS,
        st.integers(0, 14_400).map(
            lambda seconds: datetime(2026, 10, 24, 22, 30, tzinfo=UTC) + timedelta(seconds=seconds)
        ),
    ),
    st.integers(0, 14_400),
)
def test_nothing_that_is_written_later_lies_before_what_is_written_first(
    moment: datetime, seconds: int
) -> None:
    first = PARIS.first_written(moment)
    assert PARIS.encode(moment + timedelta(seconds=seconds))[0] >= first
    # and no row is let in that cannot have been
    later = (moment + timedelta(seconds=each) for each in (0, *range(0, 7_260, 60)))
    assert min(PARIS.encode(each)[0] for each in later)[:16] == first[:16]


def test_since_survives_the_ends_of_the_calendar() -> None:
    assert PARIS.first_written(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)) > "9999-12-31"
    assert PARIS.since(datetime(1, 1, 1, tzinfo=UTC)).startswith("0001-01-01")
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert PARIS.since(last) > "9999-12-31"
    assert times.UtcTime().since(last) == "9999-12-31 23:59:59"
    assert times.ZonedTime().since(last) == "9999-12-31 23:59:59+00:00"
    assert times.Epoch().since(last) == 253_402_300_799


def test_a_time_in_an_hour_that_comes_twice_may_be_either() -> None:
    local = LocalTime(ZoneInfo("Europe/Paris"))
    first, last = local.instants("2026-10-25 02:30:00")
    assert (
        local.instant("2026-10-25 02:30:00") == first == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    )
    assert last == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["0", "-0", "0.00", "-0.00", "-0,00"])
def test_zero_has_no_sign(text: str) -> None:
    assert str(convert.decimal(text)) == "0"


def test_a_number_is_the_same_however_plainly_it_is_spelt() -> None:
    for plain in ("7", "-7", "007", "12.50", "-12.5", "9" * 15, "9" * 16, "1." + "3" * 20):
        spelt = [plain, f" {plain} ", f"{plain[0]} {plain[1:]}", plain.replace(".", ",")]
        assert {convert.decimal(each) for each in spelt} == {Decimal(plain)}
    for raw in ("9" * 17, int("9" * 17), f"{'9' * 17}.5"):
        with pytest.raises(Unreadable):
            convert.decimal(raw)


def test_a_moment_is_told_in_whole_seconds_of_utc() -> None:
    moment = datetime(987, 7, 1, 10, 0, 0, 999_999, tzinfo=UTC)
    assert times.instant_text(moment) == "0987-07-01T10:00:00Z"
    assert times.instant_text(moment.astimezone(timezone(timedelta(hours=2)))) == (
        "0987-07-01T10:00:00Z"
    )


def test_what_three_bytes_cannot_hold_is_a_question_mark() -> None:
    text = convert.Text("utf8mb3")
    assert text.encode("Łucja €\N{DOG FACE}") == ("Łucja €?",)
    assert text.decode("Łucja".encode()) == "Łucja"
