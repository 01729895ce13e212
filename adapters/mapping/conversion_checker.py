"""Checks what a mapping says about a value, whatever part of the file says it."""

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from adapters.base import FieldShape, Shapes
from adapters.documents.document import Document, Place
from adapters.documents.problems import Problem, did_you_mean
from adapters.mapping.conversion import PARAMETERS, Conversion, Scalar
from adapters.mapping.converters import CONVERTERS, conversion_name
from adapters.values.convert import Unreadable
from adapters.values.wall_clock import PATTERN, ZERO_DATES, wall, written

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
        kind = CONVERTERS[name]
        if shape.format not in kind.makes:
            self.say((*place, "as"), f"as: {name} makes no {shape.format}, which this field is")
        for parameter in PARAMETERS:
            if getattr(conversion, parameter) is not None and parameter not in kind.takes:
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
