"""The store on PostgreSQL, for several machines: every wait has an end, dead connections are told.

A row is written by one transaction at a time and whoever waits for it sees what was committed
before, so that what counts on (`value = value + 1`) is right whoever writes at once.
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
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from gateway.store.base import Store, StoreError
from gateway.store.tables import meta

T = TypeVar("T")

# Seconds: a statement, a new connection, a connection that is free again.
STATEMENT, CONNECT, FREE = 2.0, 1.0, 0.5
# Every process has two stores, and a server takes 100 connections where nobody says otherwise.
CONNECTIONS = 4
# Seconds that migrations may take, and that others wait for them.
PATIENCE = 600.0
LOOK_AGAIN = 0.1
# The lock under which tables are changed; the number is nobody else's.
MIGRATING = 0x636C696E6963
# What a transaction met that another one had to win, or a table that was changed meanwhile.
AGAIN = frozenset({"40001", "40P01", "0A000"})
MOST_COLLISIONS = 3
# Seconds, times the number of collisions: those who collided are not to meet again.
JITTER = (0.01, 0.05)
_SETTINGS = {
    "application_name": "clinic-gateway",
    "jit": "off",
    # a gateway that stopped in the middle of a transaction lets go of its locks
    "idle_in_transaction_session_timeout": "5000",
    # and one whose machine is gone
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


class PostgresStore(Store):
    """A database for several gateways; its place is told without user and password."""

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
        """As every store; one message to the server and one back."""
        async with self._explained(), self.engine.connect() as connection:
            yield await connection.execution_options(isolation_level="AUTOCOMMIT")

    async def run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """As every store; again where another transaction had to win, three times at most."""
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
        """As every store; who comes later waits for the one that migrates."""
        patient = self._engine(PATIENCE, poolclass=NullPool)
        # asked for again and again: a wait within the server would look like one that hangs
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
        """StoreError where the store cannot be read, or takes no writes."""
        read_only = text("current_setting('transaction_read_only')")
        async with self.glance() as connection:
            await connection.execute(select(meta.c.name).limit(1))
            if (await connection.execute(select(read_only))).scalar_one() == "on":
                raise StoreError(f"{self.place} {_REMEDIES['25006']}")

    def remedy(self, error: BaseException) -> str:
        """PostgreSQL's own codes of errors tell it."""
        if code := _code(error):
            return _REMEDIES.get(code) or _REMEDIES.get(code[:2]) or f"can't be used ({code})"
        return next((told for kind, told in _UNREACHABLE if isinstance(error, kind)), "")


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
# the more particular first: of these kinds some are some of the others
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
    """The code that the server gave; empty where it was not asked, or did not answer."""
    found = error.orig if isinstance(error, DBAPIError) else error
    return getattr(found, "sqlstate", None) or ""


def _alive(connection: Any, *_: object) -> None:
    """What the server closed meanwhile is not taken out of the pool; to know that costs nothing."""
    if connection.driver_connection.is_closed():
        raise DisconnectionError


def _lost(context: ExceptionContext) -> None:
    """After silence nothing of the pool is trusted, and nobody waits for a goodbye."""
    if not isinstance(context.original_exception, TimeoutError) or context.connection is None:
        return
    driver: Any = context.connection.connection.driver_connection
    driver.terminate()
    context.is_disconnect = True
