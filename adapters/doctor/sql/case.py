"""A mapped database that the doctor looks at."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection

from adapters.base import Record
from adapters.doctor.case import DoctorCase
from adapters.doctor.sql.pages import pages, read, shown_id
from adapters.doctor.values import Tally
from adapters.sql.adapter import SqlAdapter
from adapters.sql.columns import rows_of
from adapters.sql.engines.base import Engine, Speech
from adapters.sql.records import SqlReader
from adapters.sql.session import SqlSession

T = TypeVar("T")
# So many ids at a time: in all their spellings they are no more than SQL Server's parameters.
AT_ONCE = 400


@dataclass(slots=True, kw_only=True)
class SqlCase(DoctorCase):
    """A mapped database, and what is known of it so far."""

    adapter: SqlAdapter

    @property
    def engine(self) -> Engine:
        return self.adapter.driver.engine

    @property
    def speech(self) -> Speech:
        return self.engine.speech

    def readers(self) -> Iterator[tuple[str, SqlReader]]:
        """The resources that can be read."""
        for name, reader in self.adapter.readers.items():
            if not self.is_lost("resources", name):
                yield name, reader

    async def run(self, flow: Callable[[SqlSession], Awaitable[T]]) -> T:
        return await self.adapter.driver.read(flow)

    def converter(self, resource: str, name: str) -> Any:
        column = self.adapter.readers[resource].table.by_name.get(name)
        return None if column is None else column.converter

    def pages(self, session: Any, name: str) -> Iterator[list[Record]]:
        """Of a list inside others as invoices.lines."""
        if self.examination.rows is not None:
            yield self.samples.get(name, [])
            return
        resource, _, inner = name.partition(".")
        reader = self.adapter.readers.get(resource)
        if reader is None or name not in self.samples:
            return
        table, statement = reader.table, reader.every_row
        for children in reader.children:
            if children.name == inner:
                table = children.table
                nested = self.core.mapping.resources[resource].lists[inner]
                statement = rows_of(nested, *table.selected())
        tallies = {column.name: Tally() for column in table.columns}
        for found in pages(session.connection, statement, table, most=None):
            yield list(read(table, found, tallies))

    async def missing(
        self, session: Any, target: str, ids: set[str]
    ) -> tuple[set[str], set[str], set[str]]:
        gone, hidden = lost_ids(self, session.connection, target, ids)
        return ids, gone, hidden


def lost_ids(
    case: SqlCase, connection: Connection, target: str, ids: set[str]
) -> tuple[set[str], set[str]]:
    """Those of the public ids that lead to no row at all, and to one that `where` hides."""
    unseen = ids - _existing(case, connection, target, sorted(ids), bare=False)
    gone = unseen - _existing(case, connection, target, sorted(unseen), bare=True)
    return gone, unseen - gone


def _existing(
    case: SqlCase, connection: Connection, target: str, ids: Sequence[str], *, bare: bool
) -> set[str]:
    reader, mapped = case.adapter.readers[target], case.core.mapping.resources[target]
    rows = mapped.model_copy(update={"where": None}) if bare else mapped
    key = reader.table.key
    statement = rows_of(rows, *key.labelled("row_key"))
    found: set[str | None] = set()
    for first in range(0, len(ids), AT_ONCE):
        keys = [raw for each in ids[first : first + AT_ONCE] for raw in reader.spellings(each)]
        for row in connection.execute(statement.where(key.among(keys))):
            found.add(shown_id(reader.table, key.take(row, 0)))
    return {each for each in found if each is not None}
