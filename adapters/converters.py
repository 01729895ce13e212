"""Makes converters of what a mapping says about a value."""

from collections.abc import Callable
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import FieldShape
from adapters.conversion import Conversion, conversion_name
from adapters.convert import (
    ZERO_DATES,
    Boolean,
    Codes,
    Colour,
    Converter,
    Day,
    Email,
    Integer,
    LocalTime,
    Money,
    NativeId,
    Number,
    SealedId,
    SplitText,
    Text,
    TimeConverter,
    UtcTime,
    ZonedTime,
)
from adapters.seal import Sealer

_TIME = FieldShape(format="date-time")


class Converters:
    """The converters of one mapping: they share its zone and, per resource, a sealer."""

    def __init__(self, zone: ZoneInfo, secret: bytes) -> None:
        self.zone = zone
        self.sealer = cache(lambda resource: Sealer(secret, resource))

    def make(self, conversion: Conversion, shape: FieldShape) -> Converter:
        """The converter that the mapping names, or the format's own."""
        name = conversion_name(conversion, shape)
        zero = conversion.zero if conversion.zero is not None else ZERO_DATES
        made: dict[str, Callable[[], Converter]] = {
            "local time": lambda: self._time(name, conversion, zero),
            "utc time": lambda: self._time(name, conversion, zero),
            "id": lambda: SealedId(self.sealer(conversion.of or shape.refers)),
            "code": lambda: Codes(conversion.codes or {}),
            "boolean": lambda: _boolean(conversion),
            "split text": lambda: SplitText(conversion.separator or ";"),
            "date": lambda: Day(zero),
        }
        return made[name]() if name in made else _PLAIN[name]

    def moment(self, conversion: Conversion) -> TimeConverter:
        """The converter of a time that is no field: of a shift, of what blocks."""
        converter: Any = self.make(conversion, _TIME)
        moment: TimeConverter = converter
        return moment

    def _time(self, name: str, conversion: Conversion, zero: tuple[str, ...]) -> Converter:
        pattern = conversion.pattern or "%Y-%m-%d %H:%M:%S"
        if name == "utc time":
            return UtcTime(zero, pattern)
        return LocalTime(self.zone, zero, pattern)


def _boolean(conversion: Conversion) -> Boolean:
    plain = Boolean()
    return Boolean(conversion.yes or plain.true, conversion.no or plain.false)


_PLAIN: dict[str, Converter] = {
    "text": Text(),
    "email": Email(),
    "number": Number(),
    "integer": Integer(),
    "money": Money(),
    "cents": Money(cents=True),
    "colour": Colour(),
    "zoned time": ZonedTime(),
    "native id": NativeId(),
}
