"""Converters of times and days: each reads and writes one way to keep a moment.

A time may stand in two columns, a day and a time of day. Its raw value is then a pair. Wall clock
times are converted with the offset of the clinic's zone on that date.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from functools import lru_cache
from typing import Any, ClassVar, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from adapters.values.convert import Unreadable, decimal, number_or_none, plain

ZERO_DATES = ("0000-00-00", "1900-01-01", "1000-01-01")
PATTERN = "%Y-%m-%d %H:%M:%S"
_WALL = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.[0-9]+)?)?"
).fullmatch
_CLOCK = re.compile(r"([0-9]{1,2}):?([0-9]{2})(?::?([0-9]{2})(?:\.[0-9]+)?)?").fullmatch
_LENGTH = re.compile(r"([0-9]{1,3}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?").fullmatch
# The order of a pattern's letters in which its texts sort as their times do.
_SORTED = "YmdHMS"
_ZONED = re.compile(r"(.+?) ?(Z|[+-][0-9]{2}(?::?[0-9]{2}(?::[0-9]{2})?)?)").fullmatch
# The forms in which most times are kept: an hour with what follows it, and a time as it is shown.
_USUAL = re.compile("([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2})(:[0-5][0-9]:[0-5][0-9])").fullmatch
_SHOWN = re.compile(
    "([0-9]{4}-[0-9]{2}-[0-9]{2})T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
).fullmatch
# Hours of a wall clock that are remembered.
MOST_HOURS = 16_384
# Bounds are compared as the backend writes them, so a change of the clocks, or a T between day and
# time, needs some room. What really lies within is decided by the times that were read.
ROOM = timedelta(days=1, hours=2)


def is_zone(name: Any) -> bool:
    """Returns whether a time zone has that name."""
    try:
        return bool(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        return False


def wall(raw: Any, zero: tuple[str, ...], pattern: str = PATTERN) -> datetime | None:
    """Returns what a calendar and a wall clock show; None for a zero date. Raises Unreadable."""
    if isinstance(raw, tuple):
        return _of_two(raw, zero, pattern)
    if isinstance(raw, datetime):
        return None if raw.date().isoformat() in zero else raw.replace(tzinfo=None)
    if isinstance(raw, date):
        return None if raw.isoformat() in zero else datetime.combine(raw, time())
    text = plain(raw)
    if text is None or text[:10] in zero or text in zero:
        return None
    parts = _WALL(text)
    try:
        if parts is not None:
            return datetime.fromisoformat(f"{parts[1]} {parts[2] or '00:00'}")
        if pattern != PATTERN:
            return datetime.strptime(text, pattern).replace(tzinfo=None)  # noqa: DTZ007 - a wall clock
    except ValueError as error:
        raise Unreadable from error
    raise Unreadable


def _of_two(raw: tuple[Any, ...], zero: tuple[str, ...], pattern: str) -> datetime | None:
    """Returns a day with the time of day beside it; None where there is no day."""
    day = wall(raw[0], zero, pattern.partition(" ")[0])
    if day is None:
        return None
    shown = datetime.combine(day, clock(raw[1]))
    try:
        return shown + timedelta(days=1) if (plain(raw[1]) or "").startswith("24") else shown
    except OverflowError as error:
        raise Unreadable from error


def clock(raw: Any) -> time:
    """Returns a time of day: 9:00, 09:00:00, 0900, or within a date and time. Raises Unreadable."""
    text = plain(raw)
    parts = _CLOCK((text or "").rpartition(" ")[2])
    if parts is None:
        raise Unreadable
    if int(parts[1]) == 24:
        return time()
    try:
        return time(int(parts[1]), int(parts[2]), int(parts[3] or 0))
    except ValueError as error:
        raise Unreadable from error


def length(raw: Any) -> timedelta | None:
    """Returns a length: minutes as a number, or a text HH:MM or HH:MM:SS; None for no value."""
    text = plain(raw)
    if text is None:
        return None
    parts = _LENGTH(text)
    if parts is not None:
        return timedelta(hours=int(parts[1]), minutes=int(parts[2]), seconds=int(parts[3] or 0))
    minutes = decimal(text)
    if minutes is None or abs(minutes) > 1_000_000:
        raise Unreadable
    return timedelta(minutes=float(minutes))


def sorts(pattern: str) -> bool:
    """Returns whether texts by that pattern sort as their times do."""
    letters = re.findall("%(.)", pattern)
    return letters == list(_SORTED[: len(letters)]) and len(letters) >= 3


def written(moment: date, pattern: str) -> str:
    """Returns the moment by a strftime pattern, with four digits for every year."""
    return moment.strftime(pattern.replace("%Y", f"{moment.year:04d}"))


class TimeConverter(Protocol):
    """A converter of times; `instant` reads one as an aware datetime in UTC.

    `as_text`: whether raw values are texts that sort as their times do, and not times or numbers
    of the database's own. `zero` are raw values that mean no time.
    """

    as_text: bool = False

    @property
    def zero(self) -> tuple[str, ...]:
        return ()

    @property
    def compares(self) -> bool:
        return True

    def instant(self, raw: Any) -> datetime | None: ...

    def instants(self, raw: Any) -> tuple[datetime, ...]:
        """Returns all moments that a raw value may mean, the earliest first."""
        moment = self.instant(raw)
        return () if moment is None else self.readings(moment)

    def readings(self, moment: datetime) -> tuple[datetime, ...]:
        """Returns all moments that are written as this one is, the earliest first."""
        return (moment,)

    def encode(self, value: Any) -> tuple[Any, ...]: ...

    def decode(self, raw: Any) -> str | None:
        moment = self.instant(raw)
        return None if moment is None else instant_text(moment)

    def since(self, moment: datetime) -> Any:
        """Returns the smallest raw value that reads as `moment` or later."""
        return self.encode(whole_second(moment.astimezone(UTC)))[0]

    def first_written(self, moment: datetime) -> Any:
        """Returns the smallest raw value that is written at `moment` or later, however it reads."""
        return self.encode(moment)[0]


@lru_cache(MOST_HOURS)
def hour_in_utc(zone: tzinfo, shown: str) -> str | None:
    """Returns `2026-03-01T09` for an hour of a wall clock that UTC has in one piece, else None."""
    try:
        begin = datetime.fromisoformat(f"{shown}:00:00").replace(tzinfo=zone)
        first, last = (
            moment.astimezone(UTC) for moment in (begin, begin.replace(minute=59, second=59))
        )
    except (ValueError, OverflowError):
        return None
    is_whole = (first.minute, first.second) == (0, 0)
    return first.isoformat()[:13] if is_whole and last - first == _HOUR else None


_HOUR = timedelta(minutes=59, seconds=59)


@dataclass(frozen=True, slots=True)
class LocalTime(TimeConverter):
    """A time on the clinic's wall clock, without a zone.

    An hour that happens twice reads as its first occurrence (`readings` gives both). One that does
    not exist is moved on by the gap.
    """

    zone: tzinfo
    zero: tuple[str, ...] = ZERO_DATES
    pattern: str = PATTERN
    as_text: bool = True
    columns: int = 1

    @property
    def compares(self) -> bool:
        return sorts(self.pattern)

    def decode(self, raw: Any) -> str | None:
        parts = _USUAL(raw) if type(raw) is str else None
        if parts is not None and raw[:10] not in self.zero and raw not in self.zero:
            hour = hour_in_utc(self.zone, parts[1])
            if hour is not None:
                return f"{hour}{parts[2]}Z"
        return TimeConverter.decode(self, raw)

    def instant(self, raw: Any) -> datetime | None:
        shown = wall(raw, self.zero, self.pattern)
        if shown is None:
            return None
        try:
            return shown.replace(tzinfo=self.zone).astimezone(UTC)
        except OverflowError as error:
            raise Unreadable from error

    def readings(self, moment: datetime) -> tuple[datetime, ...]:
        try:
            shown = moment.astimezone(self.zone)
            both = {shown.replace(fold=fold).astimezone(UTC) for fold in (0, 1)}
        except OverflowError:  # at an end of the calendar
            return (moment,)
        return tuple(sorted(both))

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (_raw(_moment(value).astimezone(self.zone), self.pattern, self.columns),)

    def since(self, moment: datetime) -> Any:
        first = whole_second(moment)
        if first.second and "%S" not in self.pattern:  # such a text reads as its minute's begin
            first = whole_second(first.replace(second=59, microsecond=1))
        # in its second occurrence, all of that hour reads as the first
        return self._raw_beyond(first, lambda shown: bool(shown.fold))

    def first_written(self, moment: datetime) -> Any:
        # in its first occurrence: the clock will show all of that hour again
        return self._raw_beyond(
            moment,
            lambda shown: (
                not shown.fold and shown.utcoffset() > shown.replace(fold=1).utcoffset()  # type: ignore[operator]
            ),
        )

    def _raw_beyond(self, moment: datetime, is_within: Callable[[datetime], bool]) -> Any:
        """Returns what the clock shows then, or in the first minute after the hour it is within."""
        try:
            shown = moment.astimezone(self.zone)
        except OverflowError:  # at an end of the calendar, where no record is
            shown = moment
        while is_within(shown):
            shown = (shown.astimezone(UTC) + timedelta(minutes=1)).astimezone(self.zone)
            shown = shown.replace(second=0, microsecond=0)
        return _raw(shown, self.pattern, self.columns)


@dataclass(frozen=True, slots=True)
class UtcTime(LocalTime):
    """A time in UTC, without a zone."""

    zone: tzinfo = field(default=UTC, init=False)


@dataclass(frozen=True, slots=True)
class ZonedTime(TimeConverter):
    """A time with its offset: `2026-03-01 09:00:00+01`, with a T, a Z or a fraction as well.

    It is compared in the database's own type, as texts with offsets do not sort.
    """

    zero: tuple[str, ...] = ZERO_DATES
    compares: bool = True

    def decode(self, raw: Any) -> str | None:
        parts = _SHOWN(raw) if type(raw) is str else None
        if parts is not None and not self._is_zero(raw) and is_day(parts[1]):
            return str(raw)
        return TimeConverter.decode(self, raw)

    def instant(self, raw: Any) -> datetime | None:
        if isinstance(raw, datetime) and raw.tzinfo is not None:
            return raw.astimezone(UTC)
        text = plain(raw)
        if text is None or self._is_zero(text):
            return None
        if (parts := _ZONED(text)) is None or (shown := wall(parts[1], ())) is None:
            raise Unreadable
        try:
            return datetime.fromisoformat(f"{shown.isoformat()}{parts[2]}").astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise Unreadable from error

    def _is_zero(self, text: str) -> bool:
        return text[:10] in self.zero or text in self.zero

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (_moment(value).astimezone(UTC).isoformat(" ", "seconds"),)


@dataclass(frozen=True, slots=True)
class Epoch(TimeConverter):
    """Seconds, or milliseconds, since the beginning of 1970 in UTC, as a number.

    `none` are those of `zero` that are numbers, as these mean no time however they are spelt.
    """

    zero: tuple[str, ...] = ("0",)
    unit: str = "seconds"
    none: frozenset[Decimal] = field(init=False)
    _unit: timedelta = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_unit", timedelta(**{self.unit: 1}))
        numbers = (number_or_none(text) for text in self.zero)
        object.__setattr__(self, "none", frozenset(n for n in numbers if n is not None))

    def instant(self, raw: Any) -> datetime | None:
        text = plain(raw)
        number = None if text in self.zero else decimal(text)
        if number is None or number in self.none:
            return None
        try:
            return _BEGINNING + int(number) * self._unit
        except OverflowError as error:
            raise Unreadable from error

    def encode(self, value: Any) -> tuple[Any, ...]:
        return ((_moment(value) - _BEGINNING) // self._unit,)


_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Later(TimeConverter):
    """A time that is another one plus a length of real time, the raw value's last part."""

    start: TimeConverter
    compares: ClassVar[bool] = False

    @property
    def zero(self) -> tuple[str, ...]:
        return self.start.zero

    def instant(self, raw: Any) -> datetime | None:
        return next(iter(self.instants(raw)), None)

    def instants(self, raw: Any) -> tuple[datetime, ...]:
        *parts, lasts = raw
        begins = self.start.instants(parts[0] if len(parts) == 1 else tuple(parts))
        much = length(lasts)
        try:
            return () if much is None else tuple(begin + much for begin in begins)
        except OverflowError as error:
            raise Unreadable from error

    def encode(self, value: Any) -> tuple[Any, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day, YYYY-MM-DD."""

    zero: tuple[str, ...] = ZERO_DATES
    pattern: str = "%Y-%m-%d"

    @property
    def compares(self) -> bool:
        return sorts(self.pattern)

    def decode(self, raw: Any) -> str | None:
        shown = wall(raw, self.zero, self.pattern)
        return None if shown is None else shown.date().isoformat()

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (written(date.fromisoformat(value), self.pattern),)


def is_day(text: str) -> bool:
    """Returns whether a text YYYY-MM-DD is a day of the calendar."""
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def whole_second(moment: datetime) -> datetime:
    """Returns the first whole second not before the moment, or the calendar's last second."""
    if not moment.microsecond:
        return moment
    whole = moment.replace(microsecond=0)
    try:
        return whole + timedelta(seconds=1)
    except OverflowError:
        return whole


def instant_text(moment: datetime) -> str:
    """Returns an aware moment in its JSON form, in UTC and whole seconds."""
    # isoformat, because strftime does not pad the years before 1000
    shown = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return f"{shown.isoformat()[:19]}Z"


def _raw(moment: datetime, pattern: str, columns: int) -> Any:
    text = written(moment, pattern)
    return text if columns == 1 else tuple(text.split(" ", 1))


def _moment(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)
