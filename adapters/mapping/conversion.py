"""What every mapping says about a value: which converter reads it, with which parameters.

Shared by all mapping files, whatever stands behind them; checked as a whole, with every problem at
its place.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from adapters.base import FieldShape, Shapes
from adapters.documents.document import Document, Place
from adapters.documents.problems import Problem, did_you_mean
from adapters.values.convert import Unreadable
from adapters.values.wall_clock import PATTERN, ZERO_DATES, wall, written

Scalar = str | int | float | bool | None
DRAFT_FIELDS = {
    "clientId": FieldShape(format="uuid", refers="clients"),
    "patientId": FieldShape(format="uuid", refers="patients"),
    "vetId": FieldShape(format="uuid", refers="vets"),
    "appointmentTypeId": FieldShape(format="uuid", refers="appointmentTypes"),
    "scheduledAt": FieldShape(format="date-time"),
    "endTime": FieldShape(format="date-time"),
    "createdAt": FieldShape(format="date-time"),
    "reason": FieldShape(format="text"),
    "isUrgent": FieldShape(format="boolean"),
    "reference": FieldShape(format="text"),
    "minutes": FieldShape(format="integer"),
}
# What a draft has besides, as the practice system writes it: the calendar and the row of the slot.
DRAFT_KEYS = ("schedule", "slot")

_TIMES = frozenset({"date-time"})
_TEXTS = frozenset({"text"})

# `as` -> (the parameters it takes, the formats it makes)
CONVERTERS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "text": (frozenset({"encoding"}), _TEXTS),
    "joined text": (frozenset({"separator", "encoding"}), _TEXTS),
    "part of text": (frozenset({"separator", "part", "encoding"}), _TEXTS),
    "split text": (frozenset({"separator", "encoding"}), _TEXTS),
    "email": (frozenset({"encoding"}), frozenset({"email"})),
    "code": (frozenset({"codes"}), frozenset({"text", "color", "integer", "number"})),
    "boolean": (frozenset({"yes", "no"}), frozenset({"boolean"})),
    "number": (frozenset(), frozenset({"number", "integer"})),
    "integer": (frozenset(), frozenset({"integer", "number"})),
    "money": (frozenset(), frozenset({"money", "percent"})),
    "cents": (frozenset(), frozenset({"money", "percent"})),
    "colour": (frozenset({"order"}), frozenset({"color"})),
    "local time": (frozenset({"pattern", "zero", "plus"}), _TIMES),
    "utc time": (frozenset({"pattern", "zero", "plus"}), _TIMES),
    "zoned time": (frozenset({"zero", "plus"}), _TIMES),
    "epoch": (frozenset({"unit", "zero", "plus"}), _TIMES),
    "date": (frozenset({"pattern", "zero"}), frozenset({"date"})),
    "id": (frozenset({"of", "part"}), frozenset({"uuid"})),
    "native id": (frozenset({"of"}), frozenset({"uuid"})),
    "hashed id": (frozenset({"of"}), frozenset({"uuid"})),
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


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# A list of the file, that can't be changed any more.
Listed = Annotated[tuple[T, ...], BeforeValidator(_as_tuple)]


class Strict(BaseModel):
    """A part of a mapping: nothing that is not named may stand in it.

    `sql_only` and `rest_only` are the names that go with one kind of practice system alone.
    """

    sql_only: ClassVar[frozenset[str]] = frozenset()
    rest_only: ClassVar[frozenset[str]] = frozenset()

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


def _known_encoding(name: str) -> str:
    try:
        codecs.lookup(name)
    except LookupError as error:
        raise ValueError(f"no encoding is called {name}; write one such as cp1252") from error
    return name


Encoding = Annotated[str, AfterValidator(_known_encoding)]


class Conversion(Strict):
    """How a raw value is written: the converter's name and its parameters."""

    as_: str | None = Field(default=None, alias="as")
    codes: dict[str, Scalar] | None = None
    yes: Listed[Scalar] | None = Field(default=None, min_length=1)
    no: Listed[Scalar] | None = Field(default=None, min_length=1)
    separator: str | None = Field(default=None, min_length=1)
    part: int | None = None
    encoding: Encoding | None = None
    order: Literal["rgb", "bgr"] | None = None
    pattern: str | None = None
    unit: Literal["seconds", "milliseconds"] | None = None
    zero: Listed[str] | None = None
    plus: str | None = None
    of: str | None = None


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"no time zone is called {name}; write one such as Europe/Paris") from (
            error
        )
    return name


# The zone of the clock on the clinic's wall.
Zone = Annotated[str, AfterValidator(_known_zone)]


PARAMETERS = tuple(name for name in Conversion.model_fields if name != "as_")


def conversion_name(conversion: Conversion, shape: FieldShape) -> str:
    """The converter that reads this value: the one that is named, else the format's own."""
    if conversion.as_ is not None:
        return conversion.as_
    if conversion.codes is not None:
        return "code"
    if shape.many:
        return "split text"
    return DEFAULTS[shape.format]


_EXAMPLE = datetime(2026, 11, 22, 13, 54)  # noqa: DTZ001 - what a clock on the wall shows


def _reads_back(pattern: str, example: datetime) -> bool:
    try:
        return wall(written(example, pattern), ZERO_DATES, pattern) == example
    except (Unreadable, ValueError):
        return False


# What a code may stand for in a field that is no text.
_KINDS: dict[str, Any] = {"integer": int, "number": int | float}
_KIND_NAMES = {"integer": "a whole number", "number": "a number"}
_COLOUR = re.compile("#[0-9A-Fa-f]{6}").fullmatch


def _one_of(values: Sequence[str]) -> str:
    """All of them, as the end of a sentence."""
    return " or ".join(filter(None, (", ".join(values[:-1]), values[-1])))


class ConversionChecker:
    """What the models cannot see of a conversion: its converter, what goes with it, its codes."""

    def __init__(self, document: Document, shapes: Shapes) -> None:
        self.document = document
        self.shapes = shapes

    def problems(
        self, place: Place, conversion: Conversion, shape: FieldShape, *, whole: bool = True
    ) -> Iterator[Problem]:
        """What is wrong with it; unless it is `whole`, a time may be written in parts."""
        name = conversion_name(conversion, shape)
        if name not in CONVERTERS:
            text = f"no converter is called {name}{did_you_mean(name, CONVERTERS)}"
            yield self.document.problem((*place, "as"), text)
            return
        takes, makes = CONVERTERS[name]
        if shape.format not in makes:
            text = f"as: {name} makes no {shape.format}, which this field is"
            yield self.document.problem((*place, "as"), text)
        for parameter in PARAMETERS:
            if getattr(conversion, parameter) is not None and parameter not in takes:
                text = f"{parameter} does not go with as: {name}"
                yield self.document.problem((*place, parameter), text, at_key=True)
        if name == "code" and conversion.codes is None:
            yield self.document.problem(place, "as: code needs codes, a table of code: value")
        if conversion.part == 0:
            yield self.document.problem(
                (*place, "part"), "part must be 1 or more, or -1 for the last"
            )
        yield from self._pattern(place, conversion, name, whole=whole)
        yield from self._code_values(place, conversion, shape)
        target = conversion.of or shape.refers
        if name in ("id", "hashed id") and target not in self.shapes:
            text = f"of must name a resource{did_you_mean(str(target), self.shapes)}"
            yield self.document.problem((*place, "of"), text)

    def _pattern(
        self, place: Place, conversion: Conversion, name: str, *, whole: bool
    ) -> Iterator[Problem]:
        """Whether what the pattern writes can be read; parts of a time are only written."""
        pattern = conversion.pattern
        if pattern is None:
            return
        example = _EXAMPLE.replace(hour=0, minute=0) if name == "date" else _EXAMPLE
        if whole and not _reads_back(pattern, example):
            text = f"pattern must write what can be read again: {PATTERN}, or parts of it down to"
            yield self.document.problem((*place, "pattern"), f"{text} the minute, in any order")
        elif not whole and not re.search("%[a-zA-Z]", pattern):
            text = f"pattern must have parts of a time, such as {PATTERN}"
            yield self.document.problem((*place, "pattern"), text)

    def _code_values(
        self, place: Place, conversion: Conversion, shape: FieldShape
    ) -> Iterator[Problem]:
        kind = _KINDS.get(shape.format, str)
        for code, value in (conversion.codes or {}).items():
            if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
                text = f"must be {_KIND_NAMES.get(shape.format, 'a text: put it in quotes')}"
                yield self.document.problem((*place, "codes", code), f"{code}: {text}")
            elif shape.format == "color" and value is not None and not _COLOUR(str(value)):
                text = f"{code}: must be a colour such as '#2E86AB'"
                yield self.document.problem((*place, "codes", code), text)
        if not shape.values:
            return
        for code, value in (conversion.codes or {}).items():
            if value is not None and value not in shape.values:
                near = did_you_mean(str(value), shape.values)
                text = f"{value} is no value of this field{near}: use {_one_of(shape.values)}"
                yield self.document.problem((*place, "codes", code), text)
