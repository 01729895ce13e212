"""Tells appointments apart in the hour that the clinic's clock shows twice in autumn.

A column that keeps what the clock shows cannot tell the two hours apart. The gateway keeps which of
them it booked, and says so for as long as the clock shows the same.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from adapters.base import AdapterError, BookedTimes, OutcomeUnknown, Record, SlotTaken
from adapters.mapped.appointment import TakenMeanwhile
from adapters.mapped.slots import Block, Interval
from adapters.mapped.spans import narrowed
from adapters.values.times import Later, TimeConverter, instant_text

T = TypeVar("T")
BEGINS, ENDS = "scheduledAt", "endTime"
TIMES = frozenset((BEGINS, ENDS))


@dataclass(frozen=True, slots=True)
class KnownTimes:
    """Booked times by public id; `missing` collects the ambiguous appointments not among them."""

    booked: Mapping[str, Interval] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    def narrowed(self, appointment: str, readings: Sequence[Block]) -> Sequence[Block]:
        """Returns the booked one of the times that a row may mean; all where none is known."""
        if appointment in self.booked:
            return narrowed(readings, self.booked[appointment])
        self.missing.add(appointment)
        return readings


class RepeatedHours:
    """Booked times of appointments; `fields` are those that the mapping fills."""

    def __init__(self, fields: Mapping[str, Any], kept: BookedTimes | None) -> None:
        self._begins: TimeConverter | None = fields[BEGINS].converter if BEGINS in fields else None
        self._ends: TimeConverter | None = fields[ENDS].converter if ENDS in fields else None
        self._kept = kept

    def settled(self, record: Record, booked: Interval) -> Record:
        """Returns the record with its booked times, where the practice's clock shows these.

        A derived end moves with its start; a written one is as booked, or the first after the
        start.
        """
        begins, ends = _moment(record, BEGINS), _moment(record, ENDS)
        if self._begins is None or begins is None:
            return record
        if booked.start not in self._begins.readings(begins):
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
        """Returns whether the clock shows one of the record's times twice."""
        times = ((BEGINS, self._begins), (ENDS, self._ends))
        shown = ((_moment(record, name), converter) for name, converter in times)
        return any(at and how and len(how.readings(at)) > 1 for at, how in shown)

    async def as_booked(self, record: Record) -> Record:
        """Returns the record as it was booked, else as read, with an end after its start."""
        begins = _moment(record, BEGINS)
        if begins is None or not self.is_unclear(record):
            return record
        booked = (await self.known([record["id"]])).get(record["id"])
        return self.settled(record, booked or Interval(begins, _moment(record, ENDS) or begins))

    async def read(self, ask: Callable[[KnownTimes], Awaitable[T]]) -> T:
        """Returns the answer, asked for again where booked times of ambiguous rows are kept."""
        known = KnownTimes()
        answer = await ask(known)
        booked = await self.known(known.missing)
        return await ask(KnownTimes(booked)) if booked else answer

    async def book(self, ask: Callable[[KnownTimes], Awaitable[T]]) -> T:
        """Books, and once more with booked times where ambiguous rows may stand in the way."""
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
        """Returns when these were booked, for those whose times are kept."""
        if self._kept is None or not appointments:
            return {}
        booked = await self._kept.find(list(appointments))
        return {name: Interval(*times) for name, times in booked.items()}

    async def keep(self, records: Iterable[Record]) -> None:
        """Keeps booked times that the clock shows twice; raises OutcomeUnknown where it cannot."""
        for record in records:
            begins = _moment(record, BEGINS)
            if self._kept is None or begins is None or not self.is_unclear(record):
                continue
            try:
                await self._kept.remember(record["id"], begins, _moment(record, ENDS) or begins)
            except AdapterError as error:
                raise OutcomeUnknown("it was booked, and its time could not be kept") from error


def _moment(record: Record, name: str) -> datetime | None:
    shown = record.get(name)
    return None if shown is None else datetime.fromisoformat(shown)
