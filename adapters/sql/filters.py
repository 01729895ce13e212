"""Filters of a list as SQL, by how the fields are kept."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, false, not_, or_

from adapters.base import BackendNonsense, Filter
from adapters.ids import Id
from adapters.sql.columns import Columns
from adapters.sql.engines.base import Speech, given
from adapters.sql.keyed import FieldColumn, KeyedRows, only_texts
from adapters.values.convert import Converter, JoinedText, PartOfText, fold
from adapters.values.times import ROOM


class Filters:
    """The filters of one resource."""

    def __init__(self, table: KeyedRows, speech: Speech) -> None:
        self._table = table
        self._speech = speech
        self.names = frozenset(
            name
            for name, column in table.by_name.items()
            if column.converter.compares or _is_text(column.converter)
        )

    def condition(self, wanted: Filter) -> ColumnElement[bool]:
        """What to add to a statement; BackendNonsense for what cannot be compared."""
        columns = [self._table.by_name[name] for name in wanted.fields]
        if wanted.match == "search":
            return self._search(columns, wanted.value)
        column = columns[0]
        converter: Any = column.converter
        if not converter.compares:
            raise BackendNonsense(f"{self._table.resource} cannot be compared by {column.name}")
        if wanted.match != "equals":
            return _bounded(column, converter, wanted)
        raw = converter.encode(wanted.value)
        if isinstance(converter, Id):
            return column.among(raw if self._speech.loose_types else only_texts(raw))
        if column.width > 1:
            return column.among(raw)
        return self._is_one_of(column, raw)

    def _is_one_of(self, column: FieldColumn, raw: Sequence[Any]) -> ColumnElement[bool]:
        """Blanks round a text count as little here as where it is read; "" is no value too."""
        expression = column.parts[0]
        texts = [each for each in raw if isinstance(each, str)]
        others = [each for each in raw if not isinstance(each, str)]
        conditions = [_in(self._speech.trimmed(expression), texts)] if texts else []
        if others:
            conditions.append(_in(expression, others))
        if "" in texts:
            conditions.append(expression.is_(None))
        return or_(false(), *conditions)

    def _search(self, columns: Sequence[FieldColumn], words: str) -> ColumnElement[bool]:
        """Each word begins a word of the texts; letters and digits count, nothing else."""
        wanted = fold(words).split()
        if not wanted:
            return false()
        # two fields may be parts of one column
        texts = {str(part): part for each in columns for part in each.parts}
        folded = [self._speech.searchable(each) for each in texts.values()]
        joined = folded[0]
        for each in folded[1:]:
            joined = joined.concat(each)
        return and_(*(joined.like(given(None, f"% {word}%")) for word in wanted))


def _bounded(column: Columns, converter: Any, wanted: Filter) -> ColumnElement[bool]:
    if wanted.match == "since":
        return column.at_least(converter.since(wanted.value))
    if wanted.match == "written since":
        return column.at_least(converter.first_written(wanted.value))
    early, late = (converter.encode(wanted.value + each)[0] for each in (-ROOM, ROOM))
    return and_(column.at_least(early), not_(column.beyond(late)))


def _is_text(converter: Converter) -> bool:
    """Whether a value can be searched, though not compared."""
    return isinstance(converter, JoinedText | PartOfText)


def _in(expression: ColumnElement[Any], raw: Sequence[Any]) -> ColumnElement[bool]:
    return or_(*(expression == given(None, each) for each in raw))
