"""Brings a made-up practice into a real server: a new database, its schema, then rows in bulk."""

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

Row = Sequence[Any]
Poured = Iterable[tuple[str, Row]]
Write = Callable[[str, Sequence[Row]], Awaitable[None]]
AT_ONCE = 20_000


def statements(schema: Path) -> tuple[list[str], list[str]]:
    """A schema file's statements: the tables, and what is better made after the rows."""
    text = re.sub("--(?! indexes$).*", "", schema.read_text("utf-8"), flags=re.MULTILINE)
    tables, indexes = (
        [each.strip() for each in part.split(";") if each.strip()]
        for part in text.split("-- indexes")
    )
    return tables, indexes


def address(url: str) -> dict[str, Any]:
    """What a driver wants to know of a server's address; the database may be left out."""
    parts = urlsplit(url)
    found = {
        "host": parts.hostname or "127.0.0.1",
        "port": parts.port,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": parts.path.strip("/"),
    }
    return {name: value for name, value in found.items() if value}


async def pour(rows: Poured, write: Write) -> None:
    """Hand each table's rows to `write` in big batches, in the order in which they come."""
    waiting: dict[str, list[Row]] = defaultdict(list)
    for table, row in rows:
        batch = waiting[table]
        batch.append(row)
        if len(batch) == AT_ONCE:
            await write(table, batch)
            waiting[table] = []
    for table, batch in waiting.items():
        if batch:
            await write(table, batch)
