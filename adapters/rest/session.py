"""One call to a mapped backend: a session whose questions are calls over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendTimeout,
    BackendUnavailable,
    Draft,
    Filter,
    NotFound,
    Only,
    OutcomeUnknown,
    Page,
    Record,
)
from adapters.mapped.booked import draft_values
from adapters.mapped.session import (
    BookedVisit,
    BookingProgress,
    Calendar,
    DiarySpan,
    HoursRow,
    Offer,
    TimeRow,
)
from adapters.mapped.slots import Interval
from adapters.mapping.models import AnyCall
from adapters.rest.booking import BookingCalls
from adapters.rest.diary import DiaryCalls
from adapters.rest.reading import ResourceReader
from adapters.rest.templates import Values
from adapters.rest.together import for_each, together
from adapters.rest.toolbox import Toolbox
from adapters.values.times import instant_text

T = TypeVar("T")
Attempt = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestPlan:
    """What is asked of a backend: the calls of resources, of the diary, and of a booking."""

    readers: Mapping[str, ResourceReader]
    diary: DiaryCalls
    calls: BookingCalls


class RestSession:
    """Answers by calls, each within the deadline of the whole."""

    def __init__(
        self, plan: RestPlan, driver: "RestDriver", stack: AsyncExitStack, deadline: float
    ) -> None:
        self._plan = plan
        self._driver = driver
        self._stack = stack
        self._deadline = deadline
        self._values = Values()
        self._made: str | None = None
        self._attempt: Attempt | None = None
        self.progress = BookingProgress()

    async def together(self, *asked: Coroutine[Any, Any, Any]) -> list[Any]:
        return await together(*asked)

    async def one(self, resource: str, public_id: str, only: Only = ()) -> Record:
        return await self._plan.readers[resource].one(public_id, only)

    async def exists(self, resource: str, public_id: str, only: Only = ()) -> None:
        await self._plan.readers[resource].one(public_id, only)

    async def page(
        self, resource: str, filters: Sequence[Filter], limit: int, after: str | None, only: Only
    ) -> Page:
        return await self._plan.readers[resource].page(filters, limit, after, only)

    async def standing(self, appointments: Sequence[str]) -> Mapping[str, BookedVisit | None]:
        """Each is asked for, or all are looked for in the list."""
        reader = self._plan.readers["appointments"]
        if not reader.has_one:
            try:
                listed = await reader.listed(appointments)
            except BackendNonsense:
                return dict.fromkeys(appointments)
            return {
                each: stands for each, record in listed.items() if (stands := _standing(record))
            }
        found = await for_each(self._stands, appointments)
        return {
            each: stands
            for each, (is_there, stands) in zip(appointments, found, strict=True)
            if is_there
        }

    async def _stands(self, appointment: str) -> tuple[bool, BookedVisit | None]:
        """Whether it is there, and how; None where it cannot be read."""
        try:
            stands = _standing(await self._plan.readers["appointments"].one(appointment))
        except NotFound:
            return False, None
        except BackendNonsense:
            return True, None
        return stands is not None, stands

    async def schedules(self, vet: str) -> Sequence[Any]:
        schedules = self._plan.diary.schedules
        return [] if schedules is None else await schedules.read(vet)

    def keys(self, vet: str) -> Sequence[str]:
        return [str(each) for each in self._plan.readers["vets"].maker.key.converter.encode(vet)]

    def appointment(self, key: Any) -> str | None:
        """Rows of the diary have public ids already."""
        return None if key is None else str(key)

    async def hours(self, source: int, calendar: Calendar) -> Sequence[HoursRow | None]:
        rows = self._plan.diary.hours[source]
        return [] if rows is None else await rows.read(calendar)

    async def busy(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        return await self._plan.diary.busy[source].read(span, self._plan.diary.diary)

    async def slots(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        return await self._plan.diary.slots[source].read(span, self._plan.diary.diary)

    async def durations(self, source: int, calendar: Calendar, type_id: str) -> Sequence[Any]:
        return await self._plan.diary.durations[source].read(calendar, type_id)

    def kept(self, draft: Draft) -> Draft:
        return draft

    async def lock(self, calendar: Calendar) -> None:
        """Held in this process until the call ends."""
        name = f"vet:{calendar.vet}"
        if calendar.schedule is not None:
            name = f"schedule:{calendar.schedule}"
        await self._stack.enter_async_context(self._driver.lock(name))

    @asynccontextmanager
    async def before_writing(self) -> AsyncIterator[None]:
        """BackendUnavailable where no time is left to book in."""
        try:
            async with asyncio.timeout_at(self._deadline):
                yield
        except TimeoutError as error:
            raise BackendUnavailable("no time was left to book in") from error

    async def write(self, draft: Draft, offer: Offer) -> str:
        """Make the calls of the booking in their order."""
        given = draft_values(draft, offer.interval)
        given |= {"schedule": offer.calendar.schedule, "slot": offer.slot}
        self._values = Values(given, self.progress.made)
        self._attempt = name_of(draft)
        async with self._unsettled():
            self._made = await self._plan.calls.make(
                self._values, self._deadline, self.progress, of_slot=offer.slot is not None
            )
        return self._made

    @asynccontextmanager
    async def after_writing(self) -> AsyncIterator[None]:
        """OutcomeUnknown where the appointment cannot be read back."""
        async with self._unsettled():
            try:
                async with asyncio.timeout_at(self._deadline):
                    yield
            except (TimeoutError, AdapterError) as error:
                text = f"the new appointment cannot be read back: {error}"
                raise OutcomeUnknown(text) from error

    async def withdraw(self) -> None:
        """Take the appointment back by the mapping's call."""
        async with self._unsettled():
            await self._plan.calls.withdraw(self._values, self._made, self._deadline)

    @asynccontextmanager
    async def _unsettled(self) -> AsyncIterator[None]:
        """Remember an attempt whose outcome is not known."""
        try:
            yield
        except (OutcomeUnknown, asyncio.CancelledError):
            if self._attempt is not None:
                self._driver.remember(self._attempt)
            raise

    async def carrying(self, draft: Draft, interval: Interval) -> Sequence[Record]:
        return await self._plan.calls.find(draft, Values(draft_values(draft, interval)))

    async def left_behind(
        self, draft: Draft, interval: Interval, since: datetime
    ) -> Sequence[Record]:
        return await self._plan.calls.find(draft, Values(draft_values(draft, interval)))


def _standing(record: Record) -> BookedVisit | None:
    """None of one that the desk has given to nobody."""
    if not record["scheduledAt"] or not record["vetId"]:
        return None
    begins = datetime.fromisoformat(record["scheduledAt"])
    return BookedVisit(record["id"], record["vetId"], begins, record["appointmentTypeId"])


def name_of(draft: Draft) -> Attempt:
    """What two attempts at one booking have in common."""
    return draft.vet_id, instant_text(draft.scheduled_at)


class RestDriver:
    """Runs what the core asks over HTTP; its locks are this process's."""

    excludes = False

    def __init__(
        self, plan: RestPlan, tools: Toolbox, *, ping: str | None, settle: float, patience: float
    ) -> None:
        self.plan = plan
        self.tools = tools
        self._ping = ping
        self._settle = settle
        self._patience = patience
        self._attempts: dict[Attempt, float] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, name: str) -> asyncio.Lock:
        """The lock of that name."""
        return self._locks.setdefault(name, asyncio.Lock())

    async def read(self, flow: Callable[[RestSession], Awaitable[T]], *, reads: int = 1) -> T:
        """BackendTimeout where the calls of so many reads take too long together."""
        patience = self.tools.timeout * reads
        try:
            async with asyncio.timeout(patience):
                return await self._run(flow, patience)
        except TimeoutError as error:
            raise BackendTimeout("the backend did not answer all in time") from error

    async def search(self, flow: Callable[[RestSession], Awaitable[T]]) -> T:
        return await self.read(flow)

    async def book(self, flow: Callable[[RestSession], Awaitable[T]]) -> T:
        """`patience` is what one booking may take; the session keeps to it."""
        return await self._run(flow, self._patience)

    async def look(self, flow: Callable[[RestSession], Awaitable[T]]) -> T:
        """Ask with no time for all calls together: each has its own."""
        return await self._run(flow, inf)

    async def find(self, flow: Callable[[RestSession], Awaitable[T]], draft: Draft) -> T:
        """OutcomeUnknown while the backend may still be at work on the attempt."""
        found = await self.read(flow)
        sent = self._attempts.get(name_of(draft))
        if not found and sent is not None and self._now() - sent < self._settle:
            raise OutcomeUnknown("the backend may still be at work on the booking")
        self._attempts.pop(name_of(draft), None)
        return found

    async def _run(self, flow: Callable[[RestSession], Awaitable[T]], patience: float) -> T:
        async with AsyncExitStack() as stack:
            return await flow(RestSession(self.plan, self, stack, self._now() + patience))

    def remember(self, attempt: Attempt) -> None:
        """Keep that something may still come of an attempt, for as long as that may be."""
        now = self._now()
        kept = self._attempts.items()
        self._attempts = {name: at for name, at in kept if now - at < self._settle}
        self._attempts[attempt] = now

    async def ping(self) -> None:
        """The mapping's own cheap call, or one for the appointment types."""

        async def asked(session: RestSession) -> None:
            if self._ping is None:
                await session.page("appointmentTypes", (), 1, None, ())
                return
            request = self.tools.templates.call(AnyCall(get=self._ping), {}).request(Values())
            await self.tools.backend.read(request)

        await self.read(asked)

    async def aclose(self) -> None:
        await self.tools.backend.aclose()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
