"""MySQL and MariaDB, through asyncmy: values cross as the server writes them.

The smallest rights that an account needs (no global ones at all):

    GRANT SELECT ON clinic.each_table_that_the_mapping_reads TO 'gateway'@'its host';
    GRANT INSERT, UPDATE ON clinic.each_table_that_a_booking_writes TO 'gateway'@'its host';

Its own statements an account may always stop (KILL).
"""

import asyncio
from contextlib import suppress
from math import ceil
from typing import Any

import asyncmy
from asyncmy.constants import FIELD_TYPE
from asyncmy.converters import conversions
from asyncmy.errors import MySQLError
from sqlalchemy import Connection, event, text
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adapters.sql.engines.explained import explaining
from adapters.sql.engines.mysql_speech import BEGIN_READ, LOCKS, MysqlSpeech
from adapters.sql.engines.plain import plain_number
from adapters.sql.engines.pooled import PooledEngine

_LIMIT = "clinic_limit"
_THREAD = "clinic_thread"
# Seconds for a connection that is made only to stop another.
_STOPPING = 2
_WHOLE = (
    FIELD_TYPE.TINY,
    FIELD_TYPE.SHORT,
    FIELD_TYPE.LONG,
    FIELD_TYPE.LONGLONG,
    FIELD_TYPE.INT24,
    FIELD_TYPE.YEAR,
)
# Dates and times have no decoder: they stay the server's texts, zero dates too.
_CONVERSIONS: dict[Any, Any] = {
    **{kind: encode for kind, encode in conversions.items() if not isinstance(kind, int)},
    **dict.fromkeys(_WHOLE, int),
    FIELD_TYPE.FLOAT: float,
    FIELD_TYPE.DOUBLE: float,
    FIELD_TYPE.DECIMAL: plain_number,
    FIELD_TYPE.NEWDECIMAL: plain_number,
}
_RELEASE = text("DO RELEASE_LOCK(:name)")


def open_mysql(address: URL, *, timeout: float, booking_timeout: float) -> PooledEngine:
    return PooledEngine(Mysql(address), timeout=timeout, booking_timeout=booking_timeout)


class Mysql:
    """The Driver of MySQL and MariaDB; TLS is asked for with ?ssl_ca=/path/of/ca.pem."""

    begin_read = BEGIN_READ
    begin_booking = "START TRANSACTION READ WRITE"

    def __init__(self, address: URL) -> None:
        self.speech = MysqlSpeech()
        self._address = address.set(drivername="mysql+asyncmy")
        self._arguments: dict[str, Any] = {}

    def pool(self, size: int, *, booking: bool) -> AsyncEngine:
        """As Driver says; the isolation is the session's, for all of a pool's transactions."""
        # what the desk commits meanwhile is seen when a booking looks again
        level = "READ COMMITTED" if booking else "REPEATABLE READ"
        engine = create_async_engine(
            self._address,
            isolation_level="AUTOCOMMIT",
            pool_size=size,
            max_overflow=0,
            pool_reset_on_return=None,
            connect_args={
                "charset": "utf8mb4",
                "conv": _CONVERSIONS,
                "init_command": f"SET SESSION TRANSACTION ISOLATION LEVEL {level}",
            },
        )
        explaining(engine.sync_engine)
        event.listen(engine.sync_engine, "do_connect", self._remember)
        event.listen(engine.sync_engine, "connect", _number)
        return engine

    def _remember(self, *call: Any) -> None:
        """How a connection is made: another one may have to stop it."""
        self._arguments = dict(call[3])

    def limit(self, connection: Connection, seconds: float) -> None:
        tenths = int(seconds * 10) + 1
        if connection.info.get(_LIMIT) == tenths:  # most calls have all of their time left
            return
        mariadb = connection.dialect.is_mariadb  # type: ignore[attr-defined]
        longest = (
            f"max_statement_time = {tenths / 10}"
            if mariadb
            else f"max_execution_time = {tenths * 100}"
        )
        wait = ceil(tenths / 10)
        # nosemgrep: sql-is-never-put-together-as-text - numbers of ours
        connection.exec_driver_sql(
            f"SET SESSION {longest}, innodb_lock_wait_timeout = {wait}, lock_wait_timeout = {wait}"
        )
        connection.info[_LIMIT] = tenths

    def settle(self, connection: Connection) -> None:
        """Named locks are the session's: they are let go when the transaction is over."""
        names = connection.info.get(LOCKS, [])
        while names:
            connection.execute(_RELEASE, {"name": names[-1]})
            names.pop()

    async def stop(self, info: dict[Any, Any]) -> None:
        """A statement runs on when its client is gone: another connection has to end it."""
        thread = info.get(_THREAD)
        if thread is None:
            return
        with suppress(OSError, MySQLError):
            async with asyncio.timeout(_STOPPING):
                other = await asyncmy.connect(**self._arguments)
                try:
                    await other.query(  # type: ignore[no-untyped-call]  # it has no types
                        f"KILL {int(thread)}"
                    )
                finally:
                    await other.ensure_closed()


def _number(connection: Any, record: Any) -> None:
    """The server's number of a new connection."""
    record.info[_THREAD] = connection.driver_connection.thread_id()
