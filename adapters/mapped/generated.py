"""Writes the functions that make records of rows: Python text, made of a mapping at the start.

A function makes the records of many rows at once, with no call for a value in its usual form. It
refuses a row with any value that it cannot read or that lacks the form of the contract; the
converters then read that row value by value, and report what is wrong with it. Every value that it
does make has the form of the contract.

The text has no word of the mapping outside a comment. Names and numbers stand in it as constants,
and what it calls has a name that is made here.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from adapters.base import FieldShape
from adapters.ids.seal import Id, SealedIds
from adapters.mapping.paths import Steps
from adapters.values import convert, times
from adapters.values.convert import LONGEST, Converter, Unreadable

OF_TEXT = FieldShape(format="text")
# The most values that are remembered for a field, and the most characters of one.
REMEMBERED, LONGEST_REMEMBERED = 8_192, 40
# Types that only equal what converters read alike; 1.0 and True equal 1.
_EXACT = frozenset((str, int, date, datetime, type(None)))
# Short values that recur. What is personal is not remembered.
_RECURRING = (
    *(convert.Codes, convert.Boolean, convert.Number, convert.Integer, convert.Money),
    *(convert.Colour, times.LocalTime, times.UtcTime, times.ZonedTime, times.Epoch, times.Day),
)
# Those to which 0.0 and -0.0 are one.
_NUMERIC = (convert.Number, convert.Integer, convert.Money)
# Converters to which null is no value; for others it may be a code.
_OF_TEXTS = (convert.JoinedText, convert.PartOfText, convert.SplitText)
# Most addresses. Others are left to the converter.
_ADDRESS = re.compile("[A-Za-z0-9._+-]{1,64}+@[A-Za-z0-9.-]{1,255}+").fullmatch


@dataclass(frozen=True, slots=True)
class RowValue:
    """A value of rows: `plain` finds it, `decode` makes JSON of it. Both raise Unreadable.

    Where it is found by plain steps, or in one column of the row, these say so too.
    """

    plain: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    converter: Converter
    steps: Steps | None = None
    column: int | None = None

    def read(self, row: Any) -> Any:
        return self.decode(self.plain(row))

    def shown(self, row: Any) -> Any:
        """Returns the value in its JSON form; None where it cannot be read."""
        try:
            return self.decode(self.plain(row))
        except Unreadable:
            return None


# Makes records of rows, None for a refused one; gives the numbers of these too.
Make = Callable[[Sequence[Any]], tuple[list[Any], list[int]]]


@dataclass(frozen=True, slots=True)
class ListInside:
    """How a list inside a record is found in its row, and made of its rows."""

    items: Callable[[Any], Any]
    steps: Steps | None
    make: Make


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the record; without a value it is null. `about` tells people of its source."""

    name: str
    value: RowValue | ListInside | None = None
    shape: FieldShape = OF_TEXT
    about: str = "not in a row"


class Remembered(dict[Any, Any]):
    """What a function makes of raw values of exact types, up to REMEMBERED of them."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __missing__(self, raw: Any) -> Any:
        value = self._make(raw)
        if isinstance(raw, str) and len(raw) > LONGEST_REMEMBERED:
            return value
        # times equal it that differ in their zone or their fold
        if isinstance(raw, datetime) and (
            raw.tzinfo is not None or self._make(raw.replace(fold=1 - raw.fold)) != value
        ):
            return value
        if len(self) >= REMEMBERED:
            self.clear()
        self[raw] = value
        return value


def checked(read: Callable[[Any], Any], shape: FieldShape) -> Callable[[Any], Any]:
    """Returns `read`, which then raises Unreadable for a value without the form of the contract."""
    has_form = _FORMS[shape.format]

    def is_sound(value: Any) -> bool:
        return bool(has_form(value)) and (not shape.values or value in shape.values)

    def read_soundly(raw: Any) -> Any:
        value = read(raw)
        if value is None:
            return None
        values = value if shape.many else [value]
        if type(values) is not list or not all(map(is_sound, values)):
            raise Unreadable
        return value

    return read_soundly


def _pattern(pattern: str, read: Callable[[str], object] = str) -> Callable[[Any], bool]:
    """Returns whether a value is a text that matches, and that `read` takes."""
    matches = re.compile(pattern).fullmatch

    def has_form(value: Any) -> bool:
        try:
            return type(value) is str and matches(value) is not None and bool(read(value))
        except ValueError:
            return False

    return has_form


_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_AMOUNT = _pattern(r"-?[0-9]+\.[0-9]{2}")
# What has the form of each format of the contract, apart from null.
_FORMS: Mapping[str, Callable[[Any], bool]] = {
    "text": lambda value: type(value) is str,
    "uuid": _pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    "email": _pattern(r"[^@\s]+@[^@\s]+"),
    "boolean": lambda value: type(value) is bool,
    "integer": lambda value: type(value) is int and -(2**63) <= value < 2**63,
    "number": lambda value: (
        (type(value) is int and -(2**63) <= value < 2**63)
        or (type(value) is float and math.fabs(value) < 1e16)
    ),
    "money": _AMOUNT,
    "percent": _AMOUNT,
    "color": _pattern("#[0-9A-Fa-f]{6}"),
    "date": _pattern(_DAY, date.fromisoformat),
    "date-time": _pattern(
        f"{_DAY}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z", datetime.fromisoformat
    ),
}


class Script:
    """The text of a function that makes records with these members, and the objects it names."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._names: dict[str, Any] = {
            "Unreadable": Unreadable,
            "EXACT": _EXACT,
            "LONGEST": LONGEST,
            "address": _ADDRESS,
        }
        body = [line for number, it in enumerate(members) for line in self._member(number, it)]
        pairs = ", ".join(
            f"{it.name!r}: {'None' if it.value is None else f'v{number}'}"
            for number, it in enumerate(members)
        )
        lines = ["for row in rows:", "    try:", *(f"        {line}" for line in body)]
        lines += [f"        made.append({{{pairs}}})", "    except Exception:"]
        lines += ["        refused.append(len(made))", "        made.append(None)"]
        text = ["def make(rows):", "    made, refused = [], []", *(f"    {line}" for line in lines)]
        self.text = "\n".join((*text, "    return made, refused", ""))

    def make(self) -> Make:
        """Returns the function."""
        names = dict(self._names)
        # the text is made of the templates of this class alone
        exec(compile(self.text, "<generated>", "exec"), names)  # noqa: S102  # nosec B102
        made: Make = names["make"]
        return made

    def _name(self, what: str, v: str, named: Any) -> str:
        """Returns the name of an object that the lines of a variable need."""
        name = f"{what}_{v}"
        self._names[name] = named
        return name

    def _member(self, number: int, member: Member) -> list[str]:
        value, v = member.value, f"v{number}"
        about = f"# {member.name!r}: {member.about!r}"
        if value is None:
            return [about, *(["raise Unreadable"] if member.name == "id" else [])]
        if isinstance(value, ListInside):
            find = self._found(v, value.steps, value.items)
            inner = self._name("inner", v, value.make)
            return [
                about,
                *find,
                f"if {v} is not None and type({v}) is not list: raise Unreadable",
                f"{v}, odd = {inner}({v} or ())",
                "if odd: raise Unreadable",
            ]
        lines = [about, *self._value(v, value, member.shape)]
        # without a usable id there is no record
        return [*lines, f"if {v} is None: raise Unreadable"] if member.name == "id" else lines

    def _value(self, v: str, value: RowValue, shape: FieldShape) -> list[str]:
        """Returns the lines that put a value into a variable."""
        converter, decode = value.converter, value.decode
        read = self._name("read", v, checked(value.read, shape))
        slow = f"{v} = {read}(row)"
        if value.column is not None:
            find = [f"{v} = row[{value.column}]"]
        else:
            find = self._found(v, value.steps, value.plain)
        kind = type(converter)
        if kind is convert.Text and not shape.many:
            lines = [
                f"if type({v}) is str:",
                f"    if len({v}) > LONGEST: raise Unreadable",
                f"    {v} = {v}.strip() or None",
                f"elif {v} is not None: {slow}",
            ]
            if shape.values:
                known = self._name("known", v, frozenset((*shape.values, None)))
                lines.append(f"if {v} not in {known}: raise Unreadable")
            return [*find, *lines]
        if kind is convert.Email:
            text = f"type({v}) is not str or address({v}) is None"
            return [*find, f"if {v} is not None and ({text}): {slow}"]
        if isinstance(converter, Id):
            return [*find, *self._id(v, converter, slow)]
        if kind in _RECURRING:
            seen = self._name("seen", v, Remembered(checked(decode, shape)))
            slow = f"{read}(row)"
            if kind in _NUMERIC:
                floats = self._name("floats", v, Remembered(checked(decode, shape)))
                slow = f"{floats}[{v}] if type({v}) is float else {slow}"
            return [*find, f"{v} = {seen}[{v}] if type({v}) in EXACT else {slow}"]
        return [*find, f"if {v} is not None: {slow}"] if kind in _OF_TEXTS else [slow]

    def _id(self, v: str, converter: Id, slow: str) -> list[str]:
        ids = converter.ids
        fast, kind = (ids.shown if converter.own else ids.referred), "str"
        if isinstance(ids, SealedIds):
            fast, kind = ids.seal, "int"
        short = f"{v} = {self._name('id', v, fast)}({v})"
        return [f"if type({v}) is {kind}: {short}", f"elif {v} is not None: {slow}"]

    def _found(self, v: str, steps: Steps | None, find: Callable[[Any], Any]) -> list[str]:
        """Returns the lines that put into a variable what a path finds."""
        if steps is None:
            return [f"{v} = {self._name('find', v, find)}(row)"]
        lines, at = list[str](), "row"
        for step in steps:
            if not lines and isinstance(step, str):
                lines.append(f"{v} = row.get({step!r})")
            elif isinstance(step, str):
                lines.append(f"{v} = {v}.get({step!r}) if isinstance({v}, dict) else None")
            else:
                least = -step if step < 0 else step + 1
                is_there = f"isinstance({at}, list) and len({at}) >= {least}"
                lines.append(f"{v} = {at}[{step}] if {is_there} else None")
            at = v
        return lines or [f"{v} = row"]
