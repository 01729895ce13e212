"""Where the values of a booking's rows come from: the draft, earlier steps, SQL, constants."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    String,
    and_,
    bindparam,
    text,
)

from adapters.base import BackendNonsense
from adapters.mapping.conversion import DRAFT_FIELDS
from adapters.mapping.converters import Converters
from adapters.mapping.models import NAMED, StepMap, WrittenValue
from adapters.sql.engines.base import given
from adapters.values.convert import Converter

Values = Mapping[str, Any]


class Sources:
    """Where the values of a row come from."""

    def __init__(
        self, write: StepMap, converters: Converters, drafts: Mapping[str, Converter]
    ) -> None:
        self._sources = {
            name: Source(value, converters, drafts) for name, value in write.values.items()
        }

    def parameters(self) -> dict[str, Any]:
        return {name: given(f"v{number}") for number, name in enumerate(self._sources)}

    def taken(self, connection: Connection, values: Values, made: Values) -> dict[str, Any]:
        """The values by column."""
        return {
            name: source.take(connection, values, made) for name, source in self._sources.items()
        }


def bound(row: Mapping[str, Any]) -> dict[str, Any]:
    return {f"v{number}": value for number, value in enumerate(row.values())}


class Names:
    """SQL of the mapping in which `:name` stands for a value of the draft or of an earlier step."""

    def __init__(self, expression: str, drafts: Mapping[str, Converter]) -> None:
        self._expression = expression
        self._names = tuple(dict.fromkeys(NAMED(expression)))
        self._drafts = drafts

    def condition(self) -> ColumnElement[bool]:
        # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
        return and_(text(f"({self._expression})").bindparams(*map(given, self._names)))

    def taken(self, values: Values, made: Values) -> dict[str, Any]:
        return {name: self._taken(name, values, made) for name in self._names}

    def _taken(self, name: str, values: Values, made: Values) -> Any:
        if name in made:
            return made[name]
        value = values[name]
        if value is None or name not in self._drafts:
            return value
        return _first(self._drafts[name].encode(value), name)

    def selected(self, connection: Connection, named: dict[str, Any]) -> Any:
        """The value of the expression. Values are given a type, as nothing else says theirs."""
        typed = [
            bindparam(name, value, type_=BigInteger() if isinstance(value, int) else String())
            for name, value in named.items()
        ]
        # nosemgrep: sql-is-never-put-together-as-text - the mapping is the clinic's own
        return connection.execute(text(f"SELECT ({self._expression})").bindparams(*typed)).scalar()


def _first(raw: Sequence[Any], name: str) -> Any:
    if not raw:
        raise BackendNonsense(f"the mapping has no way to write this {name}")
    return raw[0]


class Source:
    """Where a column's value comes from: the draft, an earlier step, an expression, a constant."""

    def __init__(
        self, value: WrittenValue, converters: Converters, drafts: Mapping[str, Converter]
    ) -> None:
        self._value = value
        self._converter: Converter | None = None
        if value.draft in DRAFT_FIELDS:
            self._converter = converters.make(value, DRAFT_FIELDS[value.draft])
        self._names = None if value.sql is None else Names(value.sql, drafts)

    def take(self, connection: Connection, values: Values, made: Values) -> Any:
        name = self._value.draft
        if name is not None:
            return self._of_draft(name, values[name])
        if self._value.made is not None:
            return made[self._value.made]
        if self._names is not None:
            return self._names.selected(connection, self._names.taken(values, made))
        return self._value.constant

    def _of_draft(self, name: str, value: Any) -> Any:
        if self._converter is None or value is None:
            return value
        raw = _first(self._converter.encode(value), name)
        if isinstance(raw, tuple) and self._value.part is not None:
            return raw[self._value.part - 1]
        return raw
