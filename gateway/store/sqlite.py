"""The store in an SQLite file: a write-ahead log, and every commit on disk before it counts."""

import asyncio
import errno
import os
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from shutil import disk_usage
from typing import Any

import aiosqlite
from sqlalchemy import select
from sqlalchemy.engine import URL, make_url

from gateway.identity import reason_of
from gateway.store.base import Store, StoreError
from gateway.store.engine import AsyncConnection, create_async_engine
from gateway.store.tables import meta

WAIT_MS = 5_000
PING_MS = 1_000
# Bytes that must be free on the file's disk: the log of a busy moment takes as many.
ROOM = 1024 * 1024
# Rows that a cursor fetches at once.
ROWS_AT_ONCE = 64
# Seconds before a file that was busy is tried again.
PAUSE = 0.02
_PRAGMAS = (
    f"PRAGMA busy_timeout = {WAIT_MS}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    # what is deleted, such as the answer to a booking, is overwritten
    "PRAGMA secure_delete = ON",
)


def file_of(url: str) -> Path:
    """Returns the file that an address names; raises StoreError where it names none."""
    address = make_url(url)
    if not address.database or address.query:
        raise StoreError(
            f"store: {url} must name a file, such as sqlite:////srv/gateway/gateway.db,"
            " with %3F for a ? in its path"
        )
    return Path(address.database)


def existing(path: Path) -> str:
    """Returns the file's address for SQLite, which then makes no file where there is none."""
    return f"{path.absolute().as_uri()}?mode=rw"


class _SyncConnection(sqlite3.Connection):
    """A connection that is set up when it is opened, and rolls back when it is closed.

    SQLite keeps a transaction open until its last statement is freed. After a cancellation the
    traceback may hold that statement: until it is collected, no other connection can write.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        try:
            for pragma in _PRAGMAS:
                self._set(pragma)
        except sqlite3.Error:
            self.close()
            raise

    def _set(self, pragma: str) -> None:
        """Runs a pragma; tries again where others begin a new file too, as SQLite does not."""
        deadline = time.monotonic() + WAIT_MS / 1000
        while True:
            try:
                self.execute(pragma).close()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() >= deadline:
                    raise
                time.sleep(PAUSE)
            else:
                return

    def close(self) -> None:
        """Rolls back what is not committed, and closes; a second close does nothing."""
        with suppress(sqlite3.Error):
            self.rollback()
        super().close()


class _AsyncConnection(aiosqlite.Connection):
    """A connection that stops its thread once.

    aiosqlite waits forever for a second stop, and SQLAlchemy asks for one when a call is cancelled
    more than once.
    """

    _stopped: asyncio.Future[Any] | None = None

    def stop(self) -> asyncio.Future[Any] | None:
        """Returns a future that is done once the connection is closed; None where no loop runs."""
        if self._stopped is None:
            self._stopped = super().stop()
        return self._stopped

    async def close(self) -> None:
        """Closes the connection after the work it was given; a second close waits for that too."""
        if stopped := self.stop():
            await asyncio.shield(stopped)


class SqliteStore(Store):
    """The store in one file, for one machine."""

    def __init__(self, path: Path) -> None:
        # made of its parts, so that nothing in a path is taken for a part of the address
        address = URL.create("sqlite+aiosqlite", database=str(path))
        super().__init__(create_async_engine(address, async_creator=self._open), str(path))
        # the file that the open connections have: its name may lead to another one later
        self._file: tuple[int, int] | None = None

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """Opens a transaction as every store; raises StoreError where the file was replaced."""
        self._check_place()
        async with super().begin() as connection:
            yield connection

    async def ping(self) -> None:
        """Raises StoreError where the store cannot be read, or not be written within a second."""
        with suppress(OSError):  # a statement that needs the file says what is wrong
            if disk_usage(Path(self.place).parent).free < ROOM:
                raise StoreError(f"{self.place} has no room to grow: free some of its disk")
        async with self.begin() as connection:
            try:
                # nosemgrep: sql-is-never-put-together-as-text - a number of ours
                await connection.exec_driver_sql(f"PRAGMA busy_timeout = {PING_MS}")
                await connection.exec_driver_sql("BEGIN IMMEDIATE")
                await connection.execute(select(meta.c.name).limit(1))
                await connection.exec_driver_sql("ROLLBACK")
            finally:
                await connection.exec_driver_sql(_PRAGMAS[0])

    async def copy_to(self, path: Path) -> bool:
        """Copies the store as every store, while others write, to a file for its owner alone."""
        self._check_place()
        try:
            await asyncio.to_thread(_copy, Path(self.place), path)
        except sqlite3.Error as error:
            number = _OF_A_COPY.get(error.sqlite_errorname)
            if number is None:
                raise self.explain(error) from error
            raise OSError(number, os.strerror(number), str(path)) from error
        return True

    def mark(self) -> object:
        """Returns times and sizes of file and log; two commits within one tick look alike."""
        with suppress(OSError):
            files = [Path(f"{self.place}{suffix}").stat() for suffix in ("", "-wal")]
            return [(file.st_ino, file.st_mtime_ns, file.st_size) for file in files]
        return None

    def _check_place(self) -> None:
        try:
            status = Path(self.place).stat()
        except OSError as error:
            if self._file is not None:
                raise StoreError(
                    f"{self.place} is gone: put that very file back if somebody moved it; else stop"
                    " the gateway and restore a backup (`clinic-gateway state restore DIR`)"
                ) from error
            return
        if self._file is None:
            self._file = (status.st_dev, status.st_ino)
        elif self._file != (status.st_dev, status.st_ino):
            raise StoreError(
                f"{self.place} was replaced by another file: put the former one back; or, where"
                " this one is its restored backup, restart the gateway"
            )

    async def version(self) -> str | None:
        """Returns the version as every store; makes no file, and does not touch an empty one."""
        try:
            has_bytes = Path(self.place).stat().st_size > 0  # noqa: ASYNC240
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StoreError(
                f"{self.place} cannot be looked at: {reason_of(error)}; run this as the gateway's"
                " own user"
            ) from error
        return await super().version() if has_bytes else None

    async def migrate(self, *, make: bool = True) -> None:
        """Migrates as every store; a new file is its owner's alone, as it holds what was booked."""
        if make:  # where it cannot be made, SQLite says so in its own words
            with suppress(OSError):
                _make(Path(self.place))
        await super().migrate(make=make)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[AsyncConnection]:
        """Opens a transaction as every store; holds the write lock before anything is read."""
        async with self.begin() as connection:
            await connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    async def _open(self) -> aiosqlite.Connection:
        place = existing(Path(self.place))
        connect = partial(sqlite3.connect, place, uri=True, factory=_SyncConnection)
        connection = _AsyncConnection(connect, ROWS_AT_ONCE)
        try:
            return await connection
        except RuntimeError:  # its thread cannot be started, and need not be stopped
            raise
        except BaseException:  # its thread must end where the file cannot be opened
            await connection.close()
            raise

    def remedy(self, error: BaseException) -> str:
        """Returns the sentence for SQLite's own name of the error."""
        name = getattr(error, "sqlite_errorname", "") or ""
        for prefix, sentence in _REMEDIES.items():
            if name.startswith(prefix):
                return sentence
        if not Path(self.place).parent.is_dir():
            return "can't be made: its folder does not exist"
        return name and f"can't be used ({name})"


_REMEDIES = {
    "SQLITE_BUSY": "is locked by another process: end that one, or wait for it",
    "SQLITE_LOCKED": "is locked by another process: end that one, or wait for it",
    "SQLITE_NOTADB": "is no SQLite database: restore a backup, or name another file",
    "SQLITE_CORRUPT": "is damaged: restore a backup",
    "SQLITE_CANTOPEN": "can't be opened: does its folder exist, and may this user write there?",
    "SQLITE_READONLY": "can't be written: give this user the right to write the file and folder",
    "SQLITE_FULL": "can't be written: the disk is full",
    "SQLITE_IOERR_SHMSIZE": "can't be opened: the disk is full",
}
# What the copy failed with: nothing is written to the live store meanwhile.
_OF_A_COPY = {
    "SQLITE_FULL": errno.ENOSPC,
    "SQLITE_IOERR_WRITE": errno.EIO,
    "SQLITE_IOERR_FSYNC": errno.EIO,
    "SQLITE_IOERR_TRUNCATE": errno.EIO,
}


def _make(path: Path) -> None:
    """Makes a new file, for its owner alone. Raises OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))


def _copy(source: Path, target: Path) -> None:
    _make(target)
    with (
        closing(sqlite3.connect(existing(source), uri=True, timeout=WAIT_MS / 1000)) as live,
        closing(sqlite3.connect(existing(target), uri=True)) as copy,
    ):
        live.backup(copy)
