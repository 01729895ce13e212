"""Looks at a practice database: its tables, their columns and keys, and a few rows of each.

Everything is read-only, by the connection's own mode; every statement has a limit of rows and of
time. What cannot be read of one table is left out, and the others are looked at all the same.
"""

import asyncio
import sqlite3
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Connection,
    Inspector,
    Select,
    column,
    create_engine,
    desc,
    func,
    inspect,
    literal_column,
    select,
    table,
    types,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from adapters.base import BackendUnavailable

# Rows that are looked at from either end of a table, and characters of a long text.
ROWS = 300
LONGEST = 200
# Rows in which the different codes of a column are looked for, and how many there may be.
ROWS_FOR_CODES = 20_000
CODES = 20
MOST_COUNTED = 10_000
# Seconds of one statement, and of all the looking at rows.
PATIENCE = 5.0
PATIENCE_IN_ALL = 120.0

DRIVERS = {
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
    "mysql": "mysql+asyncmy",
    "mariadb": "mysql+asyncmy",
    "mssql": "mssql+mssqlpython",
    "sqlite": "sqlite",
}
_KINDS: tuple[tuple[type[types.TypeEngine[Any]], str], ...] = (
    (types.Boolean, "boolean"),
    (types.Uuid, "uuid"),
    (types.Integer, "integer"),
    (types.Numeric, "number"),
    (types.DateTime, "datetime"),
    (types.Date, "date"),
    (types.Time, "time"),
    (types.LargeBinary, "bytes"),
    (types.JSON, "json"),
    (types.String, "text"),
)
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; `codes` are its different values where they are few and short, else empty."""

    name: str
    kind: str
    nullable: bool = True
    has_default: bool = False
    zoned: bool = False
    length: int | None = None
    codes: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns that refer to another table's."""

    columns: tuple[str, ...]
    table: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; `rows` is counted up to MOST_COUNTED, `seen` are rows in the columns' order."""

    name: str
    schema: str | None = None
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    rows: int = 0
    seen: tuple[Row, ...] = field(default=(), repr=False)

    def column(self, name: str) -> Column:
        return next(each for each in self.columns if each.name == name)

    def values(self, name: str) -> tuple[Any, ...]:
        """The values that were seen in a column, blanks among them."""
        place = [each.name for each in self.columns].index(name)
        return tuple(row[place] for row in self.seen)


@dataclass(frozen=True, slots=True)
class Database:
    """What was found; `dialect` is SQLAlchemy's name of the engine."""

    dialect: str
    tables: tuple[Table, ...]
    sequences: tuple[str, ...] = ()


async def reflect(url: str) -> Database:
    """The database at that address; BackendUnavailable, without its words, where it can't be had.

    ValueError, in a sentence, for what is no address of a database that is known here.
    """
    address = _address(url)
    try:
        if address.drivername in ("sqlite", "mssql+mssqlpython"):
            return await asyncio.to_thread(_reflect_in_thread, address)
        return await _reflect_async(address)
    except ImportError as error:
        extra = {"p": "postgres", "m": "mysql"}[address.drivername[0]]
        extra = "mssql" if address.drivername.startswith("mssql") else extra
        raise BackendUnavailable(
            f"the driver is not installed: pip install 'clinic-gateway[{extra}]'"
        ) from error
    except (SQLAlchemyError, OSError, TimeoutError) as error:
        raise _unavailable(address, error) from error
    except Exception as error:
        # drivers say by errors of their own that they were not let in
        if type(error).__module__.split(".")[0] not in {"asyncpg", "asyncmy", "pymysql"}:
            raise
        raise _unavailable(address, error) from error


def _unavailable(address: URL, error: Exception) -> BackendUnavailable:
    place = address.host or address.database or ""
    said = type(getattr(error, "orig", None) or error).__name__
    return BackendUnavailable(
        f"{place} does not answer as a {address.get_backend_name()} database ({said});"
        " look at its address, and whether the account may read"
    )


def _address(url: str) -> URL:
    known = ", ".join(name for name in DRIVERS if name != "postgres")
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError(f"this is no address of a database: it begins with {known}") from None
    name = address.get_backend_name()
    if name not in DRIVERS:
        raise ValueError(f"{name} is no database that is known here: use one of {known}")
    return address.set(drivername=DRIVERS[name])


async def _reflect_async(address: URL) -> Database:
    is_postgres = address.drivername.startswith("postgresql")
    limits: dict[str, Any] = {"connect_timeout": PATIENCE}
    if is_postgres:
        timeout = str(int(PATIENCE * 1000))
        session = {"default_transaction_read_only": "on", "statement_timeout": timeout}
        limits = {"timeout": PATIENCE, "server_settings": session}
    engine = create_async_engine(
        address, isolation_level="AUTOCOMMIT", connect_args=limits, hide_parameters=True
    )
    try:
        async with engine.connect() as connection:
            if not is_postgres:
                await connection.run_sync(_limit_mysql)
            return await connection.run_sync(_database)
    finally:
        await engine.dispose()


def _limit_mysql(connection: Connection) -> None:
    connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
    version = connection.exec_driver_sql("SELECT VERSION()").scalar() or ""
    is_mariadb = "mariadb" in str(version).lower()
    limit = (
        f"max_statement_time = {PATIENCE}"
        if is_mariadb
        else f"max_execution_time = {int(PATIENCE * 1000)}"
    )
    connection.exec_driver_sql(f"SET SESSION {limit}")


def _reflect_in_thread(address: URL) -> Database:
    if address.drivername == "sqlite":
        path = Path(address.database or "")
        if not path.is_file():
            raise BackendUnavailable(f"{path} does not exist; name the file of the database")
        engine = create_engine("sqlite://", creator=lambda: _open_sqlite(path))
    else:
        engine = create_engine(address, isolation_level="AUTOCOMMIT", hide_parameters=True)
    try:
        with engine.connect() as connection:
            return _database(connection)
    finally:
        engine.dispose()


def _open_sqlite(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    connection.execute("PRAGMA query_only = 1")
    until = time.monotonic() + PATIENCE_IN_ALL
    connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    return connection


def _database(connection: Connection) -> Database:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # types that SQLAlchemy does not know are no matter here
        inspector = inspect(connection)
        bare = [each for schema in _schemas(inspector) for each in _tables(inspector, schema)]
        until = time.monotonic() + PATIENCE_IN_ALL
        looked = [_looked_at(connection, each, until) for each in bare]
        sequences = _sequences(inspector)
    return Database(connection.dialect.name, tuple(looked), sequences)


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
    if type(kind).__name__ in ("TINYINT", "BIT") and getattr(kind, "display_width", 1) == 1:
        return "boolean"
    return next((name for each, name in _KINDS if isinstance(kind, each)), "other")


def _looked_at(connection: Connection, bare: Table, until: float) -> Table:
    """The table with what some of its rows hold; without, where they can't be read in time."""
    if time.monotonic() > until:
        return bare
    try:
        seen, rows = _rows(connection, bare), _counted(connection, bare)
        columns = [_with_codes(connection, bare, seen, place) for place in range(len(bare.columns))]
    except SQLAlchemyError:
        return bare
    return _filled(bare, columns, seen, rows)


def _filled(bare: Table, columns: list[Column], seen: tuple[Row, ...], rows: int) -> Table:
    return Table(
        name=bare.name,
        schema=bare.schema,
        columns=tuple(columns),
        key=bare.key,
        foreign_keys=bare.foreign_keys,
        unique=bare.unique,
        rows=rows,
        seen=seen,
    )


def _rows(connection: Connection, bare: Table) -> tuple[Row, ...]:
    """Rows from both ends of the table: the oldest are often unlike the newest."""
    statement = select(*(_shortened(each) for each in bare.columns)).select_from(_named(bare))
    first = connection.execute(statement.limit(ROWS)).all()
    if len(first) < ROWS or len(bare.key) != 1:
        return tuple(map(tuple, first))
    last = connection.execute(statement.order_by(desc(column(bare.key[0]))).limit(ROWS)).all()
    return tuple(map(tuple, [*first, *last]))


def _shortened(each: Column) -> Any:
    if each.kind in ("bytes", "json", "other"):
        return literal_column("NULL")
    if each.kind == "text" and not each.codes and (each.length or LONGEST + 1) > LONGEST:
        return func.substr(column(each.name), 1, LONGEST)
    return column(each.name)


def _named(bare: Table) -> Any:
    return table(bare.name, *(column(each.name) for each in bare.columns), schema=bare.schema)


def _counted(connection: Connection, bare: Table) -> int:
    some: Select[Any] = (
        select(literal_column("1").label("one")).select_from(_named(bare)).limit(MOST_COUNTED)
    )
    return int(connection.execute(select(func.count()).select_from(some.subquery())).scalar() or 0)


def _with_codes(connection: Connection, bare: Table, seen: tuple[Row, ...], place: int) -> Column:
    """The column with all its codes, where the rows that were seen look as if it had some."""
    each = bare.columns[place]
    values = {row[place] for row in seen if row[place] is not None} if _codable(each) else set()
    if each.codes or not values or len(values) > CODES or max(map(_width, values)) > 20:
        return each
    found = connection.execute(_different(bare, each)).scalars().all()
    codes = [value for value in found if value is not None]
    if len(codes) > CODES or any(_width(value) > 20 for value in codes):
        return each
    return Column(
        name=each.name,
        kind=each.kind,
        nullable=each.nullable,
        has_default=each.has_default,
        zoned=each.zoned,
        length=each.length,
        codes=tuple(sorted(codes, key=str)),
    )


def _codable(each: Column) -> bool:
    return each.kind in ("text", "integer", "boolean")


def _width(value: Any) -> int:
    return len(str(value))


def _different(bare: Table, each: Column) -> Select[Any]:
    named = _named(bare)
    some = select(named.c[each.name].label("code")).limit(ROWS_FOR_CODES).subquery()
    return select(some.c.code).distinct().limit(CODES + 1)
