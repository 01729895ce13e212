"""The adapter of a mapped practice system. Subclasses ask a database, or ask over HTTP."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar, Protocol, TypeVar

from adapters import base
from adapters.base import Draft, Only, Page, Query, Record, Watched
from adapters.documents.document import Document
from adapters.documents.problems import Problem
from adapters.ids.table import IdKeeper
from adapters.mapped.appointment import uuid_of
from adapters.mapped.booking import BookingFlow
from adapters.mapped.clock_change import TIMES, RepeatedHours
from adapters.mapped.diary import Diary
from adapters.mapped.records import Fields, RowReader
from adapters.mapped.session import Session
from adapters.mapped.slot_rows import use_of_rows
from adapters.mapping.checker import mark_of
from adapters.mapping.converters import Converters
from adapters.mapping.models import MappingFile

T = TypeVar("T")
# Why bookings that were made under another mapping cannot be looked for.
_LOST = "the mapping has no booking, so none that was made before can be looked up"


class PlannedReader(Protocol):
    """What the adapter knows of how one resource is read."""

    @property
    def rows(self) -> RowReader: ...

    @property
    def filterable(self) -> frozenset[str]: ...

    def refusal(self, condition: base.Condition) -> str | None:
        """Returns why a condition cannot judge its records, with the remedy; else None."""


class MappedAdapter(ABC):
    """An adapter that follows a mapping. Each call is a flow: a coroutine of a session."""

    excludes: ClassVar[bool]
    """Whether `book` runs bookings and lookups of one vet one after the other."""

    def __init__(
        self,
        options: base.AdapterOptions,
        mapping: MappingFile,
        document: Document,
        converters: Converters,
        readers: Mapping[str, PlannedReader],
        *,
        asked_by_day: bool = False,
    ) -> None:
        self.options, self.mapping, self.document = options, mapping, document
        self.converters, self.readers = converters, readers
        use = use_of_rows(mapping.booking)
        self.diary = Diary(mapping.diary, converters, options.report, use)
        appointments = readers.get("appointments")
        fields = appointments.rows.by_name if appointments else {}
        self._hours = RepeatedHours(fields, options.times)
        self.bookings = BookingFlow(
            diary=self.diary,
            hours=self._hours,
            fields=fields,
            has_reference=mapping.booking.reference is not None,
            asked_by_day=asked_by_day,
        )
        self._keeper = IdKeeper(dict(converters.tabled), options.shapes)
        self._is_marked_by_uuid = mark_of(mapping.booking) == "uuid"
        self.settle = 0.0 if self.excludes else float(mapping.booking.settle)
        self.default_length: timedelta | None = self.diary.default_length
        self.resources = frozenset(readers).union(["slots"] if mapping.offers("diary") else ())
        self.books = mapping.offers("booking")
        self.filterable: Mapping[str, frozenset[str]] = {
            name: reader.filterable for name, reader in readers.items()
        }

    def mark(self, reference: str) -> str:
        """Returns what an appointment of that reference has in `booking.reference`."""
        return uuid_of(reference) or "" if self._is_marked_by_uuid else reference

    @abstractmethod
    def one(self, resource: str, public_id: str, only: Only, fields: Fields) -> Awaitable[Record]:
        """Returns one record. Raises NotFound, without asking, for an id never made here."""

    @abstractmethod
    async def read(self, flow: Callable[[Session], Awaitable[T]], *, reads: int = 1) -> T:
        """Runs a flow that only reads, within the time of `reads` reads."""

    async def search(self, flow: Callable[[Session], Awaitable[T]]) -> T:
        """Runs a flow that may look at every row."""
        return await self.read(flow)

    @abstractmethod
    async def book(self, flow: Callable[[Session], Awaitable[T]]) -> T:
        """Runs a flow that writes, or whose answer has to be certain."""

    async def find(self, flow: Callable[[Session], Awaitable[T]], draft: Draft) -> T:
        """Runs a lookup of a booking. Raises OutcomeUnknown while that may still be written."""
        return await self.book(flow)

    @abstractmethod
    async def aclose(self) -> None:
        """Closes every connection."""

    def narrows(self, resource: str, only: Only) -> Sequence[Problem]:
        """Returns a problem for each condition that lists cannot apply; asks no backend."""
        reader, problems = self.readers.get(resource), []
        for condition in only:
            text = reader.refusal(condition) if reader else f"{resource} has no conditions"
            if resource not in self.resources:  # no record of it is ever shown
                text = None
            if text is not None:
                place = ("resources", resource, "fields", condition.field)
                problems.append(self.document.problem(place, text, at_key=True))
        return problems

    async def read_one(self, query: Query) -> Record:
        """Returns one record; an appointment has the time at which it was booked."""
        fields, is_appointment = query.fields, query.resource == "appointments"
        if is_appointment and fields is not None and not fields.isdisjoint(TIMES):
            fields |= TIMES  # neither is told without the other
        record = await self._keeper.read(
            query, lambda: self.one(query.resource, query.id, query.only, fields)
        )
        return await self._hours.as_booked(record) if is_appointment else record

    async def read_many(self, query: Query) -> Page:
        """Returns a page in a stable order. Free slots are one page, ordered by time."""
        await self._keeper.learn_query(query)
        if query.resource == "slots":
            slots = await self._hours.read(
                lambda known: self.read(
                    lambda session: self.diary.slots(session, query.values, query.now, known)
                )
            )
            return Page(records=slots)

        async def page(session: Session) -> Page:
            if query.within is not None:
                resource, public_id = query.within
                await session.reader(resource).exists(public_id, query.within_only)
            reader = session.reader(query.resource)
            return await reader.page(
                query.filters, query.limit, query.after, query.only, query.fields
            )

        searches = "search" in [chosen.match for chosen in query.filters]
        return await self._keeper.kept((self.search if searches else self.read)(page))

    async def create_appointment(self, draft: Draft) -> Record:
        """Checks, writes, reads back and checks again; one booking at a time for each vet."""
        await self._keeper.learn_draft(draft)
        booked = self._hours.book(
            lambda known: self.book(lambda session: self.bookings.book(session, draft, known))
        )
        record = await self._keeper.kept(booked, is_booking=True)
        await self._hours.keep([record])
        return record

    async def find_appointments(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """Returns a draft's appointments, looked up while no booking of that vet is under way."""
        if not self.books:
            raise base.OutcomeUnknown(_LOST)
        await self._keeper.learn_draft(draft)
        lookup = self.find(lambda session: self.bookings.find(session, draft, since), draft)
        records = await self._keeper.kept(lookup)
        await self._hours.keep(records)
        return records

    async def find_overwritten(self, appointments: Sequence[str]) -> Watched:
        """Returns which are overwritten, in a read's time for every WATCHED_IN_A_READ of them."""
        if not self.books:
            raise base.BackendUnavailable(_LOST)
        await self._keeper.learn_all("appointments", appointments)
        reads = -(-len(appointments) // base.WATCHED_IN_A_READ)
        return await self._hours.read(
            lambda known: self.read(
                lambda session: self.bookings.overwritten(session, appointments, known),
                reads=reads,
            )
        )

    async def learn(self, resource: str, public_ids: Sequence[str]) -> None:
        """Looks up ids of one resource, so that they can be asked for."""
        await self._keeper.learn_all(resource, public_ids)
