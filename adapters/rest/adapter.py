"""RestAdapter: a practice system that speaks JSON over HTTP, through a mapping, as an Adapter."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from math import ceil

from adapters.base import (
    WATCHED_IN_A_READ,
    AdapterOptions,
    BackendTimeout,
    Draft,
    Only,
    Page,
    Query,
    Record,
    Watched,
)
from adapters.documents.problems import Problem, warnings_of
from adapters.mapping.narrowing import narrows
from adapters.rest.checks import found_in
from adapters.rest.mapping import Call
from adapters.rest.parts import open_parts
from adapters.rest.templates import Values


class RestAdapter:
    """Reads and books through the calls that the mapping gives.

    ValueError where there is no mapping; DocumentErrors where it or the address can't be used.
    """

    # its locks are this process's
    excludes = False

    def __init__(self, options: AdapterOptions) -> None:
        self.options = options
        self.parts = parts = open_parts(options)
        self._timeout = options.timeout
        self.settle = float(parts.mapping.booking.settle)
        self.default_length: timedelta | None = timedelta(minutes=parts.mapping.diary.duration)
        self._readers, self._diary, self._keeper = parts.readers, parts.diary, parts.keeper
        self._hours = parts.hours
        self.resources = frozenset(self._readers) | {"slots"}
        self.filterable: Mapping[str, frozenset[str]] = {
            name: reader.filterable for name, reader in self._readers.items()
        }

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        """By the mapping's `filters` and `sift`; the backend is not asked."""
        return narrows(self.parts.document, self._readers, resource, only)

    async def read_one(self, query: Query) -> Record:
        """One record; an id that was never made here is NotFound without a call."""
        async with self._in_time():
            await self._keeper.learn_query(query)
            found = self._readers[query.resource].one(query.id, query.only)
            record = await self._keeper.kept(found)
            return await self._hours.told(record) if query.resource == "appointments" else record

    async def read_many(self, query: Query) -> Page:
        """A page in the backend's own order; free slots are one page in the order of time."""
        async with self._in_time():
            await self._keeper.learn_query(query)
            if query.resource == "slots":
                return Page(records=await self._diary.slots(query.values, query.now))
            if query.within is not None:
                await self._readers[query.within[0]].one(query.within[1], query.within_only)
            reader = self._readers[query.resource]
            page = reader.page(query.filters, query.limit, query.after, query.only)
            return await self._keeper.kept(page)

    async def create_appointment(self, draft: Draft) -> Record:
        """Check, send, read back and check again, one booking at a time for each vet."""
        await self._keeper.learn_draft(draft)
        record = await self._keeper.kept_of_booking(self._diary.book(draft))
        await self._hours.keep([record])
        return record

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """Looked up when no booking for that vet is under way."""
        async with self._in_time():
            await self._keeper.learn_draft(draft)
            records = await self._keeper.kept(self._diary.find(draft, since))
            await self._hours.keep(records)
            return records

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        """Each is asked for, and what blocks once for a vet and day.

        For every few of them it has the time of one read.
        """
        async with self._in_time(reads=ceil(len(appointments) / WATCHED_IN_A_READ)):
            await self._keeper.learn_all("appointments", appointments)
            return await self._diary.look.watched(appointments)

    async def check(self) -> Sequence[Problem]:
        """DocumentErrors where a call fails; a path that leads to nothing is a warning."""
        return warnings_of([each async for each in found_in(self.parts)])

    async def ping(self) -> None:
        """The mapping's own cheap call, or one for the appointment types."""
        async with self._in_time():
            tools, ping = self.parts.tools, self.parts.mapping.backend.ping
            if ping is None:
                await self._readers["appointmentTypes"].page((), 1, None)
                return
            request = tools.templates.call(Call(get=ping), {}).request(Values())
            await tools.backend.read(request)

    async def aclose(self) -> None:
        """Close every connection."""
        await self.parts.tools.backend.aclose()

    @asynccontextmanager
    async def _in_time(self, reads: int = 1) -> AsyncIterator[None]:
        """A deadline for all calls of one read together, or of so many."""
        try:
            async with asyncio.timeout(self._timeout * reads):
                yield
        except TimeoutError as error:
            raise BackendTimeout("the backend did not answer all in time") from error
