"""Makes converters of what a mapping says about a value."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import cache, partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from adapters.base import FieldShape, IdTable
from adapters.ids import HASHED, NATIVE, HashedIds, Id, NativeIds, PublicIds, SealedIds
from adapters.mapping.conversion import Conversion
from adapters.values.convert import (
    Boolean,
    Codes,
    Converter,
    Email,
    JoinedText,
    PartOfText,
    SplitText,
    Text,
)
from adapters.values.numbers import Colour, Integer, Money, Number
from adapters.values.times import Day, Epoch, Later, LocalTime, TimeConverter, UtcTime, ZonedTime


class Making(NamedTuple):
    """What a converter is made of: `given` are the parameters that it takes, where they are given.

    `resource` is whose ids it knows, where it is one of ids.
    """

    mapping: "Converters"
    said: Conversion
    given: dict[str, Any]
    resource: str
    columns: int


class ConverterKind(NamedTuple):
    """What a name under `as` stands for: the parameters it takes, the formats it makes, and how."""

    takes: set[str]
    makes: set[str]
    make: Callable[[Making], Any]


def _of(kind: Callable[..., Any]) -> Callable[[Making], Any]:
    """A converter of what is given alone: what is not is as the converter itself has it."""
    return lambda of: kind(**of.given)


def _id(of: Making) -> Id:
    return Id(of.mapping.ids(of.resource))


def _native_id(of: Making) -> Id:
    """By the resource's own where these are UUIDs, as they know how one is spelt there."""
    return _id(of) if of.mapping.kinds.get(of.resource) == NATIVE else Id(NativeIds())


def _clock(of: Making) -> dict[str, Any]:
    as_text = "pattern" in of.given or of.mapping.times_as_text
    return {**of.given, "as_text": as_text, "columns": of.columns}


def _local(of: Making) -> LocalTime:
    return LocalTime(of.mapping.zone, **_clock(of))


def _utc(of: Making) -> UtcTime:
    return UtcTime(**_clock(of))


def _epoch(of: Making) -> Epoch:
    return Epoch(**{**of.given, "unit": timedelta(**{of.said.unit or "seconds": 1})})


def _zoned(of: Making) -> ZonedTime:
    return ZonedTime(**of.given, compares=not of.mapping.times_as_text)


_Kind = ConverterKind
# All that may stand under `as`.
CONVERTERS: Mapping[str, ConverterKind] = {
    "text": _Kind({"encoding"}, {"text"}, _of(Text)),
    "joined text": _Kind({"separator", "encoding"}, {"text"}, _of(JoinedText)),
    "part of text": _Kind({"separator", "part", "encoding"}, {"text"}, _of(PartOfText)),
    "split text": _Kind({"separator", "encoding"}, {"text"}, _of(SplitText)),
    "email": _Kind({"encoding"}, {"email"}, _of(Email)),
    "code": _Kind({"codes"}, {"text", "color", "integer", "number"}, _of(Codes)),
    "boolean": _Kind({"yes", "no"}, {"boolean"}, _of(Boolean)),
    "number": _Kind(set(), {"number", "integer"}, _of(Number)),
    "integer": _Kind(set(), {"integer", "number"}, _of(Integer)),
    "money": _Kind(set(), {"money", "percent"}, _of(Money)),
    "cents": _Kind(set(), {"money", "percent"}, _of(partial(Money, cents=True))),
    "colour": _Kind({"order"}, {"color"}, _of(Colour)),
    "local time": _Kind({"pattern", "zero", "plus"}, {"date-time"}, _local),
    "utc time": _Kind({"pattern", "zero", "plus"}, {"date-time"}, _utc),
    "zoned time": _Kind({"zero", "plus"}, {"date-time"}, _zoned),
    "epoch": _Kind({"unit", "zero", "plus"}, {"date-time"}, _epoch),
    "date": _Kind({"pattern", "zero"}, {"date"}, _of(Day)),
    "id": _Kind({"of", "part"}, {"uuid"}, _id),
    NATIVE: _Kind({"of"}, {"uuid"}, _native_id),
    HASHED: _Kind({"of"}, {"uuid"}, _id),
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
    """The converter that reads this value: the one that is named, else the format's own."""
    if conversion.as_ is not None:
        return conversion.as_
    if conversion.codes is not None:
        return "code"
    return "split text" if shape.many else DEFAULTS[shape.format]


class Converters:
    """The converters of one mapping: they share its zone and, per resource, the ids.

    `kinds` says what a resource's ids are made of, where it is not the key itself, sealed. Where
    the backend keeps `times_as_text`, a time without a pattern is a text too. Where it is asked for
    `one_spelling` of a key alone, ids remember more of how their keys are spelt.
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
        self.zone, self._secret, self.kinds, self._table = zone, secret, kinds or {}, table
        self.times_as_text, self._one_spelling = times_as_text, one_spelling
        self.ids = cache(self._ids)

    def _ids(self, resource: str) -> PublicIds:
        """How the keys of a resource, or of a list inside one (`invoices/lines`), are shown."""
        kind = self.kinds.get(resource)
        # what stands inside a record is never asked for by its id
        table = None if "/" in resource else self._table
        if kind == NATIVE:
            return NativeIds(resource, table, one_spelling=self._one_spelling)
        if kind == HASHED:
            return HashedIds(self._secret, resource, table)
        return SealedIds(self._secret, resource)

    @property
    def tabled(self) -> Iterator[tuple[str, HashedIds | NativeIds]]:
        """The resources whose ids may need the table, with these."""
        for name in self.kinds:
            ids = self.ids(name)
            if isinstance(ids, HashedIds | NativeIds) and "/" not in name:
                yield name, ids

    def keep_no_ids(self) -> None:
        """For one who shows the ids to nobody: none waits for the table, and none is refused."""
        for _, ids in self.tabled:
            ids.keep_none()

    def make(self, said: Conversion, shape: FieldShape, *, columns: int = 1) -> Any:
        """The converter that the mapping names, or the format's own; for so many columns."""
        kind = CONVERTERS[conversion_name(said, shape)]
        asked = {name: getattr(said, name) for name in kind.takes - {"plus"}}
        given = {name: value for name, value in asked.items() if value is not None}
        columns -= said.plus is not None
        converter = kind.make(Making(self, said, given, said.of or shape.refers or "", columns))
        return converter if said.plus is None else Later(converter)

    def plain(self, value: Conversion | None) -> Callable[[Any], Any]:
        """What reads a value that is no field: as it is, unless the mapping says how."""
        if value is None or (value.as_ is None and value.codes is None):
            return lambda raw: raw
        converter: Converter = self.make(value, FieldShape(format="text"))
        return converter.decode

    def moment(self, said: Conversion, *, columns: int = 1) -> TimeConverter:
        """The converter of a time that is no field: of what blocks, of a slot."""
        made: TimeConverter = self.make(said, FieldShape(format="date-time"), columns=columns)
        return made
