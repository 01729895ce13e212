"""Judges whether a record meets row conditions, by the values that it shows."""

import operator
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from adapters.base import Condition, Only

_ORDERED: Mapping[str, Callable[[Any, Any], bool]] = {
    "min": operator.ge,
    "max": operator.le,
    "above": operator.gt,
    "below": operator.lt,
}
SORTED = frozenset({"date-time", "date", "number", "integer", "money", "percent"})


def all_hold(only: Only, shown: Callable[[str], Any]) -> bool:
    """Returns whether a record meets all conditions; `shown` gives the value of a field."""
    return all(meets(shown(condition.field), condition) for condition in only)


def meets(value: Any, condition: Condition) -> bool:
    """Returns whether a value in its JSON form meets the condition; None never does."""
    if value is None:
        return False
    bound = condition.value
    if condition.test in _ORDERED:
        if isinstance(bound, datetime):
            value = datetime.fromisoformat(value)
        else:
            value = date.fromisoformat(value) if isinstance(bound, date) else Decimal(str(value))
        return _ORDERED[condition.test](value, bound)
    # in Python, True equals 1
    kind = isinstance(value, bool)
    is_among = any(kind is isinstance(one, bool) and value == one for one in bound)
    return is_among is (condition.test == "in")


def is_ordered(condition: Condition) -> bool:
    """Returns whether the condition bounds a value, and does not list values."""
    return condition.test in _ORDERED
