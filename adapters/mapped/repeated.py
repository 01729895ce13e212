"""Appointments in an hour that the clinic's clock shows twice: at which of the two they are.

A clock on the wall goes back in autumn; columns that keep what it shows cannot tell the two hours
apart. When one was booked is kept beside the practice system, and told for as long as the clock
shows the same.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from adapters.base import AdapterError, BookedTimes, OutcomeUnknown, Record, SlotTaken
from adapters.mapped.booked import TakenMeanwhile
from adapters.mapped.slots import Block, Interval
from adapters.mapped.spans import narrowed
from adapters.values.times import Later, TimeConverter, instant_text

T = TypeVar("T")
BEGINS, ENDS = "scheduledAt", "endTime"


@dataclass(frozen=True, slots=True)
class KnownTimes:
    """Booked times by public id; `missing` collects the ambiguous appointments not among them."""

    booked: Mapping[str, Interval] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    def narrowed(self, appointment: str, readings: Sequence[Block]) -> Sequence[Block]:
        """The booked one of the times that an appointment's row may mean; all where none is."""
        if appointment in self.booked:
            return narrowed(readings, self.booked[appointment])
        self.missing.add(appointment)
        return readings


class RepeatedHours:
    """Tells and keeps the times of appointments; `fields` are those that the mapping fills."""

    def __init__(self, fields: Mapping[str, Any], kept: BookedTimes | None) -> None:
        self._begins: TimeConverter = fields[BEGINS].converter
        self._ends: TimeConverter | None = fields[ENDS].converter if ENDS in fields else None
        self._kept = kept

    def settled(self, record: Record, booked: Interval) -> Record:
        """The record with the booked times, where the practice system's clock shows these.

        An end that was read moves on with its start, or is the one in the other of the two hours.
        """
        begins, ends = _moment(record, BEGINS), _moment(record, ENDS)
        if begins is None or booked.start not in self._begins.readings(begins):
            return record
        settled = {**record, BEGINS: instant_text(booked.start)}
        if ends is None:
            return settled
        if self._ends is None or isinstance(self._ends, Later):
            settled[ENDS] = instant_text(ends + (booked.start - begins))
        else:
            choices = [end for end in self._ends.readings(ends) if end > booked.start]
            end = booked.end if booked.end in choices else min(choices, default=ends)
            settled[ENDS] = instant_text(end)
        return settled

    def is_unclear(self, record: Record) -> bool:
        """Whether the clock shows one of its times twice."""
        times = ((BEGINS, self._begins), (ENDS, self._ends))
        shown = ((_moment(record, name), converter) for name, converter in times)
        return any(at and how and len(how.readings(at)) > 1 for at, how in shown)

    async def told(self, record: Record) -> Record:
        """The record as it was booked through us; else as read, with an end behind its start."""
        begins = _moment(record, BEGINS)
        if begins is None or not self.is_unclear(record):
            return record
        found = (await self.known([record["id"]])).get(record["id"])
        return self.settled(record, found or Interval(begins, _moment(record, ENDS) or begins))

    async def read(self, ask: Callable[[KnownTimes], Awaitable[T]]) -> T:
        """The answer; asked again with the booked times of ambiguous rows, where any are kept."""
        known = KnownTimes()
        answer = await ask(known)
        booked = await self.known(known.missing)
        return await ask(KnownTimes(booked)) if booked else answer

    async def book(self, ask: Callable[[KnownTimes], Awaitable[T]]) -> T:
        """The same of a booking: asked again where only ambiguous rows may stand in its way."""
        known = KnownTimes()
        try:
            return await ask(known)
        except TakenMeanwhile as error:
            raise SlotTaken(str(error)) from error
        except SlotTaken:
            booked = await self.known(known.missing)
            if not booked:
                raise
        return await ask(KnownTimes(booked))

    async def known(self, appointments: Collection[str]) -> Mapping[str, Interval]:
        """When these were booked, of those whose times are kept."""
        if self._kept is None or not appointments:
            return {}
        found = await self._kept.find(list(appointments))
        return {name: Interval(*each) for name, each in found.items()}

    async def keep(self, records: Iterable[Record]) -> None:
        """Keep the times of what was booked, where the clock shows them twice.

        OutcomeUnknown where they could not be kept.
        """
        for each in records:
            begins = _moment(each, BEGINS)
            if self._kept is None or begins is None or not self.is_unclear(each):
                continue
            try:
                await self._kept.remember(each["id"], begins, _moment(each, ENDS) or begins)
            except AdapterError as error:
                raise OutcomeUnknown("it was booked, and its time could not be kept") from error


def _moment(record: Record, name: str) -> datetime | None:
    shown = record.get(name)
    return None if shown is None else datetime.fromisoformat(shown)
