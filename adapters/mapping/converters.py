"""Makes converters of what a mapping says about a value."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import FieldShape, IdTable
from adapters.ids import HASHED, NATIVE, HashedIds, Id, NativeIds, PublicIds, SealedIds
from adapters.mapping.conversion import Conversion, conversion_name
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
from adapters.values.wall_clock import PATTERN, ZERO_DATES


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
        encoding, separator, pattern = said.encoding or "utf-8", said.separator, said.pattern
        resource = said.of or shape.refers or ""
        zero = ZERO_DATES if said.zero is None else said.zero
        as_text = pattern is not None or self._times_as_text
        clock = (zero, pattern or PATTERN, as_text, columns - (said.plus is not None))
        unit = timedelta(milliseconds=1) if said.unit == "milliseconds" else timedelta(seconds=1)
        made: dict[str, Callable[[], Any]] = {
            "id": lambda: Id(self.ids(resource)),
            HASHED: lambda: Id(self.ids(resource)),
            # the resource's own where these are UUIDs, as they know how one is spelt there
            NATIVE: lambda: Id(
                self.ids(resource) if self._kinds.get(resource) == NATIVE else NativeIds()
            ),
            "code": lambda: Codes(said.codes or {}),
            "boolean": lambda: Boolean(said.yes or Boolean.YES, said.no or Boolean.NO),
            "number": Number,
            "integer": Integer,
            "money": Money,
            "cents": lambda: Money(cents=True),
            "text": lambda: Text(encoding),
            "email": lambda: Email(encoding),
            "joined text": lambda: JoinedText(separator or ", ", encoding),
            "part of text": lambda: PartOfText(separator or ",", said.part or 1, encoding),
            "split text": lambda: SplitText(separator or ";", encoding),
            "colour": lambda: Colour(bgr=said.order == "bgr"),
            "date": lambda: Day(zero, pattern or "%Y-%m-%d"),
            "local time": lambda: LocalTime(self.zone, *clock),
            "utc time": lambda: UtcTime(*clock),
            "zoned time": lambda: ZonedTime(zero, not self._times_as_text),
            "epoch": lambda: Epoch(said.zero or ("0",), unit),
        }
        converter = made[conversion_name(said, shape)]()
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
