"""INSERT ... ON CONFLICT, which every database of ours has and SQLAlchemy spells per dialect."""

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

Adding = postgresql.Insert | sqlite.Insert


def adding(connection: AsyncConnection, table: Table) -> Adding:
    """An insert that can say what happens to a row that is there already."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)
