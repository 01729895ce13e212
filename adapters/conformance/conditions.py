"""Conditions for the suite: some of every kind, made of what is there; and what they let be.

What they let be is told in plain Python over whole records, by nothing that an adapter uses.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from adapters.base import Condition, FieldShape, Only, Record

_BOUNDS: Mapping[str, Callable[[str], Any]] = {
    "date-time": datetime.fromisoformat,
    "date": date.fromisoformat,
    **dict.fromkeys(("number", "integer", "money", "percent"), Decimal),
}
_READ: Mapping[type, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    Decimal: Decimal,
}
_COMPARED = {"min": operator.ge, "max": operator.le, "above": operator.gt, "below": operator.lt}
ORDERED = ("min", "max", "above", "below")
MEMBERS = ("in", "not in")


def let_be(records: Sequence[Record], only: Only) -> list[Record]:
    """The records that exist for who has these conditions."""
    return [each for each in records if all(_meets(each[one.field], one) for one in only)]


def _meets(value: Any, condition: Condition) -> bool:
    if value is None:
        return False
    if condition.test in MEMBERS:
        return (value in condition.value) is (condition.test == "in")
    bound, read = condition.value, _READ[type(condition.value)]
    return bool(_COMPARED[condition.test](read(str(value)), bound))


def conditions(records: Sequence[Record], shapes: Mapping[str, FieldShape]) -> Iterator[Condition]:
    """For each field with a value: which it may be, which not, and from or up to where."""
    for turn, (name, shape) in enumerate(shapes.items()):
        if "[]." in name or shape.many:
            continue
        values = sorted({each[name] for each in records if each[name] is not None}, key=str)
        if not values:
            continue
        middle = values[len(values) // 2]
        yield Condition(name, "in", (middle,))
        yield Condition(name, "not in", (middle, values[0]))
        read = _BOUNDS.get(shape.format)
        if read is not None:
            yield Condition(name, ORDERED[turn % len(ORDERED)], read(str(middle)))
            yield Condition(name, ORDERED[(turn + 1) % len(ORDERED)], read(str(middle)))
