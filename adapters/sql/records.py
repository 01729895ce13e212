"""Reads one resource by statements that are built once from the mapping.

A record by id costs one statement and one more for each list inside it, and so does a whole page.
Filters and row conditions are part of the statements, which let through every row that meets them
and hardly another. Rows that only the engine takes for equal are left out here.
"""

import json
from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any

from sqlalchemy import Select, and_, false, func, not_, or_, select
from sqlalchemy.exc import DBAPIError

from adapters import base
from adapters.base import BackendNonsense, Condition, Filter, Only, Page, Record, Trouble
from adapters.ids.seal import Id
from adapters.ids.table import NativeIds
from adapters.mapped.records import Batch, Fields, ResourceReader
from adapters.mapping.row_conditions import is_ordered
from adapters.sql.columns import Columns, KeyedRows, among, comparable, parts_of, rows_of
from adapters.sql.comparisons import COMPARED, ColumnComparison
from adapters.sql.engines.base import Criterion, Expression, Speech
from adapters.sql.engines.connection import OpenConnection
from adapters.sql.engines.statements import (
    MOST_SHAPES,
    Build,
    Parameters,
    Part,
    ShapedStatement,
    values_of,
)
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
        key = table.key
        self.every_row = self.rows_with_fields(None)
        """All rows that have a key: the key, then the fields."""
        self.keyless = table.statement.where(not_(key.present))
        """The rows without a key."""
        self.key_alone = rows_of(table.mapped, *key.parts)
        self.is_native = isinstance(table.ids, NativeIds)
        # most calls read one record, whatever its key, and no conditions
        self._unconditional = lru_cache(MOST_SHAPES)(self._row_question)

    def rows_with_fields(self, fields: Fields) -> Select[Any]:
        """Returns all rows that have a key, with null in the place of other fields."""
        return self.table.selecting(fields).where(self.table.key.present)

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

    def conditions(self, only: Only) -> list[Part]:
        """Returns the conditions as parts. For the rows that come, `exists` decides."""
        return [ColumnComparison(self._places[c.field], c, self.speech).part() for c in only]

    def one_row(
        self, keys: Sequence[Any], only: Only, fields: Fields, *, bare: bool = False
    ) -> ShapedStatement:
        """Asks for the row with the key, in any of its spellings; for its key alone if `bare`.

        Compared with every spelling, not by a function of the column, so that its index is used.
        """
        ask = self._row_question if only else self._unconditional
        asked = ask(len(keys), only, fields, bare)
        values = (*chain.from_iterable(map(parts_of, keys)), *asked.values)
        return ShapedStatement(asked.shape, values, asked.build)

    def _row_question(self, count: int, only: Only, fields: Fields, bare: bool) -> ShapedStatement:
        """Returns the same without the values of so many keys."""
        parts = [among("id", self.table.key, [()] * count), *self.conditions(only)]
        conditions, read = _built(parts), _read(fields, only)

        def build(parameters: Parameters) -> Select[Any]:
            statement = self.key_alone if bare else self.rows_with_fields(read)
            return statement.where(*conditions(parameters)).limit(1)

        return self._question("key" if bare else ("row", read), parts, build)

    def rows_with(self, keys: Sequence[Any]) -> ShapedStatement:
        """Asks for the rows with these keys."""
        parts = [among("id", self.table.key, padded(keys))]
        conditions = _built(parts)
        return self._question(
            "rows", parts, lambda parameters: self.every_row.where(*conditions(parameters))
        )

    def page(
        self,
        conditions: Sequence[Part],
        after: str | None,
        size: int,
        fields: Fields = None,
    ) -> ShapedStatement:
        """Asks for rows in the order of their keys; a first page has a count of blank keys too."""
        key, parts = self.table.key, list(conditions)
        filtered = _built(parts)
        if after is not None:
            place = parts_of(json.loads(after))
            if len(place) != key.width:
                raise BackendNonsense("a page is to begin at a place that is no key")
            parts.append(Part("after", place, lambda _: false()))

        def build(parameters: Parameters) -> Select[Any]:
            criteria = filtered(parameters)
            statement = self.rows_with_fields(fields).where(*criteria)
            if after is None:
                statement = statement.add_columns(self._blank_count(criteria))
            else:
                statement = statement.where(key.beyond(parameters.take(key.width)))
            return statement.order_by(*key.parts).limit(self._limit(parameters, size))

        return self._question(("page", fields), parts, build, size)

    def marked(self, mark: Expression, value: str, size: int) -> ShapedStatement:
        """Asks for rows by what marks them, in the order of their keys."""
        key = self.table.key

        def build(parameters: Parameters) -> Select[Any]:
            marked = self.every_row.where(mark == parameters.take(1)[0])
            return marked.order_by(*key.parts).limit(self._limit(parameters, size))

        return self._question("marked", [Part(str(mark), (value,), lambda _: false())], build, size)

    def children(self, name: str, keys: Sequence[Any], fields: Fields) -> ShapedStatement:
        """Asks for the rows of a list inside the records with these keys."""
        table = self.table.lists[name]
        parts = [among(name, table.parent, padded(keys))]
        conditions = _built(parts)
        return self._question(
            ("list", fields),
            parts,
            lambda parameters: table.of_parents(fields).where(*conditions(parameters)),
        )

    def blank_count(self, conditions: Sequence[Part]) -> ShapedStatement:
        """Asks how many rows have no key, up to MOST_BLANK."""
        filtered = _built(conditions)
        return self._question(
            "blanks", conditions, lambda parameters: select(self._blank_count(filtered(parameters)))
        )

    def blank_rows(self, conditions: Sequence[Part]) -> ShapedStatement:
        """Asks for these rows."""
        filtered = _built(conditions)
        return self._question(
            "blank rows",
            conditions,
            lambda parameters: self.keyless.where(*filtered(parameters)).limit(MOST_BLANK),
        )

    def _blank_count(self, criteria: Sequence[Criterion]) -> Expression:
        keyless = self.table.selecting(frozenset()).where(not_(self.table.key.present))
        blank = keyless.where(*criteria).limit(MOST_BLANK).subquery("blank_rows")
        return select(func.count()).select_from(blank).scalar_subquery().label("blanks")

    def _limit(self, parameters: Parameters, size: int) -> Any:
        return size if self.speech.limits_by_top else parameters.number()

    def _question(
        self, kind: Hashable, parts: Sequence[Part], build: Build, size: int | None = None
    ) -> ShapedStatement:
        """Returns the question; a `size` is a parameter, or of the shape where it is text."""
        shape, values = (self.name, kind, *(part.shape for part in parts)), values_of(parts)
        if size is None:
            return ShapedStatement(shape, values, build)
        if self.speech.limits_by_top:
            return ShapedStatement((*shape, size), values, build)
        return ShapedStatement(shape, (*values, size), build)

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

    def filtered(self, filter_: Filter) -> Part:
        """Returns a filter as a part. Raises BackendNonsense for what cannot be compared."""
        columns = [self._places[name] for name in filter_.fields]
        if filter_.match == "search":
            return self._search(filter_.fields, columns, filter_.value)
        name, column = filter_.fields[0], columns[0]
        converter = column.converter
        if not converter.compares:
            raise BackendNonsense(f"{self.name} cannot be compared by {name}")
        if filter_.match in ("since", "written since"):
            first = converter.since if filter_.match == "since" else converter.first_written
            return Part(
                ("since", name),
                parts_of(first(filter_.value)),
                lambda taken: column.beyond(taken.take(column.width), at_least=True),
            )
        if filter_.match == "around":
            ends = [converter.encode(filter_.value + room)[0] for room in (-ROOM, ROOM)]
            values = tuple(chain.from_iterable(map(parts_of, ends)))
            return Part(("around", name), values, partial(_around, column))
        raws = converter.encode(filter_.value)
        if isinstance(converter, Id):
            return among(name, column, comparable(raws, loose_types=self.speech.loose_types))
        if column.width > 1:
            return among(name, column, raws)
        return self._is_one_of(name, column, raws)

    def _is_one_of(self, name: str, column: Columns, raws: Sequence[Any]) -> Part:
        """Compares with the raw values as they are read: without blanks around them, "" as NULL."""
        expression, texts = column.parts[0], [isinstance(raw, str) for raw in raws]
        trimmed, or_null = self.speech.trimmed(expression), "" in raws

        def sql(parameters: Parameters) -> Criterion:
            sides = (trimmed if is_text else expression for is_text in texts)
            pairs = zip(sides, parameters.take(len(texts)), strict=True)
            blank = [expression.is_(None)] if or_null else []
            return or_(false(), *(side == value for side, value in pairs), *blank)

        return Part(("equals", name, tuple(texts), or_null), tuple(raws), sql)

    def _search(self, names: Sequence[str], columns: Sequence[Columns], words: str) -> Part:
        """Requires that each word begins a word of the texts; only letters and digits count."""
        folded = fold(words).split()
        count = len(folded)

        def sql(parameters: Parameters) -> Criterion:
            if not count:
                return false()
            # two fields may be parts of one column
            texts = {str(part): part for column in columns for part in column.parts}
            joined, *others = (self.speech.searchable(text) for text in texts.values())
            for text in others:
                joined = joined.concat(text)
            return and_(*(joined.like(word) for word in parameters.take(count)))

        values = tuple(f"% {word}%" for word in folded)
        return Part(("search", tuple(names), count), values, sql)


class SqlRecords(ResourceReader):
    """Reads one resource on a connection; `keys` are those of the one record, where it is one."""

    most = MOST_ROWS

    def __init__(
        self, reader: SqlReader, connection: OpenConnection, keys: Sequence[Any] = ()
    ) -> None:
        super().__init__(reader.name, reader.table)
        self._reader, self._connection, self._asked = reader, connection, keys
        self._rows: dict[str, Any] = {}

    async def row(self, public_id: str, only: Only, fields: Fields = None) -> Any:
        return await self._row(public_id, only, fields)

    async def exists(self, public_id: str, only: Only = ()) -> None:
        """Raises NotFound where it does not exist. Without conditions, reads the key alone."""
        reader = self._reader
        row = await self._row(public_id, only, frozenset(), bare=not only)
        if not self.rows.exists(row, only):
            raise self.rows.missing()
        if reader.is_native:
            reader.table.ids.shown(row[0])  # remembers how the key is spelt

    async def _row(self, public_id: str, only: Only, fields: Fields, *, bare: bool = False) -> Any:
        reader = self._reader
        keys = self._asked or reader.keys_of(public_id)
        try:
            rows = await self._connection.rows(reader.one_row(keys, only, fields, bare=bare))
        except DBAPIError as error:
            if reader.speech.code(error) not in reader.speech.misfits:
                raise
            rows = ()  # a key that the column cannot hold names nothing
        if not rows:
            raise self.rows.missing()
        number = by_value(reader.table.key_in(rows[0]))
        # MySQL finds 12 by the text `12;13` too
        if isinstance(number, int) and number != whole(keys[0]):
            raise self.rows.missing()
        return rows[0]

    def records(self, rows: Sequence[Any], fields: Fields) -> list[Record | None]:
        """Returns None also for a row whose id an earlier one had, as a join doubles it."""
        made, known = super().records(rows, fields), self._rows
        for number, record in enumerate(made):
            if record and known.setdefault(record["id"], rows[number]) is not rows[number]:
                self.rows.report(Trouble("doubled row", self.name, "id", ""))
                made[number] = None
        return made

    async def add_lists(self, records: Collection[Record], fields: Fields) -> bool:
        """Fills the lists inside the records, by one statement for each list."""
        makers, key_in = self.rows.maker(fields).inside, self._reader.table.key_in
        if not makers or not records:
            return True
        by_key = {key_in(self._rows[record["id"]]): record for record in records}
        formed = [await self._add_list(name, fields, by_key) for name in makers]
        return all(formed)

    async def _add_list(self, name: str, fields: Fields, records: dict[Any, Record]) -> bool:
        """Gives each record, by its key, the list of its rows; returns whether all are formed."""
        table, spelt = self._reader.table.lists[name], Columns.spelling
        # folded, as a backend that ignores case compares them, then as they are
        parents = {spelt(key, folded=True): records[key] for key in reversed(records)}
        parents |= {spelt(key): record for key, record in records.items()}
        for record in records.values():
            record[name] = []
        keys = [_bare(key) for key in records]
        # a number against a text column would be compared as numbers, past its index
        if table.parent.width == 1 and not self._reader.speech.loose_types:
            keys = list(map(str, keys))
        maker = table.maker(fields)
        found = await self._connection.rows(self._reader.children(name, keys, fields))
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
        rows = await self._connection.rows(reader.rows_with(keys)) if keys else ()
        by_id = {reader.table.id_of(row): row for row in rows}
        return {shown: row for shown, row in by_id.items() if shown is not None and shown in ids}

    async def marked(self, mark: Expression, value: str, limit: int) -> list[Record]:
        """Returns the records whose `mark` is that value, in the order of their keys."""
        rows = await self._connection.rows(self._reader.marked(mark, value, limit))
        records = [record for record in self.records(rows, None) if record]
        await self.add_lists(records, None)
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
        batches = self._batches(conditions, limit, after, only, _read(fields, only))
        return await self.filled(batches, limit, only, fields)

    async def _batches(
        self, conditions: list[Part], limit: int, after: str | None, only: Only, fields: Fields
    ) -> AsyncGenerator[Batch, None]:
        """Yields the rows of a page and one more, then further ones as some are left out."""
        size = limit
        while True:
            question = self._reader.page(conditions, after, size + 1, fields)
            rows = await self._connection.rows(question)
            keyless = await self._blanks(conditions, rows, only) if after is None else 0
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

    async def _blanks(self, conditions: list[Part], page: Sequence[Any], only: Only) -> int:
        """Reports and counts the rows without a key; with conditions, each of them is judged."""
        reader, ask = self._reader, self._connection.rows
        counted = page or await ask(reader.blank_count(conditions))
        count = int(counted[0][-1])
        if count and only:
            keyless = await ask(reader.blank_rows(conditions))
            count = sum(self.rows.exists(row, only) for row in keyless)
        for _ in range(count):
            self.rows.report(Trouble("no id", self.name, "id", ""))
        return count


def _bare(key: Any) -> Any:
    """Returns a key without the blanks that a CHAR, and the places that a DECIMAL, adds to it."""
    if isinstance(key, tuple):
        return tuple(map(_bare, key))
    return key.rstrip() if isinstance(key, str) else by_value(key)


def padded(keys: Sequence[Any]) -> Sequence[Any]:
    """Returns the keys, the last of them repeated, so that few counts come and few statements."""
    size: int = 1 << (len(keys) - 1).bit_length()
    return [*keys, *(keys[-1] for _ in range(size - len(keys)))]


def _read(fields: Fields, only: Only) -> Fields:
    """Returns the fields that are read of a row: those of the conditions as well."""
    return None if fields is None else fields.union(condition.field for condition in only)


def _around(column: Columns, parameters: Parameters) -> Criterion:
    early, late = (parameters.take(column.width) for _ in range(2))
    return and_(column.beyond(early, at_least=True), not_(column.beyond(late)))


def _built(parts: Sequence[Part]) -> Callable[[Parameters], list[Criterion]]:
    """Returns what makes SQL of all parts, and holds none of their values."""
    each = [part.sql for part in parts]
    return lambda parameters: [sql(parameters) for sql in each]
