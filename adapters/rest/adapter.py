"""RestAdapter: a practice system that speaks JSON over HTTP, through a mapping, as an Adapter."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from zoneinfo import ZoneInfo

from adapters.base import AdapterOptions, BackendTimeout, Draft, Page, Query, Record
from adapters.converters import Converters
from adapters.document import Document, DocumentErrors, Problem
from adapters.ids import SEALED, IdKeeper
from adapters.rest.backend import Backend
from adapters.rest.checking import load_mapping
from adapters.rest.checks import problems_in
from adapters.rest.client import Client, address_problem
from adapters.rest.diary import Diary
from adapters.rest.mapping import Call
from adapters.rest.mapping import Mapping as MappingFile
from adapters.rest.reading import ResourceReader
from adapters.rest.records import FoundValues
from adapters.rest.templates import Templates, Values
from adapters.rest.toolbox import Toolbox


class RestAdapter:
    """Reads and books through the calls that the mapping gives.

    ValueError where there is no mapping; DocumentErrors where it or the address can't be used.
    """

    def __init__(self, options: AdapterOptions) -> None:
        mapping, document = _mapping(options)
        self._mapping, self._document = mapping, document
        self._tools = tools = _tools(mapping, options)
        self._timeout = options.timeout
        self._readers = {
            name: ResourceReader(name, resource, tools)
            for name, resource in mapping.resources.items()
        }
        self._diary = Diary(mapping, self._readers, tools, options.booking_timeout)
        self._keeper = IdKeeper(dict(tools.values.converters.hashed), options.shapes)
        self.resources = frozenset(self._readers) | {"slots"}
        self.filterable: Mapping[str, frozenset[str]] = {
            name: reader.filterable for name, reader in self._readers.items()
        }

    async def read_one(self, query: Query) -> Record:
        """One record; an id that was never made here is NotFound without a call."""
        async with self._in_time():
            await self._keeper.learn_query(query)
            return await self._keeper.kept(self._readers[query.resource].one(query.id))

    async def read_many(self, query: Query) -> Page:
        """A page in the backend's own order; free slots are one page in the order of time."""
        async with self._in_time():
            await self._keeper.learn_query(query)
            if query.resource == "slots":
                return Page(records=await self._diary.slots(query.values, query.now))
            if query.within is not None:
                await self._readers[query.within[0]].one(query.within[1])
            reader = self._readers[query.resource]
            return await self._keeper.kept(reader.page(query.filters, query.limit, query.after))

    async def create_appointment(self, draft: Draft) -> Record:
        """Check, send, read back and check again, one booking at a time for each vet."""
        await self._keeper.learn_draft(draft)
        return await self._keeper.kept(self._diary.book(draft))

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """Looked up when no booking for that vet is under way."""
        async with self._in_time():
            await self._keeper.learn_draft(draft)
            return await self._keeper.kept(self._diary.find(draft, since))

    async def find_overwritten(self, appointments: Sequence[str]) -> Sequence[str]:
        """Looked at one by one, as long as the time of one read."""
        async with self._in_time():
            await self._keeper.learn_all("appointments", appointments)
            return await self._diary.overwritten(appointments)

    async def check(self) -> None:
        """DocumentErrors where a call fails, or a path leads to nothing in what it answers."""
        found = [
            each
            async for each in problems_in(self._mapping, self._document, self._readers, self._diary)
        ]
        if found:
            raise DocumentErrors(found)

    async def ping(self) -> None:
        """The mapping's own cheap call, or one for the appointment types."""
        async with self._in_time():
            if self._mapping.backend.ping is None:
                await self._readers["appointmentTypes"].page((), 1, None)
                return
            call = Call(get=self._mapping.backend.ping)
            request = self._tools.templates.call(call, {}).request(Values())
            await self._tools.backend.read(request)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._tools.backend.aclose()

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        """A deadline for all calls of one read together."""
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except TimeoutError as error:
            raise BackendTimeout("the backend did not answer all in time") from error


def _tools(mapping: MappingFile, options: AdapterOptions) -> Toolbox:
    kinds = {name: resource.key.as_ or SEALED for name, resource in mapping.resources.items()}
    converters = Converters(ZoneInfo(mapping.zone), options.secret, kinds=kinds, table=options.ids)
    templates = Templates(converters, options.credentials)
    client = Client(options.url, timeout=options.timeout)
    return Toolbox(
        shapes=options.shapes,
        values=FoundValues(converters),
        templates=templates,
        backend=Backend(mapping.backend, templates, client),
        report=options.report,
        timeout=options.timeout,
    )


def _mapping(options: AdapterOptions) -> tuple[MappingFile, Document]:
    """The mapping, and where all of it stands.

    DocumentErrors with all that is wrong with it and with the address.
    """
    if options.mapping is None:
        raise ValueError("the rest adapter needs a mapping file: set backend.mapping")
    said = address_problem(options.url)
    problems = [] if said is None else [Problem("backend.url", 0, 0, said)]
    try:
        loaded = load_mapping(options.mapping, options.shapes, options.credentials)
    except DocumentErrors as error:
        raise DocumentErrors([*problems, *error.problems]) from error
    if problems:
        raise DocumentErrors(problems)
    return loaded
