"""Reads one resource by statements that are built once from the mapping.

A record by id costs one statement and one more for each list inside it, and so does a whole page.
Filters and row conditions are part of the statements, which let through every row that meets them
and hardly another. Rows that only the engine takes for equal are left out here.
"""

import json
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Select, and_, false, func, not_, or_, select
from sqlalchemy.exc import DBAPIError

from adapters import base
from adapters.base import BackendNonsense, Condition, Filter, Only, Page, Record, Trouble
from adapters.ids.seal import Id
from adapters.ids.table import NativeIds
from adapters.mapped.records import Batch, Fields, RecordMaker, ResourceReader
from adapters.mapping.row_conditions import is_ordered
from adapters.sql.columns import Columns, KeyedRows, comparable, rows_of
from adapters.sql.comparisons import COMPARED, ColumnComparison
from adapters.sql.engines.base import Criterion, Expression, Speech, given
from adapters.values.convert import JoinedText, PartOfText, by_value, fold, whole
from adapters.values.times import ROOM

MOST_BLANK = 1_000
# The most rows that are read for one page, where some are left out, and the least that each
# statement but the first asks for.
MOST_ROWS, AT_LEAST = 10_000, 500


class SqlReader:
    """The statements of one resource, which SqlRecords runs."""

    def __init__(self, table: KeyedRows, speech: Speech) -> None:
        self.table = self.rows = table
        self.name, self.speech = table.resource, speech
        self._places = {"id": table.key, **table.columns}
        self.filterable = frozenset(
            name
            for name, column in table.columns.items()
            # a text that cannot be compared may be searched all the same
            if column.converter.compares or isinstance(column.converter, JoinedText | PartOfText)
        )
        key, statement = table.key, table.statement
        self.every_row = statement.where(key.present)
        """All rows that have a key: the key, then the fields."""
        self.keyless = statement.where(not_(key.present))
        """The rows without a key."""
        self.is_native = isinstance(table.ids, NativeIds)
        # compared with every spelling, not by a function of the column, so that its index is used
        named = key.named("key")
        if self.is_native:
            named = key.parts[0].in_(given("keys", expanding=True))
        self.by_key = self.every_row.where(named).limit(1)
        self.key_alone = rows_of(table.mapped, *key.parts).where(named).limit(1)

    def keys_of(self, public_id: str) -> Sequence[Any]:
        """Returns the raw key, of a UUID all spellings; NotFound for an id never made here."""
        keys = self.spellings(public_id)
        if not keys:
            raise self.table.missing()
        return keys if self.is_native else keys[:1]

    def spellings(self, public_id: str) -> Sequence[Any]:
        """Returns all raw keys that have that id, of those that the database can compare."""
        keys = self.table.ids.keys(public_id)
        return comparable(keys, loose_types=self.speech.loose_types)

    def conditions(self, only: Only) -> list[Criterion]:
        """Returns the conditions as SQL. For the rows that come, `exists` decides."""
        return [ColumnComparison(self._places[c.field], c, self.speech).sql() for c in only]

    def refusal(self, condition: Condition) -> str | None:
        """Returns why a statement cannot have the condition; None where it can."""
        text = self.table.refusal(condition)
        if text is not None:
            return text
        column, does = self._places[condition.field], "sort" if is_ordered(condition) else "compare"
        if column.width > 1:
            how, other = "in several columns", "one column"
        elif type(column.converter) not in COMPARED or not column.converter.compares:
            how = f"in a way that the database does not {does}"
            other = f"a column that it does {does}"
        else:
            return None
        name = f"{self.name}.{condition.field}"
        return f"{name} is kept {how}: leave it out of `only`, or map it from {other}"

    def filtered(self, filter_: Filter) -> Criterion:
        """Returns a filter as SQL. Raises BackendNonsense for a field that cannot be compared."""
        columns = [self._places[name] for name in filter_.fields]
        if filter_.match == "search":
            return self._search(columns, filter_.value)
        column = columns[0]
        converter = column.converter
        if not converter.compares:
            raise BackendNonsense(f"{self.name} cannot be compared by {filter_.fields[0]}")
        if filter_.match in ("since", "written since"):
            first = converter.since if filter_.match == "since" else converter.first_written
            return column.beyond(first(filter_.value), at_least=True)
        if filter_.match == "around":
            early, late = (converter.encode(filter_.value + room)[0] for room in (-ROOM, ROOM))
            return and_(column.beyond(early, at_least=True), not_(column.beyond(late)))
        raws = converter.encode(filter_.value)
        if isinstance(converter, Id):
            return column.among(comparable(raws, loose_types=self.speech.loose_types))
        return self._is_one_of(column.parts[0], raws) if column.width == 1 else column.among(raws)

    def _is_one_of(self, expression: Expression, raws: Sequence[Any]) -> Criterion:
        """Compares with the raw values as they are read: without blanks around them, "" as NULL."""
        trimmed = self.speech.trimmed(expression)
        sides = ((trimmed if isinstance(raw, str) else expression, raw) for raw in raws)
        conditions = [side == given(None, raw) for side, raw in sides]
        return or_(false(), *conditions, *([expression.is_(None)] if "" in raws else ()))

    def _search(self, columns: Sequence[Columns], words: str) -> Criterion:
        """Requires that each word begins a word of the texts; only letters and digits count."""
        folded = fold(words).split()
        if not folded:
            return false()
        # two fields may be parts of one column
        texts = {str(part): part for column in columns for part in column.parts}
        joined, *others = (self.speech.searchable(text) for text in texts.values())
        for text in others:
            joined = joined.concat(text)
        return and_(*(joined.like(given(None, f"% {word}%")) for word in folded))


class SqlRecords(ResourceReader):
    """Reads one resource on a connection; `keys` are those of the one record, where it is one."""

    most = MOST_ROWS

    def __init__(self, reader: SqlReader, connection: Connection, keys: Sequence[Any] = ()) -> None:
        super().__init__(reader.name, reader.table)
        self._reader, self._connection, self._asked = reader, connection, keys
        self._rows: dict[str, Any] = {}

    async def row(self, public_id: str, only: Only) -> Any:
        return self._row(self._reader.by_key, public_id, only)

    async def exists(self, public_id: str, only: Only = ()) -> None:
        """Raises NotFound where it does not exist. Without conditions, reads the key alone."""
        reader = self._reader
        row = self._row(reader.by_key if only else reader.key_alone, public_id, only)
        if not self.rows.exists(row, only):
            raise self.rows.missing()
        if reader.is_native:
            reader.table.ids.shown(row[0])  # remembers how the key is spelt

    def _row(self, statement: Select[Any], public_id: str, only: Only) -> Any:
        reader = self._reader
        keys = self._asked or reader.keys_of(public_id)
        if only:
            statement = statement.where(*reader.conditions(only))
        bound = reader.table.key.bound("key", keys[0])
        if reader.is_native:
            bound = {"keys": list(keys)}
        try:
            row = self._connection.execute(statement, bound).first()
        except DBAPIError as error:
            if reader.speech.code(error) not in reader.speech.misfits:
                raise
            row = None  # a key that the column cannot hold names nothing
        if row is None:
            raise self.rows.missing()
        number = by_value(reader.table.key_in(row))
        # MySQL finds 12 by the text `12;13` too
        if isinstance(number, int) and number != whole(keys[0]):
            raise self.rows.missing()
        return row

    def records(self, rows: Sequence[Any], fields: Fields) -> list[Record | None]:
        """Returns None also for a row whose id an earlier one had, as a join doubles it."""
        made, known = super().records(rows, fields), self._rows
        for number, record in enumerate(made):
            if record and known.setdefault(record["id"], rows[number]) is not rows[number]:
                self.rows.report(Trouble("doubled row", self.name, "id", ""))
                made[number] = None
        return made

    def add_lists(self, records: Collection[Record], fields: Fields) -> bool:
        """Fills the lists inside the records, by one statement for each list."""
        makers, key_in = self.rows.maker(fields).inside, self._reader.table.key_in
        if not makers or not records:
            return True
        by_key = {key_in(self._rows[record["id"]]): record for record in records}
        formed = [self._add_list(name, maker, by_key) for name, maker in makers.items()]
        return all(formed)

    def _add_list(self, name: str, maker: RecordMaker, records: dict[Any, Record]) -> bool:
        """Gives each record, by its key, the list of its rows; returns whether all are formed."""
        table, spelt = self._reader.table.lists[name], Columns.spelling
        # folded, as a backend that ignores case compares them, then as they are
        parents = {spelt(key, folded=True): records[key] for key in reversed(records)}
        parents |= {spelt(key): record for key, record in records.items()}
        for record in records.values():
            record[name] = []
        keys = [_bare(key) for key in records]
        if table.parent.width > 1:
            rows = self._connection.execute(table.of_parents.where(table.parent.among(keys)))
        else:  # a number against a text column would be compared as numbers, past its index
            bound = keys if self._reader.speech.loose_types else list(map(str, keys))
            rows = self._connection.execute(table.of_given_parents, {"parents": bound})
        found = rows.all()
        made, refused = maker.make(found)
        for row, child in zip(found, made, strict=True):
            key = table.parent_in(row)
            spellings = (spelt(key), spelt(key, folded=True), spelt(whole(key)))
            parent = next((parents[text] for text in spellings if text in parents), None)
            if parent is None:
                table.report(Trouble("unreadable", table.resource, name, ""))
            elif child or (child := table.record(row, maker, parent["id"])) is not None:
                parent[name].append(child)
        return not refused

    async def rows_of(self, public_ids: Collection[str]) -> Mapping[str, Any]:
        reader, ids = self._reader, frozenset(public_ids)
        keys = [raw for public_id in ids for raw in reader.spellings(public_id)]
        rows = self._connection.execute(reader.every_row.where(reader.table.key.among(keys)))
        by_id = {reader.table.id_of(row): row for row in rows}
        return {shown: row for shown, row in by_id.items() if shown is not None and shown in ids}

    def marked(self, mark: Expression, value: str, limit: int) -> list[Record]:
        """Returns the records whose `mark` is that value, in the order of their keys."""
        reader = self._reader
        statement = reader.every_row.where(mark == given(None, value))
        rows = self._connection.execute(statement.order_by(*reader.table.key.parts).limit(limit))
        records = [record for record in self.records(rows.all(), None) if record]
        self.add_lists(records, None)
        return records

    async def page(
        self,
        filters: Sequence[Filter],
        limit: int,
        after: str | None,
        only: Only = (),
        fields: Fields = None,
    ) -> Page:
        """Returns a page of records in the order of their keys."""
        conditions = [self._reader.filtered(filter_) for filter_ in filters]
        conditions += self._reader.conditions(only)
        batches = self._batches(conditions, limit, after, only)
        return await self.filled(batches, limit, only, fields)

    async def _batches(
        self, conditions: list[Criterion], limit: int, after: str | None, only: Only
    ) -> AsyncGenerator[Batch, None]:
        """Yields the rows of a page and one more, then further ones as some are left out."""
        reader, key, size = self._reader, self._reader.table.key, limit
        while True:
            statement, keyless = reader.every_row.where(*conditions), 0
            if after is None:
                statement = statement.add_columns(self._blank_count(conditions))
            else:
                statement = statement.where(key.beyond(json.loads(after)))
            statement = statement.order_by(*key.parts).limit(size + 1)
            rows = self._connection.execute(statement).all()
            if after is None:
                keyless = self._blanks(conditions, rows, only)
            place = partial(self._place, rows)
            yield Batch(rows=rows, place=place, last=len(rows) <= size, keyless=keyless)
            after, size = place(-1), max(limit, AT_LEAST)

    def _place(self, rows: Sequence[Any], number: int) -> str:
        """Returns where a page ends, as JSON of the key; a key that makes no id has a place too."""
        key = self._reader.table.key_in(rows[number])
        if any(isinstance(part, bytes) for part in (key if isinstance(key, tuple) else (key,))):
            raise BackendNonsense("a page ends with a key that is no number and no text")
        place = json.dumps(_bare(key), default=str)
        if len(place) > base.LONGEST_AFTER:
            raise BackendNonsense("a page ends with a key that is too long")
        return place

    def _blank_count(self, conditions: list[Criterion]) -> Expression:
        """Returns a subquery that counts the rows without a key, up to MOST_BLANK."""
        blank = self._reader.keyless.where(*conditions).limit(MOST_BLANK).subquery("blank_rows")
        return select(func.count()).select_from(blank).scalar_subquery().label("blanks")

    def _blanks(self, conditions: list[Criterion], page: Sequence[Any], only: Only) -> int:
        """Reports and counts the rows without a key; with conditions, each of them is judged."""
        if page:
            count = int(page[0][-1])
        else:
            count = self._connection.scalar(select(self._blank_count(conditions))) or 0
        if count and only:
            keyless = self._reader.keyless.where(*conditions).limit(MOST_BLANK)
            count = sum(self.rows.exists(row, only) for row in self._connection.execute(keyless))
        for _ in range(count):
            self.rows.report(Trouble("no id", self.name, "id", ""))
        return count


def _bare(key: Any) -> Any:
    """Returns a key without the blanks that a CHAR, and the places that a DECIMAL, adds to it."""
    if isinstance(key, tuple):
        return tuple(map(_bare, key))
    return key.rstrip() if isinstance(key, str) else by_value(key)
