"""One call to a mapped backend: a session whose questions are calls over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from math import inf
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from adapters.base import (
    AdapterError,
    BackendTimeout,
    BackendUnavailable,
    Draft,
    Filter,
    Only,
    OutcomeUnknown,
    Page,
    Record,
)
from adapters.mapped.adapter import Core
from adapters.mapped.booked import draft_values
from adapters.mapped.session import (
    BookingProgress,
    Calendar,
    DiarySpan,
    HoursRow,
    Offer,
    TimeRow,
)
from adapters.mapped.slots import Interval
from adapters.mapping.models import AnyCall
from adapters.rest.backend import together
from adapters.rest.booking import BookingCalls
from adapters.rest.diary import DiaryCalls
from adapters.rest.requests import TemplateValues
from adapters.rest.resource import Components, ResourceCalls
from adapters.values.times import instant_text

T = TypeVar("T")
# What two attempts at one booking have in common: the vet, and when it begins.
Attempt = tuple[str, str]


class RestSession:
    """Answers by calls, each within the deadline of the whole."""

    def __init__(self, driver: "RestDriver", stack: AsyncExitStack, deadline: float) -> None:
        self._driver, self._readers, self._diary = driver, driver.readers, driver.diary
        self._stack, self._deadline = stack, deadline
        self._values = TemplateValues()
        self._made: str | None = None
        self._attempt: Attempt | None = None
        self.progress = BookingProgress()

    async def together(self, *asked: Coroutine[Any, Any, Any]) -> list[Any]:
        return await together(*asked)

    async def one(self, resource: str, public_id: str, only: Only = ()) -> Record:
        return await self._readers[resource].one(public_id, only)

    async def exists(self, resource: str, public_id: str, only: Only = ()) -> None:
        await self._readers[resource].exists(public_id, only)

    async def page(
        self, resource: str, filters: Sequence[Filter], limit: int, after: str | None, only: Only
    ) -> Page:
        return await self._readers[resource].page(filters, limit, after, only)

    async def pick(
        self, resource: str, public_ids: Sequence[str], names: Sequence[str]
    ) -> Mapping[str, Sequence[Any] | None]:
        return await self._readers[resource].pick(public_ids, names)

    async def schedules(self, vet: str) -> Sequence[Any]:
        schedules = self._diary.schedules
        return [] if schedules is None else await schedules(vet)

    def keys(self, vet: str) -> Sequence[str]:
        return list(map(str, self._readers["vets"].key.converter.encode(vet)))

    def appointment(self, key: Any) -> str | None:
        """Rows of the diary have public ids already."""
        return None if key is None else str(key)

    async def hours(self, source: int, calendar: Calendar) -> Sequence[HoursRow | None]:
        read = self._diary.hours[source]
        return [] if read is None else await read(calendar)

    async def busy(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        return await self._diary.busy[source](span)

    async def slots(self, source: int, span: DiarySpan) -> Sequence[TimeRow | None]:
        return await self._diary.slots[source](span)

    async def durations(self, source: int, calendar: Calendar, type_id: str) -> Sequence[Any]:
        return await self._diary.durations[source](calendar, type_id)

    def kept(self, draft: Draft) -> Draft:
        return draft

    async def lock(self, calendar: Calendar) -> None:
        """Held in this process until the call ends."""
        named, name = calendar.schedule is not None, f"vet:{calendar.vet}"
        name = f"schedule:{calendar.schedule}" if named else name
        lock = self._driver.locks.setdefault(name, asyncio.Lock())
        await self._stack.enter_async_context(lock)

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
        self._values = TemplateValues(given, self.progress.made)
        self._attempt = attempt_of(draft)
        async with self._unsettled():
            self._made = await self._driver.calls.make(
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
            await self._driver.calls.withdraw(self._values, self._made, self._deadline)

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
        return await self._driver.calls.find(draft, TemplateValues(draft_values(draft, interval)))

    async def left_behind(
        self, draft: Draft, interval: Interval, since: datetime
    ) -> Sequence[Record]:
        return await self.carrying(draft, interval)


def attempt_of(draft: Draft) -> Attempt:
    return draft.vet_id, instant_text(draft.scheduled_at)


class RestDriver:
    """Runs what the core asks over HTTP; its locks are this process's.

    `patience` is how many seconds one booking may take.
    """

    excludes = False

    def __init__(
        self,
        core: Core,
        readers: Mapping[str, ResourceCalls],
        parts: Components,
        patience: float,
    ) -> None:
        self.readers = readers
        self.diary = DiaryCalls(core.diary, parts)
        booking = core.mapping.booking
        self.calls = BookingCalls(booking, readers["appointments"], parts)
        self._parts, self._patience = parts, patience
        ping, self._settle = core.mapping.backend.ping, booking.settle
        self._ping = None if ping is None else parts.templates.call(AnyCall(get=ping), {})
        self._attempts: dict[Attempt, float] = {}
        self.locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def one(self, resource: str, public_id: str, only: Only) -> Record:
        return await self.read(lambda session: session.one(resource, public_id, only))

    async def read(self, flow: Callable[[RestSession], Awaitable[T]], *, reads: int = 1) -> T:
        """BackendTimeout where the calls of so many reads take too long together."""
        patience = self._parts.timeout * reads
        try:
            async with asyncio.timeout(patience):
                return await self._run(flow, patience)
        except TimeoutError as error:
            raise BackendTimeout("the backend did not answer all in time") from error

    search = read

    async def book(self, flow: Callable[[RestSession], Awaitable[T]]) -> T:
        """The session keeps to the time that a booking may take."""
        return await self._run(flow, self._patience)

    async def look(self, flow: Callable[[RestSession], Awaitable[T]]) -> T:
        """Ask with no time for all calls together: each has its own."""
        return await self._run(flow, inf)

    async def find(self, flow: Callable[[RestSession], Awaitable[T]], draft: Draft) -> T:
        """OutcomeUnknown while the backend may still be at work on the attempt."""
        found = await self.read(flow)
        sent = self._attempts.get(attempt_of(draft))
        if not found and sent is not None and _now() - sent < self._settle:
            raise OutcomeUnknown("the backend may still be at work on the booking")
        self._attempts.pop(attempt_of(draft), None)
        return found

    async def _run(self, flow: Callable[[RestSession], Awaitable[T]], patience: float) -> T:
        async with AsyncExitStack() as stack:
            return await flow(RestSession(self, stack, _now() + patience))

    def remember(self, attempt: Attempt) -> None:
        """Keep that something may still come of an attempt, for as long as that may be."""
        now, sent = _now(), self._attempts.items()
        self._attempts = {name: at for name, at in sent if now - at < self._settle}
        self._attempts[attempt] = now

    async def ping(self) -> None:
        """The mapping's own cheap call, or one for the appointment types."""

        async def ask(session: RestSession) -> None:
            if self._ping is None:
                await session.page("appointmentTypes", (), 1, None, ())
            else:
                await self._parts.backend.read(self._ping.request(TemplateValues()))

        await self.read(ask)

    async def aclose(self) -> None:
        await self._parts.backend.aclose()


def _now() -> float:
    return asyncio.get_running_loop().time()
