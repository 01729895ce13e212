"""Looks at a practice database: its tables, their columns and keys, and a few rows of each.

Everything is read-only, by the connection's own mode; every statement has a limit of rows and of
time. What cannot be read of one table is left out, and the others are looked at all the same.
"""

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Inspector, inspect, text, types
from sqlalchemy.dialects.mysql import BIT
from sqlalchemy.exc import SQLAlchemyError

from adapters.draft.database import Column, Database, ForeignKey, Table
from adapters.draft.opening import PATIENCE_IN_ALL, looked_into
from adapters.draft.samples import looked_at

_KINDS: tuple[tuple[type[types.TypeEngine[Any]], str], ...] = (
    (types.Boolean, "boolean"),
    (types.Uuid, "uuid"),
    (types.Integer, "integer"),
    (types.Numeric, "number"),
    (types.Float, "number"),
    (types.DateTime, "datetime"),
    (types.Date, "date"),
    (types.Time, "time"),
    (types.LargeBinary, "bytes"),
    (types.JSON, "json"),
    (types.String, "text"),
)

# An INTEGER PRIMARY KEY is SQLite's own number of the row: of all keys it alone has no index.
_NUMBERED_BY_SQLITE = text(
    "SELECT m.name, k.name FROM sqlite_master m JOIN pragma_table_info(m.name) k ON k.pk = 1"
    " WHERE m.type = 'table' AND NOT EXISTS"
    " (SELECT 1 FROM pragma_index_list(m.name) i WHERE i.origin = 'pk')"
)


async def reflect(url: str) -> Database:
    """The database at that address; BackendUnavailable, without its words, where it can't be had.

    ValueError, in a sentence, for what is no address of a database that is known here.
    """
    return await looked_into(url, _database)


def _database(connection: Connection) -> Database:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # types that SQLAlchemy does not know are no matter here
        inspector = inspect(connection)
        bare = [each for schema in _schemas(inspector) for each in _tables(inspector, schema)]
        if connection.dialect.name == "sqlite":
            bare = [*_numbered(bare, connection)]
        until = time.monotonic() + PATIENCE_IN_ALL
        looked = [looked_at(connection, each, until) for each in bare]
        sequences = _sequences(inspector)
    return Database(connection.dialect.name, tuple(looked), sequences)


def _numbered(bare: Iterable[Table], connection: Connection) -> Iterator[Table]:
    """The tables, each key that SQLite numbers with a default."""
    found = {(table, column) for table, column in connection.execute(_NUMBERED_BY_SQLITE)}
    for each in bare:
        columns = [
            replace(column, has_default=True) if (each.name, column.name) in found else column
            for column in each.columns
        ]
        yield replace(each, columns=tuple(columns))


def _schemas(inspector: Inspector) -> Iterator[str | None]:
    """The account's own schema, and those beside it that are not the engine's."""
    yield None
    if inspector.dialect.name in ("postgresql", "mssql"):
        own = inspector.default_schema_name
        theirs = {"information_schema", "sys", "guest", "INFORMATION_SCHEMA", own}
        for name in inspector.get_schema_names():
            if name not in theirs and not name.startswith(("pg_", "db_")):
                yield name


def _sequences(inspector: Inspector) -> tuple[str, ...]:
    try:
        return tuple(inspector.get_sequence_names())
    except (NotImplementedError, SQLAlchemyError):
        return ()


def _tables(inspector: Inspector, schema: str | None) -> Iterator[Table]:
    keys = inspector.get_multi_pk_constraint(schema=schema)
    foreign = inspector.get_multi_foreign_keys(schema=schema)
    indexes = inspector.get_multi_indexes(schema=schema)
    for place, columns in inspector.get_multi_columns(schema=schema).items():
        unique = [each["column_names"] for each in indexes.get(place, []) if each["unique"]]
        yield Table(
            name=place[1],
            schema=schema,
            columns=tuple(_column(each) for each in columns),
            key=_key(keys.get(place)),
            foreign_keys=tuple(_foreign_key(each) for each in foreign.get(place, [])),
            unique=tuple(tuple(map(str, each)) for each in unique),
        )


def _key(found: Any) -> tuple[str, ...]:
    return tuple(found["constrained_columns"]) if found else ()


def _foreign_key(found: Mapping[str, Any]) -> ForeignKey:
    columns, targets = found["constrained_columns"], found["referred_columns"]
    return ForeignKey(tuple(columns), found["referred_table"], tuple(targets))


def _column(found: Mapping[str, Any]) -> Column:
    kind = found["type"]
    is_enum = isinstance(kind, types.Enum)
    return Column(
        name=found["name"],
        kind=_kind(kind),
        nullable=bool(found["nullable"]),
        has_default=bool(found.get("default"))
        or found.get("autoincrement") is True
        or bool(found.get("identity"))
        or bool(found.get("computed")),
        zoned=bool(getattr(kind, "timezone", False)),
        length=getattr(kind, "length", None),
        codes=tuple(kind.enums) if is_enum and hasattr(kind, "enums") else (),
    )


def _kind(kind: types.TypeEngine[Any]) -> str:
    if isinstance(kind, BIT) and (kind.length or 1) > 1:
        return "integer"
    if type(kind).__name__ in ("TINYINT", "BIT") and getattr(kind, "display_width", 1) == 1:
        return "boolean"
    return next((name for each, name in _KINDS if isinstance(kind, each)), "other")
