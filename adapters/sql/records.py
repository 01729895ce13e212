"""Reads one resource: its statements, built once from the mapping, and rows made into records.

A record by id costs one statement and one more per list inside it; so does a whole page.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, func, select
from sqlalchemy.exc import DBAPIError

from adapters.base import (
    BackendNonsense,
    Condition,
    FieldShape,
    Filter,
    NotFound,
    Only,
    Page,
    Record,
    Report,
    Trouble,
)
from adapters.ids import NativeIds, plain_uuid
from adapters.mapped.plan import RowPlan
from adapters.mapping.models import ListMap, ResourceMap
from adapters.sql.columns import (
    Columns,
    KeyedRows,
    bare,
    comparable,
    key_at,
    may_be,
    place_of,
    rows_of,
)
from adapters.sql.conditions import RowConditions
from adapters.sql.engines.base import Criterion, Expression, Speech, given
from adapters.values.convert import Unreadable, whole

# PostgreSQL's words for a value that is none of the column's kind, or too large for it.
MISFITS = frozenset({"22P02", "22003"})
MOST_BLANK = 1_000
# Statements of one page, where rows are left out that only look like what is let be.
MOST_ROUNDS = 20
# Rows that each of these but the first asks for, however few the page takes.
AT_LEAST = 500


class SqlReader:
    """Reads one resource."""

    def __init__(
        self,
        plan: RowPlan,
        rows: ResourceMap,
        shapes: Mapping[str, FieldShape],
        report: Report,
        speech: Speech,
    ) -> None:
        self.name, self.lists = plan.resource, plan.list_names
        self._speech = speech
        self.table = KeyedRows(plan, report)
        self._conditions = RowConditions(self.table, shapes, speech)
        self.children = [
            Children(name, nested, KeyedRows(plan.lists[name], report), speech)
            for name, nested in rows.lists.items()
        ]
        key = self.table.key
        self.every_row = rows_of(rows, *self.table.selected()).where(key.present)
        """All rows that have a key: the key, then the fields."""
        self.pages = Pages(rows, self.table, self.every_row, self._conditions, self._records)
        self._is_native = isinstance(self.table.ids, NativeIds)
        # as it may be spelt, not by a function of the column, so that its index serves
        wanted = key.parts[0].in_(given("keys", expanding=True))
        named = wanted if self._is_native else key.named("key")
        self._one = self.every_row.where(named).limit(1)
        self._exists = rows_of(rows, *key.parts).where(named).limit(1)

    @property
    def filterable(self) -> frozenset[str]:
        """The fields that stand in the mapping, and can be compared or searched."""
        return self._conditions.filterable

    def refusal(self, condition: Condition) -> str | None:
        """Why its lists cannot leave out what a condition does; None where they can."""
        return self._conditions.refusal(condition)

    def key_of(self, public_id: str) -> Any:
        """The row's raw key; NotFound, without a query, for an id that was never made here.

        A UUID that was not met yet may be kept in another case: `must_exist` tells.
        """
        keys = self.table.ids.keys(public_id)
        if not keys:
            raise NotFound(f"no {self.name} has that id")
        return keys[0] if self._speech.loose_types or self._is_native else keys[-1]

    def spellings(self, public_id: str) -> Sequence[Any]:
        """All raw keys that have that id, of those that the database can compare."""
        keys = self.table.ids.keys(public_id)
        return comparable(keys, loose_types=self._speech.loose_types)

    def spelt_as(self, key: Any) -> list[Any]:
        """A raw key, and of a UUID all the spellings in which a row may have it."""
        public_id = self._uuid(key)
        if public_id is None:
            return [key]
        return list(dict.fromkeys((str(key), *self.table.ids.keys(public_id))))

    def value_of(self, key: Any) -> tuple[str, ...]:
        """By what two raw keys name one row, however they are spelt."""
        public_id = self._uuid(key)
        return Columns.spelling(key) if public_id is None else (public_id,)

    def _uuid(self, key: Any) -> str | None:
        """The UUID that a key is, where such are the resource's ids."""
        try:
            return plain_uuid(key) if self._is_native else None
        except Unreadable:
            return None

    def must_exist(self, connection: Connection, key: Any, only: Only = ()) -> None:
        """NotFound where there is no such row, or the conditions let no such record be."""
        row = self._found(connection, self._exists, key, only)
        if self._is_native:
            self.table.ids.shown(row[0])  # from now on it is written as it is kept

    def one(self, connection: Connection, key: Any, only: Only = ()) -> Record:
        """The record with that key; NotFound, also where the conditions let none be."""
        row = self._found(connection, self._one, key, only)
        record = self.table.record(row)
        if record is None:
            raise BackendNonsense(f"a row of {self.name} has no usable id")
        self._fill(connection, {self.table.key.take(row, 0): record})
        return record

    def _found(self, connection: Connection, statement: Select[Any], key: Any, only: Only) -> Any:
        """The row; with conditions all of its fields, by which it is judged."""
        if only:
            statement = self._one.where(*self._conditions.of(only))
        try:
            row = connection.execute(statement, self._bound(key)).first()
        except DBAPIError as error:
            if self._speech.code(error) not in MISFITS:
                raise
            row = None  # a key that the column cannot hold names nothing
        if row is None or not may_be(self.table.key.take(row, 0), key):
            raise NotFound(f"no {self.name} has that id")
        if only and not self._conditions.all_hold(row, only):
            raise NotFound(f"no {self.name} has that id")
        return row

    def _bound(self, key: Any) -> dict[str, Any]:
        if not self._is_native:
            return self.table.key.bound("key", key)
        return {"keys": self.spelt_as(key)}

    def marked(
        self, connection: Connection, mark: Expression, value: str, limit: int
    ) -> list[Record]:
        """The records whose `mark` is that value, in the order of their keys."""
        wanted = self.every_row.where(mark == given(None, value))
        rows = connection.execute(wanted.order_by(*self.table.key.parts).limit(limit)).all()
        return list(self._records(connection, rows).values())

    def pick(
        self, connection: Connection, public_ids: Sequence[str], names: Sequence[str]
    ) -> Iterator[tuple[str, list[Any] | None]]:
        """Of those of the records that are there the public id and some fields.

        Where one of the fields is unreadable None stands for all; that is not reported.
        """
        offsets = dict(self.table.offsets)
        columns = [(self.table.by_name[name], offsets[name]) for name in names]
        wanted = frozenset(public_ids)
        keys = [raw for public_id in wanted for raw in self.spellings(public_id)]
        for row in connection.execute(self.every_row.where(self.table.key.among(keys))):
            public_id = self.table.public_id(self.table.key.take(row, 0))
            if public_id is not None and public_id in wanted:
                try:
                    values = [each.converter.decode(each.take(row, at)) for each, at in columns]
                except Unreadable:
                    yield public_id, None
                else:
                    yield public_id, values

    def _records(self, connection: Connection, rows: Sequence[Any]) -> dict[Any, Record]:
        """The records of those of the rows that have a usable id, each by its raw key."""
        read = ((self.table.key.take(row, 0), self.table.record(row)) for row in rows)
        records = {key: record for key, record in read if record is not None}
        self._fill(connection, records)
        return records

    def _fill(self, connection: Connection, records: Mapping[Any, Record]) -> None:
        for name in self.lists:
            for record in records.values():
                record.setdefault(name, None)
        if records:
            for children in self.children:
                children.fill(connection, records)


class Children:
    """A list inside the records of a page: one statement for all of them."""

    def __init__(self, name: str, rows: ListMap, table: KeyedRows, speech: Speech) -> None:
        self.name = name
        self.table = table
        self._loose = speech.loose_types
        self._parent = Columns(rows.parent or ())
        selected = [*self._parent.labelled("parent_key"), *table.selected()]
        order = [*self._parent.parts, *table.key.parts]
        self._statement = rows_of(rows, *selected).order_by(*order)
        parents = given("parents", expanding=True)
        self._of_many = self._statement.where(self._parent.parts[0].in_(parents))

    def fill(self, connection: Connection, records: Mapping[Any, Record]) -> None:
        """Give each record, by its key, the list of its rows."""
        spelt = Columns.spelling
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
        if self._parent.width > 1:
            return connection.execute(self._statement.where(self._parent.among(keys)))
        # a number against a text column would be compared as numbers, past its index
        parents = keys if self._loose else list(map(str, keys))
        return connection.execute(self._of_many, {"parents": parents})


class Pages:
    """Reads pages of a resource; `made` turns rows into records, by their keys."""

    def __init__(
        self,
        rows: ResourceMap,
        table: KeyedRows,
        every_row: Select[Any],
        conditions: RowConditions,
        made: Callable[[Connection, Sequence[Any]], Mapping[Any, Record]],
    ) -> None:
        self._table, self._every_row = table, every_row
        self._conditions, self._made = conditions, made
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
        conditions = [self._conditions.of_filter(each) for each in filters]
        conditions += self._conditions.of(only)
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
            skipped += self._blanks(connection, conditions, found, only)
        return Page(records=list(records.values()), after=place, skipped=skipped)

    def _rows(
        self, connection: Connection, conditions: list[Criterion], limit: int, after: str | None
    ) -> Sequence[Any]:
        """The rows of a page and one more, where there is one; the first page's with its blanks."""
        statement = self._every_row.where(*conditions)
        if after is not None:
            statement = statement.where(self._table.key.beyond(key_at(after)))
        else:
            statement = statement.add_columns(self._blank_count(conditions))
        statement = statement.order_by(*self._table.key.parts).limit(limit + 1)
        return connection.execute(statement).all()

    def _let_be(
        self,
        connection: Connection,
        conditions: list[Criterion],
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
            kept += [row for row in found if self._conditions.all_hold(row, only)]
            if len(kept) > limit:
                return kept[:limit], self._place(kept[limit - 1])
            if len(found) <= asked:
                return kept, None
            end, asked = self._place(found[-1]), max(limit, AT_LEAST)
            found = self._rows(connection, conditions, asked, end)
        return kept, end

    def _place(self, row: Any) -> str:
        return place_of(self._table.key.take(row, 0))

    def _blank_count(self, conditions: list[Criterion]) -> Expression:
        """How many rows have no key at all: counted with the first page, up to MOST_BLANK."""
        blank = self.keyless.where(*conditions).limit(MOST_BLANK).subquery("blank_rows")
        return select(func.count()).select_from(blank).scalar_subquery().label("blanks")

    def _blanks(
        self, connection: Connection, conditions: list[Criterion], found: Sequence[Any], only: Only
    ) -> int:
        """The count, as the page brought it, reported; a page without rows brings none.

        With conditions it counts rows that may only look like what is let be: these are judged.
        """
        if found:
            count = int(found[0][-1])
        else:
            count = int(connection.execute(select(self._blank_count(conditions))).scalar_one())
        if count and only:
            rows = connection.execute(self._blank_rows.where(*conditions).limit(MOST_BLANK))
            count = sum(self._conditions.all_hold(row, only) for row in rows)
        for _ in range(count):
            self._table.report(Trouble("no id", self._table.resource, "id", ""))
        return count
