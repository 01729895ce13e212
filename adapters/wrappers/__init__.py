"""Adapters around an adapter: one caches, one guards. `Around` is their base."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from adapters.base import Adapter, Draft, Record, Watched


class Around:
    """Passes every verb but the reads on to the inner adapter.

    Each wrapper has its own `read_one` and `read_many`: most calls are reads, and one more await
    would cost every call.
    """

    def __init__(self, inner: Adapter) -> None:
        self._inner = inner
        self.resources, self.filterable = inner.resources, inner.filterable
        self.books, self.excludes, self.settle = inner.books, inner.excludes, inner.settle
        self.default_length: timedelta | None = inner.default_length
        self.narrows, self.check = inner.narrows, inner.check

    async def create_appointment(self, draft: Draft) -> Record:
        return await self._inner.create_appointment(draft)

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        return await self._inner.find_appointments(draft, since)

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        return await self._inner.find_overwritten(appointments)

    async def ping(self) -> None:
        await self._inner.ping()

    async def aclose(self) -> None:
        await self._inner.aclose()
