"""A connection in the middle of a piece of work: the driver's own, and SQLAlchemy's around it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.sql.engines.base import T, Work
from adapters.sql.engines.statements import ShapedStatement, Statements

Row = Sequence[Any]


class Driver(Protocol):
    """How a driver is asked; `errors` are those that it raises for what the database says."""

    errors: tuple[type[Exception], ...]
    statements: Statements

    def fetch(self, opened: "OpenConnection", text: str, bound: Sequence[Any] | None) -> Any:
        """Returns the rows of a statement; of an asynchronous driver, what is to be awaited.

        A statement without `bound` has no parameters, and no rows that anybody wants.
        """

    def is_lost(self, opened: "OpenConnection", error: Exception) -> bool:
        """Returns whether the error says that the connection is lost."""


class OpenConnection(ABC):
    """A connection as a piece of work has it. What it is asked raises DBAPIError.

    `connection` is SQLAlchemy's, for what is no question; `raw` is the driver's own beneath it.
    """

    def __init__(self, driver: Driver, connection: Connection) -> None:
        self.connection, self.info = connection, connection.info
        self.raw: Any = connection.connection.driver_connection
        self.driver = driver

    async def rows(self, question: ShapedStatement) -> Sequence[Row]:
        """Returns the rows that answer a question."""
        compiled = self.driver.statements.compiled(question, self.connection.dialect)
        return await self.run(compiled.text, compiled.bound(question.values))

    @abstractmethod
    async def run(self, text: str, bound: Sequence[Any] | None = None) -> Sequence[Row]:
        """Runs a statement in the driver's own words, and returns its rows where it has `bound`."""

    async def work(self, work: Work[T]) -> T:
        """Returns what a function makes of SQLAlchemy's connection."""
        return work(self.connection)

    def said(self, error: Exception) -> DBAPIError:
        """Returns a driver's error as SQLAlchemy's, without the statement and its values."""
        is_lost = self.driver.is_lost(self, error)
        return DBAPIError(None, None, error, connection_invalidated=is_lost)


class ThreadConnection(OpenConnection):
    """A connection of a driver that blocks, in its thread."""

    async def run(self, text: str, bound: Sequence[Any] | None = None) -> Sequence[Row]:
        try:
            return self.driver.fetch(self, text, bound)  # type: ignore[no-any-return]
        except self.driver.errors as error:
            raise self.said(error) from error


class LoopConnection(OpenConnection):
    """A connection of an asynchronous driver, on the event loop."""

    def __init__(self, driver: Driver, owner: AsyncConnection) -> None:
        super().__init__(driver, owner.sync_connection)  # type: ignore[arg-type]  # it is open
        self.owner = owner

    async def run(self, text: str, bound: Sequence[Any] | None = None) -> Sequence[Row]:
        try:
            return await self.driver.fetch(self, text, bound)  # type: ignore[no-any-return]
        except self.driver.errors as error:
            raise self.said(error) from error

    async def work(self, work: Work[T]) -> T:
        return await self.owner.run_sync(work)


class WorkConnection(OpenConnection):
    """The same connection inside `work`, where SQLAlchemy awaits the answers."""

    async def run(self, text: str, bound: Sequence[Any] | None = None) -> Sequence[Row]:
        adapted: Any = self.connection.connection.dbapi_connection
        try:
            return adapted.run_async(  # type: ignore[no-any-return]
                lambda _: self.driver.fetch(self, text, bound)
            )
        except self.driver.errors as error:
            raise self.said(error) from error


class HeardConnection(OpenConnection):
    """A connection that keeps the questions that it is asked."""

    def __init__(self, opened: OpenConnection) -> None:
        super().__init__(opened.driver, opened.connection)
        self._opened = opened
        self.questions: list[ShapedStatement] = []

    async def rows(self, question: ShapedStatement) -> Sequence[Row]:
        self.questions.append(question)
        return await super().rows(question)

    async def run(self, text: str, bound: Sequence[Any] | None = None) -> Sequence[Row]:
        return await self._opened.run(text, bound)
