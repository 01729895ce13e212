"""Tells what a column's values look like, and how well they fit a field; no value is kept."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from adapters.base import FieldShape
from adapters.draft.database import MOST_CODES, Column, is_short
from adapters.draft.vocabulary import CODES, ID, NO, YES, likeness, tokens
from adapters.values.times import ZERO_DATES

# The share of the values that must look alike.
MOST = 0.8
# The texts that are tried as times.
MOST_TRIED = 100
# Kinds of a time that has a day.
TIMES = ("moment", "day", "epoch")
# The patterns of times. Those that converters read without a pattern come first.
_CLOCKS = (" %H:%M:%S", " %H:%M", "")
_SELF_READ = tuple(f"%Y-%m-%d{clock}" for clock in (*_CLOCKS, "T%H:%M:%S", "T%H:%M"))
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y%m%d")
_SPELT = (*(day + clock for day in _DAYS for clock in _CLOCKS), "%Y%m%d%H%M%S", "%Y%m%d%H%M")
_PHONE = re.compile(r"(?=(?:.*\d){6})[+(0][\d\s()./+-]{5,24}").fullmatch
_NUMBER = re.compile(r"-?[\d '.\u00a0]{1,15}(?:[.,]\d+)?").fullmatch
_ZERO = re.compile(f"(?:{'|'.join(ZERO_DATES)}|0001-01-01|1753-01-01)").match
_DATED = re.compile(r"\d{1,4}[-./]?\d{1,2}[-./]?\d{2,4}").match
_ZONED = re.compile(r".+\d{2}:\d{2}(?::\d{2})?(?:\.\d+)? ?(?:Z|[+-]\d{2}:?\d{2})").fullmatch
# Kinds that each value shows by itself.
_TESTS = (
    ("email", re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+").fullmatch),
    ("uuid", re.compile(r"\{?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?").fullmatch),
    ("colour", re.compile("#[0-9A-Fa-f]{6}").fullmatch),
    ("clock", re.compile(r"\d{1,2}:\d{2}(?::\d{2})?").fullmatch),
)

_FITS: dict[str, dict[str, float]] = {
    "date-time": {"moment": 1, "epoch": 0.9, "day": 0.7},
    "date": {"day": 1, "moment": 0.9, "epoch": 0.6},
    "boolean": {"flag": 1, "number": 0.2},
    "number": {"number": 1},
    "integer": {"number": 1, "clock": 0.6},
    "money": {"number": 1},
    "percent": {"number": 1},
    "email": {"email": 1, "text": 0.4},
    "color": {"colour": 1, "number": 0.8, "text": 0.3},
    "text": {"text": 1, "number": 0.6, "flag": 0.3, "phone": 0.4, "email": 0.1, "colour": 0.4},
    "enum": {"flag": 0.8, "text": 0.2, "number": 0.2},
    "phone": {"phone": 1, "number": 0.7, "text": 0.5},
}
# Text fields whose values may be numbers.
_NUMBERS = {"microchip", "number", "reference", "batchNumber"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a column holds.

    `kind` is text, number, flag, moment, day, clock, epoch, uuid, email, phone, colour or nothing,
    `pattern` that of times in text, `zeros` the zero dates that were seen, and `flag` the spellings
    of yes and no.
    """

    kind: str
    pattern: str | None = None
    zeros: tuple[str, ...] = ()
    milliseconds: bool = False
    zoned: bool = False
    blank: bool = False
    has_time: bool = False
    codes: tuple[str, ...] = ()
    flag: tuple[Any, ...] = ()
    is_text: bool = False
    longest: int = 0

    @property
    def is_code(self) -> bool:
        """Whether the values are codes, which may be shown: few, short, and nobody's own."""
        return (
            0 < len(self.codes) <= MOST_CODES
            and self.kind in ("text", "number", "flag")
            and all(map(is_short, self.codes))
        )


class Profiles(Mapping[str, Profile]):
    """The profiles of a table's columns, each made when it is first asked for."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns, self._made = columns, dict[str, Profile]()

    def __getitem__(self, name: str) -> Profile:
        if name not in self._made:
            self._made[name] = profile_of(self._columns[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def profile_of(column: Column) -> Profile:
    given = [text for value in column.seen if value is not None and (text := str(value).strip())]
    filled = len(given)
    given = [*dict.fromkeys(given)]
    zeros = {text for text in given if _ZERO(text)}
    solid = [text for text in given if text not in zeros]
    profile = _of_type(column, solid) or _of_texts(column, solid)
    flag = _flag(column, given)
    if flag and profile.kind in ("text", "number", "flag"):
        profile = Profile(kind="flag", flag=flag)
    return replace(
        profile,
        zeros=tuple(sorted(zeros)),
        blank=filled < len(column.seen),
        # as the converter of codes knows them
        codes=tuple(
            str(code).lower() if isinstance(code, bool) else str(code).strip()
            for code in column.codes
        ),
        is_text=column.kind == "text",
        longest=max(map(len, solid), default=0),
    )


def _of_type(column: Column, texts: list[str]) -> Profile | None:
    """Returns what the column's type tells; numbers may be the seconds of recent years."""
    if column.kind == "datetime":
        is_midnight = bool(texts) and all(text.endswith("00:00:00") for text in texts)
        return Profile(kind="moment", zoned=column.zoned, has_time=not is_midnight)
    if column.kind in ("integer", "number"):
        numbers = [int(text) for text in texts if re.fullmatch(r"\d{9,13}", text)]
        for unit in (1, 1000) if texts and len(numbers) >= MOST * len(texts) else ():
            if all(500_000_000 * unit < number < 4_200_000_000 * unit for number in numbers):
                return Profile(kind="epoch", milliseconds=unit == 1000, has_time=True)
        return Profile(kind="number")
    return None if column.kind in ("text", "boolean") else Profile(kind=column.kind)


def _of_texts(column: Column, texts: list[str]) -> Profile:
    if not texts:
        return Profile(kind="text" if column.kind != "boolean" else "flag")
    for kind, test in _TESTS:
        if _nearly_all(texts, test):
            return Profile(kind=kind)
    if _nearly_all(texts, _ZONED):
        return Profile(kind="moment", zoned=True, has_time=True)
    some = [re.sub(r"(?<=:\d\d)\.\d+$", "", text) for text in dict.fromkeys(texts[:MOST_TRIED])]
    for pattern in (*_SELF_READ, *_SPELT) if _nearly_all(some, _DATED) else ():
        if _nearly_all(some, partial(_is_time, pattern)):
            has_time = "%H" in pattern
            return Profile(kind="moment" if has_time else "day", pattern=pattern, has_time=has_time)
    is_number = _nearly_all(texts, _NUMBER)
    is_phone = _nearly_all(texts, _PHONE) and (not is_number or max(map(len, texts)) >= 8)
    return Profile(kind="phone" if is_phone else "number" if is_number else "text")


def _nearly_all(texts: list[str], test: Callable[[str], Any]) -> bool:
    """Returns whether nearly all texts pass the test; tries no more of them than needed."""
    left = len(texts)
    for text in texts:
        left -= not test(text)
        if left / len(texts) < MOST:
            return False
    return True


def _is_time(pattern: str, text: str) -> bool:
    try:
        # strptime takes fewer digits than it writes, so the length below tells numbers from days
        moment = datetime.strptime(text, pattern)  # noqa: DTZ007 - what a wall clock shows
    except ValueError:
        return False
    return 1900 <= moment.year <= 2200 and len(text) >= 8


def _flag(column: Column, texts: list[str]) -> tuple[Any, ...]:
    """Returns the spellings of yes and no, where there are no others; else nothing."""
    if column.kind == "boolean":
        return True, False
    codes = {str(code).strip() for code in column.codes} - {""}
    if not codes or len(codes) > 2 or not texts:
        return ()
    if codes <= {"0", "1"}:
        return 1, 0
    yes = [code for code in codes if code.lower() in YES]
    no = [code for code in codes if code.lower() in NO | {"0"}]
    return (*yes, *no) if len(yes) == len(no) == 1 and len(codes) == 2 else ()


def fit(column: str, profile: Profile, field: str, shape: FieldShape) -> float:
    """Returns how well the values of a column fit the field, from 0 (not at all) to 1."""
    if shape.values:
        return 1.0 if profile.is_code else _FITS["enum"].get(profile.kind, 0)
    if field == "phone":
        return _FITS["phone"].get(profile.kind, 0)
    if profile.longest == 0 and profile.is_text:
        return 0.4  # a text without a value may be anything
    if shape.format == "text" and field in _NUMBERS and profile.kind in ("number", "phone"):
        return 1.0
    words = tokens(column)
    is_key = profile.kind == "number" and len(words) > 1 and set(words) & ID
    if shape.format == "text" and is_key and field not in _NUMBERS:
        return 0.0  # a key of another table, whatever it is called
    return _FITS[shape.format].get(profile.kind, 0.0)


def parameters(profile: Profile, shape: FieldShape, place: str) -> dict[str, Any]:
    """Returns the converter's parameters for such values of the field at `resource.field`."""
    if shape.values:
        return {"codes": _meanings(profile, place)}
    if shape.format in ("date-time", "date"):
        return time_parameters(profile, shape.format)
    if shape.format == "boolean" and profile.flag and profile.flag[0] not in (1, True):
        return {"yes": [profile.flag[0]], "no": [profile.flag[1]]}
    return {"separator": ";"} if shape.many and shape.format != "email" else {}


def time_parameters(profile: Profile, form: str) -> dict[str, Any]:
    """Returns a time's converter, pattern and zero dates, where these are not the defaults."""
    if form == "date-time" and profile.kind == "epoch":
        return {"as": "epoch"} | ({"unit": "milliseconds"} if profile.milliseconds else {})
    given: dict[str, Any] = {}
    if form == "date-time" and profile.zoned:
        given["as"] = "zoned time"
    if profile.pattern in _SPELT and not is_only_a_day(profile, form):
        given["pattern"] = profile.pattern
    strange = {zero[:10] for zero in profile.zeros} - {*ZERO_DATES}
    if strange:
        given["zero"] = [*ZERO_DATES, *sorted(strange)]
    return given


def is_only_a_day(profile: Profile, form: str) -> bool:
    """Returns whether a time is wanted and these are days in a spelling that needs SQL to read."""
    return form == "date-time" and profile.pattern in _SPELT and not profile.has_time


def _meanings(profile: Profile, place: str) -> dict[str, str | None]:
    """Returns each code that was seen, with the value that it most likely stands for, or None."""
    table: dict[str, str | None] = {}
    for code in filter(None, profile.codes if profile.is_code else ()):
        scores = {value: likeness(tokens(code), words) for value, words in CODES[place].items()}
        best = max(scores, key=lambda value: scores[value])
        table[code] = best if scores[best] >= 0.7 else None
    if profile.is_code and profile.blank and place == "appointments.status":
        table[""] = "SCHEDULED"
    return table
