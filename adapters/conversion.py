"""What every mapping says about a value: which converter reads it, with which parameters.

Shared by all mapping files, whatever stands behind them; checked as a whole, with every problem at
its place.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from adapters.base import FieldShape, Shapes
from adapters.convert import ZERO_DATES, Unreadable, wall, written
from adapters.document import Document, Place, Problem, did_you_mean

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
}

# `as` -> (the parameters it takes, the formats it makes)
CONVERTERS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "text": (frozenset(), frozenset({"text"})),
    "email": (frozenset(), frozenset({"email"})),
    "split text": (frozenset({"separator"}), frozenset({"text"})),
    "code": (frozenset({"codes"}), frozenset({"text"})),
    "boolean": (frozenset({"yes", "no"}), frozenset({"boolean"})),
    "number": (frozenset(), frozenset({"number", "integer"})),
    "integer": (frozenset(), frozenset({"integer", "number"})),
    "money": (frozenset(), frozenset({"money", "percent"})),
    "cents": (frozenset(), frozenset({"money", "percent"})),
    "colour": (frozenset(), frozenset({"color"})),
    "local time": (frozenset({"pattern", "zero"}), frozenset({"date-time"})),
    "utc time": (frozenset({"pattern", "zero"}), frozenset({"date-time"})),
    "zoned time": (frozenset(), frozenset({"date-time"})),
    "date": (frozenset({"zero"}), frozenset({"date"})),
    "id": (frozenset({"of"}), frozenset({"uuid"})),
    "native id": (frozenset({"of"}), frozenset({"uuid"})),
}
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
    """A part of a mapping: nothing that is not named may stand in it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class Conversion(Strict):
    """How a raw value is written: the converter's name and its parameters."""

    as_: str | None = Field(default=None, alias="as")
    codes: dict[str, str | None] | None = None
    yes: Listed[Scalar] | None = Field(default=None, min_length=1)
    no: Listed[Scalar] | None = Field(default=None, min_length=1)
    separator: str | None = Field(default=None, min_length=1)
    pattern: str | None = None
    zero: Listed[str] | None = None
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


def _reads_back(pattern: str) -> bool:
    try:
        return wall(written(_EXAMPLE, pattern), ZERO_DATES) == _EXAMPLE
    except (Unreadable, ValueError):
        return False


class ConversionChecker:
    """What the models cannot see of a conversion: its converter, what goes with it, its codes."""

    def __init__(self, document: Document, shapes: Shapes) -> None:
        self.document = document
        self.shapes = shapes

    def problems(
        self, place: Place, conversion: Conversion, shape: FieldShape
    ) -> Iterator[Problem]:
        name = conversion_name(conversion, shape)
        if name not in CONVERTERS:
            text = f"no converter is called {name}{did_you_mean(name, CONVERTERS)}"
            yield self.document.problem((*place, "as"), text)
            return
        takes, makes = CONVERTERS[name]
        if shape.format not in makes:
            text = f"as: {name} makes no {shape.format}, which this field is"
            yield self.document.problem((*place, "as"), text)
        for parameter in ("codes", "yes", "no", "separator", "pattern", "zero", "of"):
            if getattr(conversion, parameter) is not None and parameter not in takes:
                text = f"{parameter} does not go with as: {name}"
                yield self.document.problem((*place, parameter), text, at_key=True)
        if name == "code" and conversion.codes is None:
            yield self.document.problem(place, "as: code needs codes, a table of code: value")
        if conversion.pattern is not None and not _reads_back(conversion.pattern):
            text = "pattern must write what can be read and sorted: %Y-%m-%d %H:%M:%S, or parts of"
            yield self.document.problem((*place, "pattern"), f"{text} it down to the minute")
        yield from self._code_values(place, conversion, shape)
        target = conversion.of or shape.refers
        if name == "id" and target not in self.shapes:
            text = f"of must name a resource{did_you_mean(str(target), self.shapes)}"
            yield self.document.problem((*place, "of"), text)

    def _code_values(
        self, place: Place, conversion: Conversion, shape: FieldShape
    ) -> Iterator[Problem]:
        if not shape.values:
            return
        for code, value in (conversion.codes or {}).items():
            if value is not None and value not in shape.values:
                text = f"{value} is no value of this field{did_you_mean(value, shape.values)}"
                yield self.document.problem((*place, "codes", code), text)
