"""Conditions on numbers and amounts as SQL, however a number is kept: as one, or as a text."""

from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from sqlalchemy import ColumnElement, and_, false, literal_column, not_, or_

from adapters.base import Condition
from adapters.mapping.narrowing import is_ordered
from adapters.sql.columns import Columns
from adapters.sql.comparing import filled
from adapters.sql.engines.base import Speech
from adapters.values.numbers import Integer, Money, Number

# No number that is shown is larger.
_LARGEST = Decimal(10) ** 16
# So far beside what a column shows may lie what it holds: a FLOAT has seven digits.
_NEAR = Decimal("0.000001")
# An amount is rounded to cents; a sum of fractions that ends at half a cent may go either way.
_HALF, _ROOM = Decimal("0.5"), Decimal("0.1")


def by_number(
    column: Columns, _: Number | Integer, condition: Condition, speech: Speech
) -> ColumnElement[bool]:
    number, test = speech.number(column.parts[0]), condition.test
    if not is_ordered(condition):
        wanted = [Decimal(str(each)) for each in condition.value]
        if test == "in":
            found = _between(number, ((each - _near(each), each + _near(each)) for each in wanted))
        else:
            found = and_(number.is_not(None), *(number != written(each) for each in wanted))
        return or_unclear(found, number, column, speech)
    bound = condition.value
    if test in ("min", "above"):
        found = number >= written(bound - _near(bound))
    else:
        found = number <= written(bound + _near(bound))
    if test in ("above", "below"):
        found = and_(found, number != written(bound))
    return or_unclear(found, number, column, speech)


def by_amount(
    column: Columns, money: Money, condition: Condition, speech: Speech
) -> ColumnElement[bool]:
    """By whole cents, which are shown."""
    number = speech.number(column.parts[0])
    cent = Decimal(1) if money.cents else Decimal("0.01")
    if is_ordered(condition):
        found = _beyond(number, condition, cent)
    else:
        room = _HALF + _ROOM if condition.test == "in" else _HALF - _ROOM
        wanted = [Decimal(each) * 100 for each in condition.value]
        found = _between(number, (((e - room) * cent, (e + room) * cent) for e in wanted))
        if condition.test == "not in":
            found = and_(number.is_not(None), not_(found))
    return or_unclear(found, number, column, speech)


def _beyond(number: ColumnElement[Any], condition: Condition, cent: Decimal) -> ColumnElement[bool]:
    bound = max(-_LARGEST, min(condition.value, _LARGEST)) * 100
    up, down = (bound.to_integral_value(each) for each in (ROUND_CEILING, ROUND_FLOOR))
    least = {"min": up, "above": down + 1}.get(condition.test)
    if least is not None:
        return number >= written((least - _HALF - _ROOM) * cent)
    most = down if condition.test == "max" else up - 1
    return number <= written((most + _HALF + _ROOM) * cent)


def or_unclear(
    found: ColumnElement[bool], number: ColumnElement[Any], column: Columns, speech: Speech
) -> ColumnElement[bool]:
    """What the database cannot read as a number, perhaps the converter can."""
    return or_(found, and_(number.is_(None), filled(column, speech)))


def written(value: Decimal) -> ColumnElement[Any]:
    """A number within the statement: of a parameter the driver would have to guess the type."""
    return literal_column(f"{max(-_LARGEST, min(value, _LARGEST)):f}")


def _between(
    number: ColumnElement[Any], spans: Iterable[tuple[Decimal, Decimal]]
) -> ColumnElement[bool]:
    return or_(false(), *(number.between(written(a), written(b)) for a, b in spans))


def _near(value: Decimal) -> Decimal:
    return _NEAR * (1 + min(abs(value), _LARGEST))
