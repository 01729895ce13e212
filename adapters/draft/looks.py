"""What the values of a column look like, by a look at some of them: pure, and nothing is kept."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any

from adapters.draft.database import CODES, Column, Table
from adapters.draft.vocabulary import NO, YES

# How many of the values must look so.
MOST = 0.8
PATTERNS = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y",
    "%d-%m-%Y %H:%M",
    "%d-%m-%Y",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%Y%m%d%H%M%S",
    "%Y%m%d%H%M",
    "%Y%m%d",
)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+").fullmatch
_PHONE = re.compile(r"(?=(?:.*\d){6})[+(0][\d\s()./+-]{5,24}").fullmatch
_MONEY = re.compile(r"-?[\d '\u00a0]{1,12}[.,]\d{2}").fullmatch
_NUMBER = re.compile(r"-?[\d '.\u00a0]{1,15}(?:[.,]\d+)?").fullmatch
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?").fullmatch
_ZERO = re.compile(r"(?:0000-00-00|1900-01-01|1000-01-01|0001-01-01|1753-01-01)").match
_UUID = re.compile(r"\{?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?").fullmatch
_COLOUR = re.compile("#[0-9A-Fa-f]{6}").fullmatch
_ZONED = re.compile(r".+\d{2}:\d{2}(?::\d{2})?(?:\.\d+)? ?(?:Z|[+-]\d{2}:?\d{2})").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a column holds.

    `kind` is text, number, flag, moment, day, clock, epoch, uuid, email, phone, colour or nothing;
    `pattern` that of times in text; `zeros` the zero dates that were seen.
    """

    kind: str
    pattern: str | None = None
    zeros: tuple[str, ...] = ()
    milliseconds: bool = False
    zoned: bool = False
    decimal_text: bool = False
    blank: bool = False
    has_time: bool = False
    codes: tuple[str, ...] = ()
    yes: tuple[Any, ...] = ()
    no: tuple[Any, ...] = ()
    is_text: bool = False
    longest: int = 0

    @property
    def is_time(self) -> bool:
        return self.kind in ("moment", "day", "epoch")


def look_at(table: Table, name: str) -> Look:
    """What that column looks like."""
    column, raw = table.column(name), table.values(name)
    texts = [str(each).strip() for each in raw if each is not None]
    given = [each for each in texts if each]
    zeros = tuple(sorted({each for each in given if _ZERO(each)}))
    solid = [each for each in given if not _ZERO(each)]
    found = _of_type(column, solid, raw) or _of_texts(column, solid)
    yes, no = _flag(column, given)
    if (yes or no) and found.kind in ("text", "number", "flag"):
        found = Look(kind="flag", yes=yes, no=no)
    return Look(
        kind=found.kind,
        pattern=found.pattern,
        zeros=zeros,
        milliseconds=found.milliseconds,
        zoned=found.zoned or column.zoned,
        decimal_text=found.decimal_text,
        blank=len(given) < len(raw),
        has_time=found.has_time,
        codes=tuple(_code(each) for each in column.codes),
        yes=found.yes,
        no=found.no,
        is_text=column.kind == "text",
        longest=max(map(len, solid), default=0),
    )


def _of_type(column: Column, texts: list[str], raw: Iterable[Any]) -> Look | None:
    """What the type of the column, or of the values, says by itself."""
    values = [each for each in raw if each is not None]
    if column.kind == "datetime" or _all(values, datetime):
        midnight = bool(texts) and all(each.endswith("00:00:00") for each in texts)
        return Look(kind="moment", has_time=not midnight, zoned=column.zoned)
    if column.kind == "date" or _all(values, date):
        return Look(kind="day")
    if column.kind == "time" or _all(values, time) or _all(values, timedelta):
        return Look(kind="clock")
    if column.kind in ("integer", "number"):
        return _of_numbers(texts)
    plain = {"uuid": "uuid", "bytes": "nothing", "json": "nothing", "other": "nothing"}
    return Look(kind=plain[column.kind]) if column.kind in plain else None


def _all(values: list[Any], kind: type) -> bool:
    return bool(values) and all(isinstance(each, kind) for each in values)


def _of_numbers(texts: list[str]) -> Look:
    numbers = [int(each) for each in texts if re.fullmatch(r"\d{9,13}", each)]
    if texts and len(numbers) >= MOST * len(texts):
        if all(500_000_000 < each < 4_200_000_000 for each in numbers):
            return Look(kind="epoch", has_time=True)
        if all(500_000_000_000 < each < 4_200_000_000_000 for each in numbers):
            return Look(kind="epoch", milliseconds=True, has_time=True)
    return Look(kind="number")


def _of_texts(column: Column, texts: list[str]) -> Look:
    if not texts:
        return Look(kind="text" if column.kind != "boolean" else "flag")
    tests: tuple[tuple[str, Callable[[str], Any]], ...] = (
        ("email", _EMAIL),
        ("uuid", _UUID),
        ("colour", _COLOUR),
        ("clock", _CLOCK),
    )
    for kind, test in tests:
        if _nearly_all(texts, test):
            return Look(kind=kind)
    if _nearly_all(texts, _ZONED):
        return Look(kind="moment", zoned=True, has_time=True)
    pattern = _pattern(texts)
    if pattern is not None:
        has_time = "%H" in pattern
        return Look(kind="moment" if has_time else "day", pattern=pattern, has_time=has_time)
    return _of_digits(texts)


def _of_digits(texts: list[str]) -> Look:
    if _nearly_all(texts, _NUMBER):
        is_phone = _nearly_all(texts, _PHONE) and max(map(len, texts)) >= 8
        return Look(kind="phone" if is_phone else "number", decimal_text=True)
    return Look(kind="phone" if _nearly_all(texts, _PHONE) else "text")


def _nearly_all(texts: list[str], test: Callable[[str], Any]) -> bool:
    """Whether they pass the test; no more of them are tried than it takes to know."""
    left = len(texts)
    for each in texts:
        left -= not test(each)
        if left / len(texts) < MOST:
            return False
    return True


def _pattern(texts: list[str]) -> str | None:
    """The pattern by which nearly all can be read."""
    some = [re.sub(r"\.\d+$", "", each) for each in texts[:100]]
    for pattern in PATTERNS:
        if _nearly_all(some, partial(_reads, pattern)):
            return pattern
    return None


def _reads(pattern: str, text: str) -> bool:
    try:
        # strptime takes fewer digits than it writes: a number is no day
        shown = datetime.strptime(text, pattern)  # noqa: DTZ007 - what a wall clock shows
    except ValueError:
        return False
    return 1900 <= shown.year <= 2200 and len(text) >= 8


def _code(value: Any) -> str:
    """A code as the converter of codes knows it."""
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _flag(column: Column, texts: list[str]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The spellings of yes and of no, where there are no others."""
    if column.kind == "boolean":
        return (True,), (False,)
    codes = {str(each).strip() for each in column.codes} - {""}
    if not codes or len(codes) > 2 or not texts:
        return (), ()
    upper = {each.upper() for each in codes}
    if upper <= {"0", "1"}:
        return (1,), (0,)
    yes, no = upper & set(YES), upper & {*NO, "0"}
    if yes | no != upper or len(yes) > 1 or len(no) > 1 or not (yes and no):
        return (), ()
    return tuple(c for c in codes if c.upper() in yes), tuple(c for c in codes if c.upper() in no)


def is_code(look: Look) -> bool:
    """Whether the values are codes, that may be shown: few, short, and of nobody's own."""
    return (
        0 < len(look.codes) <= CODES
        and look.kind in ("text", "number", "flag")
        and all(len(each) <= 20 for each in look.codes)
    )
