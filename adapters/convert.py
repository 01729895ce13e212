"""Converters: one way of writing a value in an old database, read and written.

Each decodes a raw value of the driver into its JSON form (None for no value) and encodes a value
back. A mapping names them under `as`; adapters/conversion.py lists the names and their parameters.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from adapters.seal import Sealer

# Characters of a value; more would hold up everybody while it is passed on.
LONGEST = 100_000
ZERO_DATES = ("0000-00-00", "1900-01-01", "1000-01-01")


class Unreadable(Exception):
    """A raw value that the converter can't read; `kind` is that of a Trouble."""

    kind = "unreadable"


class UnknownCode(Unreadable):
    """A code that the mapping's table does not name."""

    kind = "unknown code"


class Converter(Protocol):
    """Decodes a raw value; encodes a value as every raw value that stands for it."""

    def decode(self, raw: Any) -> Any:
        """The JSON form; None for no value; Unreadable."""

    def encode(self, value: Any) -> tuple[Any, ...]:
        """The raw values that read back as `value`, the one to write first; () if there is none."""


def whole(raw: Any) -> int | None:
    """A key as a whole number, however it is kept; None for what is none."""
    try:
        key = int(raw)
    except (ValueError, TypeError, OverflowError):
        return None
    return None if isinstance(raw, float) and raw != key else key


def plain(raw: Any) -> str | None:
    """Text without the blanks round it; None where nothing is left. What is huge is Unreadable."""
    if raw is None:
        return None
    if isinstance(raw, bytes | str) and len(raw) > LONGEST:
        raise Unreadable
    if isinstance(raw, bytes):
        try:
            raw = raw.decode()
        except UnicodeDecodeError as error:
            raise Unreadable from error
    return str(raw).strip() or None


@dataclass(frozen=True, slots=True)
class Text:
    """Text, stripped; blank is no value."""

    def decode(self, raw: Any) -> str | None:
        return plain(raw)

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (value,)


@dataclass(frozen=True, slots=True)
class Email:
    """An e-mail address; what has no @ in it is unreadable."""

    def decode(self, raw: Any) -> str | None:
        text = plain(raw)
        if text is not None and re.fullmatch(r"[^@\s]+@[^@\s]+", text) is None:
            raise Unreadable
        return text

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (value,)


@dataclass(frozen=True, slots=True)
class SplitText:
    """Several texts in one, parted by a separator."""

    separator: str = ";"

    def decode(self, raw: Any) -> list[str] | None:
        text = plain(raw)
        if text is None:
            return None
        return [part.strip() for part in text.split(self.separator) if part.strip()]

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (self.separator.join(value),)


@dataclass(frozen=True, slots=True)
class Codes:
    """A code table: raw code (as text) -> value. A code outside it is unknown, never passed on."""

    table: Mapping[str, str | None]

    def decode(self, raw: Any) -> str | None:
        text = plain(raw)
        if text is None:
            return self.table.get("")
        try:
            return self.table[text]
        except KeyError as error:
            raise UnknownCode from error

    def encode(self, value: Any) -> tuple[Any, ...]:
        return tuple(code for code, meaning in self.table.items() if meaning == value)


@dataclass(frozen=True, slots=True)
class Boolean:
    """Spellings of yes and no."""

    true: tuple[Any, ...] = (1, "1", "true")
    false: tuple[Any, ...] = (0, "0", "false")

    def decode(self, raw: Any) -> bool | None:
        raw = int.from_bytes(raw) if isinstance(raw, bytes) else raw
        raw = raw.strip() if isinstance(raw, str) else raw
        if raw is None or raw == "":
            return None
        if raw in self.true:
            return True
        if raw in self.false:
            return False
        raise UnknownCode

    def encode(self, value: Any) -> tuple[Any, ...]:
        return self.true if value else self.false


def decimal(raw: Any) -> Decimal | None:
    """A number however it is spelt: 4.5, '4,5', '1 234,50'; None for blank."""
    if isinstance(raw, bool):
        raise Unreadable
    if isinstance(raw, float):
        raw = repr(raw)
    text = plain(raw)
    if text is None:
        return None
    text = _pointed(re.sub(r"[\s\u00a0\u202f']", "", text))
    if _NUMBER(text) is None:
        raise Unreadable
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise Unreadable from error
    if number.adjusted() > 15:
        raise Unreadable
    return number or Decimal(0)  # -0 is 0


_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?").fullmatch


def _pointed(text: str) -> str:
    """The number with a point before its fraction: of two marks the last one parts it off.

    A mark that stands more than once parts thousands; a comma alone is the fraction's.
    """
    last = max(text.rfind(","), text.rfind("."))
    mark = text[last] if last >= 0 else ""
    if not mark or (mark == "." and "," not in text and text.count(".") == 1):
        return text
    other = "." if mark == "," else ","
    if text.count(mark) > 1:
        return text if other in text else text.replace(mark, "")
    return text.replace(other, "").replace(mark, ".")


@dataclass(frozen=True, slots=True)
class Number:
    """A number; whole ones stay whole."""

    def decode(self, raw: Any) -> int | float | None:
        number = decimal(raw)
        if number is None:
            return None
        return int(number) if number == number.to_integral_value() else float(number)

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (value,)


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number."""

    def decode(self, raw: Any) -> int | None:
        number = decimal(raw)
        if number is None:
            return None
        if number != number.to_integral_value():
            raise Unreadable
        return int(number)

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (value,)


@dataclass(frozen=True, slots=True)
class Money:
    """An amount, in whole units or (`cents`) in hundredths, as a string with two places."""

    cents: bool = False

    def decode(self, raw: Any) -> str | None:
        amount = decimal(raw)
        if amount is None:
            return None
        shown = f"{amount / 100 if self.cents else amount:.2f}"
        return "0.00" if shown == "-0.00" else shown

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (int(Decimal(value) * 100) if self.cents else value,)


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour as #RRGGBB, from that text or from the integer 0xRRGGBB."""

    def decode(self, raw: Any) -> str | None:
        if isinstance(raw, int):
            if not 0 <= raw <= 0xFFFFFF:
                raise Unreadable
            return f"#{raw:06X}"
        text = plain(raw)
        if text is not None and re.fullmatch("#[0-9A-Fa-f]{6}", text) is None:
            raise Unreadable
        return text

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (value,)


_WALL = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.[0-9]+)?)?"
).fullmatch


def wall(raw: Any, zero: tuple[str, ...]) -> datetime | None:
    """What a calendar and a clock on the wall show; None for a zero date."""
    if isinstance(raw, datetime):
        return None if raw.date().isoformat() in zero else raw.replace(tzinfo=None)
    if isinstance(raw, date):
        return None if raw.isoformat() in zero else datetime.combine(raw, time())
    text = plain(raw)
    if text is None or text[:10] in zero:
        return None
    found = _WALL(text)
    if found is None:
        raise Unreadable
    try:
        return datetime.fromisoformat(f"{found[1]} {found[2] or '00:00'}")
    except ValueError as error:
        raise Unreadable from error


class TimeConverter(Protocol):
    """A converter of times; `instant` reads one as an aware datetime in UTC."""

    def instant(self, raw: Any, *, latest: bool = False) -> datetime | None: ...

    def decode(self, raw: Any) -> str | None: ...

    def encode(self, value: Any) -> tuple[Any, ...]: ...

    def since(self, moment: datetime) -> Any:
        """The smallest raw value that reads as `moment` or later."""


@dataclass(frozen=True, slots=True)
class LocalTime:
    """The clinic's wall clock, without a zone, written as text.

    Converted with the offset of that day. An hour that happens twice is its first occurrence
    (`latest` takes the second); one that does not exist is moved on by the gap.
    """

    zone: ZoneInfo
    zero: tuple[str, ...] = ZERO_DATES
    pattern: str = "%Y-%m-%d %H:%M:%S"

    def instant(self, raw: Any, *, latest: bool = False) -> datetime | None:
        shown = wall(raw, self.zero)
        if shown is None:
            return None
        try:
            first = shown.replace(tzinfo=self.zone).astimezone(UTC)
            again = shown.replace(tzinfo=self.zone, fold=1).astimezone(UTC)
        except OverflowError as error:
            raise Unreadable from error
        # where the hour does not exist, what is meant the second time lies before the first
        return max(first, again) if latest else first

    def decode(self, raw: Any) -> str | None:
        return _or_none(self.instant(raw))

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (written(_moment(value).astimezone(self.zone), self.pattern),)

    def since(self, moment: datetime) -> Any:
        try:
            shown = whole_second(moment).astimezone(self.zone)
        except OverflowError:  # an end of the calendar, where no record is
            shown = moment
        while shown.fold:  # the second time round: all of that hour reads as the first
            shown = (shown.astimezone(UTC) + timedelta(minutes=1)).astimezone(self.zone)
            shown = shown.replace(second=0)
        return written(shown, self.pattern)


@dataclass(frozen=True, slots=True)
class UtcTime:
    """A time in UTC, without a zone, written as text."""

    zero: tuple[str, ...] = ZERO_DATES
    pattern: str = "%Y-%m-%d %H:%M:%S"

    def instant(self, raw: Any, *, latest: bool = False) -> datetime | None:
        shown = wall(raw, self.zero)
        return None if shown is None else shown.replace(tzinfo=UTC)

    def decode(self, raw: Any) -> str | None:
        return _or_none(self.instant(raw))

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (written(_moment(value).astimezone(UTC), self.pattern),)

    def since(self, moment: datetime) -> Any:
        return written(whole_second(moment.astimezone(UTC)), self.pattern)


_OFFSET = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})"
).fullmatch


@dataclass(frozen=True, slots=True)
class ZonedTime:
    """A time with its offset from UTC, as ISO 8601 writes it; written with a Z."""

    def instant(self, raw: Any, *, latest: bool = False) -> datetime | None:
        text = plain(raw)
        if text is None:
            return None
        if _OFFSET(text) is None:
            raise Unreadable
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise Unreadable from error

    def decode(self, raw: Any) -> str | None:
        return _or_none(self.instant(raw))

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (instant_text(_moment(value)),)

    def since(self, moment: datetime) -> Any:
        return instant_text(whole_second(moment))


def written(moment: datetime, pattern: str) -> str:
    """The moment by a strftime pattern, with four digits for every year."""
    return moment.strftime(pattern.replace("%Y", f"{moment.year:04d}"))


def whole_second(moment: datetime) -> datetime:
    """The first whole second that is not before the moment."""
    whole = moment.replace(microsecond=0)
    return whole if whole == moment else whole + timedelta(seconds=1)


def _moment(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def instant_text(moment: datetime) -> str:
    """An aware moment in its JSON form, in UTC and whole seconds."""
    # isoformat, because strftime does not pad the years before 1000
    shown = moment.astimezone(UTC).replace(microsecond=0, tzinfo=None)
    return f"{shown.isoformat()}Z"


def _or_none(moment: datetime | None) -> str | None:
    return None if moment is None else instant_text(moment)


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day, YYYY-MM-DD."""

    zero: tuple[str, ...] = ZERO_DATES

    def decode(self, raw: Any) -> str | None:
        shown = wall(raw, self.zero)
        return None if shown is None else shown.date().isoformat()

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (value,)


@dataclass(frozen=True, slots=True)
class SealedId:
    """An integer key as a sealed UUID of its resource."""

    sealer: Sealer = field(repr=False)

    def decode(self, raw: Any) -> str | None:
        if raw is None or raw == "":
            return None
        key = whole(raw)
        try:
            if key is not None:
                return self.sealer.seal(key)
        except (ValueError, OverflowError) as error:
            raise Unreadable from error
        raise Unreadable

    def encode(self, value: Any) -> tuple[Any, ...]:
        key = self.sealer.unseal(value)
        # an expression may give the key as a text
        return () if key is None else (key, str(key))


_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


@dataclass(frozen=True, slots=True)
class NativeId:
    """A UUID of the practice system's own, passed through in lower case."""

    def decode(self, raw: Any) -> str | None:
        text = plain(raw)
        if text is not None and _UUID(text.lower()) is None:
            raise Unreadable
        return None if text is None else text.lower()

    def encode(self, value: Any) -> tuple[Any, ...]:
        return (value,)
