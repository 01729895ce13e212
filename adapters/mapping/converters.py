"""Makes the converters that a mapping names, and finds problems in how it names them."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import cache, partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from adapters.base import FieldShape, IdTable
from adapters.documents.document import Place
from adapters.documents.problems import did_you_mean
from adapters.ids.seal import HASHED, NATIVE, Id, PublicIds, SealedIds
from adapters.ids.table import HashedIds, NativeIds
from adapters.mapping.conversion import PARAMETERS, Conversion
from adapters.values import convert, times
from adapters.values.times import PATTERN, ZERO_DATES, wall, written


class ConverterKind(NamedTuple):
    """What a name under `as` stands for: the parameters it takes, the formats it makes, and how.

    Parameters that are not given have the converter's own defaults. `needs` are the parameters that
    the practice system decides.
    """

    takes: set[str]
    makes: set[str]
    make: Callable[..., Any]
    needs: tuple[str, ...] = ()


_Kind, _CLOCK, _WALL_CLOCK = ConverterKind, ("as_text", "columns"), ("as_text", "columns", "zone")
# What a code stands for in these is read on by the format's own converter.
_CODED = frozenset({"boolean", "date", "email", "money", "percent", "uuid"})
# All that may stand under `as`.
CONVERTERS: Mapping[str, ConverterKind] = {
    "text": _Kind({"encoding", "longest"}, {"text"}, convert.Text),
    "joined text": _Kind({"separator", "encoding"}, {"text"}, convert.JoinedText),
    "part of text": _Kind({"separator", "part", "encoding"}, {"text"}, convert.PartOfText),
    "split text": _Kind({"separator", "encoding"}, {"text"}, convert.SplitText),
    "email": _Kind({"encoding"}, {"email"}, convert.Email),
    "code": _Kind({"codes"}, {"text", "color", "integer", "number", *_CODED}, convert.Codes),
    "boolean": _Kind({"yes", "no"}, {"boolean"}, convert.Boolean),
    "number": _Kind({"factor"}, {"number", "integer"}, convert.Number),
    "integer": _Kind({"factor"}, {"integer", "number"}, convert.Integer),
    "money": _Kind({"factor"}, {"money", "percent"}, convert.Money),
    "cents": _Kind({"factor"}, {"money", "percent"}, partial(convert.Money, cents=True)),
    "colour": _Kind({"order"}, {"color"}, convert.Colour),
    "local time": _Kind({"pattern", "zero", "plus"}, {"date-time"}, times.LocalTime, _WALL_CLOCK),
    "utc time": _Kind({"pattern", "zero", "plus"}, {"date-time"}, times.UtcTime, _CLOCK),
    "zoned time": _Kind({"zero", "plus"}, {"date-time"}, times.ZonedTime, ("compares",)),
    "epoch": _Kind({"unit", "zero", "plus"}, {"date-time"}, times.Epoch),
    "date": _Kind({"pattern", "zero"}, {"date"}, times.Day),
    "id": _Kind({"of", "part"}, {"uuid"}, Id),
    NATIVE: _Kind({"of"}, {"uuid"}, Id),
    HASHED: _Kind({"of"}, {"uuid"}, Id),
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


def conversion_name(conversion: Conversion, shape: FieldShape) -> str:
    """Returns the name of the value's converter: the one given, else the format's own."""
    if conversion.as_ is not None:
        return conversion.as_
    if conversion.codes is not None:
        return "code"
    return "split text" if shape.many else DEFAULTS[shape.format]


class Converters:
    """The converters of one mapping, which share its zone and, for each resource, the ids.

    `kinds` says what a resource's ids are made of, where they are not sealed keys. Where the
    backend keeps `times_as_text`, a time without a pattern is a text too. Where it is asked for
    only `one_spelling` of a key, ids remember more spellings.
    """

    def __init__(
        self,
        zone: ZoneInfo,
        secret: bytes,
        *,
        kinds: Mapping[str, str] | None = None,
        table: IdTable | None = None,
        times_as_text: bool = True,
        one_spelling: bool = False,
    ) -> None:
        self.zone, self._secret, self._kinds, self._table = zone, secret, kinds or {}, table
        self._times_as_text, self._one_spelling = times_as_text, one_spelling
        self.ids = cache(self._ids)

    def _ids(self, resource: str) -> PublicIds:
        """Returns the ids of a resource, or of a list inside one (`invoices/lines`)."""
        kind = self._kinds.get(resource)
        # what is inside a record is never looked up by its id
        table = None if "/" in resource else self._table
        if kind == NATIVE:
            return NativeIds(resource, table, one_spelling=self._one_spelling)
        if kind == HASHED:
            return HashedIds(self._secret, resource, table)
        return SealedIds(self._secret, resource)

    @property
    def tabled(self) -> Iterator[tuple[str, HashedIds | NativeIds]]:
        """The resources whose ids may need the table, with their ids."""
        for name in self._kinds:
            ids = self.ids(name)
            if isinstance(ids, HashedIds | NativeIds) and "/" not in name:
                yield name, ids

    def make(self, conversion: Conversion, shape: FieldShape, *, columns: int = 1) -> Any:
        """Returns the converter of a value in so many columns."""
        name, resource = conversion_name(conversion, shape), conversion.of or shape.refers or ""
        kind = CONVERTERS[name]
        if kind.make is Id:
            # the resource's own ids where these are UUIDs, as they know how one is spelt there
            is_stranger = name == NATIVE and self._kinds.get(resource) != NATIVE
            return Id(NativeIds() if is_stranger else self.ids(resource))
        if name == "code" and shape.format in _CODED:
            table = convert.Codes(conversion.codes or {})
            return convert.CodesOf(table, self.make(Conversion(), shape))
        known = {
            "zone": self.zone,
            "as_text": conversion.pattern is not None or self._times_as_text,
            "columns": columns - (conversion.plus is not None),
            "compares": not self._times_as_text,
        }
        given = {name: getattr(conversion, name) for name in kind.takes - {"plus", "factor"}}
        given = {name: value for name, value in given.items() if value is not None}
        converter = kind.make(**given, **{name: known[name] for name in kind.needs})
        if conversion.factor is not None:
            return convert.Scaled(converter, Decimal(str(conversion.factor)))
        return converter if conversion.plus is None else times.Later(converter)

    def plain(self, value: Conversion | None) -> Callable[[Any], Any]:
        """Returns what reads a value that is no field: as it is, unless the mapping says how."""
        if value is None or (value.as_ is None and value.codes is None):
            return lambda raw: raw
        converter: convert.Converter = self.make(value, FieldShape(format="text"))
        return converter.decode

    def moment(self, conversion: Conversion, *, columns: int = 1) -> times.TimeConverter:
        """Returns the converter of a time that is no field, such as that of a slot."""
        shape = FieldShape(format="date-time")
        made: times.TimeConverter = self.make(conversion, shape, columns=columns)
        return made


_EXAMPLE = datetime(2026, 11, 22, 13, 54)  # noqa: DTZ001 - what a clock on the wall shows
_DAY = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]").fullmatch
# What a code may stand for in a field that is no text, by type and in words.
_KINDS: dict[str, tuple[Any, str]] = {
    "integer": (int, "a whole number"),
    "number": (int | float, "a number"),
    "money": (int | float | str, "an amount such as 12.50"),
    "percent": (int | float | str, "a percentage such as 20 or 5.5"),
    "uuid": (int | str, "a key of what the field refers to"),
}


def conversion_faults(
    entry: Conversion, shape: FieldShape, resources: Collection[str], *, whole: bool = True
) -> Iterator[tuple[Place, str, str]]:
    """Yields what the models cannot see: the place in the conversion, the check's code, a text.

    Unless it is `whole`, a time may be written in parts. `resources` are those with ids.
    """
    name = conversion_name(entry, shape)
    if name not in CONVERTERS:
        text = f"no converter is called {name}{did_you_mean(name, CONVERTERS)}"
        yield ("as",), "bad-converter", text
        return
    kind = CONVERTERS[name]
    if shape.format not in kind.makes:
        yield ("as",), "bad-converter", f"as: {name} makes no {shape.format}, which this field is"
    for parameter in PARAMETERS:
        if getattr(entry, parameter) is not None and parameter not in kind.takes:
            yield (parameter,), "bad-converter", f"{parameter} does not go with as: {name}"
    if entry.pattern is not None and (text := _wrong_pattern(entry.pattern, name, whole=whole)):
        yield ("pattern",), "bad-pattern", text
    codes = (entry.codes or {}).items()
    faults = ((code, _wrong_with(code, value, shape)) for code, value in codes if value is not None)
    yield from ((("codes", code), "bad-code", text) for code, text in faults if text)
    target = entry.of or shape.refers
    if name in ("id", "hashed id") and target not in resources:
        text = f"of must name a resource{did_you_mean(str(target), resources)}"
        yield ("of",), "unknown-name", text


def _wrong_pattern(pattern: str, name: str, *, whole: bool) -> str:
    """Returns why a time by the pattern cannot be read back, as a `whole` one must; else ""."""
    if not whole:
        is_used = re.search("%[a-zA-Z]", pattern)
        return "" if is_used else f"pattern must have parts of a time, such as {PATTERN}"
    example = _EXAMPLE.replace(hour=0, minute=0) if name == "date" else _EXAMPLE
    with suppress(convert.Unreadable, ValueError):
        if wall(written(example, pattern), ZERO_DATES, pattern) == example:
            return ""
    text = f"pattern must write what can be read again: {PATTERN}, or parts of it down to"
    return f"{text} the minute, in any order"


def _wrong_with(code: str, value: Any, shape: FieldShape) -> str:
    """Returns what is wrong with a value that the code stands for; "" for nothing."""
    if shape.values and value not in shape.values:
        near, (*others, last) = did_you_mean(str(value), shape.values), shape.values
        choices = f"{', '.join(others)} or {last}" if others else last
        return f"{value} is no value of this field{near}: use {choices}"
    if shape.format == "boolean":
        return "" if isinstance(value, bool) else f"{code}: must be true or false"
    kind, choices = _KINDS.get(shape.format, (str, "a text: put it in quotes"))
    is_kind = isinstance(value, kind) and not isinstance(value, bool)
    if shape.format in ("money", "percent"):
        is_kind = is_kind and convert.number_or_none(value) is not None
    elif is_kind and shape.format == "date":
        is_kind, choices = _DAY(value) is not None, "a day such as '2026-11-22'"
    elif is_kind and shape.format == "color":
        is_kind, choices = bool(convert.is_colour(str(value))), "a colour such as '#2E86AB'"
    return "" if is_kind else f"{code}: must be {choices}"
