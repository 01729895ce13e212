"""What is free in a mapped system: a vet's calendars, what blocks them, and what they offer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from adapters.base import (
    Record,
    Report,
)
from adapters.mapped.repeated import KnownTimes
from adapters.mapped.slots import Interval, Shift, closed_days, day_window, free_slots, is_on
from adapters.mapped.spans import type_lasts
from adapters.mapping.converters import Converters
from adapters.sql.calendars import Calendar
from adapters.sql.columns import rows_of, sql
from adapters.sql.engines.base import Speech, given
from adapters.sql.hours import DurationRows, ShiftRows
from adapters.sql.mapping import Mapping
from adapters.sql.reading import ResourceReader
from adapters.sql.span_rows import Block, BusyRows, FreeRows
from adapters.sql.writes import BookingWrites
from adapters.values.convert import Unreadable
from adapters.values.times import instant_text


@dataclass(frozen=True, slots=True)
class Offer:
    """A free time: in which schedule, and which free row of the practice's, where there is one."""

    interval: Interval
    calendar: Calendar
    slot: Any = None


@dataclass(frozen=True, slots=True)
class Kind:
    """An appointment type: its raw key, None without one, and its own duration."""

    key: Any
    duration: timedelta


class Openings:
    """Free times of vets, worked out from hours or taken from the practice's own free rows."""

    def __init__(
        self,
        mapping: Mapping,
        converters: Converters,
        readers: dict[str, ResourceReader],
        report: Report,
        speech: Speech,
        writes: BookingWrites,
    ) -> None:
        self._writes = writes
        diary = mapping.diary
        self._readers = readers
        self._zone = converters.zone
        self._step = timedelta(minutes=diary.step)
        self._minutes = diary.duration
        self._closed = frozenset(day for each in diary.closed for day in closed_days(each))
        self._shifts = [ShiftRows(hours, self._closed, report) for hours in diary.hours]
        self._busy = [
            BusyRows(each, converters, self._minutes, report, speech) for each in diary.busy
        ]
        self._free_rows = [FreeRows(each, converters, report) for each in diary.slots]
        self._durations = [DurationRows(each, report) for each in diary.durations]
        self._schedules = None
        if diary.schedules is not None:
            key = sql(diary.schedules.key)
            rows = rows_of(diary.schedules, key)
            mine = sql(diary.schedules.vet).in_(given("vet", expanding=True))
            self._schedules = rows.where(mine).order_by(key)

    @property
    def default_length(self) -> timedelta | None:
        """How long an appointment without a type lasts.

        None where it may take a free row of the practice's own as a whole.
        """
        if self._free_rows and not self._writes.shortens_slots:
            return None
        return timedelta(minutes=self._minutes)

    def slots(
        self,
        connection: Connection,
        query_values: Any,
        now: datetime,
        known: KnownTimes | None = None,
    ) -> list[Record]:
        """The free slots of a day as records."""
        vets = self._readers["vets"]
        vet = vets.must_exist(connection, vets.key_of(query_values["vetId"]))
        kind = self.kind(connection, query_values.get("appointmentTypeId"))
        calendars = self.calendars(connection, vet)
        offers = self.offers(connection, calendars, kind, query_values["date"], now, known)
        # of one start the first offer counts, as in a booking
        first: dict[datetime, Interval] = {}
        for offer in offers:
            first.setdefault(offer.interval.start, offer.interval)
        free = sorted(first.values())
        return [
            {"startTime": instant_text(each.start), "endTime": instant_text(each.end)}
            for each in free
        ]

    def shifts(self, connection: Connection, vet: Any) -> list[Shift]:
        """The working hours of a vet, by the raw key, in all the vet's schedules."""
        calendars = self.calendars(connection, vet)
        return [
            each
            for calendar in calendars
            for rows in self._shifts
            for each in rows.read(connection, calendar)
        ]

    def blocks(self, connection: Connection, vet: Any, window: Interval) -> list[Block]:
        """What blocks a vet, by the raw key, in any of the vet's schedules."""
        return list(self.blocking(connection, self.calendars(connection, vet), window))

    def calendars(self, connection: Connection, vet: Any) -> list[Calendar]:
        """The vet's schedules in their order; where there are none at all, the vet's own time."""
        spellings = tuple(self._readers["vets"].spelt_as(vet))
        if self._schedules is None:
            return [Calendar(vet, None, spellings)]
        rows = connection.execute(self._schedules, {"vet": list(spellings)})
        found = dict.fromkeys(row[0] for row in rows)
        return [Calendar(vet, each, spellings) for each in found]

    def kind(self, connection: Connection, type_id: str | None) -> Kind:
        """The type's key, and how long it lasts by itself; without a type the default."""
        if type_id is None:
            return Kind(None, timedelta(minutes=self._minutes))
        reader = self._readers["appointmentTypes"]
        minutes = reader.one(connection, reader.key_of(type_id))["durationMinutes"]
        key = reader.key_of(type_id)  # as it was just met
        return Kind(key, type_lasts(minutes, self._minutes))

    def _lasts(self, connection: Connection, calendar: Calendar, kind: Kind) -> timedelta:
        if kind.key is not None:
            for rows in self._durations:
                found = rows.read(connection, calendar, kind.key)
                if found is not None:
                    return found
        return kind.duration

    def offers(
        self,
        connection: Connection,
        calendars: list[Calendar],
        kind: Kind,
        day: date,
        now: datetime,
        known: KnownTimes | None = None,
    ) -> Iterator[Offer]:
        """What is free on a day: the practice's own free rows first, then what is worked out."""
        if day in self._closed:
            return
        try:
            window = day_window(day, self._zone)
            for calendar in calendars:
                lasts = self._lasts(connection, calendar, kind)
                wide = Interval(window.start, window.end + lasts)
                blocks = self.blocking(connection, [calendar], wide, known)
                busy = [each.interval for each in blocks]
                for each in self._of_rows(connection, calendar, window, lasts, busy, now):
                    if is_on(each.interval.start, day, self._zone):
                        yield each
                yield from self._of_hours(connection, calendar, day, lasts, busy, now)
        except OverflowError:  # the first and the last days of the calendar
            return

    def _of_rows(
        self,
        connection: Connection,
        calendar: Calendar,
        window: Interval,
        lasts: timedelta,
        busy: list[Interval],
        now: datetime,
    ) -> Iterator[Offer]:
        for rows in self._free_rows:
            for row in rows.read(connection, calendar, window):
                slot = Interval(row.interval.start, row.interval.start + lasts)
                fits = slot.end <= row.interval.end and slot.start > now
                taken = slot if self._writes.shortens_slots else row.interval
                if fits and not any(taken.overlaps(each) for each in busy):
                    yield Offer(slot, calendar, row.key)

    def _of_hours(
        self,
        connection: Connection,
        calendar: Calendar,
        day: date,
        lasts: timedelta,
        busy: list[Interval],
        now: datetime,
    ) -> Iterator[Offer]:
        shifts = [each for rows in self._shifts for each in rows.read(connection, calendar)]
        free = free_slots(day, self._zone, shifts, busy, duration=lasts, step=self._step, now=now)
        return (Offer(each, calendar) for each in free)

    def blocking(
        self,
        connection: Connection,
        calendars: list[Calendar],
        window: Interval,
        known: KnownTimes | None = None,
    ) -> Iterator[Block]:
        """What blocks any of the calendars; of a booked appointment the `known` time alone."""
        for calendar in calendars:
            for rows in self._busy:
                for blocks in rows.read(connection, calendar, window):
                    yield from blocks if known is None else self._narrowed(blocks, known)

    def _narrowed(self, blocks: Sequence[Block], known: KnownTimes) -> Sequence[Block]:
        """Of all times that one row may mean those that it blocks."""
        if len(blocks) < 2 or blocks[0].key is None:
            return blocks
        try:
            appointment = self._readers["appointments"].table.ids.referred(blocks[0].key)
        except Unreadable:
            return blocks
        if appointment is None:
            return blocks
        found = known.narrowed(appointment, [(each.interval, each.is_likely) for each in blocks])
        return [replace(blocks[0], interval=time, is_likely=likely) for time, likely in found]
