"""Looks at a few rows of each table, and at the codes of columns that have few values.

Every statement has a limit of rows. What cannot be read of one table is left out.
"""

import time
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Select, column, desc, func, literal_column, select, table
from sqlalchemy.exc import SQLAlchemyError

from adapters.draft.database import CODES, Column, Row, Table
from adapters.values.convert import bits

# Rows that are looked at from either end of a table, and characters of a long text.
ROWS = 300
LONGEST = 200
# Rows in which the different codes of a column are looked for.
ROWS_FOR_CODES = 20_000
MOST_COUNTED = 10_000


def looked_at(connection: Connection, bare: Table, until: float) -> Table:
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
        return tuple(map(_read, first))
    last = connection.execute(statement.order_by(desc(column(bare.key[0]))).limit(ROWS)).all()
    return tuple(map(_read, [*first, *last]))


def _read(row: Iterable[Any]) -> Row:
    """The row as the gateway reads it: what a BIT column has is a number."""
    return tuple(map(bits, row))


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
    codes = [bits(value) for value in found if value is not None]
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
