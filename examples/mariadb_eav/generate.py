"""Makes the MariaDB practice: a new database, its tables, and rows in bulk."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import asyncmy

from examples.loading import Row, address, pour, statements
from examples.mariadb_eav.bills import bill_rows
from examples.mariadb_eav.parties import party_rows, stock_rows
from examples.mariadb_eav.visits import diary_rows, visit_rows
from examples.practice import Practice

SCHEMA = Path(__file__).with_name("schema.sql")
# Zero dates are let in by this system's own installer; a packet bounds what one INSERT may hold.
MODE = "SET sql_mode = 'STRICT_TRANS_TABLES', unique_checks = 0, foreign_key_checks = 0"
COLUMNS = {  # where not all of a table's columns are given
    "links": "`from`, `to`, role, since, until",
    "party_fields": "party_id, `key`, type, value",
    "contacts": "party_id, kind, value, `line-2`, postcode, town, preferred, active,"
    " `date-created`",
    "acts": "act_id, type, number, day, time, length, status, urgent, active, title, follows,"
    " `date-created`",
    "participations": "act_id, role, party_id, `act-start`, `act-end`, active",
    "act_fields": "act_id, `key`, type, value",
    "calendar": "act_id, party_id, `left`, `right`, day",
    "work_hours": "party_id, `day-no`, `from`, `to`, active",
    "absences": "party_id, `first-day`, `last-day`",
    "ledger_lines": "site, number, `text`, quantity, price, `vat-rate`, total, party_id",
    "ledger_payments": "site, number, day, method, amount",
    "product_fields": "code, `key`, type, value",
    "batches": "product, number, `left`, expires",
}


def generate(url: str, *, scale: float = 1.0, today: date | None = None, seed: int = 1) -> None:
    """Make the database that `url` names and fill it as it looks on `today`.

    The same arguments give the same rows. Not to be called where an event loop runs.
    """
    practice = Practice(today or datetime.now(UTC).date(), scale, seed)
    asyncio.run(_generate(url, practice))


async def _generate(url: str, practice: Practice) -> None:
    name = address(url)["database"]
    tables, indexes = statements(SCHEMA)
    async with connected(url, database=None) as cursor:
        await cursor.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
    async with connected(url) as cursor:
        await cursor.execute(MODE)
        for statement in tables:
            await cursor.execute(statement)

        async def write(table: str, batch: Sequence[Row]) -> None:
            marks = ", ".join(["%s"] * len(batch[0]))
            named = f"({COLUMNS[table]})" if table in COLUMNS else ""
            sql = f"INSERT INTO {table} {named} VALUES ({marks})"  # noqa: S608 - our own names
            await cursor.executemany(sql, batch)
            await cursor.execute("COMMIT")

        await pour(rows(practice), write)
        for statement in indexes:
            await cursor.execute(statement)


def rows(practice: Practice) -> Iterator[tuple[str, Row]]:
    """Every table's rows."""
    return chain(
        party_rows(practice),
        stock_rows(practice),
        visit_rows(practice),
        diary_rows(practice),
        bill_rows(practice),
    )


@asynccontextmanager
async def connected(url: str, **changes: Any) -> AsyncIterator[Any]:
    """A cursor on the server that `url` names."""
    where = {**address(url), **changes}
    where["db"] = where.pop("database")
    connection = await asyncmy.connect(
        **{name: value for name, value in where.items() if value is not None}, charset="utf8mb4"
    )
    try:
        async with connection.cursor() as cursor:
            yield cursor
    finally:
        await connection.ensure_closed()
