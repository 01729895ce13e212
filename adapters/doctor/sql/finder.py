"""Finds single rows of a mapped database, and says which condition hides one."""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, case, literal_column, select, text
from sqlalchemy.exc import DBAPIError

from adapters.base import AdapterError, BackendNonsense, NotFound
from adapters.doctor.comparison import Finder
from adapters.doctor.conditions import hiding, split_at
from adapters.doctor.trail import Found, as_shown
from adapters.mapping.expressions import OnClock, on_clock
from adapters.mapping.models import ResourceMap
from adapters.sql.adapter import SqlAdapter, SqlSession
from adapters.sql.columns import KeyedRows, rows_of, sql
from adapters.sql.engines.connection import HeardConnection
from adapters.sql.engines.statements import Compiled, ShapedStatement
from adapters.sql.records import SqlReader, SqlRecords

T = TypeVar("T")
_FIRST = re.compile(
    r"\s*([\w.\"`\[\]]+)(?:\s+(?:as\s+)?(?!left|inner|cross|join|right|full)(\w+))?\s+"
    r"(?:inner\s+|cross\s+|right\s+|left\s+(?:outer\s+)?)?join\b",
    re.IGNORECASE,
).match


class SqlFinder(Finder):
    """Reads rows by the statements of an adapter of its own, with and without `where`."""

    adapter: SqlAdapter

    def __init__(self, adapter: SqlAdapter) -> None:
        super().__init__()
        self.adapter = SqlAdapter(replace(adapter.options, report=lambda trouble: None))

    async def found(self, resource: str, public_id: str) -> Found | None:
        reader, mapped = self.adapter.readers[resource], self.adapter.mapping.resources[resource]
        hidden, row = "", await self._row(reader, public_id)
        if row is None:
            bare = mapped.model_copy(update={"where": None})
            without = SqlReader(self._rows(resource, bare), self.adapter.engine.speech)
            # statements are kept by their shapes, and the name is part of these
            without.name = f"{resource} without where"
            if mapped.where is not None:
                row = await self._row(without, public_id)
            if row is None:
                self.why = await self._left_out(resource, mapped, reader, public_id)
                return None
            reader = without
            hidden = await self._hiding(resource, mapped, reader, reader.spellings(public_id))
        keys = reader.spellings(public_id)
        lists = await self._lists(reader, keys)
        whole = await self._whole(reader, keys)
        return Found(row=row, lists=lists, whole=whole, hidden=hidden)

    def _rows(self, resource: str, mapped: ResourceMap) -> KeyedRows:
        options, made = self.adapter.options, self.adapter.converters
        return KeyedRows(resource, mapped, options.shapes[resource], made, options.report)

    async def _look(self, flow: Callable[[SqlSession], Awaitable[T]]) -> T:
        return await self.adapter.look(flow)

    async def _row(self, reader: SqlReader, public_id: str) -> Any | None:
        async def flow(session: SqlSession) -> Any:
            heard = HeardConnection(session.opened)
            try:
                return await SqlRecords(reader, heard).row(public_id, ())
            finally:
                self._tell(session, heard.questions)

        try:
            return await self._look(flow)
        except NotFound:
            return None

    async def _lists(self, reader: SqlReader, keys: Sequence[Any]) -> dict[str, Sequence[Any]]:
        async def flow(session: SqlSession) -> dict[str, Sequence[Any]]:
            heard, found = HeardConnection(session.opened), dict[str, Sequence[Any]]()
            for name in reader.table.lists:
                found[name] = list(await heard.rows(reader.children(name, keys, None)))
            self._tell(session, heard.questions)
            return found

        return await self._look(flow) if reader.table.lists else {}

    async def _whole(self, reader: SqlReader, keys: Sequence[Any]) -> dict[str, Any]:
        """Returns all columns of what `from` joins; {} where the database refuses to say."""
        table = reader.table
        statement = rows_of(table.mapped, literal_column("*")).where(table.key.among(keys))
        with suppress(AdapterError):
            return await self._look(_first(statement))
        return {}

    async def _hiding(
        self, resource: str, mapped: ResourceMap, bare: SqlReader, keys: Sequence[Any]
    ) -> str:
        """Returns which parts of `where` do not hold for the row."""
        document = self.adapter.document
        problem = document.problem(("resources", resource, "where"), "")
        place = f"{problem.file}:{problem.line}:{problem.column}"
        where, failing = mapped.where or "", list[str]()
        zone = where.zone if isinstance(where, OnClock) else None
        parts = [on_clock(part, zone) if zone else part for part in split_at(where, "and")]
        if len(parts) > 1:
            tested = (
                case((sql(part), literal_column("1")), else_=literal_column("0")) for part in parts
            )
            columns = [test.label(f"p{number}") for number, test in enumerate(tested)]
            statement = rows_of(bare.table.mapped, *columns).where(bare.table.key.among(keys))
            with suppress(AdapterError):
                values = (await self._look(_first(statement))).values()
                pairs = zip(parts, values, strict=True)
                failing = [part for part, holds in pairs if not int(holds)]
        return hiding(place, where, failing)

    async def _left_out(
        self, resource: str, mapped: ResourceMap, reader: SqlReader, public_id: str
    ) -> str:
        """Returns that the table has the row and a join of `from` leaves it out; "" elsewhere."""
        first = _FIRST(mapped.from_ or "")
        keys = reader.spellings(public_id)
        if first is None or not keys:
            return ""
        table = f"{first[1]} {first[2] or ''}".strip()
        key = reader.table.key
        statement: Select[Any] = (
            select(literal_column("1")).select_from(text(table)).where(key.among(keys))
        )
        with suppress(AdapterError):
            if await self._look(_first(statement)):
                place = self.adapter.document.problem(("resources", resource, "from"), "")
                return (
                    f"{place.file}:{place.line}:{place.column}: {first[1]} has a row with that key,"
                    " but a join of `from` leaves it out: the row that it is joined with is not"
                    " there; write LEFT JOIN where it may be missing"
                )
        return ""

    def _tell(self, session: SqlSession, questions: Sequence[ShapedStatement]) -> None:
        dialect = session.connection.dialect
        for question in questions:
            made = Compiled(question.build, dialect)
            statement = made.text
            bound = made.bound(tuple(question.values))
            values = f"\n-- parameters: {', '.join(map(repr, bound))}" if bound else ""
            self.asked.append(f"{statement}{values}")


def _first(statement: Select[Any]) -> Callable[[SqlSession], Awaitable[dict[str, Any]]]:
    """Returns a flow that reads the first row of a statement, by the names of its columns."""

    async def flow(session: SqlSession) -> dict[str, Any]:
        return first_of(session.connection, statement)

    return flow


def first_of(connection: Connection, statement: Select[Any]) -> dict[str, Any]:
    """Returns the first row; a name that two joined tables have counts once for each."""
    try:
        result = connection.execute(statement)
    except DBAPIError as error:
        raise BackendNonsense("the database refuses the statement") from error
    row = result.first()
    if row is None:
        return {}
    made: dict[str, Any] = {}
    for name, value in zip(result.keys(), row, strict=True):
        shown, number = str(name), 1
        while shown in made:
            number += 1
            shown = f"{name} ({number})"
        made[shown] = as_shown(value)
    return made
