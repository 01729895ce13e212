"""Makes converters of what a mapping says about a value."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import FieldShape, IdTable
from adapters.ids import HASHED, NATIVE, HashedIds, Id, NativeIds, PublicIds, SealedIds
from adapters.ids.seal import Sealer
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

_TIME = FieldShape(format="date-time")
_TEXT = FieldShape(format="text")
_MILLISECOND = timedelta(milliseconds=1)


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
        self.zone = zone
        self._secret = secret
        self._kinds = kinds or {}
        self._table = table
        self._times_as_text = times_as_text
        self._one_spelling = one_spelling
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
        return SealedIds(Sealer(self._secret, resource))

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

    def make(self, conversion: Conversion, shape: FieldShape, *, columns: int = 1) -> Converter:
        """The converter that the mapping names, or the format's own; for so many columns."""
        name = conversion_name(conversion, shape)
        if name in _TIMES:
            return self._time(name, conversion, columns)
        encoding, separator = conversion.encoding or "utf-8", conversion.separator
        resource = conversion.of or shape.refers or ""
        made: dict[str, Callable[[], Converter]] = {
            "id": lambda: Id(self.ids(resource)),
            HASHED: lambda: Id(self.ids(resource)),
            # the resource's own where these are UUIDs, as they know how one is spelt there
            NATIVE: lambda: Id(
                self.ids(resource) if self._kinds.get(resource) == NATIVE else NativeIds()
            ),
            "code": lambda: Codes(conversion.codes or {}),
            "boolean": lambda: Boolean(conversion.yes or Boolean.YES, conversion.no or Boolean.NO),
            "number": Number,
            "integer": Integer,
            "money": Money,
            "cents": lambda: Money(cents=True),
            "text": lambda: Text(encoding),
            "email": lambda: Email(encoding),
            "joined text": lambda: JoinedText(separator or ", ", encoding),
            "part of text": lambda: PartOfText(separator or ",", conversion.part or 1, encoding),
            "split text": lambda: SplitText(separator or ";", encoding),
            "colour": lambda: Colour(bgr=conversion.order == "bgr"),
            "date": lambda: Day(_zero(conversion), conversion.pattern or "%Y-%m-%d"),
        }
        return made[name]()

    def plain(self, value: Conversion | None) -> Callable[[Any], Any]:
        """What reads a value that is no field: as it is, unless the mapping says how."""
        if value is None or (value.as_ is None and value.codes is None):
            return lambda raw: raw
        return self.make(value, _TEXT).decode

    def moment(self, conversion: Conversion, *, columns: int = 1) -> TimeConverter:
        """The converter of a time that is no field: of what blocks, of a slot."""
        return self._time(conversion_name(conversion, _TIME), conversion, columns)

    def _time(self, name: str, conversion: Conversion, columns: int) -> TimeConverter:
        columns -= conversion.plus is not None
        as_text = conversion.pattern is not None or self._times_as_text
        zero, pattern = _zero(conversion), conversion.pattern or PATTERN
        made: dict[str, Callable[[], TimeConverter]] = {
            "local time": lambda: LocalTime(self.zone, zero, pattern, as_text, columns),
            "utc time": lambda: UtcTime(zero, pattern, as_text, columns),
            "zoned time": lambda: ZonedTime(zero, not self._times_as_text),
            "epoch": lambda: Epoch(
                conversion.zero or ("0",),
                _MILLISECOND if conversion.unit == "milliseconds" else timedelta(seconds=1),
            ),
        }
        base = made[name]()
        return base if conversion.plus is None else Later(base)


def _zero(conversion: Conversion) -> tuple[str, ...]:
    return conversion.zero if conversion.zero is not None else ZERO_DATES


_TIMES = frozenset({"local time", "utc time", "zoned time", "epoch"})
