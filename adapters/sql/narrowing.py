"""Which records exist for who asks: conditions in a statement, and judged on the rows that came.

A statement lets through every row that the conditions let be, and hardly another. What its engine
takes for the same, and the shown value is not, is left out here, before more of it is read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement

from adapters.base import Condition, FieldShape, Only
from adapters.ids import Id
from adapters.mapping.narrowing import all_hold, is_ordered, misfit, unmapped
from adapters.sql.amounts import by_amount, by_number
from adapters.sql.columns import Columns
from adapters.sql.comparing import by_code, by_id, by_text, by_truth
from adapters.sql.engines.base import Speech
from adapters.sql.instants import by_day, by_epoch, by_instant
from adapters.sql.keyed import KeyedRows
from adapters.values.convert import Boolean, Codes, Converter, Email, Text, Unreadable
from adapters.values.numbers import Integer, Money, Number
from adapters.values.times import Day, Epoch, LocalTime, UtcTime, ZonedTime

# How a condition is written, by the converter of its field.
WAYS: Mapping[type[Any], Callable[[Columns, Any, Condition, Speech], ColumnElement[bool]]] = {
    Id: by_id,
    Text: by_text,
    Email: by_text,
    Codes: by_code,
    Boolean: by_truth,
    Number: by_number,
    Integer: by_number,
    Money: by_amount,
    Epoch: by_epoch,
    LocalTime: by_instant,
    UtcTime: by_instant,
    ZonedTime: by_instant,
    Day: by_day,
}


@dataclass(frozen=True, slots=True)
class _Judged:
    """Where a field stands in a row, and how it is read."""

    columns: Columns
    converter: Converter
    offset: int


class Narrowing:
    """The conditions of one resource."""

    def __init__(self, table: KeyedRows, shapes: Mapping[str, FieldShape], speech: Speech) -> None:
        self._resource = table.resource
        self._shapes = shapes
        self._speech = speech
        offsets, width = dict(table.offsets), table.key.width
        self._fields = {
            name: _Judged(column, column.converter, width + offsets[name])
            for name, column in table.by_name.items()
        }
        self._fields["id"] = _Judged(table.key, Id(table.ids, own=True), 0)

    def conditions(self, only: Only) -> Iterator[ColumnElement[bool]]:
        """What to add to a statement."""
        for each in only:
            field = self._fields[each.field]
            way = WAYS[type(field.converter)]
            yield way(field.columns, field.converter, each, self._speech)

    def lets_be(self, row: Sequence[Any], only: Only) -> bool:
        """Whether a row of the key and all fields is a record that exists."""
        return all_hold(only, lambda name: self._shown(row, self._fields[name]))

    def _shown(self, row: Sequence[Any], field: _Judged) -> Any:
        try:
            return field.converter.decode(field.columns.take(row, field.offset))
        except Unreadable:
            return None

    def refusal(self, condition: Condition) -> str | None:
        """Why a statement cannot have that condition; None where it can."""
        said = misfit(self._resource, condition, self._shapes)
        if said is not None:
            return said
        field = self._fields.get(condition.field)
        if field is None:
            return unmapped(self._resource, condition)
        name = f"{self._resource}.{condition.field}"
        if field.columns.width > 1:
            return (
                f"{name} is kept in several columns: leave it out of `only`, or map it from one"
                " column"
            )
        if type(field.converter) in WAYS and field.converter.compares:
            return None
        does = "sort" if is_ordered(condition) else "compare"
        return (
            f"{name} is kept in a way that the database does not {does}: leave it out of `only`,"
            f" or map it from a column that it does {does}"
        )
