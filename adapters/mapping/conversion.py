"""What every mapping says about a value: which converter reads it, with which parameters.

Shared by all mapping files, whatever stands behind them; checked as a whole, with every problem at
its place.
"""

import codecs
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from adapters.base import FieldShape, Shapes
from adapters.documents.document import Document, Place
from adapters.documents.problems import Problem, did_you_mean
from adapters.ids.keeper import REFERS
from adapters.values.convert import Unreadable
from adapters.values.wall_clock import PATTERN, ZERO_DATES, wall, written

Scalar = str | int | float | bool | None
DRAFT_FIELDS = {
    **{name: FieldShape(format="uuid", refers=resource) for name, resource in REFERS.items()},
    **dict.fromkeys(("scheduledAt", "endTime", "createdAt"), FieldShape(format="date-time")),
    **dict.fromkeys(("reason", "reference"), FieldShape(format="text")),
    "isUrgent": FieldShape(format="boolean"),
    "minutes": FieldShape(format="integer"),
}
# What a draft has besides, as the practice system writes it: the calendar and the row of the slot.
DRAFT_KEYS = ("schedule", "slot")

# `as` -> (the parameters it takes, the formats it makes)
CONVERTERS: dict[str, tuple[set[str], set[str]]] = {
    "text": ({"encoding"}, {"text"}),
    "joined text": ({"separator", "encoding"}, {"text"}),
    "part of text": ({"separator", "part", "encoding"}, {"text"}),
    "split text": ({"separator", "encoding"}, {"text"}),
    "email": ({"encoding"}, {"email"}),
    "code": ({"codes"}, {"text", "color", "integer", "number"}),
    "boolean": ({"yes", "no"}, {"boolean"}),
    "number": (set(), {"number", "integer"}),
    "integer": (set(), {"integer", "number"}),
    "money": (set(), {"money", "percent"}),
    "cents": (set(), {"money", "percent"}),
    "colour": ({"order"}, {"color"}),
    "local time": ({"pattern", "zero", "plus"}, {"date-time"}),
    "utc time": ({"pattern", "zero", "plus"}, {"date-time"}),
    "zoned time": ({"zero", "plus"}, {"date-time"}),
    "epoch": ({"unit", "zero", "plus"}, {"date-time"}),
    "date": ({"pattern", "zero"}, {"date"}),
    "id": ({"of", "part"}, {"uuid"}),
    "native id": ({"of"}, {"uuid"}),
    "hashed id": ({"of"}, {"uuid"}),
}
# The converters that read one value out of several columns.
IN_COLUMNS = frozenset({"joined text", "local time", "utc time", "id"})
DEFAULTS = {
    "text": "text",
    "email": "email",
    "boolean": "boolean",
    "number": "number",
    "integer": "integer",
    "money": "money",
    "percent": "money",
    "color": "colour",
    "date-time": "local time",
    "date": "date",
    "uuid": "id",
}


T = TypeVar("T")


# A list of the file, that can't be changed any more.
Listed = Annotated[
    tuple[T, ...], BeforeValidator(lambda raw: tuple(raw) if isinstance(raw, list) else raw)
]


@dataclass(frozen=True, slots=True)
class GoesWith:
    """Marks what stands in a mapping of that adapter alone."""

    adapter: str


OfSql = Annotated[T, GoesWith("sql")]
OfRest = Annotated[T, GoesWith("rest")]


class Strict(BaseModel):
    """A part of a mapping: nothing that is not named may stand in it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)

    @classmethod
    def only_with(cls, adapter: str) -> frozenset[str]:
        """The names, as a file has them, that go with that adapter alone."""
        fields = cls.model_fields.items()
        mark = GoesWith(adapter)
        return frozenset(info.alias or name for name, info in fields if mark in info.metadata)

    def faults(self) -> Iterator[str]:
        """What does not go together in it; the first is said."""
        yield from ()

    @model_validator(mode="after")
    def _sound(self) -> Self:
        for fault in self.faults():
            raise ValueError(fault)
        return self


def checked(check: Callable[[str], object]) -> AfterValidator:
    """A validator of texts that `check` refuses with a ValueError; the text stays as it is."""

    def kept(text: str) -> str:
        check(text)
        return text

    return AfterValidator(kept)


def _known_encoding(name: str) -> None:
    try:
        codecs.lookup(name)
    except LookupError as error:
        raise ValueError(f"no encoding is called {name}; write one such as cp1252") from error


def _known_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        text = f"no time zone is called {name}; write one such as Europe/Paris"
        raise ValueError(text) from error


# The zone of the clock on the clinic's wall.
Zone = Annotated[str, checked(_known_zone)]


class Conversion(Strict):
    """How a raw value is written: the converter's name and its parameters."""

    as_: str | None = Field(default=None, alias="as")
    codes: dict[str, Scalar] | None = None
    yes: Listed[Scalar] | None = Field(default=None, min_length=1)
    no: Listed[Scalar] | None = Field(default=None, min_length=1)
    separator: str | None = Field(default=None, min_length=1)
    part: int | None = None
    encoding: Annotated[str, checked(_known_encoding)] | None = None
    order: Literal["rgb", "bgr"] | None = None
    pattern: str | None = None
    unit: Literal["seconds", "milliseconds"] | None = None
    zero: Listed[str] | None = None
    plus: str | None = None
    of: str | None = None

    def faults(self) -> Iterator[str]:
        if self.as_ == "code" and self.codes is None:
            yield "as: code needs codes, a table of code: value"
        if self.part == 0:
            yield "part must be 1 or more, or -1 for the last"


PARAMETERS = tuple(name for name in Conversion.model_fields if name != "as_")


def conversion_name(conversion: Conversion, shape: FieldShape) -> str:
    """The converter that reads this value: the one that is named, else the format's own."""
    if conversion.as_ is not None:
        return conversion.as_
    if conversion.codes is not None:
        return "code"
    return "split text" if shape.many else DEFAULTS[shape.format]


_EXAMPLE = datetime(2026, 11, 22, 13, 54)  # noqa: DTZ001 - what a clock on the wall shows
# What a code may stand for in a field that is no text, and what to write then.
_KINDS: dict[str, tuple[Any, str]] = {
    "integer": (int, "a whole number"),
    "number": (int | float, "a number"),
}
_COLOUR = re.compile("#[0-9A-Fa-f]{6}").fullmatch


class ConversionChecker:
    """What the models cannot see of a conversion: its converter, what goes with it, its codes.

    `found` are the problems that were said until now.
    """

    def __init__(self, document: Document, shapes: Shapes) -> None:
        self.document, self.shapes = document, shapes
        self.found: list[Problem] = []

    def say(self, place: Place, text: str) -> None:
        """Note a problem, at the name that it is about."""
        self.found.append(self.document.problem(place, text, at_key=True))

    def is_known(
        self, place: Place, name: object, known: Collection[str], text: str, more: str = ""
    ) -> bool:
        """Whether a name is one of these; if not it is said, `text` first, with the nearest."""
        if name not in known:
            self.say(place, f"{text}{did_you_mean(str(name), known)}{more}")
        return name in known

    def conversion(
        self, place: Place, conversion: Conversion, shape: FieldShape, *, whole: bool = True
    ) -> None:
        """What is wrong with it; unless it is `whole`, a time may be written in parts."""
        name = conversion_name(conversion, shape)
        if not self.is_known((*place, "as"), name, CONVERTERS, f"no converter is called {name}"):
            return
        takes, makes = CONVERTERS[name]
        if shape.format not in makes:
            self.say((*place, "as"), f"as: {name} makes no {shape.format}, which this field is")
        for parameter in PARAMETERS:
            if getattr(conversion, parameter) is not None and parameter not in takes:
                self.say((*place, parameter), f"{parameter} does not go with as: {name}")
        if conversion.pattern is not None:
            self._pattern((*place, "pattern"), conversion.pattern, name, whole=whole)
        self._codes(place, conversion.codes or {}, shape)
        if name in ("id", "hashed id"):
            target = conversion.of or shape.refers
            self.is_known((*place, "of"), target, self.shapes, "of must name a resource")

    def _codes(self, place: Place, codes: Mapping[str, Scalar], shape: FieldShape) -> None:
        for code, value in codes.items():
            if value is not None and (text := _wrong_with(code, value, shape)):
                self.say((*place, "codes", code), text)

    def _pattern(self, place: Place, pattern: str, name: str, *, whole: bool) -> None:
        """Whether what the pattern writes can be read; parts of a time are only written."""
        if not whole:
            if not re.search("%[a-zA-Z]", pattern):
                self.say(place, f"pattern must have parts of a time, such as {PATTERN}")
            return
        example = _EXAMPLE.replace(hour=0, minute=0) if name == "date" else _EXAMPLE
        with suppress(Unreadable, ValueError):
            if wall(written(example, pattern), ZERO_DATES, pattern) == example:
                return
        text = f"pattern must write what can be read again: {PATTERN}, or parts of it down to"
        self.say(place, f"{text} the minute, in any order")


def _wrong_with(code: str, value: Any, shape: FieldShape) -> str:
    """What is wrong with a value that the code stands for; "" for nothing."""
    if shape.values and value not in shape.values:
        near, (*others, last) = did_you_mean(str(value), shape.values), shape.values
        wanted = f"{', '.join(others)} or {last}" if others else last
        return f"{value} is no value of this field{near}: use {wanted}"
    kind, wanted = _KINDS.get(shape.format, (str, "a text: put it in quotes"))
    if not isinstance(value, kind) or isinstance(value, bool):
        return f"{code}: must be {wanted}"
    if shape.format == "color" and not _COLOUR(str(value)):
        return f"{code}: must be a colour such as '#2E86AB'"
    return ""
