"""The adapter of a mapped practice system that speaks JSON over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import datetime
from typing import Any, ClassVar, TypeVar
from weakref import WeakValueDictionary

from yarl import URL

from adapters import base
from adapters.base import AdapterError, BackendUnavailable, Draft, OutcomeUnknown, Record
from adapters.documents.document import Document
from adapters.documents.problems import DocumentErrors, Problem, warnings_of
from adapters.mapped.adapter import MappedAdapter
from adapters.mapped.appointment import CANCELLED, draft_values, offered_values
from adapters.mapped.records import Endless, Fields
from adapters.mapped.session import (
    BookingProgress,
    Calendar,
    DiarySpan,
    HoursRow,
    Offer,
    ScheduleRow,
    TimeRow,
)
from adapters.mapped.slots import Interval
from adapters.mapping.conversion import DRAFT_FIELDS
from adapters.mapping.loader import open_mapping
from adapters.mapping.models import AnyCall, MappingFile, RowSource
from adapters.mapping.paths import path, value_at
from adapters.rest.backend import together
from adapters.rest.checks import diary_problems_of, problems_of
from adapters.rest.client import Client, address_problem
from adapters.rest.diary import DiaryCalls
from adapters.rest.paging import MOST_ROWS, Pager
from adapters.rest.requests import TemplateValues
from adapters.rest.resource import Components, ResourceCalls
from adapters.rest.steps import LEAST_PATIENCE, NothingSent, StepsTaken, step_calls
from adapters.values.convert import Unreadable
from adapters.values.times import instant_text
from adapters.wrappers.deadline import CallSpan, Deadline

T = TypeVar("T")
LATE = "the backend did not answer all in time"
# What attempts at one booking have in common: the vet, and when it begins.
Attempt = tuple[str, str]


class RestSession:
    """Answers by calls over HTTP; a booking has until `deadline`, by the event loop's clock."""

    made: str | None = None
    """The public id of the appointment that was made, while it was not withdrawn."""
    _attempt: Attempt | None = None

    def __init__(self, adapter: "RestAdapter", deadline: float, *, dry: bool = False) -> None:
        self._dry = dry
        self._adapter, self._readers, self._calls = adapter, adapter.readers, adapter.diary_calls
        self._backend = adapter.parts.backend
        self._deadline, self._locks = deadline, list[asyncio.Lock]()
        self.progress = BookingProgress()
        self._steps = StepsTaken(adapter.steps, self._backend, deadline, self.progress, dry=dry)

    together = staticmethod(together)

    def reader(self, resource: str) -> ResourceCalls:
        return self._readers[resource]

    async def schedules(self, vet: str) -> Sequence[ScheduleRow]:
        schedules = self._calls.schedules
        return [] if schedules is None else await schedules(vet)

    async def sharing(self, calendar: Calendar) -> Sequence[str]:
        """Returns no vets: a call says which schedules a vet has, and none the vets of one."""
        return []

    def keys(self, vet: str) -> Sequence[str]:
        return list(map(str, self._readers["vets"].key.converter.encode(vet)))

    def appointment(self, key: Any) -> str | None:
        """Returns the key as a text: rows of the diary have public ids already."""
        return None if key is None else str(key)

    async def hours(self, source: int, calendar: Calendar) -> Sequence[HoursRow | None]:
        return await self._calls.hours[source](calendar)

    async def busy(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        return await self._calls.busy[source](span)

    async def slots(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        return await self._calls.slots[source](span)

    async def durations(self, source: int, calendar: Calendar, type_id: str) -> Sequence[Any]:
        return await self._calls.durations[source](calendar, type_id)

    def kept(self, draft: Draft) -> Draft:
        return draft

    async def lock(self, calendar: Calendar) -> None:
        """Holds a lock of this process until `release`."""
        vet, schedule = calendar.vet, calendar.schedule
        name = f"vet:{vet}" if schedule is None else f"schedule:{schedule}"
        lock = self._adapter.locks.setdefault(name, asyncio.Lock())
        await lock.acquire()
        self._locks.append(lock)

    async def lock_alone(self, vet: str) -> None:
        """Does nothing: a vet's own lock is enough."""

    def release(self) -> None:
        """Lets go of the locks that it holds."""
        while self._locks:
            self._locks.pop().release()

    @asynccontextmanager
    async def before_writing(self) -> AsyncIterator[None]:
        """Raises BackendUnavailable where no time is left to book in."""
        try:
            async with asyncio.timeout_at(self._deadline):
                yield
        except TimeoutError as error:
            raise BackendUnavailable("no time was left to book in") from error

    async def write(self, draft: Draft, offer: Offer) -> str:
        """Makes the calls of the booking in order; returns the appointment's public id.

        Raises OutcomeUnknown as soon as something was sent and it is not known what came of it, and
        NothingSent where the session is dry.
        """
        given = offered_values(draft, offer)
        made_of: list[dict[str, Any]] = [{} for _ in offer.slots]
        self._steps.values = TemplateValues(given, self.progress.made, offer.slots, made_of)
        self._attempt = attempt_of(draft)
        async with self._unsettled():
            await self._take_steps("time" if offer.slot is None else "slot")
            if self._dry:
                raise NothingSent
            with suppress(Unreadable):
                key = self.progress.made[self._adapter.appointment]
                self.made = self._readers["appointments"].key.converter.decode(key)
            if self.made is None:
                raise OutcomeUnknown("the new appointment has no id that can be read")
        return self.made

    async def _take_steps(self, kind: str) -> None:
        """Makes the calls for a `time` or a `slot`; takes back what was done where one fails."""
        steps = self._steps
        try:
            await steps.take(kind)
        except OutcomeUnknown:
            raise
        except Exception as error:
            if self._adapter.appointment in self.progress.made:
                await self.withdraw()
            elif not steps.can_be_undone:
                raise OutcomeUnknown(f"a booking stopped halfway: {error}") from error
            else:
                await steps.undo()
            if isinstance(error, base.BackendTimeout):
                # a read or a login took too long: nothing was done
                raise BackendUnavailable(str(error)) from error
            raise

    @asynccontextmanager
    async def after_writing(self) -> AsyncIterator[None]:
        """Raises OutcomeUnknown where the appointment cannot be read back."""
        async with self._unsettled():
            try:
                async with asyncio.timeout_at(self._deadline):
                    yield
            except (TimeoutError, AdapterError) as error:
                text = f"the new appointment cannot be read back: {error}"
                raise OutcomeUnknown(text) from error

    async def withdraw(self) -> None:
        """Takes the appointment back by the mapping's call, and then what the steps did beside it.

        The call is `cancel`, or `undo` of the step that made it. Raises BackendNonsense where there
        is none, and OutcomeUnknown where the appointment may not be gone.
        """
        name, record = self._adapter.appointment, None
        cancel = self._adapter.cancel or self._steps.undo_of(name)
        if cancel is None:
            text = "an appointment that is not good stays: the mapping has no booking.cancel"
            raise base.BackendNonsense(f"{text}, and the step that makes it no undo")
        async with self._unsettled():
            try:
                request, left = cancel.request(self._steps.values), self._deadline - _now()
                await self._backend.write(request, max(LEAST_PATIENCE, left), bare=True)
                if self.made is not None:
                    record = await self._readers["appointments"].one(self.made)
            except base.NotFound:
                pass
            except AdapterError as error:
                raise OutcomeUnknown(f"an appointment could not be withdrawn: {error}") from error
            if record is not None and record["status"] != CANCELLED:
                raise OutcomeUnknown("an appointment that was withdrawn still stands")
            self.made = None
            self._steps.forget(name)
            await self._steps.undo()

    @asynccontextmanager
    async def _unsettled(self) -> AsyncIterator[None]:
        """Remembers an attempt whose outcome is not known."""
        try:
            yield
        except (OutcomeUnknown, asyncio.CancelledError):
            if self._attempt is not None:
                self._adapter.remember(self._attempt)
            raise

    async def left_behind(
        self, draft: Draft, interval: Interval, since: datetime
    ) -> Sequence[Record]:
        """Returns the appointments of the lookup that carry the reference, if one is kept.

        Raises OutcomeUnknown where ours may be among those that were not returned.
        """
        find, reader = self._adapter.find_call, self._readers["appointments"]
        reference = self._adapter.reference if draft.reference else None
        mark = self._adapter.mark(draft.reference)

        def carries(row: Any) -> bool:  # a row of ours can be read
            return reference is None or str(value_at(reference, row)).lower() == mark.lower()

        looked_at, records = 0, list[Record]()
        endless = f"{find.label}: there is no end of what it gives"
        ask = self._backend.pages(find, TemplateValues(draft_values(draft, interval)))
        try:
            async with aclosing(self._adapter.find_pager.batches(ask, None, MOST_ROWS)) as batches:
                async for batch in batches:
                    # what has no usable id is an empty record
                    rows = await reader.joined([row for row in batch.rows if carries(row)])
                    records += filter(None, (reader.record(row, ()) for row in rows))
                    looked_at += len(batch.rows)
                    # a reference names one booking: later pages have no other
                    if batch.last or (reference is not None and records):
                        break
                    if looked_at >= MOST_ROWS:
                        raise OutcomeUnknown(endless)
        except Endless as error:
            raise OutcomeUnknown(endless) from error
        if reference is not None and looked_at and not records:  # the parameter was ignored
            raise OutcomeUnknown(f"{find.label}: the backend gives others than was asked for")
        return records


def attempt_of(draft: Draft) -> Attempt:
    return draft.vet_id, instant_text(draft.scheduled_at)


class RestAdapter(MappedAdapter):
    """Reads and books by the calls of a mapping, over `client` or a client of its own.

    Its locks hold in this process alone. Raises ValueError without a mapping, and DocumentErrors
    where the mapping or the address cannot be used.
    """

    excludes: ClassVar[bool] = False
    readers: Mapping[str, ResourceCalls]

    def __init__(self, options: base.AdapterOptions, client: Client | None = None) -> None:
        text = address_problem(options.url)
        problems = [] if text is None else [Problem("backend.url", 0, 0, text, "bad-address")]
        mapping, document = open_mapping(options, "rest", problems)
        if client is None:
            client = Client(options.url, timeout=options.timeout, in_flight=options.in_flight)
        parts = Components(mapping, options, client, _token_client(mapping, document, options))
        readers = {
            name: ResourceCalls(name, resource, parts)
            for name, resource in mapping.resources.items()
        }
        super().__init__(options, mapping, document, parts.converters, readers, asked_by_day=True)
        self.parts, self.diary_calls = parts, DiaryCalls(mapping.diary, parts)
        booking, ping, call = mapping.booking, mapping.backend.ping, parts.templates.call
        self.appointment = booking.appointment
        self.steps = step_calls(booking, parts.templates)
        find = booking.find or RowSource(get="/")  # the checker knows that there is one
        self.find_call = call(find, DRAFT_FIELDS)
        found = readers.get("appointments")
        key = found.key.plain if found else str  # with nothing to find
        self.find_pager = Pager(find.page, path(find.items), key, self.find_call.label)
        self.reference = path(booking.reference) if booking.reference else None
        self.cancel = None if booking.cancel is None else call(booking.cancel, DRAFT_FIELDS)
        self._ping = None if ping is None else call(AnyCall(get=ping), {})
        self._deadlines: dict[int, Deadline] = {}
        self._attempts: dict[Attempt, float] = {}
        self.locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def one(self, resource: str, public_id: str, only: base.Only, fields: Fields) -> Record:
        """Reads one record without a session, as most calls are such reads."""
        try:
            with CallSpan(self._deadline(1)):
                return await self.readers[resource].one(public_id, only, fields)
        except TimeoutError as error:
            raise base.BackendTimeout(LATE) from error

    async def read(self, flow: Callable[[RestSession], Awaitable[T]], *, reads: int = 1) -> T:
        """Runs a flow. Raises BackendTimeout where it takes longer than so many reads may."""
        deadline = self._deadline(reads)
        try:
            with CallSpan(deadline):
                return await self.run(flow, deadline.seconds)
        except TimeoutError as error:
            raise base.BackendTimeout(LATE) from error

    def _deadline(self, reads: int) -> Deadline:
        deadline = self._deadlines.get(reads)
        if deadline is None:
            deadline = self._deadlines[reads] = Deadline(self.parts.timeout * reads)
        return deadline

    async def book(self, flow: Callable[[RestSession], Awaitable[T]]) -> T:
        """Runs a flow whose session keeps to the time that a booking may take."""
        return await self.run(flow, self.options.booking_timeout)

    async def find(self, flow: Callable[[RestSession], Awaitable[T]], draft: Draft) -> T:
        """Runs a lookup. Raises OutcomeUnknown while the backend may be at work on the attempt."""
        result = await self.read(flow)
        sent = self._attempts.get(attempt_of(draft))
        if not result and sent is not None and _now() - sent < self.settle:
            raise OutcomeUnknown("the backend may still be at work on the booking")
        self._attempts.pop(attempt_of(draft), None)
        return result

    async def run(self, flow: Callable[[RestSession], Awaitable[T]], patience: float) -> T:
        """Runs a flow in a session that may take so many seconds to book."""
        session = RestSession(self, _now() + patience)
        try:
            return await flow(session)
        finally:
            session.release()

    def remember(self, attempt: Attempt) -> None:
        """Remembers for `settle` seconds that an attempt may still have an effect."""
        now, sent = _now(), self._attempts.items()
        self._attempts = {name: at for name, at in sent if now - at < self.settle}
        self._attempts[attempt] = now

    async def ping(self) -> None:
        """Makes the mapping's own cheap call, or asks for one record: of the types, if mapped."""
        if self._ping is None:
            # the checker knows that there is one
            names = ("appointmentTypes", *self.readers)
            name = next(it for it in names if it in self.readers and self.readers[it].listing())
            no_fields = frozenset[str]()  # what only other calls tell is not asked for
            await self.read(lambda session: session.reader(name).page((), 1, None, (), no_fields))
        else:
            request = self._ping.request(TemplateValues())
            await self.read(lambda _: self.parts.backend.read(request))

    async def check(self) -> Sequence[Problem]:
        problems = [problem async for problem in problems_of(self, self.readers)]
        problems += [problem async for problem in diary_problems_of(self, self.readers)]
        return warnings_of(problems)

    async def aclose(self) -> None:
        await self.parts.backend.aclose()


def _token_client(
    mapping: MappingFile, document: Document, options: base.AdapterOptions
) -> Client | None:
    """Returns what asks for tokens at an address of their own; None where they have none.

    Raises DocumentErrors where a secret would go over a line that anybody can listen to.
    """
    oauth = mapping.backend.oauth
    if oauth is None or oauth.url.startswith("/"):
        return None
    address = URL(oauth.url)
    if address.scheme != "https" and URL(options.url).scheme == "https":
        text = "must begin with https, as backend.url does: the client's secret is sent there"
        raise DocumentErrors([document.problem(("backend", "oauth", "url"), text, "bad-address")])
    return Client(str(address.origin()), timeout=options.timeout, in_flight=1)


def _now() -> float:
    return asyncio.get_running_loop().time()
