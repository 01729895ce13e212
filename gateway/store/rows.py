"""Rows as others have them: read as members of a thing, and added to by several processes."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Table, case
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store.tables import adding

# So many rows go to the driver at once.
ROWS_AT_ONCE = 2_000


def members(row: Any) -> dict[str, Any]:
    """A row's values by plain names, as what converts them wants them."""
    return {str(name): value for name, value in row._asdict().items()}


async def add_sums(
    connection: AsyncConnection, table: Table, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Add to what is there; `first` and `last` become the outermost. A row has all columns.

    In the order of the key: so two never wait for each other, and pages lie side by side.
    """
    statement = adding(connection, table)
    new, old = statement.excluded, table.c
    changes = {column.name: column + new[column.name] for column in old if not column.primary_key}
    if "first" in old:
        changes["first"] = case((new.first < old.first, new.first), else_=old.first)
        changes["last"] = case((new.last > old.last, new.last), else_=old.last)
    statement = statement.on_conflict_do_update(
        index_elements=list(table.primary_key), set_=changes
    )
    words = str(statement.compile(dialect=connection.dialect))
    for at in range(0, len(rows), ROWS_AT_ONCE):
        # as tuples to the driver: to bind a row costs else ten times what the database needs for it
        await connection.exec_driver_sql(words, rows[at : at + ROWS_AT_ONCE])
