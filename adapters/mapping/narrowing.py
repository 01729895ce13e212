"""Whether a record exists for who asks: conditions judged on the values that it shows."""

import operator
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol

from adapters.base import Condition, FieldShape, Only
from adapters.documents.document import Document
from adapters.documents.problems import Problem

_ORDERED: Mapping[str, Callable[[Any, Any], bool]] = {
    "min": operator.ge,
    "max": operator.le,
    "above": operator.gt,
    "below": operator.lt,
}
_SORTED = frozenset({"date-time", "date", "number", "integer", "money", "percent"})


def all_hold(only: Only, shown: Callable[[str], Any]) -> bool:
    """Whether all conditions hold of a record; `shown` is the value of one of its fields."""
    return all(meets(shown(each.field), each) for each in only)


def meets(value: Any, condition: Condition) -> bool:
    """Whether a value in its JSON form is as the condition says; None never is."""
    if value is None:
        return False
    if condition.test in _ORDERED:
        return _ORDERED[condition.test](_sortable(value, condition.value), condition.value)
    is_among = any(_same(value, each) for each in condition.value)
    return is_among is (condition.test == "in")


def is_ordered(condition: Condition) -> bool:
    """Whether it says from where or up to where a value may go, and not which it may be."""
    return condition.test in _ORDERED


def misfit(resource: str, condition: Condition, shapes: Mapping[str, FieldShape]) -> str | None:
    """Why no adapter can judge records by that; None where nothing speaks against it."""
    field = f"{resource}.{condition.field}"
    shape = shapes.get(condition.field)
    if shape is None or "[]." in condition.field:
        return f"{field} is no field of the record itself: leave it out of `only`"
    if shape.many:
        return f"{field} holds several values, not one: leave it out of `only`"
    if is_ordered(condition) and shape.format not in _SORTED:
        return f"{field} is a {shape.format}, which does not sort: name its values in `only`"
    return None


class Narrowed(Protocol):
    """What knows why one of its resource's fields cannot be a condition."""

    def refusal(self, condition: Condition) -> str | None:
        """A sentence with the remedy; None where it can."""


def narrows(
    document: Document, of: Mapping[str, Narrowed], resource: str, only: Only
) -> list[Problem]:
    """What is refused of the conditions, each at its field in the mapping."""
    found = []
    for each in only:
        known = of.get(resource)
        text = f"{resource} has no conditions" if known is None else known.refusal(each)
        if text is not None:
            place = ("resources", resource, "fields", each.field)
            found.append(document.problem(place, text, at_key=True))
    return found


def unmapped(resource: str, condition: Condition) -> str:
    """What is said of a field that the mapping leaves out."""
    return (
        f"{resource}.{condition.field} is not in the mapping, so that no record would exist:"
        " map it, or leave it out of `only`"
    )


def _same(value: Any, wanted: Any) -> bool:
    """To Python a true is a 1."""
    return isinstance(value, bool) is isinstance(wanted, bool) and bool(value == wanted)


def _sortable(value: Any, bound: Any) -> Any:
    """The value as a thing of the bound's kind."""
    if isinstance(bound, datetime):
        return datetime.fromisoformat(value)
    return date.fromisoformat(value) if isinstance(bound, date) else Decimal(str(value))
