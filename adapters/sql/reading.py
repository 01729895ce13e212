"""Reads one resource: its statements, built once from the mapping, and rows made into records.

A record by id costs one statement and one more per list inside it; so does a whole page.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select
from sqlalchemy.exc import DBAPIError

from adapters.base import (
    BackendNonsense,
    Condition,
    FieldShape,
    NotFound,
    Only,
    Record,
    Report,
)
from adapters.ids import NativeIds, plain_uuid
from adapters.mapped.plan import RowPlan
from adapters.mapping.models import ResourceMap
from adapters.sql.children import Children
from adapters.sql.columns import Columns, rows_of
from adapters.sql.engines.base import Speech, given
from adapters.sql.filters import Filters
from adapters.sql.keyed import FieldColumn, KeyedRows, may_be, only_texts
from adapters.sql.narrowing import Narrowing
from adapters.sql.pages import Pages
from adapters.values.convert import Unreadable

# PostgreSQL's words for a value that is none of the column's kind, or too large for it.
MISFITS = frozenset({"22P02", "22003"})


class ResourceReader:
    """Reads one resource."""

    def __init__(
        self,
        plan: RowPlan,
        rows: ResourceMap,
        shapes: Mapping[str, FieldShape],
        report: Report,
        speech: Speech,
    ) -> None:
        self.name = plan.resource
        self._speech = speech
        self.table = KeyedRows(plan, report)
        self.narrowing = Narrowing(self.table, shapes, speech)
        self._filters = Filters(self.table, speech)
        self.children = [
            Children(
                each,
                nested,
                KeyedRows(plan.lists[each], report),
                loose=speech.loose_types,
            )
            for each, nested in rows.lists.items()
        ]
        self.lists = plan.list_names
        key = self.table.key
        self._all = rows_of(rows, *self.table.selected()).where(key.present)
        self.pages = Pages(
            rows, self.table, self._all, self._filters, self.narrowing, self._records
        )
        self._is_native = isinstance(self.table.ids, NativeIds)
        # as it may be spelt, not by a function of the column, so that its index serves
        wanted = key.parts[0].in_(given("keys", expanding=True))
        named = wanted if self._is_native else key.named("key")
        self._one = self._all.where(named).limit(1)
        self._exists = rows_of(rows, key.parts[0]).where(named).limit(1)

    @property
    def every_row(self) -> Select[Any]:
        """All rows that have a key: the key, then the fields."""
        return self._all

    @property
    def filterable(self) -> frozenset[str]:
        """The fields that stand in the mapping, and can be compared or searched."""
        return self._filters.names

    def refusal(self, condition: Condition) -> str | None:
        """Why its lists cannot leave out what a condition does; None where they can."""
        return self.narrowing.refusal(condition)

    def must_be_ours(self, public_id: str) -> None:
        """NotFound, without a query, for an id that was never made here."""
        self.key_of(public_id)

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
        return self._comparable(self.table.ids.keys(public_id))

    def _comparable(self, raws: Sequence[Any]) -> Sequence[Any]:
        return raws if self._speech.loose_types else only_texts(raws)

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

    def must_exist(self, connection: Connection, key: Any, only: Only = ()) -> Any:
        """The key as the row has it; NotFound, also where the conditions let no such record be."""
        found = self._found(connection, self._exists, key, only)
        if found is None or not may_be(found[0], key):
            raise NotFound(f"no {self.name} has that id")
        if not self._is_native:
            return key
        self.table.ids.shown(found[0])  # from now on it is written as it is kept
        return found[0]

    def one(self, connection: Connection, key: Any, only: Only = ()) -> Record:
        """The record with that key; NotFound, also where the conditions let none be."""
        row = self._found(connection, self._one, key, only)
        if row is None:
            raise NotFound(f"no {self.name} has that id")
        if not may_be(self.table.key.take(row, 0), key):
            raise NotFound(f"no {self.name} has that id")
        record = self.table.record(row)
        if record is None:
            raise BackendNonsense(f"a row of {self.name} has no usable id")
        self._fill(connection, {self.table.key.take(row, 0): record})
        return record

    def _found(self, connection: Connection, statement: Select[Any], key: Any, only: Only) -> Any:
        """The row; with conditions all of its fields, by which it is judged."""
        if not only:
            return self._first(connection, statement, key)
        row = self._first(connection, self._one.where(*self.narrowing.conditions(only)), key)
        return row if row is not None and self.narrowing.lets_be(row, only) else None

    def _first(self, connection: Connection, statement: Select[Any], key: Any) -> Any:
        """The row; None for a key that the column cannot hold, as it names nothing."""
        try:
            return connection.execute(statement, self._bound(key)).first()
        except DBAPIError as error:
            if self._speech.code(error) in MISFITS:
                return None
            raise

    def _bound(self, key: Any) -> dict[str, Any]:
        if not self._is_native:
            return self.table.key.bound("key", key)
        return {"keys": self.spelt_as(key)}

    def marked(
        self, connection: Connection, mark: ColumnElement[Any], value: str, limit: int
    ) -> list[Record]:
        """The records whose `mark` is that value, in the order of their keys."""
        wanted = self._all.where(mark == given(None, value))
        rows = connection.execute(wanted.order_by(*self.table.key.parts).limit(limit)).all()
        return list(self._records(connection, rows).values())

    def pick(
        self, connection: Connection, public_ids: Sequence[str], names: Sequence[str]
    ) -> Iterator[tuple[str, list[Any] | None]]:
        """Of those of the records that are there the public id and some fields.

        Where one of the fields is unreadable None stands for all; that is not reported.
        """
        columns = [self.table.by_name[name] for name in names]
        keys = [raw for each in public_ids for raw in self.spellings(each)]
        wanted, width = frozenset(public_ids), self.table.key.width
        for row in connection.execute(self._all.where(self.table.key.among(keys))):
            key = self.table.key.take(row, 0)
            public_id = self.table.public_id(key)
            if public_id in wanted:
                yield public_id, self._decoded(row[width:], columns)

    def _decoded(self, row: Sequence[Any], columns: Sequence[FieldColumn]) -> list[Any] | None:
        offsets = dict(self.table.offsets)
        try:
            return [each.converter.decode(each.take(row, offsets[each.name])) for each in columns]
        except Unreadable:
            return None

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
            for each in self.children:
                each.fill(connection, records)
