"""Records what administrators do, in the panel or by commands, before and after they do it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from gateway.administrators.log import DONE, FAILED, Deed, DeedLog
from gateway.audit.buffer import Buffer, Unwritten
from gateway.audit.entries import BEGUN, DeedLine
from gateway.store import Store, StoreError


class Unended(Exception):
    """A deed was done, and the audit has its beginning, but could not take its end."""


class Deeds:
    """Writes deeds into the audit, and into the log that the panel's pages read."""

    def __init__(self, store: Store, audit: Buffer, now: Callable[[], datetime]) -> None:
        self.log = DeedLog(store)
        self._audit = audit
        self._now = now

    @asynccontextmanager
    async def deed(
        self, who: str, deed: str, subject: str = "", **details: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Writes to disk that a deed begins, and afterwards how it ended, with all details.

        Raises Unwritten where the audit takes no line, before anything is done. Raises Unended
        where the audit or the log cannot take the end.
        """

        async def end(outcome: str) -> None:
            at = self._now()
            await self._audit.begin(DeedLine(at, who, deed, subject, outcome, dict(details)))
            if outcome != BEGUN:
                ended = Deed(
                    at=at, who=who, deed=deed, subject=subject, outcome=outcome, details=details
                )
                await self.log.add(ended)

        await end(BEGUN)
        try:
            yield details
        except BaseException:
            await end(FAILED)
            raise
        try:
            await end(DONE)
        except (Unwritten, StoreError) as error:
            raise Unended from error

    async def note(self, who: str, deed: str, subject: str = "", **details: Any) -> None:
        async with self.deed(who, deed, subject, **details):
            pass
