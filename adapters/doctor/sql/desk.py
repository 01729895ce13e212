"""Reads what the practice's own desk wrote: its appointments, and the rows of tables about them.

Nothing is written. Rows are found by declared foreign keys, by names that say what they hold, and
by long keys of letters that stand in another column.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise, product
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, types
from sqlalchemy.exc import SQLAlchemyError

from adapters.doctor.values import LONGEST_CODE
from adapters.mapping.models import ResourceMap, StepMap
from adapters.sql.booking import named_table
from adapters.sql.engines.base import Speech, given
from adapters.sql.inspection import inspected
from adapters.values.convert import Unreadable, bits, plain

# The most tables that are looked at, and rows of one table about one appointment.
MOST_TABLES, MOST_ROWS = 600, 40
# The newest rows that tell whether a table names others, and the share of keys found there.
MOST_NEWEST, NEARLY_ALL = 200, 0.9
# A key of so many letters stands in no other column by accident, unless it is a number.
LONG_KEY = 5
_TABLE = re.compile(
    r"(?:^|\bjoin\b|,)\s*((?:[\"`\[]?[\w-]+[\"`\]]?\.)?[\"`\[]?[\w-]+[\"`\]]?)"
    r"(?:\s+(?:as\s+)?(?!left\b|inner\b|cross\b|join\b|right\b|full\b|on\b|where\b)([\"`\[]?\w+[\"`\]]?))?",
    re.IGNORECASE,
).findall
_COLUMN = re.compile(r"(?:([\"`\[]?\w+[\"`\]]?)\.)?([\"`\[]?[\w-]+[\"`\]]?)").fullmatch
_KINDS: tuple[tuple[type[types.TypeEngine[Any]], str], ...] = (
    (types.Boolean, "number"),
    (types.Uuid, "text"),
    (types.Integer, "number"),
    (types.Numeric, "number"),
    (types.Float, "number"),
    (types.DateTime, "time"),
    (types.Date, "time"),
    (types.Time, "time"),
    (types.String, "text"),
)
Row = Mapping[str, Any]
FOREIGN, VALUES = "a foreign key", "by its values"
CALLED_KEY = re.compile(r"(?i:.+_id|id_.+)|.*[a-z]I[dD]").fullmatch
# Names of keys that say nothing of what they are keys of.
_PLAIN_KEYS = ("id", "key", "nr", "no", "number", "code", "uuid", "guid", "pk")


class DeskColumn(NamedTuple):
    """A column; `kind` is number, text, time or other. Nobody has to fill one that is `free`."""

    name: str
    kind: str
    free: bool
    is_numbered: bool


@dataclass(frozen=True, slots=True)
class DeskTable:
    """A table by the name that a mapping gives it; `foreign` are tables by a column's name."""

    name: str
    columns: Mapping[str, DeskColumn]
    key: tuple[str, ...]
    foreign: Mapping[str, tuple[str, str]]

    def rows(
        self,
        connection: Connection,
        column: str,
        values: Sequence[Any],
        kind: tuple[str, str] | None = None,
    ) -> list[Row]:
        """Returns the rows with one of these values in the column, in the order of their keys.

        Those of a `kind` have that text in another column.
        """
        rows = named_table(self.name, self.columns)
        few = rows.c[column].in_([given(None, value) for value in values])
        of_kind = sa.true() if kind is None else rows.c[kind[0]] == kind[1]
        statement = (
            sa.select(*rows.c).where(few, of_kind).order_by(*(rows.c[name] for name in self.key))
        )
        found = connection.execute(statement.limit(MOST_ROWS * len(values))).all()
        return [dict(zip(self.columns, row, strict=True)) for row in found]

    def newest(self, connection: Connection, most: int) -> list[Row]:
        """Returns the rows with the greatest keys."""
        rows = named_table(self.name, self.columns)
        order = (rows.c[name].desc() for name in self.key)
        found = connection.execute(sa.select(*rows.c).order_by(*order).limit(most)).all()
        return [dict(zip(self.columns, row, strict=True)) for row in found]


class Reference(NamedTuple):
    """A column of a table that holds the key of another row, and why that is believed.

    It holds keys of several tables where a `kind` is known: the column with the table's name, and
    how it is spelt there.
    """

    table: DeskTable
    column: str
    why: str
    kind: tuple[str, str] | None = None


def tables_of(connection: Connection, speech: Speech) -> list[DeskTable]:
    """Returns the tables of the account's own schema, then those of others beside it.

    Raises Unlisted where they cannot be listed.
    """
    with inspected(connection) as inspector:
        own = inspector.default_schema_name
        beside = [schema for schema in speech.schemas(inspector) if schema != own]
        numbered = set[tuple[str, str]]()
        if speech.numbered is not None:
            numbered = {(str(name), str(key)) for name, key in connection.execute(speech.numbered)}
        found = (table for schema in (None, *beside) for table in _of(inspector, schema, numbered))
        return [table for table, _ in zip(found, range(MOST_TABLES), strict=False)]


def _of(
    inspector: sa.Inspector, schema: str | None, numbered: set[tuple[str, str]]
) -> Iterator[DeskTable]:
    keys = inspector.get_multi_pk_constraint(schema=schema)
    foreign = inspector.get_multi_foreign_keys(schema=schema)
    for place, columns in inspector.get_multi_columns(schema=schema).items():
        bare, key = place[1], keys.get(place)
        primary = tuple(key["constrained_columns"]) if key else ()
        made = {}
        for info in columns:
            name = info["name"]
            automatic = any(map(info.get, ("default", "identity", "computed")))
            counts = (bare, name) in numbered or info.get("autoincrement") is True or automatic
            is_free = bool(info["nullable"]) or automatic or counts
            made[name] = DeskColumn(name, _kind(info["type"]), is_free, counts and name in primary)
        pairs = {}
        for each in foreign.get(place, []):
            if len(each["constrained_columns"]) == 1:
                owner = each["referred_schema"]
                to = f"{owner}.{each['referred_table']}" if owner else each["referred_table"]
                pairs[each["constrained_columns"][0]] = (to, each["referred_columns"][0])
        yield DeskTable(f"{schema}.{bare}" if schema else bare, made, primary, pairs)


def _kind(kind: types.TypeEngine[Any]) -> str:
    return next((name for base, name in _KINDS if isinstance(kind, base)), "other")


def named(tables: Iterable[DeskTable], name: str) -> DeskTable | None:
    """Returns the table of that name, as SQL may spell it."""
    bare = re.sub(r"[\"`\[\]]", "", name).lower()
    spelt = {table.name.lower(): table for table in tables}
    last = {table.name.lower().rpartition(".")[2]: table for table in spelt.values()}
    return spelt.get(bare) or last.get(bare.rpartition(".")[2])


def spelt(tables: Sequence[DeskTable], steps: Iterable[StepMap]) -> list[DeskTable]:
    """Returns the tables with their columns as the steps spell them, which may be in other case."""
    names: dict[str, dict[str, str]] = {}
    for step in steps:
        if step.table and (table := named(tables, step.table)):
            own = {name.lower(): name for name in (*step.keys, *step.values)}
            names.setdefault(table.name, {}).update(own)
    return [_respelt(table, names.get(table.name, {})) for table in tables]


def _respelt(table: DeskTable, names: Mapping[str, str]) -> DeskTable:
    def of(name: str) -> str:
        return names.get(name.lower(), name)

    columns = {of(name): column._replace(name=of(name)) for name, column in table.columns.items()}
    foreign = {of(name): leads for name, leads in table.foreign.items()}
    return replace(table, columns=columns, key=tuple(map(of, table.key)), foreign=foreign)


def column_of(
    tables: Sequence[DeskTable], from_: str, expression: str
) -> tuple[DeskTable, str] | None:
    """Returns the table and the column that an expression is; None for one that computes."""
    match = _COLUMN(expression.strip())
    if match is None:
        return None
    alias, name = (re.sub(r"[\"`\[\]]", "", part or "") for part in match.groups())
    for table, its_alias in _TABLE(from_):
        spelt = {re.sub(r"[\"`\[\]]", "", its_alias).lower(), bare_name(table).lower()}
        found = named(tables, table) if not alias or alias.lower() in spelt else None
        if found is not None:
            for column in found.columns:
                if column.lower() == name.lower():
                    return found, column
    return None


def bare_name(name: str) -> str:
    """Returns a table's name without its schema and quotes."""
    return re.sub(r"[\"`\[\]]", "", name).rpartition(".")[2]


def key_column(tables: Sequence[DeskTable], mapped: ResourceMap) -> tuple[DeskTable, str] | None:
    """Returns where the keys of a resource stand, where these are one column of a table."""
    if len(mapped.key.source) != 1:
        return None
    return column_of(tables, mapped.from_ or "", mapped.key.source[0])


def holds_keys(tables: Sequence[DeskTable], table: DeskTable, name: str) -> bool:
    """Returns whether a column holds keys: its own row's, or others' by a declaration or its name.

    A text named after a table may as well be one of its codes.
    """
    if name in (*table.key, *table.foreign) or CALLED_KEY(name):
        return True
    column = table.columns[name]
    return column.kind == "number" and bool(_named_after(tables, table, column))


def _has_name_of(column: DeskColumn, to: DeskTable, key: str) -> bool:
    """Returns whether a column is named after a table, or after its key."""
    letters, own, word = _letters(column.name), _letters(key), _letters(bare_name(to.name))
    words = [each for each in (word, word.removesuffix("s")) if len(each) > 2]
    is_key = own == letters and own not in _PLAIN_KEYS
    return is_key or any(each in letters for each in words)


def references(
    tables: Sequence[DeskTable], to: DeskTable, key: str, keys: Sequence[Any]
) -> Iterator[Reference]:
    """Yields the columns of other tables that may hold that table's keys."""
    texts = [text_of(value) or "" for value in keys]
    is_rare = bool(keys) and not any(it.isdecimal() or len(it) < LONG_KEY for it in texts)
    others = (each for each in tables if each is not to)
    for table, column in ((each, it) for each in others for it in each.columns.values()):
        leads = table.foreign.get(column.name)
        if leads is not None:
            if named([to], leads[0]) and leads[1].lower() == key.lower():
                yield Reference(table, column.name, FOREIGN)
        elif column.kind == to.columns[key].kind and not column.is_numbered:
            if _has_name_of(column, to, key):
                yield Reference(table, column.name, "by its name")
            elif is_rare and (column.name,) != table.key:
                yield Reference(table, column.name, VALUES)


def journals(
    connection: Connection,
    tables: Sequence[DeskTable],
    to: DeskTable,
    key: str,
    keys: Sequence[Any],
) -> Iterator[Reference]:
    """Yields the columns with keys of several tables that have nearly all of these of that table.

    What they are keys of stands beside them, as the table's name.
    """
    for table in tables:
        texts = [each.name for each in table.columns.values() if each.kind == "text"]
        try:
            with connection.begin_nested():
                newest = table.newest(connection, MOST_NEWEST) if texts and table is not to else []
                kinds = [kind for name in texts for kind in _namings(newest, name, to)]
                found = _journal(connection, table, kinds, to.columns[key], keys)
        except SQLAlchemyError:
            continue
        if found is not None:
            yield found


def _namings(rows: Sequence[Row], column: str, to: DeskTable) -> Iterator[tuple[str, str]]:
    """Yields the texts in a column that are the name of a table, or a part of it."""
    word = _letters(bare_name(to.name))
    for text in {row[column] for row in rows if isinstance(row[column], str)}:
        letters = _letters(text)
        if len(letters) > 2 and (letters in word or word in letters):
            yield column, text


def _journal(
    connection: Connection,
    table: DeskTable,
    kinds: Sequence[tuple[str, str]],
    key: DeskColumn,
    keys: Sequence[Any],
) -> Reference | None:
    """Returns the column in which rows of one of these kinds have nearly all of the keys."""
    wanted = {text_of(key) for key in keys}
    for kind, column in product(kinds, table.columns.values()):
        is_own = (column.name,) == table.key or column.name in table.foreign or column.is_numbered
        if is_own or column.name == kind[0] or column.kind != key.kind:
            continue
        rows = table.rows(connection, column.name, keys, kind)
        if len(wanted & {text_of(row[column.name]) for row in rows}) >= NEARLY_ALL * len(wanted):
            return Reference(table, column.name, f"where {kind[0]} is {kind[1].strip()}", kind)
    return None


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def leads_to(
    tables: Sequence[DeskTable], table: DeskTable, column: DeskColumn
) -> tuple[DeskTable, str] | None:
    """Returns the table whose keys a column may hold, and its key; None where it holds none."""
    if (leads := table.foreign.get(column.name)) is not None:
        found = named(tables, leads[0])
        return None if found is None else (found, leads[1])
    others = _named_after(tables, table, column)
    best = max(others, key=lambda each: len(bare_name(each.name)), default=None)
    return None if best is None else (best, best.key[0])


def _named_after(
    tables: Sequence[DeskTable], table: DeskTable, column: DeskColumn
) -> list[DeskTable]:
    """Returns the other tables after which, or after whose key, a column of its kind is named."""
    keyed = [each for each in tables if each is not table and len(each.key) == 1]
    return [
        each
        for each in keyed
        if column.kind == each.columns[each.key[0]].kind
        and not column.is_numbered
        and _has_name_of(column, each, each.key[0])
    ]


def rows_about(
    connection: Connection, reference: Reference, keys: Sequence[Any]
) -> dict[str, list[Row]] | None:
    """Returns the rows about each key, by its text; None where the table cannot be read."""
    try:
        with connection.begin_nested():
            rows = reference.table.rows(connection, reference.column, keys, reference.kind)
    except SQLAlchemyError:
        return None
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(text_of(row[reference.column]) or "", []).append(row)
    return found


def text_of(raw: Any) -> str | None:
    """Returns a raw value as a text that is the same however a driver returns it."""
    raw = bits(raw)
    if isinstance(raw, bool):
        return str(int(raw))
    if isinstance(raw, datetime | date | time | timedelta):
        return _time_of(raw)
    try:
        return None if raw is None else plain(raw) or ""
    except Unreadable:
        return ""


def _time_of(raw: datetime | date | time | timedelta) -> str:
    if isinstance(raw, datetime):
        at = raw.astimezone(UTC).replace(tzinfo=None) if raw.tzinfo else raw
        return f"{at:%Y-%m-%d %H:%M:%S}"
    if isinstance(raw, timedelta):
        minutes, seconds = divmod(int(raw.total_seconds()), 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    return raw.isoformat() if isinstance(raw, date) else f"{raw:%H:%M:%S}"


def telling(table: DeskTable, column: str, rows: Sequence[Sequence[Row]], most: int) -> str | None:
    """Returns the column that tells the rows of one appointment apart by the fewest codes."""
    fewest: dict[str, int] = {}
    for name in table.columns:
        spelt = [[text_of(row[name]) for row in each] for each in rows]
        values = {value for each in spelt for value in each}
        is_one_each = all(len({*each}) == len(each) for each in spelt)
        is_code = None not in values and all(len(str(it)) <= LONGEST_CODE for it in values)
        if name != column and name not in table.key and is_one_each and is_code:
            fewest[name] = len(values)
    few = {name: count for name, count in fewest.items() if count <= most + 1}
    return min(few, key=lambda name: few[name], default=None)


def follows(numbers: Sequence[int], keys: Sequence[Any]) -> bool:
    """Returns whether the numbers rise, all of them, in the order of the keys."""
    if all(isinstance(key, int) for key in keys):
        numbers = [number for _, number in sorted(zip(keys, numbers, strict=True))]
    else:
        numbers = sorted(numbers)
    return all(before < after for before, after in pairwise(numbers))
