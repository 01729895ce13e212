"""Asks the practice database while a draft is made: small questions, each with its own limits."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Connection, Select, func, literal_column, select

from adapters.base import AdapterError
from adapters.draft.database import ROWS, Table, plain, sampled
from adapters.sql.engines import Engine

# The rows that a question about values looks at, and the different values that it looks up.
MOST_ROWS = 4_000
MOST_VALUES = 200


def _from(source: str) -> Any:
    return sa.text(source.replace(":", "\\:"))


class DatabaseProbe:
    """Runs questions in the engine's own loop, for a thread that waits for the answer.

    An answer is None where the database gave none: in time, or at all.
    """

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self._engine, self._loop = engine, loop
        self._known: dict[str, Sequence[Any] | None] = {}

    def _ask(self, work: Callable[[Connection], Any]) -> Any:
        asked = asyncio.run_coroutine_threadsafe(self._engine.read(work), self._loop)
        try:
            return asked.result()
        except AdapterError:
            return None

    def sample(
        self, bare: Table, source: str, spelt: Callable[[str], str], conditions: Sequence[str]
    ) -> Table | None:
        """Returns the table as the rows of a source are that meet the conditions."""

        def column(name: str) -> ColumnElement[Any]:
            return literal_column(spelt(name))

        made: Table | None = self._ask(partial(sampled, bare, _from(source), column, conditions))
        return made

    def rows(
        self,
        columns: Iterable[str],
        source: str,
        conditions: Iterable[str] = (),
        *,
        newest: str = "",
        limit: int = ROWS,
    ) -> Sequence[tuple[Any, ...]] | None:
        """Returns rows of these expressions: the newest by a column, or whichever come first."""
        wanted: list[ColumnElement[Any]] = [
            literal_column(each).label(f"c{n}") for n, each in enumerate(columns)
        ]
        statement: Select[Any] = select(*wanted).select_from(_from(source))
        for condition in conditions:
            statement = statement.where(literal_column(condition))
        if newest:
            statement = statement.order_by(sa.desc(literal_column(newest)))
        return self._rows(statement.limit(limit))

    def _rows(self, statement: Select[Any]) -> Sequence[tuple[Any, ...]] | None:
        said = str(statement.compile(compile_kwargs={"literal_binds": True}))
        if said not in self._known:

            def run(connection: Connection) -> list[tuple[Any, ...]]:
                return [tuple(map(plain, row)) for row in connection.execute(statement)]

            self._known[said] = self._ask(run)
        return self._known[said]

    def share_found(
        self,
        value: str,
        source: str,
        conditions: Iterable[str],
        target: str,
        key: str,
        its_conditions: Iterable[str],
    ) -> tuple[int, int] | None:
        """Returns how many different values there are, and how many of them are keys of a row."""
        some: Select[Any] = select(literal_column(value).label("v")).select_from(_from(source))
        for condition in [*conditions, f"{value} IS NOT NULL"]:
            some = some.where(literal_column(condition))
        newest = some.limit(MOST_ROWS).subquery("some_rows")
        different = select(newest.c.v).distinct().limit(MOST_VALUES).subquery("some_values")
        found: Select[Any] = select(literal_column("1")).select_from(_from(target))
        for condition in its_conditions:
            found = found.where(literal_column(condition))
        found = found.where(literal_column(key) == different.c.v)
        is_found = sa.case((sa.exists(found), 1), else_=0)
        counted: Any = select(func.count(), func.sum(is_found)).select_from(different)
        rows = self._rows(counted)
        return (int(rows[0][0]), int(rows[0][1] or 0)) if rows else None
