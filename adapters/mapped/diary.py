"""Works out when vets are free, from the diary of a mapped practice system."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from adapters.base import BackendNonsense, NotFound, Record, Report, Trouble
from adapters.mapped.clock_change import KnownTimes
from adapters.mapped.session import (
    Calendar,
    DiarySpan,
    HoursRow,
    Offer,
    ScheduleRow,
    Session,
    TimeRow,
)
from adapters.mapped.slot_rows import RowUse
from adapters.mapped.slots import Block, FreeDay, Interval, day_window
from adapters.mapped.spans import grid, lasting, readings, spans_of, type_lasts, whole_day
from adapters.mapping.checker import GIVEN
from adapters.mapping.converters import Converters
from adapters.mapping.hours import EVERY_DAY, Shift, closed_days, weekdays_of
from adapters.mapping.models import BusyMap, DiaryMap, HoursMap, TimesMap
from adapters.values.convert import Unreadable
from adapters.values.times import ROOM, clock, instant_text, wall

T = TypeVar("T")
Moments = tuple[datetime, ...]
# Earlier dates are placeholders. LAST_DAY stands for the end of time.
EARLIEST = datetime(1902, 1, 2, tzinfo=UTC)
LAST_DAY = "9999-12-31"


@dataclass(frozen=True, slots=True)
class VisitKind:
    """What is to be booked: an appointment of a type, or of none.

    `lasts` is the type's own length; None where it has none. With `is_unclear` it has one that
    cannot be read.
    """

    type: str | None
    lasts: timedelta | None
    is_unclear: bool = False


class HoursSource:
    """One source of working hours: rows, or what the mapping itself says."""

    def __init__(self, number: int, hours: HoursMap, diary: "Diary") -> None:
        self.number, self.hours, self._diary = number, hours, diary
        self._written = [replace(shift, closed=diary.closed) for shift in hours.shifts]
        self._decode = diary.converters.plain(hours.weekday or hours.day)

    async def shifts(self, session: Session, calendar: Calendar) -> list[Shift]:
        """Returns the shifts of a calendar. A row that cannot be read opens nothing."""
        there = calendar.schedule
        if not self.hours.is_rows:
            vets, schedules = self.hours.vets, self.hours.schedules
            mine = vets is None or not {*map(str, vets)}.isdisjoint(session.keys(calendar.vet))
            named = there is not None and str(there) in map(str, schedules or ())
            return self._written if mine and (schedules is None or named) else []
        if there is None and self.hours.of_schedule:
            return []
        rows = await session.hours(self.number, calendar)
        shifts = (self._diary.tried("hours", self.shifts_in, row) for row in rows)
        return [shift for some in shifts if some is not None for shift in some]

    def shifts_in(self, row: HoursRow | None) -> list[Shift]:
        """Returns a row as the shifts of its days. Raises Unreadable where it is none."""
        closed = self._diary.closed
        try:
            if row is not None:
                start, end = clock(row.start), clock(row.end)
                if self.hours.day is None:
                    is_weekly = self.hours.weekday is not None
                    days = weekdays_of(row.when, self._decode) if is_weekly else EVERY_DAY
                    return [Shift(day, start, end, closed=closed) for day in days]
                if (date := wall(self._decode(row.when), ())) is not None:
                    return [Shift(0, start, end, date.date(), closed)]
        except (TypeError, ValueError, OverflowError) as error:
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
        schedule = span.calendar.schedule if self.rows.of_schedule else None
        if schedule is None and self.rows.of_schedule:
            return []
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
        offers = list[Offer]()
        if span.calendar.schedule is None and self.rows.of_schedule:
            return offers
        for row in await session.slots(self.number, span):
            if row is None:
                self._diary.unusable(self.kind)
            elif (time := self._time(row)) is not None:
                keys = (row.key,) if self.is_keyed else ()
                offers.append(Offer(time, span.calendar, span.type, keys))
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

    `use` is what a booking makes of slot rows. `default_length` is how long an appointment without
    a type lasts. It is None where that depends on the free row or the schedule.
    `knows_appointments` tells whether a block can name its appointment, `keyed_by_schedule` for a
    vet (False), for a schedule (True), or for both.
    """

    def __init__(
        self, diary: DiaryMap, converters: Converters, report: Report, use: RowUse
    ) -> None:
        self.map, self.converters, self._report = diary, converters, report
        self.zone: ZoneInfo = converters.zone
        self._use = use
        self._step = timedelta(minutes=diary.step)
        self.default = timedelta(minutes=diary.duration)
        self.closed = frozenset(day for written in diary.closed for day in closed_days(written))
        self.hours = [HoursSource(*source, self) for source in enumerate(diary.hours)]
        self.busy = [BusySource(*source, self) for source in enumerate(diary.busy)]
        self.free = [SlotsSource(*source, self) for source in enumerate(diary.slots)]
        # without a type it may take a free row of the practice's own as a whole
        takes_whole = any(source.is_keyed for source in self.free) and not use.shortens
        schedules = diary.schedules
        differs = schedules is not None and (schedules.duration or schedules.default_type)
        self.default_length = None if takes_whole or differs else self.default
        self.type_of: Callable[[Any], str | None] = lambda raw: None
        self.has_default_types = False
        if schedules is not None and (value := schedules.default_type) is not None:
            self.has_default_types = True
            made = converters.make(value, GIVEN["type"], columns=len(value.expressions))
            self.type_of = made.decode
        keyed = [source.rows.of_schedule for source in self.busy if source.is_keyed]
        self.knows_appointments, self.keyed_by_schedule = bool(keyed), frozenset(keyed)

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
        """Returns the kind of visit of that type."""
        if type_id is None:
            return VisitKind(None, None)
        reader = session.reader("appointmentTypes")
        minutes = (await reader.one(type_id))["durationMinutes"]
        if minutes is None and "durationMinutes" in reader.rows.by_name:
            # a record has null for what cannot be read, too
            picked = await reader.pick([type_id], ["durationMinutes"])
            if picked.get(type_id) is None:
                return VisitKind(type_id, None, is_unclear=True)
        try:
            return VisitKind(type_id, type_lasts(minutes))
        except Unreadable:
            return VisitKind(type_id, None, is_unclear=True)

    async def calendars(self, session: Session, vet: str) -> list[Calendar]:
        """Returns the vet's schedules in order, or the vet's own time where there are none."""
        if self.map.schedules is None:
            return [Calendar(vet)]
        calendars = dict[Any, Calendar]()
        for row in await session.schedules(vet):
            there = self._schedule(vet, row)
            if calendars.setdefault(row.key, there) != there:  # two rows of it do not say the same
                self.unusable("schedules")
                calendars[row.key] = Calendar(vet, row.key, is_closed=True)
        return list(calendars.values()) or [Calendar(vet)]

    def _schedule(self, vet: str, row: ScheduleRow) -> Calendar:
        """Returns a row's schedule; it is closed where a part of the row cannot be read."""
        try:
            if row.key is not None:
                step, lasts, kind = grid(row.step), lasting(row.lasts), self.type_of(row.type)
                return Calendar(vet, row.key, step, lasts, kind)
        except Unreadable:
            pass
        self.unusable("schedules")
        return Calendar(vet, row.key, is_closed=True)

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
        if day in self.closed or calendar.is_closed:
            return []
        try:
            window = day_window(day, self.zone)
            if visit.type is None and calendar.type is not None:
                visit = await self._assumed(session, calendar.type)
            if (lasts := await self.lasts(session, calendar, visit)) is None:
                return []
            until = Interval(window.start, window.end + lasts)
            wide = DiarySpan(calendar, until, lasts, visit.type)
            # rows that are booked one by one begin on the day; others may reach beyond it
            alone = replace(wide, window=window) if not self._use.joins else wide
            free = [rows.read(session, alone if rows.is_keyed else wide) for rows in self.free]
            busy, shifts, *rows = await session.together(
                self.blocks(session, wide, known), self._shifts(session, calendar), *free
            )
            free_day = FreeDay(day, self.zone, lasts, now, [block.interval for block in busy])
            offers = list(self._of_rows(wide, rows, free_day))
            times = free_day.worked(shifts, calendar.step or self._step)
        except OverflowError:  # the day is next to the first or last that a datetime can have
            return []
        return [*offers, *(Offer(time, calendar, visit.type) for time in times)]

    async def _assumed(self, session: Session, type_id: str) -> VisitKind:
        """Returns the kind of visit of a schedule's default type, which may be gone."""
        try:
            return await self.visit(session, type_id)
        except NotFound:
            self.unusable("schedules")
            return VisitKind(type_id, None, is_unclear=True)

    async def lasts(
        self, session: Session, calendar: Calendar, visit: VisitKind
    ) -> timedelta | None:
        """Returns how long the visit lasts in the calendar; None where it is not offered there."""
        lasts: timedelta | None = None
        for number, source in enumerate(self.map.durations if visit.type is not None else ()):
            is_there = calendar.schedule is not None or not source.of_schedule
            if not is_there or (lasts is not None and not source.only):
                continue
            try:
                rows = await session.durations(number, calendar, visit.type or "")
                written = [row for row in map(lasting, rows) if row is not None]
            except Unreadable:
                self.unusable("durations")
                return None
            if source.only and not rows:
                return None
            lasts = lasts or max(written, default=None)
        if lasts is None and visit.is_unclear:
            return None
        return lasts or visit.lasts or calendar.lasts or self.default

    def _of_rows(
        self, span: DiarySpan, free: Sequence[Sequence[Offer]], day: FreeDay
    ) -> Iterator[Offer]:
        """Yields what keyed rows offer, then what the others cover together."""
        loose: list[Interval] = []
        for source, rows in zip(self.free, free, strict=True):
            if source.is_keyed:
                yield from self._use.offers(rows, day)
            else:
                loose += [row.interval for row in rows]
        yield from (Offer(slot, span.calendar, span.type) for slot in day.covered(loose))

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
        lasts = visit.lasts or self.default
        spans = [DiarySpan(calendar, window, lasts, visit.type) for calendar in calendars]
        blocks = await session.together(*(self.blocks(session, span, known) for span in spans))
        return list(chain.from_iterable(blocks))

    def day_of(self, moment: datetime) -> date:
        """Returns the local day of a moment. Raises BackendNonsense beyond the calendar."""
        try:
            return moment.astimezone(self.zone).date()
        except OverflowError as error:
            raise BackendNonsense("beyond the calendar") from error
