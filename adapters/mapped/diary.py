"""Works out when vets are free, from the diary of a mapped practice system."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from adapters.base import BackendNonsense, Record, Report, Trouble
from adapters.mapped.clock_change import KnownTimes
from adapters.mapped.session import Calendar, DiarySpan, HoursRow, Offer, Session, TimeRow
from adapters.mapped.slots import Block, FreeDay, Interval, day_window
from adapters.mapped.spans import lasting, readings, spans_of, type_lasts, whole_day
from adapters.mapping.converters import Converters
from adapters.mapping.hours import Shift, closed_days
from adapters.mapping.models import BusyMap, DiaryMap, HoursMap, TimesMap
from adapters.values.convert import Unreadable
from adapters.values.times import ROOM, clock, instant_text, wall

T = TypeVar("T")
Moments = tuple[datetime, ...]
# Earlier dates are placeholders. LAST_DAY stands for the end of time.
EARLIEST = datetime(1902, 1, 2, tzinfo=UTC)
LAST_DAY = "9999-12-31"
# 1 is Monday; Sunday is 7 or 0.
WEEKDAYS = {number: number or 7 for number in range(8)}


@dataclass(frozen=True, slots=True)
class VisitKind:
    """What is to be booked: an appointment of a type, or of none, and how long it lasts."""

    type: str | None
    lasts: timedelta


class HoursSource:
    """One source of working hours: rows, or what the mapping itself says."""

    def __init__(self, number: int, hours: HoursMap, diary: "Diary") -> None:
        self.number, self.hours, self._diary = number, hours, diary
        self._written = [replace(shift, closed=diary.closed) for shift in hours.shifts]
        self._decode = diary.converters.plain(hours.weekday or hours.day)

    async def shifts(self, session: Session, calendar: Calendar) -> list[Shift]:
        """Returns the shifts of a calendar. A row that cannot be read opens nothing."""
        if not self.hours.is_rows:
            vets, schedules = self.hours.vets, self.hours.schedules
            mine = vets is None or not {*map(str, vets)}.isdisjoint(session.keys(calendar.vet))
            there = schedules is None or str(calendar.schedule) in map(str, schedules)
            return self._written if mine and there else []
        rows = await session.hours(self.number, calendar)
        shifts = (self._diary.tried("hours", self.shift, row) for row in rows)
        return [shift for shift in shifts if shift is not None]

    def shift(self, row: HoursRow | None) -> Shift:
        """Returns a row as a shift. Raises Unreadable where it is none."""
        try:
            if row is not None:
                start, end, when = clock(row.start), clock(row.end), self._decode(row.when)
                if self.hours.day is None:
                    return Shift(WEEKDAYS[int(when)], start, end, closed=self._diary.closed)
                if (day := wall(when, ())) is not None:
                    return Shift(0, start, end, day.date(), self._diary.closed)
        except (TypeError, ValueError, OverflowError, KeyError) as error:
            raise Unreadable from error
        raise Unreadable


class TimesSource:
    """Rows that last from a start to an end; `kind` is their place in the mapping's `diary`."""

    kind: str

    def __init__(self, number: int, rows: TimesMap, diary: "Diary") -> None:
        self.number, self.rows, self._diary = number, rows, diary
        self.is_keyed = rows.key is not None
        self.start, self.end = (
            diary.converters.moment(value, columns=len(value.source))
            for value in (rows.start, rows.end or rows.start)
        )
        self.default = diary.default

    def tried(self, read: Callable[[Any], T], raw: Any) -> T | None:
        return self._diary.tried(self.kind, read, raw)


class BusySource(TimesSource):
    """One source of what blocks: appointments, absences. A doubtful row blocks, and is reported."""

    kind = "busy"
    rows: BusyMap

    async def read(self, session: Session, span: DiarySpan) -> list[list[Block]]:
        """Returns what each row blocks of the calendar, in the window and a little beyond it."""
        around = Interval(span.window.start - ROOM, span.window.end + ROOM)
        rows = self.rows
        of_schedule = rows.schedule or (rows.get is not None and "schedule" in rows.names)
        schedule = span.calendar.schedule if of_schedule else None
        return [
            [
                Block(interval, row and row.key, schedule, is_likely)
                for interval, is_likely in self._times(row, around)
            ]
            for row in await session.busy(self.number, span)
        ]

    def _times(self, row: TimeRow | None, around: Interval) -> Iterator[tuple[Interval, bool]]:
        """Yields the times that a row may mean, each with whether it is likely."""
        if row is None:
            self._diary.unusable(self.kind)
            yield around, True
            return
        begins = self.tried(self.start.instants, row.start)
        # databases write the end of time so; in UTC it may be too late for a datetime
        shown = str(row.end[0] if isinstance(row.end, tuple) else row.end).strip()
        if shown == "infinity" or (shown[:10] == LAST_DAY and LAST_DAY not in self.end.zero):
            ends: Moments | None = (around.end,)
        elif ends := self.tried(self.end.instants, row.end):
            ends = self.tried(self.end.instants, whole_day(row.end))
        if begins:
            yield from self._between(begins, ends, row.minutes, around)
        elif ends:  # it has no known start: it blocks from the beginning
            yield Interval(min(around.start, ends[-1]), ends[-1]), True
        elif begins is None or ends is None:
            yield around, True

    def _between(
        self, begins: Moments, ends: Moments | None, minutes: object, around: Interval
    ) -> Iterator[tuple[Interval, bool]]:
        """Yields the times up to the written end where that makes sense, else by the minutes."""
        fitting = ends if ends and begins[0] < ends[-1] else ()
        is_clear = len(begins) == len(fitting) == 1
        lasts = None if is_clear else self.tried(lasting, minutes)
        if fitting:
            yield from readings(begins, fitting, lasts, self._diary.zone)
        elif ends == () and lasts is None and self.rows.endless:
            yield Interval(begins[0], max(begins[0], around.end)), True
        else:
            lasts = lasts or self.default
            yield from ((Interval(begin, begin + lasts), True) for begin in begins)


class SlotsSource(TimesSource):
    """Free times that the practice system keeps as rows. A doubtful row offers nothing."""

    kind = "slots"

    async def read(self, session: Session, span: DiarySpan) -> list[Offer]:
        """Returns the free rows as offers, with their keys."""
        offers = []
        for row in await session.slots(self.number, span):
            if row is None:
                self._diary.unusable(self.kind)
            elif (time := self._time(row)) is not None:
                offers.append(Offer(time, span.calendar, row.key))
        return offers

    def _time(self, row: TimeRow) -> Interval | None:
        """Returns the shortest time that a row may mean, the first of several; else None."""
        starts = self.tried(self.start.instants, row.start)
        if not starts or (self.is_keyed and row.key is None):
            return None
        ends: Moments | None = () if row.end is None else self.tried(self.end.instants, row.end)
        if ends == ():
            is_bare = self.rows.end is None and self.rows.minutes is None
            lasts = self.default if is_bare else self.tried(lasting, row.minutes)
            ends = tuple(start + lasts for start in starts) if lasts else ()
        spans = spans_of(starts, ends or ())
        return min(spans, key=lambda span: (span.end - span.start, span.start), default=None)


class Diary:
    """Free times of vets, worked out from hours or taken from the practice's own free rows.

    With `shortens_slots` a booking gives its slot row another end, so that the rest stays free.
    `default_length` is how long an appointment without a type lasts. It is None where that depends
    on the free row. `knows_appointments` tells whether a block can name its appointment.
    """

    def __init__(
        self, diary: DiaryMap, converters: Converters, report: Report, *, shortens_slots: bool
    ) -> None:
        self.map, self.converters, self._report = diary, converters, report
        self.zone: ZoneInfo = converters.zone
        self._shortens_slots = shortens_slots
        self._step = timedelta(minutes=diary.step)
        self.default = timedelta(minutes=diary.duration)
        self.closed = frozenset(day for written in diary.closed for day in closed_days(written))
        self.hours = [HoursSource(*source, self) for source in enumerate(diary.hours)]
        self.busy = [BusySource(*source, self) for source in enumerate(diary.busy)]
        self.free = [SlotsSource(*source, self) for source in enumerate(diary.slots)]
        # without a type it may take a free row of the practice's own as a whole
        takes_whole = any(source.is_keyed for source in self.free) and not shortens_slots
        self.default_length = None if takes_whole else self.default
        self.knows_appointments = any(source.is_keyed for source in self.busy)

    def unusable(self, kind: str) -> None:
        """Reports a row that cannot be read."""
        self._report(Trouble("unreadable", "slots", f"diary.{kind}", ""))

    def tried(self, kind: str, read: Callable[[Any], T], raw: Any) -> T | None:
        """Returns what `read` makes of a raw value; reports an unreadable one and returns None."""
        try:
            return read(raw)
        except Unreadable:
            self.unusable(kind)
            return None

    async def slots(
        self, session: Session, values: Mapping[str, Any], now: datetime, known: KnownTimes
    ) -> list[Record]:
        """Returns the free slots of a day as records, in the order of time."""
        vet = values["vetId"]
        _, visit = await session.together(
            session.reader("vets").exists(vet), self.visit(session, values.get("appointmentTypeId"))
        )
        # the first offer of each start counts, as in a booking
        first: dict[datetime, Interval] = {}
        for calendar in await self.calendars(session, vet):
            for offer in await self.offers(session, calendar, visit, values["date"], now, known):
                first.setdefault(offer.interval.start, offer.interval)
        return [
            {"startTime": instant_text(slot.start), "endTime": instant_text(slot.end)}
            for slot in sorted(first.values())
        ]

    async def visit(self, session: Session, type_id: str | None) -> VisitKind:
        """Returns the kind of visit of that type; without a type it has the default length."""
        if type_id is None:
            return VisitKind(None, self.default)
        minutes = (await session.reader("appointmentTypes").one(type_id))["durationMinutes"]
        return VisitKind(type_id, type_lasts(minutes, self.map.duration))

    async def calendars(self, session: Session, vet: str) -> list[Calendar]:
        """Returns the vet's schedules in order, or the vet's own time where none are mapped."""
        if self.map.schedules is None:
            return [Calendar(vet)]
        return [Calendar(vet, key) for key in dict.fromkeys(await session.schedules(vet))]

    async def shifts(self, session: Session, vet: str) -> list[Shift]:
        """Returns the working hours of a vet, in all the vet's schedules."""
        calendars = await self.calendars(session, vet)
        return [shift for calendar in calendars for shift in await self._shifts(session, calendar)]

    async def _shifts(self, session: Session, calendar: Calendar) -> list[Shift]:
        shifts = await session.together(*(hours.shifts(session, calendar) for hours in self.hours))
        return list(chain.from_iterable(shifts))

    async def offers(
        self, session: Session, calendar: Calendar, visit: VisitKind, day: date, now: datetime,
        known: KnownTimes,
    ) -> list[Offer]:  # fmt: skip
        """Returns what is free on a day: the practice's own rows first, then what is worked out."""
        if day in self.closed:
            return []
        try:
            window = day_window(day, self.zone)
            lasts = await self._lasts(session, calendar, visit)
            until = Interval(window.start, window.end + lasts)
            wide = DiarySpan(calendar, until, lasts, visit.type)
            # rows that are booked one by one begin on the day; others may reach beyond it
            narrow = replace(wide, window=window)
            free = [rows.read(session, narrow if rows.is_keyed else wide) for rows in self.free]
            busy, shifts, *rows = await session.together(
                self.blocks(session, wide, known), self._shifts(session, calendar), *free
            )
            free_day = FreeDay(day, self.zone, lasts, now, [block.interval for block in busy])
            offers = list(self._of_rows(calendar, rows, free_day))
            times = free_day.worked(shifts, self._step)
        except OverflowError:  # the day is next to the first or last that a datetime can have
            return []
        return [*offers, *(Offer(time, calendar) for time in times)]

    async def _lasts(self, session: Session, calendar: Calendar, visit: VisitKind) -> timedelta:
        if visit.type is None:
            return visit.lasts
        for number in range(len(self.map.durations)):
            for raw in await session.durations(number, calendar, visit.type):
                if lasts := self.tried("durations", lasting, raw):
                    return lasts
        return visit.lasts

    def _of_rows(
        self, calendar: Calendar, free: Sequence[Sequence[Offer]], day: FreeDay
    ) -> Iterator[Offer]:
        """Yields an offer for each keyed row, then for what the others cover together."""
        loose: list[Interval] = []
        for source, rows in zip(self.free, free, strict=True):
            if not source.is_keyed:
                loose += [row.interval for row in rows]
                continue
            for row in rows:
                slot = Interval(row.interval.start, row.interval.start + day.lasts)
                taken = slot if self._shortens_slots else row.interval
                if slot.end <= row.interval.end and day.is_free(slot, taken):
                    yield Offer(slot, calendar, row.slot)
        yield from (Offer(slot, calendar) for slot in day.covered(loose))

    async def blocks(self, session: Session, span: DiarySpan, known: KnownTimes) -> list[Block]:
        """Returns what blocks the calendar; a booked appointment blocks its `known` time alone."""
        blocks: list[Block] = []
        rows = await session.together(*(source.read(session, span) for source in self.busy))
        for row in chain.from_iterable(rows):
            # only a row that may mean several times has to be narrowed
            several = len(row) > 1 and row[0].key is not None
            appointment = session.appointment(row[0].key) if several else None
            blocks += row if appointment is None else known.narrowed(appointment, row)
        return blocks

    async def blocks_of(
        self, session: Session, calendars: Iterable[Calendar], window: Interval, visit: VisitKind,
        known: KnownTimes,
    ) -> list[Block]:  # fmt: skip
        """Returns what blocks any of the calendars, asked for with that visit."""
        spans = [DiarySpan(calendar, window, visit.lasts, visit.type) for calendar in calendars]
        blocks = await session.together(*(self.blocks(session, span, known) for span in spans))
        return list(chain.from_iterable(blocks))

    def day_of(self, moment: datetime) -> date:
        """Returns the local day of a moment. Raises BackendNonsense beyond the calendar."""
        try:
            return moment.astimezone(self.zone).date()
        except OverflowError as error:
            raise BackendNonsense("beyond the calendar") from error
