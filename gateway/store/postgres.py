"""The store on PostgreSQL, for several machines: bounds every wait and finds dead connections.

One transaction at a time writes a row, and the next sees what that one committed. So a value that
counts up (`value = value + 1`) is right however many write at once.
"""

import asyncio
import random
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]  # it comes without types
from sqlalchemy import event, func, select, text
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import NullPool

from gateway.store.base import Store, StoreError
from gateway.store.engine import AsyncConnection, AsyncEngine, create_async_engine
from gateway.store.tables import meta

T = TypeVar("T")

# Seconds that a statement, a new connection, and a wait for a free connection may take.
STATEMENT, CONNECT, FREE = 2.0, 1.0, 0.5
# Every process has two stores, and a server takes 100 connections by default.
CONNECTIONS = 4
# Seconds that migrations may take, and that others wait for them.
PATIENCE = 600.0
LOOK_AGAIN = 0.1
# The lock under which tables are changed; its number is used for nothing else.
MIGRATING = 0x636C696E6963
# Codes of a transaction that collided with another, or met a table that was changed meanwhile.
AGAIN = frozenset({"40001", "40P01", "0A000"})
MOST_COLLISIONS = 3
# Seconds, times the number of collisions, so that transactions do not collide again.
JITTER = (0.01, 0.05)
_SETTINGS = {
    "application_name": "clinic-gateway",
    "jit": "off",
    # a gateway that stopped in the middle of a transaction lets go of its locks
    "idle_in_transaction_session_timeout": "5000",
    # and so does one whose machine is gone
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


class PostgresStore(Store):
    """A database for several gateways; `place` names it without user and password."""

    def __init__(self, url: str) -> None:
        try:
            address = make_url(url)
        except (ArgumentError, ValueError):  # their words may quote the address
            raise StoreError(
                "store: must be an address such as postgresql://user:password@host:5432/database"
            ) from None
        host, port = address.host or "127.0.0.1", address.port or 5432
        place = f"postgresql://{host}:{port}/{address.database or ''}"
        self._dsn = address.set(drivername="postgresql").render_as_string(hide_password=False)
        pool = {"pool_size": CONNECTIONS, "max_overflow": 0, "pool_timeout": FREE}
        super().__init__(self._engine(STATEMENT, **pool, pool_use_lifo=True), place)

    def _engine(self, statement: float, **pool: Any) -> AsyncEngine:
        connect = partial(
            asyncpg.connect,
            self._dsn,
            timeout=CONNECT,
            command_timeout=statement,
            server_settings=_SETTINGS | {"statement_timeout": f"{statement * 1000:.0f}"},
        )
        engine = create_async_engine(
            "postgresql+asyncpg://", connect_args={"async_creator_fn": connect}, **pool
        )
        event.listen(engine.sync_engine, "checkout", _alive)
        event.listen(engine.sync_engine, "handle_error", _lost)
        return engine

    @asynccontextmanager
    async def glance(self) -> AsyncIterator[AsyncConnection]:
        """Opens a connection as every store; a statement is one message to the server and back."""
        async with self._explained(), self.engine.connect() as connection:
            yield await connection.execution_options(isolation_level="AUTOCOMMIT")

    async def run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Runs the work as every store; again where transactions collide, three times at most."""
        collisions = 0
        while True:
            try:
                return await super().run(work)
            except StoreError as error:
                collisions += 1
                if _code(error.__cause__) not in AGAIN or collisions > MOST_COLLISIONS:
                    raise
            # nosemgrep: secrets-are-not-drawn-from-a-guessable-source - nothing to guess
            pause = random.uniform(*JITTER) * collisions  # noqa: S311  # nosec B311
            await asyncio.sleep(pause)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[AsyncConnection]:
        """Opens a transaction as every store; waits for another gateway that migrates."""
        patient = self._engine(PATIENCE, poolclass=NullPool)
        # polled, as a wait within the server would look like one that hangs
        taken = select(func.pg_try_advisory_xact_lock(MIGRATING))
        deadline = asyncio.get_running_loop().time() + PATIENCE
        try:
            async with self._explained(), patient.begin() as connection:
                while not (await connection.execute(taken)).scalar_one():
                    if asyncio.get_running_loop().time() > deadline:
                        raise StoreError(
                            f"another gateway has been changing the tables of {self.place}"
                        )
                    await asyncio.sleep(LOOK_AGAIN)
                yield connection
        finally:
            await patient.dispose()

    async def ping(self) -> None:
        """Raises StoreError where the store cannot be read, or takes no writes."""
        read_only = text("current_setting('transaction_read_only')")
        async with self.glance() as connection:
            await connection.execute(select(meta.c.name).limit(1))
            if (await connection.execute(select(read_only))).scalar_one() == "on":
                raise StoreError(f"{self.place} {_REMEDIES['25006']}")

    def remedy(self, error: BaseException) -> str:
        """Returns the sentence for PostgreSQL's own code, or for the class of the error."""
        if code := _code(error):
            return _REMEDIES.get(code) or _REMEDIES.get(code[:2]) or f"can't be used ({code})"
        return next((text for kind, text in _UNREACHABLE if isinstance(error, kind)), "")


_REMEDIES = {
    "28": "refuses the user or the password: correct them in store, or in pg_hba.conf there",
    "3D000": "is not there: create the database, or name another one in store",
    "42501": "lets the account do too little: it must own the tables, or the schema they are in",
    "3F000": "has no schema for the tables: create one, and name it in the account's search_path",
    "53300": "takes no more connections: raise max_connections there",
    "53100": "can't be written: its disk is full",
    "25006": "takes no writes: name the primary server in store, not a standby",
    "57P03": "is starting or stopping: wait for it",
    "57P01": "was stopped: start it again",
    "57014": "did not answer in time",
    "55P03": "did not answer in time: something holds a lock there",
    "40": "is in the way of itself: too many write the same at once",
    "42P01": "has no tables of a gateway: start one, which makes them",
}
# subclasses come before their bases
_UNREACHABLE: tuple[tuple[type[BaseException], str], ...] = (
    (PoolTimeout, "is busy: all connections to it are in use"),
    (TimeoutError, "did not answer in time"),
    (socket.gaierror, "can't be found: its host has no address"),
    (ConnectionRefusedError, "refuses connections: does PostgreSQL run there, and listen?"),
    (ssl.SSLError, "can't be spoken to over TLS: look at sslmode and the certificates"),
    (asyncpg.InterfaceError, "has closed the connection"),
    (ConnectionError, "has closed the connection"),
    (OSError, "can't be reached: look at the network between here and there"),
)


def _code(error: BaseException | None) -> str:
    """Returns the code that the server gave; "" where it was not asked, or did not answer."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return getattr(cause, "sqlstate", None) or ""


def _alive(connection: Any, *_: object) -> None:
    """Keeps a connection that the server has closed from being used; to know that costs nothing."""
    if connection.driver_connection.is_closed():
        raise DisconnectionError


def _lost(context: ExceptionContext) -> None:
    """Drops the whole pool after a timeout, and the connection without a goodbye."""
    if not isinstance(context.original_exception, TimeoutError) or context.connection is None:
        return
    driver: Any = context.connection.connection.driver_connection
    driver.terminate()
    context.is_disconnect = True
