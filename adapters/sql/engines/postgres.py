"""PostgreSQL, through asyncpg: values cross as the server writes them, statements stop in time.

The smallest rights that an account needs:

    GRANT CONNECT ON DATABASE clinic TO gateway;
    GRANT USAGE ON SCHEMA public TO gateway;
    GRANT SELECT ON every table that the mapping reads TO gateway;
    GRANT INSERT, UPDATE ON the tables that a booking writes TO gateway;
    GRANT USAGE ON the sequences of those tables TO gateway;
"""

from collections.abc import Callable
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it comes without types
from sqlalchemy import Connection, event
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adapters.base import BackendUnavailable
from adapters.sql.engines.base import as_text
from adapters.sql.engines.explained import explaining
from adapters.sql.engines.letters import ACCENTED, narrowed
from adapters.sql.engines.plain import plain_number, plain_text
from adapters.sql.engines.pooled import PooledEngine
from adapters.sql.engines.postgres_speech import PostgresSpeech

_LIMIT = "clinic_limit"
_NARROW = "clinic_narrow"
# The encodings that lack letters, by PostgreSQL's names and by Python's.
_CODECS = {
    "SQL_ASCII": "ascii",  # where a letter is so many bytes, and accents are not to be told
    "LATIN1": "latin-1",
    "LATIN2": "iso8859-2",
    "LATIN5": "iso8859-9",
    "LATIN9": "iso8859-15",
    **{f"WIN{number}": f"cp{number}" for number in range(1250, 1259)},
}
# A transaction that a lost gateway left open ends by itself.
_FORGOTTEN = "30000"


def open_postgres(address: URL, *, timeout: float, booking_timeout: float) -> PooledEngine:
    return PooledEngine(Postgres(address), timeout=timeout, booking_timeout=booking_timeout)


class Postgres:
    """The Driver of PostgreSQL; the address may carry what libpq knows: ?sslmode=require."""

    begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    # what the desk commits meanwhile is seen when a booking looks again
    begin_booking = "BEGIN ISOLATION LEVEL READ COMMITTED"

    def __init__(self, address: URL) -> None:
        self.speech = PostgresSpeech()
        dsn = address.set(drivername="postgresql")
        self._dsn = dsn.render_as_string(hide_password=False)

    def pool(self, size: int, *, booking: bool) -> AsyncEngine:
        """As Driver says; reads and bookings part with their BEGIN."""
        engine = create_async_engine(
            "postgresql+asyncpg://",
            isolation_level="AUTOCOMMIT",
            pool_size=size,
            max_overflow=0,
            pool_reset_on_return=None,
            connect_args={"async_creator_fn": self._connect},
        )
        explaining(engine.sync_engine)
        # after SQLAlchemy's own, so that these stay
        event.listen(engine.sync_engine, "connect", _set_codecs)
        event.listen(engine.sync_engine, "before_cursor_execute", _narrowed, retval=True)
        return engine

    async def _connect(self, *_: Any, **__: Any) -> Any:
        settings = {
            "application_name": "clinic-gateway",
            "idle_in_transaction_session_timeout": _FORGOTTEN,
            # a page in the middle of a list would read what is joined from its beginning
            "enable_mergejoin": "off",
        }
        try:
            return await asyncpg.connect(self._dsn, server_settings=settings)
        except (asyncpg.UndefinedObjectError, asyncpg.InvalidParameterValueError) as error:
            raise BackendUnavailable(
                "the server does not take an option that stands behind the ? of its address"
            ) from error

    def limit(self, connection: Connection, seconds: float) -> None:
        tenths = int(seconds * 10) + 1
        if connection.info.get(_LIMIT) == tenths:  # most calls have all of their time left
            return
        connection.exec_driver_sql(
            "SELECT set_config('statement_timeout', $1, false),"
            " set_config('lock_timeout', $1, false)",
            (f"{tenths}00",),
        )
        connection.info[_LIMIT] = tenths

    def settle(self, connection: Connection) -> None:
        """Nothing: advisory locks end with their transaction."""

    async def stop(self, info: dict[Any, Any]) -> None:
        """Nothing: asyncpg asks the server to stop what is cancelled."""


def _set_codecs(connection: Any, record: Any) -> None:
    connection.run_async(_codecs)
    encoding = connection.driver_connection.get_settings().server_encoding
    if encoding in _CODECS:
        record.info[_NARROW] = narrowed(_CODECS[encoding])


def _narrowed(*call: Any) -> tuple[str, Any]:
    """A server takes no statement with a letter that its database's encoding lacks."""
    connection, _, statement, parameters, *_ = call
    if ACCENTED in statement:
        for wide, narrow in connection.info.get(_NARROW, ()):
            statement = statement.replace(wide, narrow)
    return statement, parameters


async def _codecs(raw: Any) -> None:
    """Every value as the server's own text, and every parameter as a text that it reads itself."""
    for names, encode, decode in _TEXTS:
        for name in names.split():
            await raw.set_type_codec(
                name, schema="pg_catalog", encoder=encode, decoder=decode, format="text"
            )
    for name in ("text", "varchar", "bpchar", "name"):
        # as bytes: a database without an encoding holds texts in any
        await raw.set_type_codec(
            name, schema="pg_catalog", encoder=_as_bytes, decoder=as_text, format="binary"
        )


def _as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else plain_text(value).encode()


def _as_boolean(value: Any) -> str:
    return {"1": "true", "0": "false"}.get(plain_text(value), plain_text(value))


_Codec = tuple[str, Callable[[Any], str], Callable[[str], Any]]
_TEXTS: tuple[_Codec, ...] = (
    ("bool", _as_boolean, lambda shown: shown == "t"),
    ("int2 int4 int8 oid", plain_text, int),
    ("float4 float8", plain_text, float),
    ("numeric", plain_text, plain_number),
    ("date time timetz timestamp timestamptz interval", plain_text, str),
    ("uuid json jsonb xml money inet cidr macaddr bit varbit", plain_text, str),
)
