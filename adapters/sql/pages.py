"""The pages of one resource: in the order of their keys, as filters and conditions say."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from adapters.base import Filter, Only, Page, Record, Trouble
from adapters.mapping.models import ResourceMap
from adapters.sql.columns import rows_of
from adapters.sql.filters import Filters
from adapters.sql.keyed import KeyedRows, key_at, place_of
from adapters.sql.narrowing import Narrowing

MOST_BLANK = 1_000
# Statements of one page, where rows are left out that only look like what is let be.
MOST_ROUNDS = 20
# Rows that each of these but the first asks for, however few the page takes.
AT_LEAST = 500
Made = Callable[[Connection, Sequence[Any]], Mapping[Any, Record]]


class Pages:
    """Reads pages of a resource; `made` turns rows into records, by their keys."""

    def __init__(
        self,
        rows: ResourceMap,
        table: KeyedRows,
        every_row: Select[Any],
        filters: Filters,
        narrowing: Narrowing,
        made: Made,
    ) -> None:
        self._table = table
        self._every_row = every_row
        self._filters = filters
        self._narrowing = narrowing
        self._made = made
        self.keyless = rows_of(rows, table.key.parts[0].label("blank_key")).where(table.key.blank)
        """The rows without a key."""
        self._blank_rows = rows_of(rows, *table.selected()).where(table.key.blank)

    def read(
        self,
        connection: Connection,
        filters: Iterable[Filter],
        limit: int,
        after: str | None,
        only: Only = (),
    ) -> Page:
        """Up to `limit` records in the order of their keys, from behind the key `after`.

        Rows outside `only` are not among them, nor in what is skipped.
        """
        conditions = [self._filters.condition(each) for each in filters]
        conditions += self._narrowing.conditions(only)
        found = self._rows(connection, conditions, limit, after)
        if only:
            rows, place = self._let_be(connection, conditions, limit, found, only)
        else:
            rows = found[:limit]
            place = self._place(rows[-1]) if len(found) > limit else None
        records = self._made(connection, rows)
        keys = {self._table.key.take(row, 0) for row in rows}
        if len(keys) < len(rows):
            self._table.report(Trouble("doubled row", self._table.resource, "id", ""))
        skipped = len(keys) - len(records)
        if after is None:
            skipped += self._told_blanks(connection, conditions, found, only)
        return Page(records=list(records.values()), after=place, skipped=skipped)

    def _rows(
        self,
        connection: Connection,
        conditions: Sequence[ColumnElement[bool]],
        limit: int,
        after: str | None,
    ) -> Sequence[Any]:
        """The rows of a page and one more, where there is one; the first page's with its blanks."""
        statement = self._every_row.where(*conditions)
        if after is not None:
            statement = statement.where(self._table.key.beyond(key_at(after)))
        else:
            statement = statement.add_columns(self._blanks(conditions))
        statement = statement.order_by(*self._table.key.parts).limit(limit + 1)
        return connection.execute(statement).all()

    def _let_be(
        self,
        connection: Connection,
        conditions: Sequence[ColumnElement[bool]],
        limit: int,
        found: Sequence[Any],
        only: Only,
    ) -> tuple[Sequence[Any], str | None]:
        """The rows of the page that exist, and where it ends: None on the last one.

        Those `found` are nearly always enough, as the engine lets hardly any other through.
        """
        kept: list[Any] = []
        asked = limit
        for _ in range(MOST_ROUNDS):
            kept += [row for row in found if self._narrowing.lets_be(row, only)]
            if len(kept) > limit:
                return kept[:limit], self._place(kept[limit - 1])
            if len(found) <= asked:
                return kept, None
            end, asked = self._place(found[-1]), max(limit, AT_LEAST)
            found = self._rows(connection, conditions, asked, end)
        return kept, end

    def _place(self, row: Any) -> str:
        return place_of(self._table.key.take(row, 0))

    def _blanks(self, conditions: Sequence[ColumnElement[bool]]) -> ColumnElement[Any]:
        """How many rows have no key at all: counted with the first page, up to MOST_BLANK."""
        blank = self.keyless.where(*conditions).limit(MOST_BLANK).subquery("blank_rows")
        return select(func.count()).select_from(blank).scalar_subquery().label("blanks")

    def _told_blanks(
        self,
        connection: Connection,
        conditions: Sequence[ColumnElement[bool]],
        found: Sequence[Any],
        only: Only,
    ) -> int:
        """The count, as the page brought it; a page without rows brings none.

        With conditions it counts rows that may only look like what is let be: these are judged.
        """
        if found:
            count = int(found[0][-1])
        else:
            count = int(connection.execute(select(self._blanks(conditions))).scalar_one())
        if count and only:
            rows = connection.execute(self._blank_rows.where(*conditions).limit(MOST_BLANK))
            count = sum(self._narrowing.lets_be(row, only) for row in rows)
        for _ in range(count):
            self._table.report(Trouble("no id", self._table.resource, "id", ""))
        return count
