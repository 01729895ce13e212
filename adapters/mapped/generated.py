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
from functools import lru_cache
from types import CodeType
from typing import Any

from adapters.base import FieldShape
from adapters.ids.seal import Id, SealedIds
from adapters.mapping.paths import Steps
from adapters.values import convert, times
from adapters.values.convert import LONGEST, Converter, Unreadable

OF_TEXT = FieldShape(format="text")
# The most values that are remembered for a field, and the most characters of one.
REMEMBERED, LONGEST_REMEMBERED = 4_096, 40
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
# Times as they are shown, on days that every month has.
_INSTANT = re.compile(
    "(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    "T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
).fullmatch


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
    has_form, known = _FORMS[shape.format], shape.values

    def is_sound(value: Any) -> bool:
        return has_form(value) and (not known or value in known)

    def are_sound(values: Any) -> bool:
        return type(values) is list and all(map(is_sound, values))

    is_whole = are_sound if shape.many else is_sound

    def read_soundly(raw: Any) -> Any:
        value = read(raw)
        if value is None or is_whole(value):
            return value
        raise Unreadable

    return read_soundly


def _as_shown(zero: Sequence[str], others: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns what takes a time that stands as it is shown; `others` reads all else."""

    def read(raw: Any) -> Any:
        is_shown = type(raw) is str and _INSTANT(raw) is not None
        is_shown = is_shown and raw[:10] not in zero and raw not in zero
        return raw if is_shown else others(raw)

    return read


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


class Member:
    """A member of records: the `lines` that put it into `variable`, and the objects they name.

    Until it is found in rows it is null. `about` tells people of its source.
    """

    def __init__(self, name: str, number: int, about: str = "not in a row") -> None:
        self.name, self.variable, self._number = name, "None", number
        self.lines = [f"# {name!r}: {about!r}"]
        self.names: dict[str, Any] = {}

    def of_value(self, value: RowValue, shape: FieldShape) -> "Member":
        """Finds the member as a value, which has then the form of its shape."""
        v = self.variable = f"v{self._number}"
        read = self._name("read", checked(value.read, shape))
        if value.column is not None:
            self.lines.append(f"{v} = row[{value.column}]")
        else:
            self._find(value.steps, value.plain)
        self.lines += self._short(value, shape, f"{read}(row)")
        if self.name == "id":  # without a usable one there is no record
            self.lines.append(f"if {v} is None: raise Unreadable")
        return self

    def of_list(self, find: Callable[[Any], Any], steps: Steps | None, make: Make) -> "Member":
        """Finds the member as a list of rows, of which `make` makes records."""
        v = self.variable = f"v{self._number}"
        self._find(steps, find)
        self.lines += [
            f"if {v} is not None and type({v}) is not list: raise Unreadable",
            f"{v}, odd = {self._name('inner', make)}({v} or ())",
            "if odd: raise Unreadable",
        ]
        return self

    def _name(self, what: str, named: Any) -> str:
        """Returns the name of an object for the lines."""
        name = f"{what}_{self.variable}"
        self.names[name] = named
        return name

    def _short(self, value: RowValue, shape: FieldShape, read: str) -> list[str]:
        """Returns the lines that make JSON of what was found; `read` does so in any case."""
        v, converter = self.variable, value.converter
        kind = type(converter)
        if kind is convert.Text and not shape.many:
            return self._text(shape, read)
        if kind is convert.Email:
            is_odd = f"type({v}) is not str or address({v}) is None"
            return [f"if {v} is not None and ({is_odd}): {v} = {read}"]
        if isinstance(converter, Id):
            return self._id(converter, read)
        if kind in _RECURRING:
            decode = checked(value.decode, shape)
            if isinstance(converter, times.ZonedTime) and shape.format == "date-time":
                decode = _as_shown(converter.zero, decode)
            seen = self._name("seen", Remembered(decode))
            if kind in _NUMERIC:
                floats = self._name("floats", Remembered(checked(value.decode, shape)))
                read = f"{floats}[{v}] if type({v}) is float else {read}"
            return [f"{v} = {seen}[{v}] if type({v}) in EXACT else {read}"]
        return [f"if {v} is not None: {v} = {read}" if kind in _OF_TEXTS else f"{v} = {read}"]

    def _text(self, shape: FieldShape, read: str) -> list[str]:
        v = self.variable
        lines = [
            f"if type({v}) is str:",
            f"    if len({v}) > {LONGEST}: raise Unreadable",
            f"    {v} = {v}.strip() or None",
            f"elif {v} is not None: {v} = {read}",
        ]
        if shape.values:
            known = self._name("known", frozenset((*shape.values, None)))
            lines.append(f"if {v} not in {known}: raise Unreadable")
        return lines

    def _id(self, converter: Id, read: str) -> list[str]:
        v, ids = self.variable, converter.ids
        short, kind = (ids.shown if converter.own else ids.referred), "str"
        if isinstance(ids, SealedIds):
            short, kind = ids.seal, "int"
        return [
            f"if type({v}) is {kind}: {v} = {self._name('id', short)}({v})",
            f"elif {v} is not None: {v} = {read}",
        ]

    def _find(self, steps: Steps | None, find: Callable[[Any], Any]) -> None:
        """Adds the lines that put into the variable what a path finds."""
        v, at = self.variable, "row"
        if steps is None:
            self.lines.append(f"{v} = {self._name('find', find)}(row)")
        elif not steps:
            self.lines.append(f"{v} = row")
        for step in steps or ():
            if isinstance(step, int):
                least = -step if step < 0 else step + 1
                is_there = f"isinstance({at}, list) and len({at}) >= {least}"
                self.lines.append(f"{v} = {at}[{step}] if {is_there} else None")
            elif at == "row":  # what is no object is refused
                self.lines.append(f"{v} = row.get({step!r})")
            else:
                self.lines.append(f"{v} = {v}.get({step!r}) if isinstance({v}, dict) else None")
            at = v


def source_text(members: Sequence[Member]) -> str:
    """Returns the text of a function that makes records with these members."""
    lines = [line for member in members for line in member.lines]
    if any(member.name == "id" and member.variable == "None" for member in members):
        lines = ["raise Unreadable"]
    pairs = ", ".join(f"{member.name!r}: {member.variable}" for member in members)
    return "\n".join(
        (
            "def make(rows):",
            "    made, refused = [], []",
            "    for row in rows:",
            "        try:",
            *(f"            {line}" for line in lines),
            f"            made.append({{{pairs}}})",
            "        except Exception:",
            "            refused.append(len(made))",
            "            made.append(None)",
            "    return made, refused",
            "",
        )
    )


def compiled(source: str, members: Sequence[Member]) -> Make:
    """Returns the function of that text."""
    names: dict[str, Any] = {"EXACT": _EXACT, "address": _ADDRESS}
    names["Unreadable"] = Unreadable
    for member in members:
        names |= member.names
    # the text is made of the templates of this module alone
    exec(_code(source), names)  # noqa: S102  # nosec B102
    made: Make = names["make"]
    return made


@lru_cache(256)
def _code(source: str) -> CodeType:
    """Returns a source text, compiled; adapters opened from one mapping generate equal texts."""
    return compile(source, "<generated>", "exec")
