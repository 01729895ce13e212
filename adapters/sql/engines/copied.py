"""Access files and tables of dBASE and FoxPro, by an SQLite copy that nobody writes through."""

from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

from sqlalchemy.engine import URL

from adapters.base import BackendNonsense, CopyRules
from adapters.copies.keeper import CopyKeeper
from adapters.copies.look import Request
from adapters.sql.engines import CopiedReads, Engine
from adapters.sql.engines.sqlite import SqliteLane

T = TypeVar("T")


class CopiedEngine(Engine):
    """Runs work that reads on the copy of files. A piece of work sees one copy to its end."""

    copy: CopyKeeper

    def __init__(
        self, address: URL, reads: CopiedReads, rules: CopyRules, timeout: float, in_flight: int
    ) -> None:
        request = Request(
            kind=address.drivername,
            path=address.database or "",
            folder="",
            encoding=str(address.query.get("encoding", "")),
            named=reads.named,
            wishes=reads.wishes,
        )
        self.copy = CopyKeeper(request, rules)
        copied = URL.create("sqlite", database=str(self.copy.path))
        super().__init__(SqliteLane, copied, timeout, timeout, in_flight)
        for verb in ("ask", "read", "inspect", "search", "ping"):
            setattr(self, verb, self._usable(getattr(self, verb)))
        self.book = self._refused

    def _usable(self, verb: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        async def asked(*given: Any, **named: Any) -> T:
            await self.copy.usable()
            return await verb(*given, **named)

        return asked

    async def _refused(self, work: object) -> NoReturn:
        raise BackendNonsense("what is written into a copy would not reach the practice system")

    async def aclose(self) -> None:
        await super().aclose()
        await self.copy.aclose()
