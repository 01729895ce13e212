"""Makes converters of what a mapping says about a value."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from adapters.base import FieldShape, IdTable
from adapters.ids.seal import HASHED, NATIVE, Id, PublicIds, SealedIds
from adapters.ids.tabled import HashedIds, NativeIds
from adapters.mapping.conversion import Conversion
from adapters.values.convert import (
    Boolean,
    Codes,
    Colour,
    Converter,
    Email,
    Integer,
    JoinedText,
    Money,
    Number,
    PartOfText,
    SplitText,
    Text,
)
from adapters.values.times import Day, Epoch, Later, LocalTime, TimeConverter, UtcTime, ZonedTime


class ConverterKind(NamedTuple):
    """What a name under `as` stands for: the parameters it takes, the formats it makes, and how.

    What is not given is as the converter itself has it. Of the practice system it `needs` to know.
    """

    takes: set[str]
    makes: set[str]
    make: Callable[..., Any]
    needs: tuple[str, ...] = ()


_Kind, _CLOCK = ConverterKind, ("as_text", "columns")
# All that may stand under `as`.
CONVERTERS: Mapping[str, ConverterKind] = {
    "text": _Kind({"encoding"}, {"text"}, Text),
    "joined text": _Kind({"separator", "encoding"}, {"text"}, JoinedText),
    "part of text": _Kind({"separator", "part", "encoding"}, {"text"}, PartOfText),
    "split text": _Kind({"separator", "encoding"}, {"text"}, SplitText),
    "email": _Kind({"encoding"}, {"email"}, Email),
    "code": _Kind({"codes"}, {"text", "color", "integer", "number"}, Codes),
    "boolean": _Kind({"yes", "no"}, {"boolean"}, Boolean),
    "number": _Kind(set(), {"number", "integer"}, Number),
    "integer": _Kind(set(), {"integer", "number"}, Integer),
    "money": _Kind(set(), {"money", "percent"}, Money),
    "cents": _Kind(set(), {"money", "percent"}, partial(Money, cents=True)),
    "colour": _Kind({"order"}, {"color"}, Colour),
    "local time": _Kind({"pattern", "zero", "plus"}, {"date-time"}, LocalTime, ("zone", *_CLOCK)),
    "utc time": _Kind({"pattern", "zero", "plus"}, {"date-time"}, UtcTime, _CLOCK),
    "zoned time": _Kind({"zero", "plus"}, {"date-time"}, ZonedTime, ("compares",)),
    "epoch": _Kind({"unit", "zero", "plus"}, {"date-time"}, Epoch),
    "date": _Kind({"pattern", "zero"}, {"date"}, Day),
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
        self.zone, self._secret, self._kinds, self._table = zone, secret, kinds or {}, table
        self._times_as_text, self._one_spelling = times_as_text, one_spelling
        self.ids = cache(self._ids)

    def _ids(self, resource: str) -> PublicIds:
        """How the keys of a resource, or of a list inside one (`invoices/lines`), are shown."""
        kind = self._kinds.get(resource)
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
        for name in self._kinds:
            ids = self.ids(name)
            if isinstance(ids, HashedIds | NativeIds) and "/" not in name:
                yield name, ids

    def keep_no_ids(self) -> None:
        """For one who shows the ids to nobody: none waits for the table, and none is refused."""
        for _, ids in self.tabled:
            ids.keep_none()

    def make(self, said: Conversion, shape: FieldShape, *, columns: int = 1) -> Any:
        """The converter that the mapping names, or the format's own; for so many columns."""
        name, resource = conversion_name(said, shape), said.of or shape.refers or ""
        kind = CONVERTERS[name]
        if kind.make is Id:
            # the resource's own where these are UUIDs, as they know how one is spelt there
            is_stranger = name == NATIVE and self._kinds.get(resource) != NATIVE
            return Id(NativeIds() if is_stranger else self.ids(resource))
        known = {
            "zone": self.zone,
            "as_text": said.pattern is not None or self._times_as_text,
            "columns": columns - (said.plus is not None),
            "compares": not self._times_as_text,
        }
        given = {each: getattr(said, each) for each in kind.takes - {"plus"}}
        given = {each: value for each, value in given.items() if value is not None}
        converter = kind.make(**given, **{each: known[each] for each in kind.needs})
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
