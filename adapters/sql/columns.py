"""Expressions of the mapping as SQL: rows, and values that stand in one or more columns."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, false, literal_column, or_, select, text

from adapters.mapping.models import ListMap, ResourceMap, RowSource
from adapters.sql.engines.base import given
from adapters.values.convert import by_value


def sql(expression: str) -> ColumnElement[Any]:
    """An expression of the mapping, taken as it is."""
    # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
    return literal_column(f"({expression})")


def rows_of(rows: RowSource | ResourceMap | ListMap, *columns: ColumnElement[Any]) -> Select[Any]:
    """SELECT columns FROM and WHERE as the mapping says."""
    statement = select(*columns).select_from(text((rows.from_ or "").replace(":", r"\:")))
    return statement if rows.where is None else statement.where(sql(rows.where))


class Columns:
    """One value in one or more columns; of several the raw value is a tuple."""

    def __init__(self, expressions: Sequence[str]) -> None:
        self.parts = tuple(sql(each) for each in expressions)
        self.width = len(self.parts)

    def take(self, row: Sequence[Any], offset: int) -> Any:
        """The raw value, of a row in which the columns begin at the offset."""
        if self.width == 1:
            return row[offset]
        return tuple(row[offset : offset + self.width])

    def labelled(self, name: str) -> list[ColumnElement[Any]]:
        """To be selected, under names that clash with nothing."""
        return [part.label(f"{name}_{number}") for number, part in enumerate(self.parts)]

    @property
    def blank(self) -> ColumnElement[bool]:
        """Whether any part has no value."""
        return or_(*(part.is_(None) for part in self.parts))

    @property
    def present(self) -> ColumnElement[bool]:
        """Whether every part has a value."""
        return and_(*(part.is_not(None) for part in self.parts))

    def named(self, name: str) -> ColumnElement[bool]:
        """Whether the value is the one that `bound` gives the statement under that name."""
        pairs = enumerate(self.parts)
        return and_(*(part == given(f"{name}_{number}") for number, part in pairs))

    def bound(self, name: str, raw: Any) -> dict[str, Any]:
        """The parameters of `named` for a raw value."""
        return {f"{name}_{number}": each for number, each in enumerate(self._parts(raw))}

    def among(self, raws: Sequence[Any]) -> ColumnElement[bool]:
        """Whether the value is one of these."""
        if self.width == 1 and len(raws) > 1:
            return self.parts[0].in_(given(None, list(raws), expanding=True))
        return or_(false(), *(self._equals(raw) for raw in raws))

    def beyond(self, raw: Any) -> ColumnElement[bool]:
        """Whether the value comes later in the order of the columns."""
        return self._later(self._parts(raw), at_least=False)

    def at_least(self, raw: Any) -> ColumnElement[bool]:
        """The same, or the value itself."""
        return self._later(self._parts(raw), at_least=True)

    def _later(self, raw: tuple[Any, ...], *, at_least: bool) -> ColumnElement[bool]:
        """First by the first column; where that is the same, by the next."""
        last = self.parts[-1]
        bound = given(None, raw[-1])
        condition: ColumnElement[bool] = last >= bound if at_least else last > bound
        for part, each in reversed(list(zip(self.parts[:-1], raw[:-1], strict=True))):
            # the bare bound besides, so that an index on the first column serves
            rest = or_(part > given(None, each), and_(part == given(None, each), condition))
            condition = and_(part >= given(None, each), rest)
        return condition

    @staticmethod
    def spelling(raw: Any) -> tuple[str, ...]:
        """A raw value as texts, by which two are the same however the driver hands them over."""
        parts = raw if isinstance(raw, tuple) else (raw,)
        return tuple(str(by_value(each)).rstrip() for each in parts)

    def _equals(self, raw: Any) -> ColumnElement[bool]:
        pairs = zip(self.parts, self._parts(raw), strict=True)
        return and_(*(part == given(None, each) for part, each in pairs))

    def _parts(self, raw: Any) -> tuple[Any, ...]:
        return raw if isinstance(raw, tuple) else (raw,)
