"""A mapped backend of JSON that the doctor looks at, and a client that notes what was asked."""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from adapters.base import AdapterError, NotFound
from adapters.doctor.case import DoctorCase
from adapters.doctor.findings import short
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.rest.adapter import RestAdapter
from adapters.rest.client import Client, Received, Request
from adapters.rest.paging import NoArray, may_be_empty
from adapters.rest.resource import ResourceCalls
from adapters.rest.session import RestSession

T = TypeVar("T")
# So many ids of one field cost a call each.
MOST_ASKED = 20


@dataclass(frozen=True, slots=True)
class CallMade:
    """A call that was made: its label, how long it took, and what came; 0 for no answer.

    `apart` is how many seconds the server's clock is ahead of ours, where it says its time.
    """

    label: str
    seconds: float
    status: int
    apart: float | None


class WatchedClient(Client):
    """A client that keeps what was asked."""

    def __init__(self, address: str, *, timeout: float) -> None:
        super().__init__(address, timeout=timeout)
        self.seen: list[CallMade] = []

    async def read(self, request: Request, headers: Mapping[str, str]) -> Received:
        begun, status, apart = time.monotonic(), 0, None
        try:
            received = await super().read(request, headers)
            status, apart = received.status, _apart(received.date)
        finally:
            self.seen.append(CallMade(request.label, time.monotonic() - begun, status, apart))
        return received


def _apart(date: str) -> float | None:
    try:
        there = parsedate_to_datetime(date)
    except ValueError:
        return None
    if there.tzinfo is None:
        return None
    return (there - datetime.now(UTC)).total_seconds()


@dataclass(slots=True, kw_only=True)
class RestCase(DoctorCase):
    """A mapped backend, and what is known of it so far.

    `raws` are the records that were looked at, by resource, as the backend gave them, `samples`
    what was made of those that the mapping's `where` lets through. `whole` are the resources of
    which these are all. `patience` is what one read may take when the gateway serves.
    """

    adapter: RestAdapter
    client: WatchedClient
    patience: float
    raws: dict[str, list[Any]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)

    async def run(self, flow: Callable[[RestSession], Awaitable[T]]) -> T:
        """With no time for all calls together: each has its own."""
        return await self.adapter.driver.look(flow)

    def looked_at(self) -> Iterator[tuple[str, ResourceCalls]]:
        """The resources of which there are records."""
        for name, reader in self.adapter.readers.items():
            if self.raws.get(name):
                yield name, reader

    def converter(self, resource: str, name: str) -> Any:
        found = self.adapter.readers[resource].maker.fields.by_name.get(name)
        return None if found is None or resource not in self.samples else found.converter

    async def missing(
        self, session: Any, target: str, ids: set[str]
    ) -> tuple[set[str], set[str], set[str]]:
        """A few that are not known yet are asked for."""
        if target not in self.raws:
            return set(), set(), set()
        reader = self.adapter.readers[target]
        shown = {each["id"] for each in self.samples.get(target, ()) if each["id"]}
        all_ = {each for raw in self.raws[target] if (each := reader.id_of(raw)) is not None}
        hidden = all_ - shown
        unsure = sorted(ids - all_)
        if target in self.whole:
            return ids, set(unsure), hidden & ids
        asked = unsure[:: max(1, len(unsure) // MOST_ASKED)][:MOST_ASKED]
        gone, more = await self._lost(reader, asked)
        return ids - set(unsure) | set(asked), gone, (hidden | more) & ids

    async def _lost(self, reader: ResourceCalls, ids: list[str]) -> tuple[set[str], set[str]]:
        """Those that lead to nothing at all, and those that `where` hides."""
        gone, hidden = set(), set()
        await self.adapter.learn(reader.name, ids)
        for each in ids:
            try:
                if self.core.mapping.resources[reader.name].one is None:
                    await reader.one(each)
                elif not reader.maker.exists(await reader.answer(each)):
                    hidden.add(each)
            except NotFound:
                gone.add(each)
        return gone, hidden

    def refused(
        self, check: str, subject: str, place: Place, error: AdapterError, ids: Iterable[str] = ()
    ) -> Finding:
        judged = self.warning if may_be_empty(error) else self.failed
        at = "items" if isinstance(error, NoArray) else "get"
        return judged(check, subject, short(error), (*place, at), ids=ids)


def records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"


def looking(look: Callable[..., Any], *given: Any) -> Callable[[RestSession], Any]:
    """A look that asks through the parts of the adapter, and needs no session."""
    return lambda _: look(*given)
