"""Statements that are compiled once for each shape, and asked with the values of each call.

A shape is all of a statement but its values: the rows, the fields of the conditions, how each is
compared and with how many values. SQLAlchemy compiles it without any value, so that no statement
can hold a value of another call. Values that are part of the text, as those of a policy's
conditions are, are part of the shape.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from cachebox import LRUCache
from sqlalchemy.engine import Dialect

from adapters.sql.engines.base import Criterion, given

# Compiled statements that a lane keeps, of a few kilobytes each.
MOST_SHAPES = 500


class Parameters:
    """Hands out the parameters of a statement that is being built, in the order of its values."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def take(self, count: int) -> list[sa.BindParameter[Any]]:
        """Returns new parameters, whose types the database infers."""
        return [given(self.named(f"v{len(self.names)}")) for _ in range(count)]

    def number(self) -> sa.BindParameter[int]:
        """Returns a new parameter that is a whole number, as LIMIT takes it."""
        return sa.bindparam(self.named(f"v{len(self.names)}"), type_=sa.Integer())

    def named(self, name: str) -> str:
        """Gives the next value to the parameter of that name, which the statement has already."""
        self.names.append(name)
        return name


class Part(NamedTuple):
    """A condition: its shape, its values, and what makes SQL of parameters in their place."""

    shape: Hashable
    values: tuple[Any, ...]
    sql: Callable[[Parameters], Criterion]


Build = Callable[[Parameters], sa.Select[Any]]
"""Builds a statement of one shape, with parameters in the place of all values."""


class ShapedStatement(NamedTuple):
    """A statement by its shape, its values, and what builds it where the shape is new."""

    shape: Hashable
    values: Sequence[Any]
    build: Build

    def built(self) -> tuple[sa.Select[Any], dict[str, Any]]:
        """Returns the statement anew, and the values of its parameters by name."""
        parameters = Parameters()
        statement = self.build(parameters)
        return statement, dict(zip(parameters.names, self.values, strict=True))


def values_of(parts: Sequence[Part]) -> tuple[Any, ...]:
    """Returns the values of all parts, in the order in which their SQL takes parameters."""
    return tuple(chain.from_iterable(part.values for part in parts))


class Compiled:
    """A statement as its driver takes it."""

    def __init__(self, build: Build, dialect: Dialect) -> None:
        parameters = Parameters()
        compiled: Any = build(parameters).compile(dialect=dialect)
        names = parameters.names
        whole = compiled.construct_expanded_state(dict.fromkeys(names))
        self.text: str = whole.statement
        order = list(whole.positiontup or ())
        if lost := set(names).intersection(compiled.binds).difference(order):
            raise RuntimeError(f"a statement would hold values of one call: {sorted(lost)}")
        constants = [name for name in dict.fromkeys(order) if name not in names]
        self._width = len(names)
        self._constants = tuple(
            whole.processors.get(name, _as_it_is)(whole.parameters[name]) for name in constants
        )
        # a parameter with a value of its own for each execution, such as the time
        own = [compiled.binds[name].callable for name in constants]
        self._asked = (
            [
                value or partial(_as_it_is, kept)
                for value, kept in zip(own, self._constants, strict=True)
            ]
            if any(own)
            else None
        )
        self._processed = [
            (number, whole.processors[name])
            for number, name in enumerate(names)
            if name in whole.processors
        ]
        places = [[*names, *constants].index(name) for name in order]
        is_plain = places == list(range(len(names) + len(constants)))
        self._ordered: Callable[[Any], Any] = _as_it_is if is_plain else itemgetter(*places)
        self._is_single = len(places) == 1 and not is_plain

    def bound(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the parameters for these values, in the order in which the driver takes them."""
        if len(values) != self._width:
            raise RuntimeError(f"{len(values)} values for a statement that has {self._width}")
        if self._processed:
            values = list(values)
            for number, process in self._processed:
                values[number] = process(values[number])
        constants = self._constants
        if self._asked is not None:
            constants = tuple(ask() for ask in self._asked)
        ordered = self._ordered((*values, *constants))
        return (ordered,) if self._is_single else ordered


class Statements:
    """The compiled statements of one lane, the last used ones of each shape."""

    def __init__(self) -> None:
        self._kept: LRUCache[Hashable, Compiled] = LRUCache(MOST_SHAPES)

    def compiled(self, question: ShapedStatement, dialect: Dialect) -> Compiled:
        """Returns the statement, compiled unless one of its shape is kept."""
        kept: Compiled | None = self._kept.get(question.shape)
        if kept is None:
            kept = self._kept[question.shape] = Compiled(question.build, dialect)
        return kept


def _as_it_is(value: Any) -> Any:
    return value
