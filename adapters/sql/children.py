"""Lists inside records: the rows of a whole page with one statement."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection

from adapters.base import (
    Record,
    Trouble,
)
from adapters.mapping.models import ListMap
from adapters.sql.columns import Columns, rows_of
from adapters.sql.engines.base import given
from adapters.sql.keyed import KeyedRows, bare, spelt
from adapters.values.convert import whole


class Children:
    """A list inside the records of a page: one statement for all of them."""

    def __init__(self, name: str, rows: ListMap, table: KeyedRows, *, loose: bool) -> None:
        self.name = name
        self._loose = loose
        self.table = table
        self._parent = Columns(rows.parent or ())
        self._statement = rows_of(
            rows, *self._parent.labelled("parent_key"), *table.selected()
        ).order_by(*self._parent.parts, *table.key.parts)
        self._of_many = self._statement.where(
            self._parent.parts[0].in_(given("parents", expanding=True))
        )

    def fill(self, connection: Connection, records: Mapping[Any, Record]) -> None:
        """Give each record, by its key, the list of its rows."""
        parents: dict[Any, Record] = {}
        for key, record in records.items():
            record[self.name] = []
            # as a backend compares them that takes no notice of case, then as they are
            parents.setdefault(spelt(key, folded=True), record)
        parents |= {spelt(key): record for key, record in records.items()}
        for row in self._rows(connection, [bare(key) for key in records]):
            child = self.table.record(row, self._parent.width)
            key = self._parent.take(row, 0)
            spellings = (spelt(key), spelt(key, folded=True), spelt(whole(key)))
            parent = next((parents[each] for each in spellings if each in parents), None)
            if parent is None:
                self.table.report(Trouble("unreadable", self.table.resource, self.name, ""))
            elif child is not None:
                parent[self.name].append(child)

    def _rows(self, connection: Connection, keys: list[Any]) -> Iterable[Any]:
        if self._parent.width == 1:
            # a number against a text column would be compared as numbers, past its index
            spelt = keys if self._loose else [str(each) for each in keys]
            return connection.execute(self._of_many, {"parents": spelt})
        return connection.execute(self._statement.where(self._parent.among(keys)))
