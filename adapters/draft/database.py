"""Reads the structure of a practice database, and some of its rows.

Nothing is written. Each table is read in a snapshot of its own, with limits of rows and of time.
One that cannot be read is returned without rows.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Dialect, Inspector, column, func, select, types
from sqlalchemy.dialects.mysql import BIT
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import ReflectedForeignKeyConstraint
from sqlalchemy.exc import SQLAlchemyError

from adapters.base import AdapterError, BackendUnavailable
from adapters.sql.engines import Engine, open_engine
from adapters.sql.engines.base import Speech
from adapters.sql.inspection import inspected
from adapters.values.convert import bits
from adapters.wrappers.connection_errors import reason

# Seconds for one table, and for all of them.
PATIENCE = 10.0
PATIENCE_IN_ALL = 120.0
# The tables that are read at the same time.
AT_ONCE = 4
# The rows that are read from either end of a table, and the characters of a long text.
ROWS = 300
LONGEST = 200
# The most different values of a column of codes, their greatest length, and the rows in which they
# are looked for.
MOST_CODES = 20
LONGEST_CODE = 20
LONGEST_WORD = 48
ROWS_FOR_CODES = 20_000
MOST_COUNTED = 10_000

_KINDS: tuple[tuple[type[types.TypeEngine[Any]], str], ...] = (
    (types.Boolean, "boolean"),
    (types.Uuid, "uuid"),
    (types.Integer, "integer"),
    (types.Numeric, "number"),
    (types.Float, "number"),
    (types.DateTime, "datetime"),
    (types.Date, "day"),
    (types.Time, "clock"),
    (types.String, "text"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; `codes` are its different values where they are few and short, else empty.

    `listed` says that the type itself lists them.
    `kind` is boolean, uuid, integer, number, datetime, day, clock, text, or nothing (not read).
    `seen` are the values of the rows that were read, None among them.
    """

    name: str
    kind: str
    nullable: bool
    has_default: bool
    zoned: bool
    length: int | None
    codes: tuple[Any, ...]
    listed: bool = False
    seen: tuple[Any, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; `rows` is counted up to MOST_COUNTED, `columns` are by their names."""

    name: str
    schema: str | None
    columns: Mapping[str, Column]
    key: tuple[str, ...]
    foreign_keys: Sequence[ReflectedForeignKeyConstraint]
    unique: Sequence[tuple[str, ...]]
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Database:
    """The tables and sequences of a database, SQLAlchemy's dialect, and the engine's Speech."""

    dialect: Dialect
    speech: Speech
    tables: tuple[Table, ...]
    sequences: tuple[str, ...] = ()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Engine]:
    """Yields an engine that is connected to the database at that address.

    Raises BackendUnavailable where it cannot be reached, and ValueError, with a sentence, for a
    wrong address or an option in it that the driver does not take.
    """
    engine = open_engine(url, timeout=PATIENCE, booking_timeout=PATIENCE, in_flight=AT_ONCE)
    try:
        await _connect(engine, make_url(url))
        yield engine
    finally:
        await engine.aclose()


async def read_database(engine: Engine) -> Database:
    """Returns the structure of the database, with rows of each table.

    Raises Unlisted where its tables cannot be listed.
    """
    structure = await engine.inspect(partial(_structure, engine.speech))
    until = time.monotonic() + PATIENCE_IN_ALL
    left, tables = iter(structure.tables), dict[int, Table]()

    async def read_some() -> None:
        for bare in left:
            tables[id(bare)] = bare
            if time.monotonic() < until:
                with suppress(AdapterError):
                    tables[id(bare)] = await engine.read(partial(sampled, bare, None, None, ()))

    await asyncio.gather(*(read_some() for _ in range(AT_ONCE)))
    return replace(structure, tables=tuple(tables[id(bare)] for bare in structure.tables))


async def _connect(engine: Engine, address: URL) -> None:
    """Connects and runs nothing, so that errors here are about the server or the address."""
    try:
        await engine.read(lambda connection: None)
    except (AdapterError, TypeError, ValueError) as error:
        why = reason(error)
        if address.host and why is not None:
            place = f"{address.host}, port {address.port}," if address.port else address.host
            text = f"the database on {place} can't be reached: {why}"
            raise BackendUnavailable(text) from error
        if address.query and not isinstance(error, UnicodeError):
            raise ValueError(
                f"{address.get_backend_name()} does not take {', '.join(address.query)} as it is"
                f" written ({error}): mend it, or take it away from behind the ? of the address"
            ) from error
        raise


def _structure(speech: Speech, connection: Connection) -> Database:
    with inspected(connection) as inspector:
        numbered = set[tuple[str, str]]()
        if speech.numbered is not None:
            numbered = {(name, key) for name, key in connection.execute(speech.numbered)}
        # the account's own schema, and those beside it that are not the server's
        own = inspector.default_schema_name
        beside = [schema for schema in speech.schemas(inspector) if schema != own]
        tables = [
            bare
            for schema in (None, *beside)
            for bare in _tables(inspector, speech, schema, numbered)
        ]
        try:
            sequences = inspector.get_sequence_names()
        except (NotImplementedError, SQLAlchemyError):
            sequences = []
        return Database(connection.dialect, speech, tuple(tables), tuple(sequences))


def _tables(
    inspector: Inspector, speech: Speech, schema: str | None, numbered: Set[tuple[str, str]]
) -> Iterator[Table]:
    """Yields the tables of a schema; `numbered` are keys with a default that is not declared."""
    keys = inspector.get_multi_pk_constraint(schema=schema)
    foreign = inspector.get_multi_foreign_keys(schema=schema)
    unique: Mapping[Any, Any]
    if speech.reflects_indexes:
        unique = inspector.get_multi_indexes(schema=schema)
    else:
        unique = inspector.get_multi_unique_constraints(schema=schema)
    for place, columns in inspector.get_multi_columns(schema=schema).items():
        key, name = keys.get(place), place[1]
        yield Table(
            name=name,
            schema=schema,
            columns={
                info["name"]: _column(info, (name, info["name"]) in numbered) for info in columns
            },
            key=tuple(key["constrained_columns"]) if key else (),
            foreign_keys=foreign.get(place, []),
            unique=[
                tuple(map(str, index["column_names"]))
                for index in unique.get(place, [])
                if index.get("unique", True)
            ],
        )


def _column(info: Mapping[str, Any], is_numbered: bool) -> Column:
    kind = info["type"]
    automatic = map(info.get, ("default", "identity", "computed"))
    return Column(
        name=info["name"],
        kind=_kind(kind),
        nullable=bool(info["nullable"]),
        has_default=is_numbered or any(automatic) or info.get("autoincrement") is True,
        zoned=bool(getattr(kind, "timezone", False)),
        length=getattr(kind, "length", None),
        codes=tuple(kind.enums) if isinstance(kind, types.Enum) else (),
        listed=isinstance(kind, types.Enum),
    )


def _kind(kind: types.TypeEngine[Any]) -> str:
    if isinstance(kind, BIT) and (kind.length or 1) > 1:
        return "integer"
    if type(kind).__name__ in ("TINYINT", "BIT") and getattr(kind, "display_width", 1) == 1:
        return "boolean"
    return next((name for base, name in _KINDS if isinstance(kind, base)), "nothing")


Spelling = Callable[[str], sa.ColumnElement[Any]]


def sampled(
    bare: Table,
    source: Any,
    spelt: Spelling | None,
    conditions: Sequence[str],
    connection: Connection,
) -> Table:
    """Returns the table with rows from both ends, their number, and the codes of its columns.

    `source` is what to read instead of the whole table: with how its columns are spelt, and which
    conditions its rows meet.
    """
    spelt = spelt or column
    bare_columns = bare.columns.values()
    if source is None:
        source = sa.table(bare.name, *map(column, bare.columns), schema=bare.schema)
    where: list[sa.ColumnElement[Any]] = [sa.literal_column(condition) for condition in conditions]
    wanted = [_shortened(each, spelt).label(f"c{n}") for n, each in enumerate(bare_columns)]
    statement = select(*wanted).select_from(source).where(*where)
    samples = [*connection.execute(statement.limit(ROWS))]
    is_whole = len(samples) < ROWS
    if not is_whole and len(bare.key) == 1:
        newest = statement.order_by(sa.desc(spelt(bare.key[0])))
        samples += connection.execute(newest.limit(ROWS))
    seen = [*zip(*samples, strict=True)] if samples else [()] * len(wanted)
    columns = {}
    for each, raw in zip(bare_columns, seen, strict=True):
        values = tuple(map(plain, raw))
        codes = each.codes if each.listed else ()
        if not codes and each.kind in ("text", "integer", "boolean") and are_codes({*values}):
            rows = select(spelt(each.name).label("code")).select_from(source).where(*where)
            different = {*values} if is_whole else _different(connection, rows)
            codes = tuple(sorted(different - {None}, key=str)) if are_codes(different) else ()
        columns[each.name] = replace(each, seen=values, codes=codes)
    number = len(samples)
    if not is_whole:
        some: sa.Select[Any] = (
            select(sa.literal_column("1").label("one")).select_from(source).where(*where)
        )
        counted = select(func.count()).select_from(some.limit(MOST_COUNTED).subquery())
        number = int(connection.execute(counted).scalar() or 0)
    return replace(bare, columns=columns, rows=number)


def _shortened(bare: Column, spelt: Spelling) -> sa.ColumnElement[Any]:
    if bare.kind == "nothing":
        return sa.literal_column("NULL")
    if bare.kind == "text" and not bare.codes and (bare.length or LONGEST + 1) > LONGEST:
        return func.substr(spelt(bare.name), 1, LONGEST)
    return spelt(bare.name)


def plain(raw: Any) -> Any:
    """Returns a value as the gateway reads it; undecodable letters of a text are replaced."""
    value = bits(raw)
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _different(connection: Connection, rows: sa.Select[Any]) -> Set[Any]:
    """Returns the different values among the first rows, but no more than matter."""
    some = rows.limit(ROWS_FOR_CODES).subquery()
    distinct = connection.execute(select(some.c.code).distinct().limit(MOST_CODES + 2)).scalars()
    return set(map(plain, distinct))


def are_codes(values: Set[Any]) -> bool:
    """Returns whether the values are few and short."""
    some = values - {None}
    return 0 < len(some) <= MOST_CODES and all(is_short(str(value)) for value in some)


def is_short(code: str) -> bool:
    """Returns whether a text is short enough for a code; one word may be longer than several.

    One with a backslash is none: databases differ in what that means in a text of SQL.
    """
    return "\\" not in code and len(code) <= (LONGEST_CODE if " " in code else LONGEST_WORD)
