"""Row conditions: which records exist at all for a level, by the values of fields that it sees.

A condition says of one field which values are let be; a record must meet all of them, and what has
no value meets none. Values are compared as the record shows them, exactly.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from adapters.base import Condition, Only, Record
from gateway.contract import fields as formats
from gateway.contract.fields import Field, Resource, write_instant

# A value as it is compared: text, a truth value, a day, an aware time, or a Decimal.
Value = Any

_NUMERIC = {formats.NUMBER.name, formats.MONEY.name, formats.PERCENT.name}
_ORDERED = {*_NUMERIC, formats.DAY.name, formats.INSTANT.name}


def is_ordered(field: Field) -> bool:
    """Whether one value of the field is less than another."""
    return field.format.name in _ORDERED


def comparable(field: Field, shown: Any) -> Value:
    """A value of the field as answers carry it, as it is compared; ValueError where it is none."""
    name = field.format.name
    if name == formats.BOOLEAN.name:
        fits = isinstance(shown, bool)
    elif name == formats.NUMBER.name:
        fits = isinstance(shown, int | float) and not isinstance(shown, bool)
    else:
        fits = isinstance(shown, str) and (not field.values or shown in field.values)
    if not fits:
        raise ValueError(shown)
    if name in _NUMERIC:
        return _decimal(str(shown))
    if name == formats.DAY.name:
        return formats.read_date(shown)
    return formats.read_instant(shown) if name == formats.INSTANT.name else shown


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(text) from error
    if not value.is_finite():
        raise ValueError(text)
    return value


def shown(field: Field, value: Value) -> Any:
    """The value as answers carry it."""
    if field.format.name == formats.NUMBER.name:
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    if isinstance(value, datetime):
        return write_instant(value)
    return value.isoformat() if isinstance(value, date) else value


@dataclass(frozen=True, slots=True)
class Bound:
    """A least or a largest value; where it is not `included` the value itself is outside."""

    value: Value
    included: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is let be of one field's values; a missing part lets all be.

    Where the field has a closed list of values, or is a truth value, `allowed` says it all.
    """

    allowed: frozenset[Value] | None = None
    barred: frozenset[Value] = frozenset()
    low: Bound | None = None
    high: Bound | None = None

    def admits(self, value: Value) -> bool:
        """Whether a value is let be."""
        if self.allowed is not None and value not in self.allowed:
            return False
        low, high = self.low, self.high
        if low is not None and (value < low.value or (value == low.value and not low.included)):
            return False
        if high is not None and (value > high.value or (value == high.value and not high.included)):
            return False
        return value not in self.barred

    @property
    def is_empty(self) -> bool:
        """Whether it certainly lets nothing be: no value is allowed, or the bounds leave none."""
        if self.allowed is not None:
            return not any(map(self.admits, self.allowed))
        low, high = self.low, self.high
        if low is None or high is None:
            return False
        closed = low.included and high.included
        return bool(low.value > high.value or (low.value == high.value and not closed))

    def within(self, other: "Wanted") -> bool:
        """Whether the other lets be all that this one does."""
        if self.allowed is not None:
            return all(map(other.admits, filter(self.admits, self.allowed)))
        if other.allowed is not None or _lower(self.low, other.low) is not self.low:
            return False
        if _higher(self.high, other.high) is not self.high:
            return False
        return not any(map(self.admits, other.barred))

    def both(self, other: "Wanted") -> "Wanted":
        """What this and the other let be."""
        allowed = self.allowed if other.allowed is None else other.allowed
        if self.allowed is not None and other.allowed is not None:
            allowed = self.allowed & other.allowed
        return Wanted(
            allowed=allowed,
            barred=self.barred | other.barred,
            low=_lower(self.low, other.low),
            high=_higher(self.high, other.high),
        )


# What no value meets.
NOTHING = Wanted(allowed=frozenset())


def _lower(one: Bound | None, other: Bound | None) -> Bound | None:
    """The bound from below that leaves out more; of two alike the first."""
    if one is None or other is None:
        return one or other
    if one.value == other.value:
        return other if one.included and not other.included else one
    return one if one.value > other.value else other


def _higher(one: Bound | None, other: Bound | None) -> Bound | None:
    if one is None or other is None:
        return one or other
    if one.value == other.value:
        return other if one.included and not other.included else one
    return one if one.value < other.value else other


@dataclass(frozen=True, slots=True)
class Rows:
    """Which records of a resource exist: field name -> what is let be; nothing lets all be."""

    wanted: Mapping[str, Wanted]

    def __bool__(self) -> bool:
        return bool(self.wanted)

    def within(self, other: "Rows") -> bool:
        """Whether all records that exist here exist there too."""
        return all(
            name in self.wanted and self.wanted[name].within(test)
            for name, test in other.wanted.items()
        )

    def both(self, other: "Rows") -> "Rows":
        """The records that exist here and there."""
        wanted = dict(self.wanted)
        for name, test in other.wanted.items():
            wanted[name] = wanted[name].both(test) if name in wanted else test
        return Rows(wanted)

    def admits(self, resource: Resource) -> Callable[[Record], bool]:
        """What says of a record, in its JSON form, whether it exists."""
        fields = [(name, resource.at(name), test) for name, test in self.wanted.items()]

        def exists(record: Record) -> bool:
            try:
                return all(
                    test.admits(comparable(field, record[name])) for name, field, test in fields
                )
            except (KeyError, ValueError):
                return False  # no value, or one that nobody can read

        return exists

    def conditions(self, resource: Resource) -> Only:
        """The same as adapters are told of it."""
        return tuple(
            condition
            for name, test in self.wanted.items()
            for condition in _conditions(resource.at(name), test)
        )


EVERY = Rows({})


def _conditions(field: Field, test: Wanted) -> Iterator[Condition]:
    if test.allowed is not None:
        yield Condition(field.name, "in", _listed(field, filter(test.admits, test.allowed)))
        return
    if test.barred:
        yield Condition(field.name, "not in", _listed(field, test.barred))
    if test.low is not None:
        yield Condition(field.name, "min" if test.low.included else "above", test.low.value)
    if test.high is not None:
        yield Condition(field.name, "max" if test.high.included else "below", test.high.value)


def _listed(field: Field, values: Any) -> tuple[Any, ...]:
    """The values as answers carry them; one that none can carry, such as 10.005, is no record's."""
    written = ((value, shown(field, value)) for value in sorted(values))
    return tuple(each for value, each in written if comparable(field, each) == value)


def closed(field: Field) -> frozenset[Value] | None:
    """All values that a field may have, where they are few."""
    if field.format is formats.BOOLEAN:
        return frozenset({True, False})
    return frozenset(field.values) or None


def in_closed(field: Field, test: Wanted) -> Wanted:
    """The test by its allowed values alone, where the field's values are a closed list."""
    values = closed(field)
    if values is None:
        return test
    return Wanted(allowed=frozenset(filter(test.admits, values)))
