"""A list's filters, and the conditions under which records exist for who asks, as SQL.

A statement lets through every row that the conditions let be, and hardly another. What its engine
takes for the same, and the shown value is not, is left out here, before more of it is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, false, not_, or_

from adapters.base import BackendNonsense, Condition, FieldShape, Filter, Only
from adapters.ids import Id
from adapters.mapping.narrowing import all_hold, is_ordered, misfit, unmapped
from adapters.sql.columns import Columns, FieldColumn, KeyedRows, comparable
from adapters.sql.comparisons import COMPARED, ColumnComparison
from adapters.sql.engines.base import Criterion, Expression, Speech, given
from adapters.values.convert import Converter, JoinedText, PartOfText, Unreadable, fold
from adapters.values.times import ROOM


@dataclass(frozen=True, slots=True)
class _FieldPlace:
    """Where a field stands in a row, and how it is read."""

    columns: Columns
    converter: Converter
    offset: int


class RowConditions:
    """The filters and conditions of one resource."""

    def __init__(self, table: KeyedRows, shapes: Mapping[str, FieldShape], speech: Speech) -> None:
        self._table, self._shapes, self._speech = table, shapes, speech
        offsets = dict(table.offsets)
        self._places = {
            name: _FieldPlace(column, column.converter, offsets[name])
            for name, column in table.by_name.items()
        }
        self._places["id"] = _FieldPlace(table.key, Id(table.ids, own=True), 0)
        self.filterable = frozenset(
            name
            for name, column in table.by_name.items()
            # a text that cannot be compared may be searched all the same
            if column.converter.compares or isinstance(column.converter, JoinedText | PartOfText)
        )

    def of(self, only: Only) -> Iterator[Criterion]:
        """What to add to a statement; of what comes then `all_hold` decides."""
        for condition in only:
            place = self._places[condition.field]
            yield ColumnComparison(place.columns, condition, self._speech).sql(place.converter)

    def all_hold(self, row: Sequence[Any], only: Only) -> bool:
        """Whether a row of the key and all fields is a record that exists."""

        def shown(name: str) -> Any:
            place = self._places[name]
            try:
                return place.converter.decode(place.columns.take(row, place.offset))
            except Unreadable:
                return None

        return all_hold(only, shown)

    def refusal(self, condition: Condition) -> str | None:
        """Why a statement cannot have that condition; None where it can."""
        resource = self._table.resource
        said = misfit(resource, condition, self._shapes)
        if said is not None:
            return said
        place = self._places.get(condition.field)
        if place is None:
            return unmapped(resource, condition)
        name = f"{resource}.{condition.field}"
        if place.columns.width > 1:
            return (
                f"{name} is kept in several columns: leave it out of `only`, or map it from one"
                " column"
            )
        if type(place.converter) in COMPARED and place.converter.compares:
            return None
        does = "sort" if is_ordered(condition) else "compare"
        return (
            f"{name} is kept in a way that the database does not {does}: leave it out of `only`,"
            f" or map it from a column that it does {does}"
        )

    def of_filter(self, wanted: Filter) -> Criterion:
        """What to add to a statement; BackendNonsense for what cannot be compared."""
        columns = [self._table.by_name[name] for name in wanted.fields]
        if wanted.match == "search":
            return self._search(columns, wanted.value)
        column = columns[0]
        converter: Any = column.converter
        if not converter.compares:
            raise BackendNonsense(f"{self._table.resource} cannot be compared by {column.name}")
        if wanted.match == "since":
            return column.beyond(converter.since(wanted.value), at_least=True)
        if wanted.match == "written since":
            return column.beyond(converter.first_written(wanted.value), at_least=True)
        if wanted.match == "around":
            early, late = (converter.encode(wanted.value + each)[0] for each in (-ROOM, ROOM))
            return and_(column.beyond(early, at_least=True), not_(column.beyond(late)))
        raws = converter.encode(wanted.value)
        if isinstance(converter, Id):
            return column.among(comparable(raws, loose_types=self._speech.loose_types))
        return self._is_one_of(column.parts[0], raws) if column.width == 1 else column.among(raws)

    def _is_one_of(self, expression: Expression, raws: Sequence[Any]) -> Criterion:
        """Blanks round a text count as little here as where it is read; "" is no value too."""
        trimmed = self._speech.trimmed(expression)
        sides = ((trimmed if isinstance(raw, str) else expression, raw) for raw in raws)
        conditions = [side == given(None, raw) for side, raw in sides]
        return or_(false(), *conditions, *([expression.is_(None)] if "" in raws else ()))

    def _search(self, columns: Sequence[FieldColumn], words: str) -> Criterion:
        """Each word begins a word of the texts; letters and digits count, nothing else."""
        wanted = fold(words).split()
        if not wanted:
            return false()
        # two fields may be parts of one column
        texts = {str(part): part for column in columns for part in column.parts}
        joined, *others = (self._speech.searchable(text) for text in texts.values())
        for text in others:
            joined = joined.concat(text)
        return and_(*(joined.like(given(None, f"% {word}%")) for word in wanted))
