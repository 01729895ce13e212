"""Adapters around an adapter: one that remembers, one that guards; `Around` is their base."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from adapters.base import Adapter, Draft, Only, Record, Watched
from adapters.documents.problems import Problem


class Around:
    """An adapter but for its reads, passed on to the inner one.

    `read_one` and `read_many` each wrapper says itself: most calls are reads, and one more that is
    awaited would cost every call.
    """

    def __init__(self, inner: Adapter) -> None:
        self._inner = inner

    @property
    def resources(self) -> frozenset[str]:
        return self._inner.resources

    @property
    def filterable(self) -> Mapping[str, frozenset[str]]:
        return self._inner.filterable

    @property
    def excludes(self) -> bool:
        return self._inner.excludes

    @property
    def settle(self) -> float:
        return self._inner.settle

    @property
    def default_length(self) -> timedelta | None:
        return self._inner.default_length

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        return self._inner.narrows(resource, only)

    async def create_appointment(self, draft: Draft) -> Record:
        return await self._inner.create_appointment(draft)

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        return await self._inner.find_appointments(draft, since)

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        return await self._inner.find_overwritten(appointments)

    async def check(self) -> Sequence[Problem]:
        return await self._inner.check()

    async def ping(self) -> None:
        await self._inner.ping()

    async def aclose(self) -> None:
        await self._inner.aclose()
