"""Makes SQL of a mapping's expressions, and takes keys and fields out of the rows."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    BindParameter,
    Label,
    Select,
    TextClause,
    and_,
    false,
    literal_column,
    null,
    or_,
    select,
    text,
)
from sqlalchemy.sql.elements import Grouping

from adapters.mapped.generated import RowValue
from adapters.mapped.records import Fields, Mapped, Planned, RowReader
from adapters.mapping.expressions import OnClock, on_clock
from adapters.mapping.models import ListMap, ResourceMap, RowSource
from adapters.sql.clock import moment
from adapters.sql.engines.base import Criterion, Expression, given
from adapters.sql.engines.statements import Parameters, Part
from adapters.values.convert import by_value

Rows = RowSource | ResourceMap | ListMap
# An expression to sort by, and the direction behind it.
_DIRECTED = re.compile(r"(.*\S)\s+(ASC|DESC)\s*", re.IGNORECASE | re.DOTALL).fullmatch


def sql(expression: str) -> Expression:
    """Returns an expression of the mapping as SQL, taken as it is but for the clinic's clock."""
    if isinstance(expression, OnClock):
        return Grouping(_as_text(expression))
    # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
    return literal_column(f"({expression})")


def _as_text(expression: str) -> TextClause:
    """Returns it as text; the names of the clinic's clock are parameters with values of their own.

    SQLAlchemy asks for these values each time that it runs a statement, and so does Compiled.
    """
    if not isinstance(expression, OnClock):
        return text(expression.replace(":", r"\:"))
    pieces = list(expression.pieces())
    names = dict.fromkeys(name for _, name in pieces if name)
    written = (piece.replace(":", r"\:") + (f":{name}" if name else "") for piece, name in pieces)
    # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
    return text("".join(written)).bindparams(*(moment(name, expression.zone) for name in names))


def directed(expression: str) -> tuple[str, bool]:
    """Returns what to sort by, without the direction behind it, and whether that is DESC."""
    match = _DIRECTED(expression)
    if match is None:
        return expression, False
    bare = on_clock(match[1], expression.zone) if isinstance(expression, OnClock) else match[1]
    return bare, match[2].upper() == "DESC"


def _ordered(expression: str) -> Expression:
    """Returns an expression to sort by, which may end with ASC or DESC."""
    bare, descends = directed(expression)
    return sql(bare).desc() if descends else sql(bare)


def rows_of(rows: Rows, *columns: Expression) -> Select[Any]:
    """Returns a SELECT of the columns, with FROM and WHERE as the mapping says."""
    statement = select(*columns).select_from(_as_text(rows.from_ or ""))
    return statement if rows.where is None else statement.where(sql(rows.where))


class Columns:
    """One value in one column, or in several as a tuple; `converter` reads a field or key."""

    def __init__(self, expressions: Sequence[str], converter: Any = None) -> None:
        self.parts, self.converter = tuple(map(sql, expressions)), converter
        self.width = len(self.parts)

    def getter(self, offset: int) -> Callable[[Sequence[Any]], Any]:
        """Returns what takes the raw value out of a row, from its column at the offset on."""
        return itemgetter(offset if self.width == 1 else slice(offset, offset + self.width))

    def labelled(self, name: str) -> list[Label[Any]]:
        """Returns the columns to select, labelled with the name and a number."""
        return [part.label(f"{name}_{number}") for number, part in enumerate(self.parts)]

    @property
    def present(self) -> Criterion:
        return and_(*(part.is_not(None) for part in self.parts))

    def among(self, raws: Sequence[Any]) -> Criterion:
        """Returns the condition that the value is one of these: raw values, or parameters."""
        if self.width == 1 and len(raws) > 1:
            return self.parts[0].in_([as_parameter(raw) for raw in raws])
        pairs = [zip(self.parts, parts_of(raw), strict=True) for raw in raws]
        equals = (and_(*(part == as_parameter(value) for part, value in pair)) for pair in pairs)
        return or_(false(), *equals)

    def taken(self, parameters: Parameters, count: int) -> list[Any]:
        """Returns new parameters for so many values."""
        if self.width == 1:
            return list(parameters.take(count))
        return [parameters.take(self.width) for _ in range(count)]

    def beyond(self, raw: Any, *, at_least: bool = False) -> Criterion:
        """Returns the condition that the value sorts after this one, or equals it (`at_least`)."""
        *values, value = map(as_parameter, parts_of(raw))
        last = self.parts[-1]
        condition: Criterion = last >= value if at_least else last > value
        for part, value in reversed(list(zip(self.parts[:-1], values, strict=True))):
            # with the bare bound, so that an index on the first column can be used
            rest = or_(part > value, and_(part == value, condition))
            condition = and_(part >= value, rest)
        return condition

    @staticmethod
    def spelling(raw: Any, *, folded: bool = False) -> tuple[str, ...]:
        """Returns a value as texts, equal however columns keep it; `folded` texts ignore case."""
        texts = tuple(str(by_value(part)).rstrip() for part in parts_of(raw))
        return tuple(map(str.casefold, texts)) if folded else texts


def parts_of(raw: Any) -> tuple[Any, ...]:
    """Returns a raw value's columns."""
    return tuple(raw) if isinstance(raw, tuple | list) else (raw,)


def as_parameter(value: Any) -> BindParameter[Any]:
    """Returns a raw value as a parameter that has it; a parameter as it is."""
    return value if isinstance(value, BindParameter) else given(None, value)


class KeyedRows(RowReader):
    """Rows with a key and fields, of a resource or of a list inside it.

    `statement` selects the key, then the fields, then for a list the key of the record around the
    row. `key_in` takes the first key out of a row, `parent_in` the second.
    """

    lists: Mapping[str, "KeyedRows"]

    def compiled(self, mapped: Mapped, planned: Mapping[str, Planned]) -> dict[str, RowValue]:
        self.columns = {
            name: Columns(source.expressions, converter)
            for name, (source, _, converter) in planned.items()
        }
        self.width, values = 0, dict[str, RowValue]()
        for name, column in self.columns.items():
            how = column.converter
            number = self.width if column.width == 1 else None
            values[name] = RowValue(column.getter(self.width), how.decode, how, column=number)
            self.width += column.width
        self.key = self.columns.pop("id", Columns(()))
        self.key_in = self.key.getter(0)
        self.parent = Columns((mapped.parent or ()) if isinstance(mapped, ListMap) else ())
        self.parent_in = self.parent.getter(self.width)
        self.statement = self.selecting(None)
        return values

    def selecting(self, fields: Fields) -> Select[Any]:
        """Returns the rows with the columns of these fields, and null in the place of others'."""
        # labelled, so that no two names can clash
        columns = self.key.labelled("row_key")
        for number, (name, column) in enumerate(self.columns.items()):
            labelled = column.labelled(f"f{number}")
            if fields is not None and f"{self.prefix}{name}" not in fields:
                labelled = [null().label(part.name) for part in labelled]
            columns += labelled
        return rows_of(self.mapped, *columns, *self.parent.labelled("parent_key"))

    def of_parents(self, fields: Fields) -> Select[Any]:
        """Returns the rows of a list, in the order of the records around them, then their own."""
        order = map(_ordered, getattr(self.mapped, "order", None) or ())
        return self.selecting(fields).order_by(*self.parent.parts, *order, *self.key.parts)


def among(name: str, column: Columns, raws: Sequence[Any]) -> Part:
    """Returns the condition that a column, by the name of its field, has one of the raw values."""
    count = len(raws)
    values = tuple(chain.from_iterable(map(parts_of, raws)))
    return Part(
        ("among", name, count), values, lambda taken: column.among(column.taken(taken, count))
    )


def comparable(raws: Sequence[Any], *, loose_types: bool) -> Sequence[Any]:
    """Returns the spellings of keys that can be compared with a column of numbers or of texts."""
    texts = [] if loose_types else [raw for raw in raws if not isinstance(raw, int)]
    return texts or raws
