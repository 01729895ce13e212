"""The diary of a mapped system: a vet's calendars, what blocks them, and what they offer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from adapters.base import BackendNonsense, Record, Report, Trouble
from adapters.mapped.repeated import KnownTimes
from adapters.mapped.session import Calendar, DiarySpan, HoursRow, Offer, Session, TimeRow
from adapters.mapped.slots import ONE_DAY, Interval, covered_slots, day_window, free_slots, is_on
from adapters.mapped.spans import lasting, readings, shortest, type_lasts, whole_day
from adapters.mapping.converters import Converters
from adapters.mapping.hours import Shift, closed_days
from adapters.mapping.models import BusyMap, DiaryMap, HoursMap, SlotsMap, TimesMap
from adapters.values.convert import Unreadable
from adapters.values.times import ROOM, TimeConverter, instant_text
from adapters.values.wall_clock import clock, wall

Moments = tuple[datetime, ...]
# The first date that is more than a placeholder, and the one that means the end of time.
EARLIEST = datetime(1902, 1, 2, tzinfo=UTC)
LAST_DAY = "9999-12-31"


@dataclass(frozen=True, slots=True)
class Block:
    """A time that is taken; `key` is the appointment's raw key, where the source names one.

    `schedule` is the one that it blocks, None where it blocks the vet wherever that is. `is_likely`
    as `readings` has it: of a row in an hour that comes twice there are several.
    """

    interval: Interval
    key: Any = None
    schedule: Any = None
    is_likely: bool = True


@dataclass(frozen=True, slots=True)
class VisitKind:
    """What is to be booked: an appointment of a type, or of none, and how long it lasts."""

    type: str | None
    lasts: timedelta


class HoursSource:
    """One source of working hours: rows, or what the mapping itself says."""

    def __init__(
        self, number: int, hours: HoursMap, converters: Converters, closed: frozenset[date],
        report: Report,
    ) -> None:  # fmt: skip
        self.number = number
        self.hours = hours
        self._report = report
        self._closed = closed
        self._written = [replace(shift, closed=closed) for shift in hours.shifts]
        self._vets = None if hours.vets is None else frozenset(map(str, hours.vets))
        self._schedules = None if hours.schedules is None else frozenset(map(str, hours.schedules))
        self._decode = converters.plain(hours.weekday or hours.day)

    async def shifts(self, session: Session, calendar: Calendar) -> list[Shift]:
        """The shifts of a calendar; a row that can't be read opens nothing."""
        if not self.hours.is_rows:
            mine = self._vets is None or not self._vets.isdisjoint(session.keys(calendar.vet))
            there = self._schedules is None or str(calendar.schedule) in self._schedules
            return self._written if mine and there else []
        found = []
        for row in await session.hours(self.number, calendar):
            try:
                found.append(self.shift(row))
            except Unreadable:
                self._report(Trouble("unreadable", "slots", "diary.hours", ""))
        return found

    def shift(self, row: HoursRow | None) -> Shift:
        """A row as a shift; Unreadable where it is none."""
        if row is None:
            raise Unreadable
        try:
            start, end = clock(row.start), clock(row.end)
            when = self._decode(row.when)
            if self.hours.day is None:
                return Shift(_weekday(when), start, end, closed=self._closed)
            day = wall(when, ())
        except (TypeError, ValueError, OverflowError) as error:
            raise Unreadable from error
        if day is None:
            raise Unreadable
        return Shift(0, start, end, day.date(), self._closed)


def _weekday(raw: Any) -> int:
    """1 is Monday; Sunday is 7 or 0."""
    day = int(raw)
    if not 0 <= day <= 7:
        raise ValueError(raw)
    return day or 7


class TimesSource:
    """Rows that last from a start to an end: how the times of one source are read."""

    def __init__(
        self, number: int, rows: TimesMap, converters: Converters, report: Report, name: str
    ) -> None:
        self.number = number
        self.rows = rows
        self.zone: ZoneInfo = converters.zone
        self.start: TimeConverter = converters.moment(rows.start, columns=len(rows.start.source))
        end = rows.end or rows.start
        self.end: TimeConverter = converters.moment(end, columns=len(end.source))
        self._report = report
        self._name = name

    def instants(self, converter: TimeConverter, raw: Any) -> Moments | None:
        """All that the time may be; empty where there is none, None where nobody can tell."""
        try:
            return converter.instants(raw)
        except Unreadable:
            self.unusable()
            return None

    def length(self, minutes: Any) -> timedelta | None:
        """So long; None where it is not said, or makes no sense."""
        try:
            return lasting(minutes)
        except Unreadable:
            self.unusable()
            return None

    def unusable(self) -> None:
        """Report a row that cannot be read."""
        self._report(Trouble("unreadable", "slots", self._name, ""))


class BusySource(TimesSource):
    """One source of what blocks: appointments, absences. In doubt a row blocks, and is reported."""

    def __init__(
        self, number: int, busy: BusyMap, converters: Converters, default: timedelta, report: Report
    ) -> None:
        super().__init__(number, busy, converters, report, "diary.busy")
        self.busy = busy
        self.longest = None if busy.longest is None else timedelta(days=busy.longest)
        self._default = default

    async def read(self, session: Session, span: DiarySpan) -> list[list[Block]]:
        """What blocks the calendar within the window, and a little beyond it: row by row."""
        around = Interval(span.window.start - ROOM, span.window.end + ROOM)
        of_schedule = self.busy.schedule is not None or (
            self.busy.get is not None and "schedule" in self.busy.names
        )
        schedule = span.calendar.schedule if of_schedule else None
        return [
            list(self._blocks(row, around, schedule))
            for row in await session.busy(self.number, span)
        ]

    def _blocks(self, row: TimeRow | None, around: Interval, schedule: Any) -> Iterator[Block]:
        if row is None:
            self.unusable()
            yield Block(around, None, schedule)
            return
        for interval, is_likely in self._intervals(around, row):
            yield Block(interval, row.key, schedule, is_likely)

    def _intervals(self, around: Interval, row: TimeRow) -> Iterator[tuple[Interval, bool]]:
        """All times that a row may mean, as `readings` has them."""
        begins = self.instants(self.start, row.start)
        ends = self._ends(row.end, around)
        if begins:
            yield from self._between(begins, ends, row.minutes, around)
        elif ends:  # nobody knows from when on: from the beginning
            yield Interval(min(around.start, ends[-1]), ends[-1]), True
        elif begins is None or ends is None:
            yield around, True

    def _ends(self, raw: Any, around: Interval) -> Moments | None:
        """The end, as `instants` has it; of a day without a time when it is over."""
        if _is_for_good(raw, self.end.zero):
            return (around.end,)
        ends = self.instants(self.end, raw)
        return self.instants(self.end, whole_day(raw)) if ends else ends

    def _between(
        self, begins: Moments, ends: Moments | None, minutes: Any, around: Interval
    ) -> Iterator[tuple[Interval, bool]]:
        """The end as it is written where that makes sense, else after the minutes."""
        makes_sense = bool(ends) and begins[0] < ends[-1]  # type: ignore[index]
        is_clear = len(begins) == 1 and makes_sense and len(ends or ()) == 1
        lasts = None if is_clear else self.length(minutes)
        if makes_sense:
            yield from readings(begins, ends or (), lasts, self.zone)
        elif ends == () and lasts is None and self.busy.endless:
            yield Interval(begins[0], max(begins[0], around.end)), True
        else:
            yield from ((Interval(each, each + (lasts or self._default)), True) for each in begins)


def _is_for_good(end: Any, zero: Sequence[str]) -> bool:
    """Whether it is what databases write for the end of time: in UTC it may lie beyond that."""
    shown = str(end[0] if isinstance(end, tuple) else end).strip()
    return shown == "infinity" or (shown[:10] == LAST_DAY and LAST_DAY not in zero)


class SlotsSource(TimesSource):
    """Free times that the practice system keeps as rows. In doubt a row offers nothing."""

    def __init__(
        self,
        number: int,
        slots: SlotsMap,
        converters: Converters,
        default: timedelta,
        report: Report,
    ) -> None:
        super().__init__(number, slots, converters, report, "diary.slots")
        self.is_keyed = slots.key is not None
        is_bare = slots.end is None and slots.minutes is None
        self._default = default if is_bare else None

    async def read(self, session: Session, span: DiarySpan) -> list[tuple[Interval, Any]]:
        """The free rows, with their keys."""
        found = []
        for row in await session.slots(self.number, span):
            time = self._time(row)
            if row is not None and time is not None:
                found.append((time, row.key))
        return found

    def _time(self, row: TimeRow | None) -> Interval | None:
        if row is None:
            self.unusable()
            return None
        starts = self.instants(self.start, row.start)
        if not starts or (self.is_keyed and row.key is None):
            return None
        ends: Moments | None = () if row.end is None else self.instants(self.end, row.end)
        lasts = self._default
        if ends == () and (lasts := lasts or self.length(row.minutes)):
            ends = tuple(each + lasts for each in starts)
        return shortest(starts, ends or ())


class Diary:
    """Free times of vets, worked out from hours or taken from the practice's own free rows.

    With `shortens_slots` a booking gives its slot row another end, so that the rest stays free.
    """

    def __init__(
        self, diary: DiaryMap, converters: Converters, report: Report, *, shortens_slots: bool
    ) -> None:
        self.map = diary
        self.zone = converters.zone
        self._report = report
        self._shortens_slots = shortens_slots
        self._step = timedelta(minutes=diary.step)
        self.default = timedelta(minutes=diary.duration)
        self.closed = frozenset(day for each in diary.closed for day in closed_days(each))
        self.hours = [
            HoursSource(number, each, converters, self.closed, report)
            for number, each in enumerate(diary.hours)
        ]
        self.busy = [
            BusySource(number, each, converters, self.default, report)
            for number, each in enumerate(diary.busy)
        ]
        self.free = [
            SlotsSource(number, each, converters, self.default, report)
            for number, each in enumerate(diary.slots)
        ]

    @property
    def default_length(self) -> timedelta | None:
        """How long an appointment without a type lasts.

        None where it may take a free row of the practice's own as a whole.
        """
        if any(each.is_keyed for each in self.free) and not self._shortens_slots:
            return None
        return self.default

    @property
    def knows_appointments(self) -> bool:
        """Whether it can be told which appointment blocks."""
        return any(each.busy.key is not None for each in self.busy)

    async def slots(
        self, session: Session, values: Mapping[str, Any], now: datetime, known: KnownTimes
    ) -> list[Record]:
        """The free slots of a day as records."""
        vet = values["vetId"]
        _, visit = await session.together(
            session.exists("vets", vet), self.visit(session, values.get("appointmentTypeId"))
        )
        # of one start the first offer counts, as in a booking
        first: dict[datetime, Interval] = {}
        for calendar in await self.calendars(session, vet):
            for offer in await self.offers(session, calendar, visit, values["date"], now, known):
                first.setdefault(offer.interval.start, offer.interval)
        return [
            {"startTime": instant_text(each.start), "endTime": instant_text(each.end)}
            for each in sorted(first.values())
        ]

    async def visit(self, session: Session, type_id: str | None) -> VisitKind:
        """What a booking of that type is; without a type it has the default length."""
        if type_id is None:
            return VisitKind(None, self.default)
        minutes = (await session.one("appointmentTypes", type_id))["durationMinutes"]
        return VisitKind(type_id, type_lasts(minutes, self.map.duration))

    async def calendars(self, session: Session, vet: str) -> list[Calendar]:
        """The vet's schedules in their order; where there are none at all, the vet's own time."""
        if self.map.schedules is None:
            return [Calendar(vet)]
        found = dict.fromkeys(await session.schedules(vet))
        return [Calendar(vet, each) for each in found]

    async def shifts(self, session: Session, vet: str) -> list[Shift]:
        """The working hours of a vet, in all the vet's schedules."""
        calendars = await self.calendars(session, vet)
        return [shift for calendar in calendars for shift in await self._shifts(session, calendar)]

    async def _shifts(self, session: Session, calendar: Calendar) -> list[Shift]:
        found = await session.together(*(each.shifts(session, calendar) for each in self.hours))
        return list(chain.from_iterable(found))

    async def offers(
        self, session: Session, calendar: Calendar, visit: VisitKind, day: date, now: datetime,
        known: KnownTimes,
    ) -> list[Offer]:  # fmt: skip
        """What is free on a day: the practice's own free rows first, then what is worked out."""
        if day in self.closed:
            return []
        try:
            window = day_window(day, self.zone)
            lasts = await self._lasts(session, calendar, visit)
            wide = DiarySpan(
                calendar, Interval(window.start, window.end + lasts), lasts, visit.type
            )
            busy, free, shifts = await session.together(
                self.blocks(session, wide, known),
                self._free(session, wide, window),
                self._shifts(session, calendar),
            )
            blocked = [each.interval for each in busy]
            found = [*self._of_rows(calendar, free, blocked, day, lasts, now)]
            times = free_slots(
                day, self.zone, shifts, blocked, duration=lasts, step=self._step, now=now
            )
        except OverflowError:  # the first and the last days of the calendar
            return []
        return [*found, *(Offer(each, calendar) for each in times)]

    async def _lasts(self, session: Session, calendar: Calendar, visit: VisitKind) -> timedelta:
        if visit.type is None:
            return visit.lasts
        for number in range(len(self.map.durations)):
            for raw in await session.durations(number, calendar, visit.type):
                try:
                    found = lasting(raw)
                except Unreadable:
                    self._report(Trouble("unreadable", "slots", "diary.durations", ""))
                    continue
                if found is not None:
                    return found
        return visit.lasts

    async def _free(
        self, session: Session, wide: DiarySpan, window: Interval
    ) -> list[list[tuple[Interval, Any]]]:
        """Rows that are booked one by one begin on the day; others may go on behind it."""
        spans = [replace(wide, window=window) if each.is_keyed else wide for each in self.free]
        read = zip(self.free, spans, strict=True)
        return await session.together(*(each.read(session, span) for each, span in read))

    def _of_rows(
        self, calendar: Calendar, free: Sequence[Sequence[tuple[Interval, Any]]],
        busy: list[Interval], day: date, lasts: timedelta, now: datetime,
    ) -> Iterator[Offer]:  # fmt: skip
        """Rows that have a key one by one; of others what they cover together."""
        loose: list[Interval] = []
        for source, rows in zip(self.free, free, strict=True):
            if not source.is_keyed:
                loose += [time for time, _ in rows]
                continue
            for time, key in rows:
                slot = Interval(time.start, time.start + lasts)
                begins = slot.start > now and is_on(slot.start, day, self.zone)
                taken = slot if self._shortens_slots else time
                fits = begins and slot.end <= time.end
                if fits and not any(taken.overlaps(each) for each in busy):
                    yield Offer(slot, calendar, key)
        for slot in covered_slots(loose, busy, day, self.zone, duration=lasts, now=now):
            yield Offer(slot, calendar)

    async def blocks(self, session: Session, span: DiarySpan, known: KnownTimes) -> list[Block]:
        """What blocks the calendar; of a booked appointment the `known` time alone."""
        found = await session.together(*(each.read(session, span) for each in self.busy))
        rows = chain.from_iterable(found)
        return [block for row in rows for block in _narrowed(session, row, known)]

    async def blocks_of(
        self, session: Session, calendars: Iterable[Calendar], window: Interval, visit: VisitKind,
        known: KnownTimes,
    ) -> list[Block]:  # fmt: skip
        """What blocks any of the calendars, asked for as for that visit."""
        spans = [DiarySpan(each, window, visit.lasts, visit.type) for each in calendars]
        found = await session.together(*(self.blocks(session, each, known) for each in spans))
        return list(chain.from_iterable(found))

    def day_of(self, moment: datetime) -> date:
        """The local day of a moment; BackendNonsense beyond the calendar."""
        try:
            return moment.astimezone(self.zone).date()
        except OverflowError as error:
            raise BackendNonsense("beyond the calendar") from error

    def days_of(self, window: Interval) -> list[date]:
        """The local days that a window touches; OverflowError beyond the calendar."""
        last_moment = window.end - timedelta(microseconds=1)
        first, last = (each.astimezone(self.zone).date() for each in (window.start, last_moment))
        return [first + number * ONE_DAY for number in range((last - first).days + 1)]


def _narrowed(session: Session, row: Sequence[Block], known: KnownTimes) -> Sequence[Block]:
    """Of all times that one row may mean those that it blocks."""
    if len(row) < 2 or row[0].key is None:
        return row
    appointment = session.appointment(row[0].key)
    if appointment is None:
        return row
    found = known.narrowed(appointment, [(each.interval, each.is_likely) for each in row])
    return [replace(row[0], interval=time, is_likely=likely) for time, likely in found]
