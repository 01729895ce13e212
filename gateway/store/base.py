"""What all stores have in common: transactions, migrations, values set once, plain errors."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, false, insert, inspect, select
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from gateway.events import Sayable
from gateway.store.engine import AsyncConnection, AsyncEngine
from gateway.store.tables import adding, make, meta
from gateway.store.tables import version as noted

# The first migration of all, and the one that this version of the gateway works with.
FIRST = HEAD = "0015"

# Transactions of a bounded store at once: others wait here for their turn, and not for one of few
# connections.
AT_ONCE = 2
# Seconds that one transaction may take there, and that it may wait for its turn.
PATIENCE = 2.0
# Seconds between two that are let in as a trial while one of them hangs.
REST = 1.0

T = TypeVar("T")


class StoreError(Sayable):
    """Raised where the store cannot be used; a sentence with its place and the remedy."""

    def __init__(self, text: str, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after  # seconds before which it is not asked again; 0 is at once


class Store:
    """A database that this process reads and writes."""

    def __init__(self, engine: AsyncEngine, place: str) -> None:
        self.engine = engine
        self.place = place

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """Opens a transaction; raises StoreError, but IntegrityError for a row that is doubled."""
        async with self._explained(), self.engine.begin() as connection:
            yield connection

    @asynccontextmanager
    async def _explained(self) -> AsyncIterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            raise self.explain(error) from error

    async def run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Returns the result of the work, from a transaction of its own; raises as `begin`.

        Where that collides with another transaction nothing of it is done, and the work runs again.
        """
        async with self.begin() as connection:
            return await work(connection)

    async def rows(self, statement: Any) -> Sequence[Any]:
        """Returns the rows of one statement that only reads, at least cost; raises as `begin`."""
        async with self.glance() as connection:
            return (await connection.execute(statement)).all()

    async def change(self, statement: Any) -> int:
        """Runs one statement; returns how many rows it changed or deleted. Raises as `begin`."""
        async with self.begin() as connection:
            return await changed(connection, statement)

    def glance(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Opens a connection for statements that only read, each by itself; raises as `begin`."""
        return self.begin()

    def alone(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Opens a transaction beside which no other process migrates."""
        return self.begin()

    async def version(self) -> str | None:
        """Returns the migration at which the tables are; None where there is no store yet."""
        async with self.begin() as connection:
            return await connection.run_sync(_version)

    async def migrate(self, *, make: bool = True) -> None:
        """Brings the tables up to this version, all or none; makes them where there are none.

        Raises StoreError for tables of another release, or for none where `make` is false.
        """
        async with self.begin() as connection:
            if await connection.run_sync(self._is_current):
                return
            if not make and await connection.run_sync(_version) is None:
                raise StoreError(f"{self.place} has no tables of a gateway")
        async with self.alone() as connection:
            if not await connection.run_sync(self._is_current):
                await connection.run_sync(_upgrade)

    def _is_current(self, connection: Connection) -> bool:
        version = _version(connection)
        if version is not None and version > HEAD:
            raise StoreError(
                f"{self.place} belongs to a later version of the gateway (its tables are at"
                f" {version}, this one knows {HEAD}): run that version, or restore a backup"
            )
        if version is not None and version < FIRST:
            raise StoreError(
                f"{self.place} belongs to a version of the gateway from before the first release"
                f" (its tables are at {version}, this one begins with {FIRST}): move the state away"
                " and begin a new one"
            )
        return version == HEAD

    async def meta(self, name: str) -> str | None:
        """Returns a value that was set; None where it was not."""
        rows = await self.rows(select(meta.c.value).where(meta.c.name == name))
        return rows[0].value if rows else None

    async def set_meta(self, name: str, value: str, over: Any = None) -> str:
        """Sets a value, over an old one where `over` allows it; returns what it is then."""

        async def put(connection: AsyncConnection) -> str:
            row = adding(connection, meta).values(name=name, value=value)
            changes = {"index_elements": [meta.c.name], "set_": {"value": value}, "where": over}
            await connection.execute(row.on_conflict_do_update(**changes))
            stored = await connection.execute(select(meta.c.value).where(meta.c.name == name))
            return str(stored.scalar_one())

        return await self.run(put)

    async def set_meta_once(self, name: str, value: str) -> str:
        """Sets a value where there is none; returns what it is then."""
        return await self.set_meta(name, value, over=false())

    async def copy_to(self, path: Path) -> bool:
        """Copies the store as it is at one moment; returns False where only its server can do that.

        Raises OSError, which names the path, where the copy cannot be written there.
        """
        return False

    def mark(self) -> object:
        """Returns what differs once somebody has written; None where that is not cheap to tell."""
        return None

    async def ping(self) -> None:
        """Raises StoreError where the store cannot be read, or takes no writes."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Closes every connection, even where the caller is cancelled meanwhile."""
        closing = asyncio.create_task(self.engine.dispose())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await asyncio.wait([closing])
            raise

    def explain(self, error: Exception) -> StoreError:
        """Returns the StoreError for an error, without the driver's words: they may hold values."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        text = (cause and self.remedy(cause)) or f"can't be used ({type(cause).__name__})"
        return StoreError(f"{self.place} {text}")

    def remedy(self, error: BaseException) -> str:
        """Returns what is wrong and what to do; "" where the error does not tell."""
        return ""


class BoundedStore:
    """A store for work that must not wait for it: few transactions at a time, each bounded.

    Raises StoreError where there is no room in time, and while a transaction hangs.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._places = asyncio.Semaphore(AT_ONCE)
        self._since: dict[object, float] = {}
        self._next_at = 0.0

    async def run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Returns the result of the work, from a transaction of its own, in time."""
        return await in_time(self.transact(work))

    async def transact(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Runs the work as `run` does, however long it takes once it has room."""
        async with self.taken():
            return await self._store.run(work)

    async def rows(self, statement: Any) -> Sequence[Any]:
        """Returns the rows of one statement that only reads, in time."""

        async def read() -> Sequence[Any]:
            async with self.taken():
                return await self._store.rows(statement)

        return await in_time(read())

    async def change(self, statement: Any) -> int:
        """Returns how many rows one statement changed or deleted, in time."""
        return await self.run(lambda connection: changed(connection, statement))

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Takes one of the few places; raises StoreError where none is free in time."""
        now = self._clock()
        oldest = min(self._since.values(), default=now)
        if now - oldest >= PATIENCE:
            next_at = max(self._next_at, oldest + PATIENCE + REST)
            if now < next_at:
                raise StoreError("the store has not answered in time", next_at - now)
            self._next_at = now + REST
        try:
            async with asyncio.timeout(PATIENCE):
                await self._places.acquire()
        except TimeoutError as error:
            raise StoreError("the store does not answer in time") from error
        me = object()
        self._since[me] = self._clock()
        try:
            yield
        finally:
            del self._since[me]
            self._places.release()


async def in_time(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Returns the result of the work; raises StoreError after PATIENCE, and lets the work go on."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    done, _ = await asyncio.wait([task], timeout=PATIENCE)
    if not done:
        raise StoreError("the store does not answer in time")
    return task.result()


async def changed(connection: AsyncConnection, statement: Any) -> int:
    """Runs the statement; returns how many rows it changed or deleted."""
    return (await connection.execute(statement)).rowcount


def _version(connection: Connection) -> str | None:
    if noted.name not in inspect(connection).get_table_names():
        return None
    number: str | None = connection.execute(select(noted.c.version_num)).scalar_one_or_none()
    return number


def _upgrade(connection: Connection) -> None:
    if _version(connection) is None:
        make(connection)
        noted.create(connection, checkfirst=False)
        connection.execute(insert(noted).values(version_num=HEAD))
        return
    # alembic takes a third of a second to import: only where there is something to migrate
    from gateway.store.migrations import upgrade  # noqa: PLC0415

    upgrade(connection)
