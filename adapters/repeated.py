"""Appointments in an hour that the clinic's clock shows twice: at which of the two they are.

A clock on the wall goes back in autumn; columns that keep what it shows cannot tell the two hours
apart. When one was booked is kept beside the practice system, and told for as long as the clock
shows the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from adapters.base import AdapterError, BookedTimes, OutcomeUnknown, Record
from adapters.slots import Interval
from adapters.times import Later, TimeConverter, instant_text

BEGINS, ENDS = "scheduledAt", "endTime"


class RepeatedHours:
    """Tells and keeps the times of appointments; `fields` are those that the mapping fills."""

    def __init__(self, fields: Mapping[str, Any], kept: BookedTimes | None) -> None:
        self._begins: TimeConverter = fields[BEGINS].converter
        self._ends: TimeConverter | None = fields[ENDS].converter if ENDS in fields else None
        self._kept = kept

    def readings(self, begins: datetime) -> Sequence[datetime]:
        """All that an appointment may read as that begins then."""
        return self._begins.readings(begins)

    def settled(self, record: Record, booked: Interval) -> Record:
        """The record with the booked times, where the practice system's clock shows these."""
        begins = _moment(record, BEGINS)
        if begins is None or booked.start not in self._begins.readings(begins):
            return record
        told = {**record, BEGINS: instant_text(booked.start)}
        ends = _moment(record, ENDS)
        if ends is not None:
            told[ENDS] = instant_text(self._end(ends, booked.start - begins, booked))
        return told

    def _end(self, read: datetime, moved: timedelta, booked: Interval) -> datetime:
        """The end that was read, moved on with its start, or in the other of the two hours."""
        if self._ends is None or isinstance(self._ends, Later):
            return read + moved
        choices = [each for each in self._ends.readings(read) if each > booked.start]
        return booked.end if booked.end in choices else min(choices, default=read)

    def is_unclear(self, record: Record) -> bool:
        """Whether the clock shows one of its times twice."""
        begins, ends = _moment(record, BEGINS), _moment(record, ENDS)
        if begins is not None and len(self._begins.readings(begins)) > 1:
            return True
        return ends is not None and self._ends is not None and len(self._ends.readings(ends)) > 1

    async def told(self, record: Record) -> Record:
        """The record as it was booked through us; else as read, with an end behind its start."""
        begins = _moment(record, BEGINS)
        if begins is None or not self.is_unclear(record):
            return record
        found = (await self.known([record["id"]])).get(record["id"])
        ends = _moment(record, ENDS) or begins
        return self.settled(record, found or Interval(begins, ends))

    async def known(self, appointments: Sequence[str]) -> Mapping[str, Interval]:
        """When these were booked, of those whose times are kept."""
        if self._kept is None:
            return {}
        found = await self._kept.find(appointments)
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
