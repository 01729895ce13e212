"""Makes the PostgreSQL practice: a new database, its clock and tables, and rows by COPY."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from examples.loading import Row, address, pour, statements
from examples.postgres_slots.accounts import account_rows, stock_rows
from examples.postgres_slots.calendar import calendar_rows
from examples.postgres_slots.register import register_rows
from examples.postgres_slots.values import SERVER_ZONE
from examples.practice import Practice

SCHEMA = Path(__file__).with_name("schema.sql")
COLUMNS = {  # where not all of a table's columns are given
    "Appointment": (
        "Id", "No", "State", "ScheduleId", "StaffId", "PatientId", "TypeId", "StartsUtc",
        "Minutes", "Urgent", "Note", "CreatedUtc",
    ),
    "Move": ("ArticleCode", "From", "To", "Quantity", "Lot", "Expires", "AtUtc"),
}  # fmt: skip
# Sequences go on behind the rows that were copied in.
AFTER = (
    """SELECT setval(pg_get_serial_sequence('"Appointment"', 'Id'), max("Id"))
    FROM "Appointment" """,
    """SELECT setval('"AppointmentNo"', 100000 + max("Id")) FROM "Appointment" """,
    "ANALYZE",
)


def generate(url: str, *, scale: float = 1.0, today: date | None = None, seed: int = 1) -> None:
    """Make the database that `url` names and fill it as it looks on `today`.

    The same arguments give the same rows. Not to be called where an event loop runs.
    """
    practice = Practice(today or datetime.now(UTC).date(), scale, seed)
    asyncio.run(_generate(url, practice))


async def _generate(url: str, practice: Practice) -> None:
    where = address(url)
    name = where["database"]
    server = await asyncpg.connect(**{**where, "database": "postgres"})
    try:
        await server.execute(f"CREATE DATABASE \"{name}\" TEMPLATE template0 ENCODING 'UTF8'")
        await server.execute(f"ALTER DATABASE \"{name}\" SET timezone TO '{SERVER_ZONE}'")
    finally:
        await server.close()
    connection = await asyncpg.connect(**where)
    try:
        await _fill(connection, practice)
    finally:
        await connection.close()


async def _fill(connection: Any, practice: Practice) -> None:
    tables, indexes = statements(SCHEMA)
    for statement in tables:
        await connection.execute(statement)

    async def write(table: str, batch: Sequence[Row]) -> None:
        columns = COLUMNS.get(table)
        await connection.copy_records_to_table(table, records=batch, columns=columns)

    await pour(rows(practice), write)
    for statement in (*indexes, *AFTER):
        await connection.execute(statement)


def rows(practice: Practice) -> Iterator[tuple[str, Row]]:
    """Every table's rows."""
    return chain(
        register_rows(practice),
        calendar_rows(practice),
        account_rows(practice),
        stock_rows(practice),
    )
