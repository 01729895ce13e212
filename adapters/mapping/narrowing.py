"""Whether a record exists for who asks: conditions judged on the values that it shows."""

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
    """Whether all conditions hold of a record; `shown` is the value of one of its fields."""
    return all(meets(shown(each.field), each) for each in only)


def meets(value: Any, condition: Condition) -> bool:
    """Whether a value in its JSON form is as the condition says; None never is."""
    if value is None:
        return False
    bound = condition.value
    if condition.test in _ORDERED:
        if isinstance(bound, datetime):
            value = datetime.fromisoformat(value)
        else:
            value = date.fromisoformat(value) if isinstance(bound, date) else Decimal(str(value))
        return _ORDERED[condition.test](value, bound)
    # to Python a true is a 1
    kind = isinstance(value, bool)
    is_among = any(kind is isinstance(each, bool) and value == each for each in bound)
    return is_among is (condition.test == "in")


def is_ordered(condition: Condition) -> bool:
    """Whether it says from where or up to where a value may go, and not which it may be."""
    return condition.test in _ORDERED
