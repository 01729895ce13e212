"""INSERT ... ON CONFLICT, which every database of ours has and SQLAlchemy spells per dialect."""

from importlib import import_module
from typing import Any

from sqlalchemy import Dialect, Table
from sqlalchemy.ext.asyncio import AsyncConnection


def adding(connection: AsyncConnection, table: Table) -> Any:
    """An insert that can say what happens to a row that is there already."""
    return insert_of(connection.dialect, table)


def insert_of(dialect: Dialect, table: Table) -> Any:
    """The same; the other database's module, which takes long to import, stays out."""
    return import_module(f"sqlalchemy.dialects.{dialect.name}").insert(table)
