"""What is wrong with what a mapping says about a value, whatever part of the file says it."""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from adapters.base import FieldShape
from adapters.documents.document import Place
from adapters.documents.problems import did_you_mean
from adapters.mapping.conversion import PARAMETERS, Conversion
from adapters.mapping.converters import CONVERTERS, conversion_name
from adapters.values.convert import Unreadable, is_colour
from adapters.values.times import PATTERN, ZERO_DATES, wall, written

_EXAMPLE = datetime(2026, 11, 22, 13, 54)  # noqa: DTZ001 - what a clock on the wall shows
# What a code may stand for in a field that is no text, and what to write then.
_KINDS: dict[str, tuple[Any, str]] = {
    "integer": (int, "a whole number"),
    "number": (int | float, "a number"),
}


def conversion_faults(
    said: Conversion, shape: FieldShape, resources: Collection[str], *, whole: bool = True
) -> Iterator[tuple[Place, str]]:
    """Yields what the models cannot see, each at its place in the conversion.

    Unless it is `whole`, a time may be written in parts. `resources` are those with ids.
    """
    name = conversion_name(said, shape)
    if name not in CONVERTERS:
        yield ("as",), f"no converter is called {name}{did_you_mean(name, CONVERTERS)}"
        return
    kind = CONVERTERS[name]
    if shape.format not in kind.makes:
        yield ("as",), f"as: {name} makes no {shape.format}, which this field is"
    for parameter in PARAMETERS:
        if getattr(said, parameter) is not None and parameter not in kind.takes:
            yield (parameter,), f"{parameter} does not go with as: {name}"
    if said.pattern is not None and (text := _wrong_pattern(said.pattern, name, whole=whole)):
        yield ("pattern",), text
    yield from _code_faults(said.codes or {}, shape)
    target = said.of or shape.refers
    if name in ("id", "hashed id") and target not in resources:
        yield ("of",), f"of must name a resource{did_you_mean(str(target), resources)}"


def _code_faults(codes: Mapping[str, Any], shape: FieldShape) -> Iterator[tuple[Place, str]]:
    for code, value in codes.items():
        if value is not None and (text := _wrong_with(code, value, shape)):
            yield ("codes", code), text


def _wrong_pattern(pattern: str, name: str, *, whole: bool) -> str:
    """Why what the pattern writes cannot be read; "" where it can. Parts are only written."""
    if not whole:
        is_used = re.search("%[a-zA-Z]", pattern)
        return "" if is_used else f"pattern must have parts of a time, such as {PATTERN}"
    example = _EXAMPLE.replace(hour=0, minute=0) if name == "date" else _EXAMPLE
    with suppress(Unreadable, ValueError):
        if wall(written(example, pattern), ZERO_DATES, pattern) == example:
            return ""
    text = f"pattern must write what can be read again: {PATTERN}, or parts of it down to"
    return f"{text} the minute, in any order"


def _wrong_with(code: str, value: Any, shape: FieldShape) -> str:
    """What is wrong with a value that the code stands for; "" for nothing."""
    if shape.values and value not in shape.values:
        near, (*others, last) = did_you_mean(str(value), shape.values), shape.values
        wanted = f"{', '.join(others)} or {last}" if others else last
        return f"{value} is no value of this field{near}: use {wanted}"
    kind, wanted = _KINDS.get(shape.format, (str, "a text: put it in quotes"))
    if not isinstance(value, kind) or isinstance(value, bool):
        return f"{code}: must be {wanted}"
    if shape.format == "color" and not is_colour(str(value)):
        return f"{code}: must be a colour such as '#2E86AB'"
    return ""
