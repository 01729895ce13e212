"""SQL Server, through its maker's own driver, which blocks: a few threads with a connection each.

The smallest rights that an account needs, in the clinic's database:

    GRANT SELECT ON every table that the mapping reads TO gateway;
    GRANT INSERT, UPDATE ON the tables that a booking writes TO gateway;

A read is one snapshot where the database allows it:
ALTER DATABASE clinic SET ALLOW_SNAPSHOT_ISOLATION ON. There is no transaction that cannot write:
a read is always rolled back.
"""

import threading
import time
from contextlib import suppress
from math import ceil
from typing import Any

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from adapters.base import AdapterError
from adapters.sql.engines.base import (
    BOOKERS,
    UNTIL,
    Kind,
    T,
    Work,
    failed,
)
from adapters.sql.engines.mssql_speech import MssqlSpeech
from adapters.sql.engines.threads import ThreadedEngine

# Messages in words that are known, dates year first, no counts between the results.
SESSION = (
    "SET LANGUAGE us_english; SET DATEFORMAT ymd; SET NOCOUNT ON; SET XACT_ABORT ON;"
    " SET TRANSACTION ISOLATION LEVEL {}"
)
_SNAPSHOTS = text("SELECT snapshot_isolation_state FROM sys.databases WHERE database_id = DB_ID()")
_TRIES = 3


class MssqlEngine(ThreadedEngine):
    """Threads as for SQLite; the driver stops a statement that takes too long."""

    speech = MssqlSpeech()
    _ask = text("SELECT 1")

    def __init__(self, address: URL, *, timeout: float, booking_timeout: float) -> None:
        super().__init__(bookers=BOOKERS, timeout=timeout, booking_timeout=booking_timeout)
        self._engine = create_engine(
            address.set(drivername="mssql+mssqlpython"),
            isolation_level="AUTOCOMMIT",
            poolclass=NullPool,
        )
        self._local = threading.local()
        self._opened: set[Connection] = set()

    async def aclose(self) -> None:
        await super().aclose()
        for connection in self._opened:
            connection.close()
        self._engine.dispose()

    def _read(self, work: Work[T], deadline: float) -> T:
        """Once more on a fresh connection where the thread's own was dead."""
        for _ in range(_TRIES):
            stage = _Stage()
            try:
                return self._transact(work, deadline, stage, booking=False)
            except SQLAlchemyError as error:
                if not (self._down(error) and stage.reused and time.monotonic() < deadline):
                    raise self._translated(error, stage, booking=False) from error
        raise AssertionError("a fresh connection is not reused")

    def _book(self, work: Work[T], deadline: float) -> T:
        """Once more after a deadlock, which left nothing."""
        tries = 0
        while True:
            tries += 1
            stage = _Stage()
            try:
                return self._transact(work, deadline, stage, booking=True)
            except SQLAlchemyError as error:
                dead = self._down(error) and stage.reused and not stage.begun
                again = self._kind(error) is Kind.AGAIN and tries < _TRIES
                if not (dead or again) or time.monotonic() >= deadline:
                    raise self._translated(error, stage, booking=True) from error

    def _transact(self, work: Work[T], deadline: float, stage: "_Stage", *, booking: bool) -> T:
        stage.reused = getattr(self._local, "connection", None) is not None
        try:
            connection = self._connection(deadline, booking=booking)
            connection.exec_driver_sql("BEGIN TRANSACTION")
            stage.begun = True
            result = work(connection)
            stage.committing = booking
            connection.exec_driver_sql("COMMIT" if booking else "ROLLBACK")
        except BaseException as error:
            self._leave(keep=isinstance(error, AdapterError))
            raise
        return result

    def _connection(self, deadline: float, *, booking: bool) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._engine.connect()
            self._local.connection = connection
            self._opened.add(connection)
            # nosemgrep: sql-is-never-put-together-as-text - constants of ours
            connection.exec_driver_sql(SESSION.format("READ COMMITTED"))
            if not booking and connection.execute(_SNAPSHOTS).scalar() == 1:
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL SNAPSHOT")
        left = max(0.1, deadline - time.monotonic())
        connection.info[UNTIL] = deadline
        raw: Any = connection.connection.driver_connection
        raw.timeout = ceil(left)
        # nosemgrep: sql-is-never-put-together-as-text - a number of ours
        connection.exec_driver_sql(f"SET LOCK_TIMEOUT {int(left * 1000)}")
        return connection

    def _leave(self, *, keep: bool) -> None:
        """Undo; a connection in doubt is given up."""
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            return
        if keep:
            with suppress(SQLAlchemyError):
                connection.exec_driver_sql("IF @@TRANCOUNT > 0 ROLLBACK")
                return
        self._opened.discard(connection)
        self._local.connection = None
        with suppress(SQLAlchemyError):
            connection.invalidate()
            connection.close()

    def _kind(self, error: SQLAlchemyError) -> Kind:
        return self.speech.kind(error) if isinstance(error, DBAPIError) else Kind.OTHER

    def _down(self, error: SQLAlchemyError) -> bool:
        return self._kind(error) is Kind.DOWN

    def _translated(
        self, error: SQLAlchemyError, stage: "_Stage", *, booking: bool
    ) -> AdapterError:
        code = type(error).__name__
        if isinstance(error, DBAPIError):
            code = self.speech.code(error)
        return failed(self._kind(error), code, booking=booking, committing=stage.committing)


class _Stage:
    """How far a transaction has come."""

    def __init__(self) -> None:
        self.reused = self.begun = self.committing = False
