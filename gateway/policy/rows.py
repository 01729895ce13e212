"""Row conditions: they say which records exist for a level, by the values of fields that it sees.

A condition admits some values of one field. A record must meet all conditions, and a missing value
meets none. Values are compared exactly as the record shows them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any, NamedTuple

from adapters.base import Condition, Only, Record
from gateway.contract import fields as formats
from gateway.contract.fields import Field, Resource, write_instant

# A value as it is compared: text, a truth value, a day, an aware time, or a Decimal.
Value = Any

_NUMERIC = {formats.NUMBER.name, formats.MONEY.name, formats.PERCENT.name}
_NO_TRAPS = Context(traps=[])  # what is no number is a NaN
_ORDERED = {*_NUMERIC, formats.DAY.name, formats.INSTANT.name}


def is_ordered(field: Field) -> bool:
    return field.format.name in _ORDERED


def comparable(field: Field, shown: Any) -> Value:
    """Returns a value of an answer as it is compared; raises ValueError where it is none."""
    name = field.format.name
    if name == formats.BOOLEAN.name:
        fits = isinstance(shown, bool)
    elif name == formats.NUMBER.name:
        fits = isinstance(shown, int | float) and not isinstance(shown, bool)
    else:
        fits = isinstance(shown, str) and (not field.values or shown in field.values)
    if not fits:
        raise ValueError(shown)
    if name not in _NUMERIC:
        return field.format.read(shown) if name in _ORDERED else shown
    value = Decimal(str(shown), _NO_TRAPS)
    if not value.is_finite():
        raise ValueError(shown)
    return value


def shown(field: Field, value: Value) -> Any:
    """Returns a compared value as answers carry it."""
    if field.format.name == formats.NUMBER.name:
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    if isinstance(value, datetime):
        return write_instant(value)
    return value.isoformat() if isinstance(value, date) else value


class Bound(NamedTuple):
    """A least or a largest value. An `edge` of 1 excludes a least value itself, -1 a largest one.

    Bounds are therefore ordered, and a value compares with them as one of edge 0.
    """

    value: Value
    edge: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTest:
    """The admitted values of one field. Fields with a closed list of values use only `allowed`."""

    allowed: frozenset[Value] | None = None
    barred: frozenset[Value] = frozenset()
    low: Bound | None = None
    high: Bound | None = None

    def admits(self, value: Value) -> bool:
        if self.allowed is not None and value not in self.allowed:
            return False
        if self.low is not None and (value, 0) < self.low:
            return False
        if self.high is not None and (value, 0) > self.high:
            return False
        return value not in self.barred

    @property
    def is_empty(self) -> bool:
        """Whether it certainly admits nothing: no value is allowed, or the bounds leave none."""
        if self.allowed is not None:
            return not any(map(self.admits, self.allowed))
        return self.low is not None and self.high is not None and self.low > self.high

    def within(self, other: "ValueTest") -> bool:
        """Returns whether the other test admits all values that this one does."""
        if self.allowed is not None:
            return all(map(other.admits, filter(self.admits, self.allowed)))
        return (
            other.allowed is None
            and _first(max, self.low, other.low) == self.low
            and _first(min, self.high, other.high) == self.high
            and not any(map(self.admits, other.barred))
        )

    def both(self, other: "ValueTest") -> "ValueTest":
        """Returns what both admit, without redundant parts."""
        known = other.allowed if self.allowed is None else self.allowed
        if known is not None:
            return ValueTest(allowed=frozenset(filter(self.admits, filter(other.admits, known))))
        low, high = _first(max, self.low, other.low), _first(min, self.high, other.high)
        bounds = ValueTest(low=low, high=high)
        if bounds.is_empty:
            return NOTHING
        return replace(bounds, barred=frozenset(filter(bounds.admits, self.barred | other.barred)))

    def comparisons(self) -> Iterator[tuple[str, Any]]:
        """Yields `in` and `not in` with sorted values, `min`, `above`, `max`, `below` with one."""
        if self.allowed is not None:
            yield "in", sorted(filter(self.admits, self.allowed))
            return
        if self.barred:
            yield "not in", sorted(self.barred)
        if self.low is not None:
            yield "above" if self.low.edge else "min", self.low.value
        if self.high is not None:
            yield "below" if self.high.edge else "max", self.high.value


# A test that admits no value, and one that admits all.
NOTHING = ValueTest(allowed=frozenset())
_ANYTHING = ValueTest()


def _first(of: Callable[..., Bound | None], *bounds: Bound | None) -> Bound | None:
    return of(filter(None, bounds), default=None)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which records of a resource exist: field name -> its test; all exist where it is empty."""

    tests: Mapping[str, ValueTest]

    def __bool__(self) -> bool:
        return bool(self.tests)

    def within(self, other: "RowFilter") -> bool:
        """Returns whether all records that this filter admits pass the other one too."""
        return all(
            name in self.tests and self.tests[name].within(test)
            for name, test in other.tests.items()
        )

    def both(self, other: "RowFilter") -> "RowFilter":
        """Returns the filter of the records that both admit."""
        return RowFilter(
            {
                name: self.tests.get(name, _ANYTHING).both(other.tests.get(name, _ANYTHING))
                for name in {**self.tests, **other.tests}
            }
        )

    def admits(self, resource: Resource) -> Callable[[Record], bool]:
        """Returns a function that says of a record, in its JSON form, whether it exists."""
        fields = [(name, resource.at(name), test) for name, test in self.tests.items()]

        def exists(record: Record) -> bool:
            try:
                return all(
                    test.admits(comparable(field, record[name])) for name, field, test in fields
                )
            except (KeyError, ValueError):
                return False  # a missing or unreadable value

        return exists

    def conditions(self, resource: Resource) -> Only:
        """Returns the conditions as adapters read them."""
        conditions = []
        for name, test in self.tests.items():
            field = resource.at(name)
            for word, value in test.comparisons():
                carried = value
                if isinstance(value, list):  # without values that no answer has, such as 10.005
                    pairs = ((item, shown(field, item)) for item in value)
                    carried = tuple(it for item, it in pairs if comparable(field, it) == item)
                conditions.append(Condition(name, word, carried))
        return tuple(conditions)


EVERY = RowFilter({})


def in_closed(field: Field, test: ValueTest) -> ValueTest:
    """Returns the test by its allowed values alone, where the field's values are a closed list."""
    values = (True, False) if field.format is formats.BOOLEAN else field.values
    return ValueTest(allowed=frozenset(filter(test.admits, values))) if values else test


def path_in_list(path: str) -> str:
    """Returns a field as it stands in a list of a policy file."""
    return f'"{path}"' if "[" in path else path


def conditions_in_file(resource: Resource, rows: RowFilter) -> str:
    """Returns `{status: [VALIDATED]}`: fields in the contract's order, values sorted."""
    parts = (
        f"{path}: {_test_in_file(resource.at(path), rows.tests[path])}"
        for path in resource.paths
        if path in rows.tests
    )
    return f"{{{', '.join(parts)}}}"


def _test_in_file(field: Field, test: ValueTest) -> str:
    words = []
    for word, value in test.comparisons():
        if word == "in":
            return _in_file(field, value)
        words.append(f"{'not' if word == 'not in' else word}: {_in_file(field, value)}")
    return f"{{{', '.join(words)}}}"


def _in_file(field: Field, value: Value | list[Value]) -> str:
    """Returns the exact value, where answers may round it; or a list of such."""
    if isinstance(value, list):
        return f"[{', '.join(_in_file(field, item) for item in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, str):
        # in double quotes; invisible letters, and those that no file may have, as escapes
        return value if field.values else f'"{"".join(map(_letter, value))}"'
    # amounts with two places; a number that a reader would round becomes a text
    plain = format(value, "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    plain = "0" if plain == "-0" else plain
    if field.format is formats.NUMBER:
        return plain
    whole, _, cents = plain.partition(".")
    plain = f"{whole}.{cents:0<2}"
    return plain if Decimal(repr(float(plain))) == value else f'"{plain}"'


def _letter(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
