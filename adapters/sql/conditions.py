"""A list's filters, and the conditions under which records exist for who asks, as SQL.

A statement lets through every row that the conditions let be, and hardly another. What its engine
takes for the same, and the shown value is not, is left out here, before more of it is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import and_, false, not_, or_

from adapters.base import BackendNonsense, Condition, FieldShape, Filter, Only
from adapters.ids import Id
from adapters.mapping.narrowing import is_ordered
from adapters.sql.columns import Columns, KeyedRows, comparable
from adapters.sql.comparisons import COMPARED, ColumnComparison
from adapters.sql.engines.base import Criterion, Expression, Speech, given
from adapters.values.convert import Converter, JoinedText, PartOfText, fold
from adapters.values.times import ROOM


class RowConditions:
    """The filters and conditions of one resource."""

    def __init__(self, table: KeyedRows, shapes: Mapping[str, FieldShape], speech: Speech) -> None:
        self._table, self._shapes, self._speech = table, shapes, speech
        self._places: dict[str, tuple[Columns, Converter]] = {
            column.name: (column, column.converter) for column in table.columns
        }
        self._places["id"] = table.key, Id(table.ids, own=True)
        self.filterable = frozenset(
            column.name
            for column in table.columns
            # a text that cannot be compared may be searched all the same
            if column.converter.compares or isinstance(column.converter, JoinedText | PartOfText)
        )

    def of(self, only: Only) -> Iterator[Criterion]:
        """What to add to a statement; of what comes then `exists` of its rows decides."""
        for condition in only:
            columns, converter = self._places[condition.field]
            yield ColumnComparison(columns, condition, self._speech).sql(converter)

    def refusal(self, condition: Condition) -> str | None:
        """Why a statement cannot have that condition; None where it can."""
        text = self._table.refusal(condition, self._shapes)
        if text is not None:
            return text
        columns, converter = self._places[condition.field]
        name = f"{self._table.resource}.{condition.field}"
        if columns.width > 1:
            return (
                f"{name} is kept in several columns: leave it out of `only`, or map it from one"
                " column"
            )
        if type(converter) in COMPARED and converter.compares:
            return None
        does = "sort" if is_ordered(condition) else "compare"
        return (
            f"{name} is kept in a way that the database does not {does}: leave it out of `only`,"
            f" or map it from a column that it does {does}"
        )

    def of_filter(self, wanted: Filter) -> Criterion:
        """What to add to a statement; BackendNonsense for what cannot be compared."""
        columns = [self._places[name][0] for name in wanted.fields]
        if wanted.match == "search":
            return self._search(columns, wanted.value)
        name, column = wanted.fields[0], columns[0]
        converter: Any = self._places[name][1]
        if not converter.compares:
            raise BackendNonsense(f"{self._table.resource} cannot be compared by {name}")
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

    def _search(self, columns: Sequence[Columns], words: str) -> Criterion:
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
