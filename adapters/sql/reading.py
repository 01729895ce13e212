"""Reads one resource: its statements, built once from the mapping, and rows made into records.

A record by id costs one statement and one more per list inside it; so does a whole page.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    LargeBinary,
    Select,
    bindparam,
    cast,
    false,
    func,
    literal_column,
    or_,
    select,
    text,
)

from adapters.base import (
    BackendNonsense,
    FieldShape,
    Filter,
    NotFound,
    Page,
    Record,
    Report,
    Trouble,
)
from adapters.convert import Converter, SealedId, Unreadable, whole
from adapters.converters import Converters
from adapters.sql.mapping import Expression, ListOf, ResourceMap, Rows
from adapters.words import fold

MOST_BLANK = 1_000
LONGEST_PLACE = 200


def sql(expression: str) -> ColumnElement[Any]:
    """An expression of the mapping, taken as it is."""
    return literal_column(f"({expression})")


def rows_of(rows: Rows, *columns: ColumnElement[Any]) -> Select[Any]:
    """SELECT columns FROM and WHERE as the mapping says."""
    source = text(rows.from_.replace(":", r"\:"))
    statement = select(*columns).select_from(source)
    return statement if rows.where is None else statement.where(sql(rows.where))


class FieldColumn:
    """One field: its expression, and its converter."""

    def __init__(self, name: str, expression: Expression, converter: Converter) -> None:
        self.name = name
        self.expression = sql(expression.sql)
        self.converter = converter


class KeyedRows:
    """Rows with a sealed key and columns: what a resource and a list inside it have in common."""

    def __init__(
        self,
        rows: ResourceMap | ListOf,
        prefix: str,
        shapes: Mapping[str, FieldShape],
        converters: Converters,
        report: Report,
        resource: str,
    ) -> None:
        self.resource = resource
        self.prefix = prefix
        self.key = sql(rows.key)
        self.sealed = SealedId(converters.sealer(resource + prefix.replace("[].", "/")))
        self.has_id = f"{prefix}id" in shapes
        self.report = report
        self.columns = [
            FieldColumn(name, each, converters.make(each, shapes[prefix + name]))
            for name, each in rows.fields.items()
        ]
        self.names = [
            path.removeprefix(prefix)
            for path in shapes
            if path.startswith(prefix) and "[]" not in path.removeprefix(prefix)
        ]
        self.by_name = {column.name: column for column in self.columns}

    def selected(self) -> list[ColumnElement[Any]]:
        """The key and the columns, labelled, so that no two names can clash."""
        named = [
            column.expression.label(f"f{number}") for number, column in enumerate(self.columns)
        ]
        return [self.key.label("row_key"), *named]

    def record(self, row: Sequence[Any], offset: int = 0) -> Record | None:
        """A row as a record; None where it has no usable id. What can't be read is None."""
        record: Record = dict.fromkeys(self.names)
        shown = self._id(row[offset])
        if self.has_id:
            if shown is None:
                self.report(Trouble("no id", self.resource, f"{self.prefix}id", ""))
                return None
            record["id"] = shown
        for number, column in enumerate(self.columns, offset + 1):
            try:
                record[column.name] = column.converter.decode(row[number])
            except Unreadable as error:
                field = self.prefix + column.name
                self.report(Trouble(error.kind, self.resource, field, shown or ""))
        return record

    def _id(self, key: Any) -> str | None:
        if not isinstance(key, int):
            return None
        return self.sealed.sealer.seal(key)


class Children:
    """A list inside the records of a page: one statement for all of them."""

    def __init__(self, name: str, rows: ListOf, table: KeyedRows) -> None:
        self.name = name
        self.table = table
        parent = sql(rows.parent)
        self._statement = (
            rows_of(rows, parent.label("parent_key"), *table.selected())
            .where(parent.in_(bindparam("parents", expanding=True)))
            .order_by(parent, table.key)
        )

    def fill(self, connection: Connection, records: Mapping[Any, Record]) -> None:
        """Give each record, by its key, the list of its rows."""
        for record in records.values():
            record[self.name] = []
        for row in connection.execute(self._statement, {"parents": list(records)}):
            child = self.table.record(row, 1)
            parent = records.get(whole(row[0]))
            if parent is None:
                self.table.report(Trouble("unreadable", self.table.resource, self.name, ""))
            elif child is not None:
                parent[self.name].append(child)


class ResourceReader:
    """Reads one resource."""

    def __init__(
        self,
        name: str,
        rows: ResourceMap,
        shapes: Mapping[str, FieldShape],
        converters: Converters,
        report: Report,
    ) -> None:
        self.name = name
        self.table = KeyedRows(rows, "", shapes, converters, report, name)
        self.children = [
            Children(
                each, nested, KeyedRows(nested, f"{each}[].", shapes, converters, report, name)
            )
            for each, nested in rows.lists.items()
        ]
        self.lists = {path.split("[].")[0] for path in shapes if "[]." in path}
        self._all = rows_of(rows, *self.table.selected()).where(self.table.key.is_not(None))
        self._blank = rows_of(rows, self.table.key).where(self.table.key.is_(None))
        self._one = self._all.where(self.table.key == bindparam("key")).limit(1)
        self._exists = (
            rows_of(rows, self.table.key).where(self.table.key == bindparam("key")).limit(1)
        )

    @property
    def filterable(self) -> frozenset[str]:
        """The fields that stand in the mapping, and so can be compared."""
        return frozenset(self.table.by_name)

    def key_of(self, public_id: str) -> int:
        """The row's key; NotFound, without a query, for an id that was never made here."""
        key = self.table.sealed.sealer.unseal(public_id)
        if key is None:
            raise NotFound(f"no {self.name} has that id")
        return key

    def must_exist(self, connection: Connection, key: int) -> None:
        if connection.execute(self._exists, {"key": key}).first() is None:
            raise NotFound(f"no {self.name} has that id")

    def one(self, connection: Connection, key: int) -> Record:
        """The record with that key."""
        row = connection.execute(self._one, {"key": key}).first()
        if row is None:
            raise NotFound(f"no {self.name} has that id")
        record = self.table.record(row)
        if record is None:
            raise BackendNonsense(f"a row of {self.name} has no usable id")
        self._fill(connection, {key: record})
        return record

    def marked(
        self, connection: Connection, mark: ColumnElement[Any], value: str, limit: int
    ) -> list[Record]:
        """The records whose `mark` is that value, in the order of their keys."""
        statement = self._all.where(mark == value).order_by(self.table.key).limit(limit)
        rows = connection.execute(statement).all()
        records = {row[0]: record for row, record in self._read(rows) if record is not None}
        self._fill(connection, records)
        return list(records.values())

    def page(
        self, connection: Connection, filters: Iterable[Filter], limit: int, after: str | None
    ) -> Page:
        """Up to `limit` records in the order of their keys, from behind the key `after`."""
        conditions = [self._condition(each) for each in filters]
        statement = self._all.where(*conditions)
        if after is not None:
            statement = statement.where(self.table.key > bindparam("after", json.loads(after)))
        statement = statement.order_by(self.table.key).limit(limit + 1)
        found = connection.execute(statement).all()
        rows = found[:limit]
        records = {row[0]: record for row, record in self._read(rows) if record is not None}
        self._fill(connection, records)
        keys = {row[0] for row in rows}
        return Page(
            records=list(records.values()),
            after=_place(rows[-1][0]) if len(found) > limit else None,
            skipped=len(keys) - len(records) + self._blanks(connection, conditions, after),
        )

    def _blanks(
        self, connection: Connection, conditions: Sequence[ColumnElement[bool]], after: str | None
    ) -> int:
        """How many rows have no key at all: counted with the first page, up to MOST_BLANK."""
        if after is not None:
            return 0
        blank = self._blank.where(*conditions).limit(MOST_BLANK)
        count = len(connection.execute(blank).all())
        for _ in range(count):
            self.table.report(Trouble("no id", self.name, "id", ""))
        return count

    def _read(self, rows: Sequence[Any]) -> Iterator[tuple[Any, Record | None]]:
        for row in rows:
            yield row, self.table.record(row)

    def _fill(self, connection: Connection, records: Mapping[Any, Record]) -> None:
        for name in self.lists:
            for record in records.values():
                record.setdefault(name, None)
        if records:
            for each in self.children:
                each.fill(connection, records)

    def _condition(self, wanted: Filter) -> ColumnElement[bool]:
        columns = [self.table.by_name[name] for name in wanted.fields]
        if wanted.match == "search":
            return _search([column.expression for column in columns], wanted.value)
        column = columns[0]
        converter: Any = column.converter
        if wanted.match == "since":
            return column.expression >= bindparam(None, converter.since(wanted.value))
        if wanted.match == "written since":
            return column.expression >= bindparam(None, converter.encode(wanted.value)[0])
        raw = column.converter.encode(wanted.value)
        if isinstance(column.converter, SealedId):
            return column.expression.in_(raw)
        return _is_one_of(column.expression, raw)


def _place(key: Any) -> str:
    """Where a page ends. A key that is no whole number has its place too, though no record."""
    if isinstance(key, bytes):
        raise BackendNonsense("a page ends with a key that is no number and no text")
    place = json.dumps(key)
    if len(place) > LONGEST_PLACE:
        raise BackendNonsense("a page ends with a key that is too long")
    return place


def _is_one_of(expression: ColumnElement[Any], raw: Sequence[Any]) -> ColumnElement[bool]:
    """Blanks round a text count as little here as where it is read; "" stands for no value too."""
    texts = [each for each in raw if isinstance(each, str)]
    others = [each for each in raw if not isinstance(each, str)]
    conditions = [func.trim(expression).in_(texts)] if texts else []
    if others:
        conditions.append(expression.in_(others))
    if "" in texts:
        conditions.append(expression.is_(None))
    return or_(false(), *conditions)


def _search(texts: list[ColumnElement[Any]], words: str) -> ColumnElement[bool]:
    """Each word begins a word of the texts; letters and digits count, nothing else."""
    # as bytes: a text in another encoding must not fail the search for all others
    folded = [func.clinic_fold(cast(each, LargeBinary)) for each in texts]
    joined: ColumnElement[Any] = folded[0]
    for each in folded[1:]:
        joined = joined.op("||")(each)
    wanted = fold(words).split()
    if not wanted:
        return false()
    condition = joined.contains(f" {wanted[0]}")
    for word in wanted[1:]:
        condition &= joined.contains(f" {word}")
    return condition
