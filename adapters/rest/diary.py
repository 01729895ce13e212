"""The diary: what is free, and a booking that is checked, sent, read back, and checked again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakValueDictionary

from adapters.base import (
    AdapterError,
    BackendNonsense,
    BackendUnavailable,
    Draft,
    NotFound,
    OutcomeUnknown,
    Record,
    SlotTaken,
)
from adapters.documents.document import Place
from adapters.mapped.booked import check_patient, difference, draft_values, is_of
from adapters.mapped.repeated import RepeatedHours
from adapters.mapped.slots import Interval, covered_slots, day_window, free_slots
from adapters.mapped.spans import type_lasts
from adapters.rest.availability import (
    Asked,
    AskedHours,
    Hours,
    Span,
    Spans,
    WrittenHours,
)
from adapters.rest.booking import BookingCalls
from adapters.rest.mapping import HoursWritten, Mapping
from adapters.rest.reading import ResourceReader
from adapters.rest.templates import Values
from adapters.rest.together import together
from adapters.rest.toolbox import Toolbox
from adapters.rest.watched import Look
from adapters.values.times import Later, instant_text


class Diary:
    """Free times and bookings. `patience` is what one booking may take, in seconds."""

    def __init__(
        self,
        mapping: Mapping,
        readers: dict[str, ResourceReader],
        tools: Toolbox,
        patience: float,
        hours: RepeatedHours,
    ) -> None:
        diary = mapping.diary
        self._readers = readers
        self._zone = tools.values.converters.zone
        self._step = timedelta(minutes=diary.step)
        self._minutes = diary.duration
        self.hours: list[Hours] = [
            WrittenHours(each, tools.values)
            if isinstance(each, HoursWritten)
            else AskedHours(each, tools)
            for each in diary.hours
        ]
        length = diary.duration
        self.free, self.busy = (
            [Spans(each, tools, self._zone, length, hours, blocks=blocks) for each in sources]
            for sources, blocks in ((diary.free, False), (diary.busy, True))
        )
        self.look = Look(readers["appointments"], self.busy, self._zone, length)
        self._calls = BookingCalls(mapping.booking, readers["appointments"], tools)
        self._patience = patience
        self._repeated = hours
        self._settle = mapping.booking.settle
        self._unsettled: dict[tuple[str, str], float] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def slots(self, values: Any, now: datetime) -> list[Record]:
        """The free slots of a day as records."""
        type_id = values.get("appointmentTypeId")
        vet, duration = values["vetId"], self._duration(type_id)
        found: list[Any] = await together(self._readers["vets"].one(vet), duration)
        free = await self._offered(vet, values["date"], found[1], type_id, now)
        return [
            {"startTime": instant_text(each.start), "endTime": instant_text(each.end)}
            for each in free
        ]

    def sources(self) -> Iterator[tuple[Place, Callable[[Asked], Awaitable[object]]]]:
        """Everything that is asked about a day, with its place in the mapping."""
        for number, hours in enumerate(self.hours):
            yield ("diary", "hours", number), hours.shifts
        for name, sources in (("free", self.free), ("busy", self.busy)):
            for number, each in enumerate(sources):
                yield ("diary", name, number), each.read

    async def book(self, draft: Draft) -> Record:
        """Check, send and verify one appointment; one at a time for each vet."""
        deadline = asyncio.get_running_loop().time() + self._patience
        try:
            async with asyncio.timeout_at(deadline):
                duration = await self._checked(draft)
                lock = self._lock(draft.vet_id)
                await lock.acquire()
        except TimeoutError as error:
            raise BackendUnavailable("no time was left to book in") from error
        try:
            return await self._book(draft, duration, deadline)
        finally:
            lock.release()

    async def find(self, draft: Draft, since: datetime) -> Sequence[Record]:
        """What an attempt left behind; OutcomeUnknown while none may still come of it."""
        async with self._lock(draft.vet_id):
            found = await self._left_behind(draft, since)
        sent = self._unsettled.get(_name(draft))
        if not found and sent is not None and self._now() - sent < self._settle:
            raise OutcomeUnknown("the backend may still be at work on the booking")
        self._unsettled.pop(_name(draft), None)
        return found

    async def _book(self, draft: Draft, duration: timedelta, deadline: float) -> Record:
        try:
            wanted = Interval(draft.scheduled_at, draft.scheduled_at + duration)
            async with asyncio.timeout_at(deadline):
                await self._must_be_free(draft, wanted)
        except OverflowError as error:
            raise SlotTaken("beyond the calendar") from error
        except TimeoutError as error:
            raise BackendUnavailable("no time was left to book in") from error
        values = Values(draft_values(draft, wanted), {})
        try:
            appointment = await self._calls.make(values, deadline)
            return await self._verified(draft, wanted, values, appointment, deadline)
        except (OutcomeUnknown, asyncio.CancelledError):
            self._remember(draft)
            raise

    async def _must_be_free(self, draft: Draft, wanted: Interval) -> None:
        day = draft.scheduled_at.astimezone(self._zone).date()
        duration = wanted.end - wanted.start
        kind = draft.appointment_type_id
        if wanted not in await self._offered(draft.vet_id, day, duration, kind, draft.now):
            raise SlotTaken("not one of the free slots")

    async def _verified(
        self, draft: Draft, wanted: Interval, values: Values, appointment: str, deadline: float
    ) -> Record:
        """The appointment as it is kept; withdrawn where it is not what was asked for."""
        try:
            async with asyncio.timeout_at(deadline):
                read = await self._readers["appointments"].one(appointment)
                record = self._repeated.settled(read, wanted)
                wrong = await self._wrong_with(record, draft, wanted, values)
        except (TimeoutError, AdapterError) as error:
            raise OutcomeUnknown(f"the new appointment cannot be read back: {error}") from error
        if wrong is None:
            return record
        await self._calls.withdraw(values, appointment, deadline)
        raise wrong

    async def _wrong_with(
        self, record: Record, draft: Draft, wanted: Interval, values: Values
    ) -> AdapterError | None:
        mapped = self._readers["appointments"].maker.fields.by_name
        other = difference(record, draft, wanted, mapped)
        if other is not None:
            return BackendNonsense(f"the new appointment reads back with another {other}")
        if self._calls.reference is not None and draft.reference:
            carrying = await self._calls.find(draft, values)
            if record["id"] not in [each["id"] for each in carrying]:
                return BackendNonsense("the new appointment is not found by its reference")
        return await self._clash(record["id"], draft, wanted)

    async def _clash(self, appointment: str, draft: Draft, wanted: Interval) -> AdapterError | None:
        """Whether another one is there at that time, or ours blocks nothing."""
        asked = Asked(draft.vet_id, wanted, _minutes(wanted), draft.appointment_type_id)
        spans = [each for each in await self._spans(self.busy, asked) if each.time.overlaps(wanted)]
        if any(source.knows_appointments for source in self.busy):
            ours = [each for each in spans if each.key == appointment]
        else:
            ours = spans[:1]
        if self.busy and not ours:
            return BackendNonsense("the new appointment blocks nothing: diary.busy misses it")
        if len(spans) > len(ours):
            return SlotTaken("the desk booked that time in between")
        return None

    async def _left_behind(self, draft: Draft, since: datetime) -> list[Record]:
        duration = await self._duration_left(draft)
        wanted = Interval(draft.scheduled_at, draft.scheduled_at + duration)
        read = await self._calls.find(draft, Values(draft_values(draft, wanted)))
        found = [self._repeated.settled(each, wanted) for each in read]
        if self._calls.reference is not None and draft.reference:
            return [each for each in found if each["patientId"] == draft.patient_id]
        mapped = self._readers["appointments"].maker.fields.by_name
        return [each for each in found if _is_of(each, draft, since, mapped)]

    async def _duration_left(self, draft: Draft) -> timedelta:
        """How long the appointment was to take, as far as that is still known."""
        try:
            return await self._duration(draft.appointment_type_id)
        except NotFound:
            return timedelta(minutes=self._minutes)

    async def _checked(self, draft: Draft) -> timedelta:
        """How long it takes; NotFound, and what `check_patient` raises."""
        answers: list[Any] = await together(
            self._readers["clients"].one(draft.client_id, draft.only.get("clients", ())),
            self._readers["patients"].one(draft.patient_id, draft.only.get("patients", ())),
            self._readers["vets"].one(draft.vet_id),
            self._duration(draft.appointment_type_id),
        )
        check_patient(answers[1], draft)
        duration: timedelta = answers[3]
        return duration

    async def _duration(self, type_id: str | None) -> timedelta:
        if type_id is None:
            return timedelta(minutes=self._minutes)
        minutes = (await self._readers["appointmentTypes"].one(type_id))["durationMinutes"]
        return type_lasts(minutes, self._minutes)

    async def _offered(
        self, vet: str, day: Any, duration: timedelta, kind: str | None, now: datetime
    ) -> list[Interval]:
        try:
            window = day_window(day, self._zone)
            wide = Interval(window.start, window.end + duration)
            asked = Asked(vet, wide, int(duration.total_seconds() // 60), kind)
            busy = [each.time for each in await self._spans(self.busy, asked)]
            if self.free:
                offered = [each.time for each in await self._spans(self.free, asked)]
                free = covered_slots(offered, busy, day, self._zone, duration=duration, now=now)
            else:
                lists = await together(*(each.shifts(asked) for each in self.hours))
                shifts = [shift for each in lists for shift in each]
                free = free_slots(
                    day, self._zone, shifts, busy, duration=duration, step=self._step, now=now
                )
        except OverflowError:  # the first and the last days of the calendar
            return []
        return free

    async def _spans(self, sources: Sequence[Spans], asked: Asked) -> list[Span]:
        lists = await together(*(each.read(asked) for each in sources))
        return [span for each in lists for span in each]

    def _lock(self, vet: str) -> asyncio.Lock:
        return self._locks.setdefault(vet, asyncio.Lock())

    def _remember(self, draft: Draft) -> None:
        now = self._now()
        kept = self._unsettled.items()
        self._unsettled = {name: at for name, at in kept if now - at < self._settle}
        self._unsettled[_name(draft)] = now

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _name(draft: Draft) -> tuple[str, str]:
    return draft.vet_id, instant_text(draft.scheduled_at)


def _minutes(time: Interval) -> int:
    return int((time.end - time.start).total_seconds() // 60)


def _is_of(record: Record, draft: Draft, since: datetime, mapped: Any) -> bool:
    """Whether an appointment is what this very draft would have made, then or later."""
    same = {
        "vetId": draft.vet_id,
        "patientId": draft.patient_id,
        "scheduledAt": instant_text(draft.scheduled_at),
    }
    if any(record[name] != value for name, value in same.items() if name in mapped):
        return False
    if not is_of(record, draft, mapped):
        return False
    created = record.get("createdAt")
    with suppress(ValueError):
        return not created or datetime.fromisoformat(created) >= _read_since(since, mapped)
    return True


def _read_since(since: datetime, mapped: Any) -> datetime:
    """The earliest time that reads from what was written at `since` or later."""
    converter: Any = mapped["createdAt"].converter
    if isinstance(converter, Later):
        return since.replace(microsecond=0)
    return datetime.fromisoformat(converter.decode(converter.first_written(since)))
