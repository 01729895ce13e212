"""The store in an SQLite file: write-ahead log, every commit on disk before it counts."""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, event, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from gateway.store.base import Store, StoreError

WAIT_MS = 5_000
_PRAGMAS = (
    f"PRAGMA busy_timeout = {WAIT_MS}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
)


class SqliteStore(Store):
    """One file, for one machine."""

    def __init__(self, place: str | Path) -> None:
        path = str(place) if isinstance(place, Path) else make_url(place).database or ""
        url = URL.create("sqlite+aiosqlite", database=path)
        super().__init__(create_async_engine(url), path)
        event.listen(self.engine.sync_engine, "connect", _prepare)

    async def migrate(self) -> None:
        """As every store; a new file is its owner's alone, since bookings hold what was booked."""
        # where it cannot be made, SQLite says so in its own words
        with suppress(OSError):
            os.close(os.open(self.place, os.O_CREAT | os.O_EXCL, 0o600))
        await super().migrate()

    def explain(self, error: Exception) -> StoreError:
        """SQLite's own names of errors tell the remedy."""
        orig = error.orig if isinstance(error, DBAPIError) else error
        name = getattr(orig, "sqlite_errorname", "") or ""
        for prefix, sentence in _REMEDIES.items():
            if name.startswith(prefix):
                return StoreError(f"{self.place} {sentence}")
        if not Path(self.place).parent.is_dir():
            return StoreError(f"{self.place} can't be made: its folder does not exist")
        return StoreError(f"{self.place} can't be used: {orig}")


_REMEDIES = {
    "SQLITE_BUSY": "is locked by another process: end that one, or wait for it",
    "SQLITE_LOCKED": "is locked by another process: end that one, or wait for it",
    "SQLITE_NOTADB": "is no SQLite database: restore a backup, or name another file",
    "SQLITE_CORRUPT": "is damaged: restore a backup",
    "SQLITE_CANTOPEN": "can't be opened: does its folder exist, and may this user write there?",
    "SQLITE_READONLY": "can't be written: give this user the right to write the file and folder",
    "SQLITE_FULL": "can't be written: the disk is full",
}


def _prepare(connection: Any, _: object) -> None:
    try:
        for pragma in _PRAGMAS:
            cursor = connection.cursor()
            cursor.execute(pragma)
            cursor.close()
    except sqlite3.Error:
        connection.close()
        raise
