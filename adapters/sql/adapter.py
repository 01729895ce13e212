"""SqlAdapter: a practice system's database, through a mapping, as an Adapter."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection

from adapters.base import AdapterOptions, Draft, Only, Page, Query, Record, Watched
from adapters.documents.problems import Problem, warnings_of
from adapters.ids import IdKeeper
from adapters.mapped.repeated import KnownTimes
from adapters.mapping.narrowing import narrows
from adapters.sql.checks import found_in
from adapters.sql.parts import open_parts


class SqlAdapter:
    """Reads and books through the statements that the mapping gives.

    ValueError where there is no mapping; DocumentErrors where it or the address can't be used.
    """

    # both are done under the vet's lock, which the database keeps for whoever asks
    excludes = True
    settle = 0.0

    def __init__(self, options: AdapterOptions) -> None:
        self.options = options
        self.parts = parts = open_parts(options)
        self._mapping, self._document = parts.mapping, parts.document
        self._runner, self._readers = parts.engine, parts.readers
        self._diary, self._openings, self._hours = parts.diary, parts.openings, parts.hours
        self.default_length = parts.openings.default_length
        self._keeper = IdKeeper(dict(parts.converters.tabled), options.shapes)
        self._narrowings = {name: reader.narrowing for name, reader in self._readers.items()}
        self._ids = parts.converters.ids
        self.resources = frozenset(self._readers) | {"slots"}
        self.filterable: Mapping[str, frozenset[str]] = {
            name: reader.filterable for name, reader in self._readers.items()
        }

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        """By how the mapping keeps the fields; the database is not asked."""
        return narrows(self._document, self._narrowings, resource, only)

    async def read_one(self, query: Query) -> Record:
        """One record; an id that was never sealed here is NotFound without a query."""
        reader = self._readers[query.resource]
        await self._keeper.learn_query(query)
        key = reader.key_of(query.id)
        found = self._runner.read(lambda connection: reader.one(connection, key, query.only))
        record = await self._keeper.kept(found)
        return await self._hours.told(record) if query.resource == "appointments" else record

    async def read_many(self, query: Query) -> Page:
        """A page in the order of the keys; free slots are one page in the order of time."""
        await self._keeper.learn_query(query)
        if query.resource == "slots":
            return await self._hours.read(
                lambda known: self._runner.read(
                    lambda connection: self._slots(connection, query, known)
                )
            )
        searches = any(each.match == "search" for each in query.filters)
        run = self._runner.search if searches else self._runner.read
        return await self._keeper.kept(run(lambda connection: self._page(connection, query)))

    async def create_appointment(self, draft: Draft) -> Record:
        """Check and write under the vet's lock, in one transaction."""
        await self._keeper.learn_draft(draft)
        booked = self._hours.book(
            lambda known: self._runner.book(
                lambda connection: self._diary.book(connection, draft, known=known)
            )
        )
        record = await self._keeper.kept_of_booking(booked)
        await self._hours.keep([record])
        return record

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """Looked up under the vet's lock, so that none is certain."""
        await self._keeper.learn_draft(draft)
        found = self._runner.book(lambda connection: self._diary.find(connection, draft, since))
        records = await self._keeper.kept(found)
        await self._hours.keep(records)
        return records

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        """All in one statement, and what blocks each of their vets in a few more."""
        await self._keeper.learn_all("appointments", appointments)
        return await self._hours.read(
            lambda known: self._runner.read(
                lambda connection: self._diary.overwritten(connection, appointments, known)
            )
        )

    async def check(self) -> Sequence[Problem]:
        """DocumentErrors where the database lacks a table or column that the mapping names.

        A key of which no id can be made is a warning: other rows may have better ones.
        """
        await self._runner.ping()  # whether anything answers is known sooner
        found = await self._runner.inspect(
            lambda connection: list(
                found_in(connection, self._mapping, self._document, self._runner.speech, self._ids)
            )
        )
        return warnings_of(found)

    async def ping(self) -> None:
        """Whether the database answers."""
        await self._runner.ping()

    async def aclose(self) -> None:
        """Let go of every connection."""
        await self._runner.aclose()

    def _slots(self, connection: Connection, query: Query, known: KnownTimes) -> Page:
        return Page(records=self._openings.slots(connection, query.values, query.now, known))

    def _page(self, connection: Connection, query: Query) -> Page:
        if query.within is not None:
            outer = self._readers[query.within[0]]
            outer.must_exist(connection, outer.key_of(query.within[1]), query.within_only)
        reader = self._readers[query.resource]
        return reader.pages.read(connection, query.filters, query.limit, query.after, query.only)
