"""The calls that read a mapped backend's diary: hours, what blocks, slot rows, durations."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

import orjson

from adapters.base import BackendNonsense, FieldShape
from adapters.mapped.diary import Diary
from adapters.mapped.session import Calendar, DiarySpan, HoursRow, TimeRow
from adapters.mapped.slots import Interval
from adapters.mapped.spans import lasting
from adapters.mapping.checker import GIVEN, TEXT, TIME
from adapters.mapping.models import (
    BusyMap,
    DurationsMap,
    HoursMap,
    Owned,
    SchedulesMap,
    TimesMap,
    ValueSource,
)
from adapters.mapping.paths import holds, path
from adapters.rest.backend import for_each
from adapters.rest.paging import MOST_ROWS, pager
from adapters.rest.records import FoundValue, RawValue, found_value, own_id
from adapters.rest.requests import TemplateValues
from adapters.rest.resource import Components
from adapters.values.convert import Unreadable

T = TypeVar("T")


class OwnedRows:
    """The rows of a call of the diary, and which of them are a calendar's.

    `doubt` keeps rows of which nobody can tell whether the mapping's condition holds.
    """

    doubt = False

    def __init__(self, owned: Owned, parts: Components, key: ValueSource | None = None) -> None:
        self._endpoint = parts.templates.call(owned, GIVEN)
        self._backend, self._converters = parts.backend, parts.converters
        self._where = path(owned.where) if owned.where else None
        self._row_key = None if key is None else RawValue(key)
        self._pager = pager(owned.page, path(owned.items), self._mark, self._endpoint.label)
        self._vet = self._value(owned.vet, GIVEN["vet"])
        self._schedule = self._value(owned.schedule, TEXT)

    def _value(self, source: ValueSource | None, shape: FieldShape) -> FoundValue | None:
        return None if source is None else found_value(self._converters, source, shape)

    async def rows(self, given: Mapping[str, Any]) -> list[Any]:
        """The rows that fulfil the condition; BackendNonsense where there is no end of them."""
        ask = self._backend.pages(self._endpoint, TemplateValues(given))
        rows = await self._pager.first(ask, MOST_ROWS + 1)
        if len(rows) > MOST_ROWS:
            raise BackendNonsense(f"{self._endpoint.label}: it gives too many rows")
        return [row for row in rows if self._counts(row)]

    def of(self, calendar: Calendar, rows: list[Any], make: Callable[[Any], T]) -> list[T | None]:
        """What is made of each of the calendar's rows; None of one that cannot be read."""
        found: list[T | None] = []
        for row in rows:
            try:
                if self._is_of(row, calendar):
                    found.append(make(row))
            except Unreadable:
                found.append(None)
        return found

    def _is_of(self, row: Any, calendar: Calendar) -> bool:
        """Whether a row is the calendar's; Unreadable where nobody can tell."""
        if self._vet is not None:
            return bool(self._vet.read(row) == calendar.vet)
        if self._schedule is not None:
            return bool(self._schedule.read(row) == str(calendar.schedule))
        return True

    def _counts(self, row: Any) -> bool:
        try:
            return self._where is None or holds(self._where(row))
        except Unreadable:
            return self.doubt

    def _mark(self, row: Any) -> Any:
        try:
            return row if self._row_key is None else self._row_key.read(row)
        except Unreadable:
            return None


class HoursCalls(OwnedRows):
    """Rows of working hours."""

    def __init__(self, hours: HoursMap, parts: Components) -> None:
        super().__init__(hours, parts)
        self._when = self._value(hours.weekday or hours.day, TEXT)
        self._start, self._end = path(hours.start or "@"), path(hours.end or "@")

    async def read(self, calendar: Calendar) -> list[HoursRow | None]:
        """The rows of a calendar."""
        rows = await self.rows({"vet": calendar.vet, "schedule": calendar.schedule})
        return self.of(calendar, rows, self._row)

    def _row(self, row: Any) -> HoursRow:
        when = None if self._when is None else self._when.plain(row)
        return HoursRow(when, self._start(row), self._end(row))


class TimeRows(OwnedRows):
    """Rows that last from a start to an end: of slots, or of what blocks."""

    def __init__(self, times: TimesMap, parts: Components, diary: Diary) -> None:
        super().__init__(times, parts, times.key)
        self._key = self._value(times.key, TEXT)
        longest = None
        if isinstance(times, BusyMap):
            self.doubt, longest = True, times.longest
            ids = parts.converters.ids("appointments")
            self._key = None if times.key is None else own_id(times.key, ids)
        self._longest = timedelta(days=longest or 1)
        self._start = found_value(parts.converters, times.start, TIME)
        self._end = self._value(times.end, TIME)
        end = times.end or times.start
        self._ends = parts.converters.moment(end, columns=len(end.expressions))
        self._minutes = path(times.minutes) if times.minutes else None
        self._days_of = diary.days_of if asks_by_day(times) else None

    async def read(self, span: DiarySpan) -> list[TimeRow | None]:
        """The rows that lie in the window, and some round it; None for an unreadable one."""
        answers = await for_each(self.rows, self._questions(span))
        rows = answers[0]
        if len(answers) > 1:  # the same row may come with two days
            rows = list({orjson.dumps(row): row for answer in answers for row in answer}.values())
        return self.of(span.calendar, rows, self._row)

    def _row(self, row: Any) -> TimeRow:
        end = None if self._end is None else self._end.plain(row)
        minutes = None if self._minutes is None else self._minutes(row)
        if self.doubt and self._end is not None and not self._ends.instants(end):
            lasting(minutes)  # where nobody can tell how long, it blocks the whole time
        key = None if self._key is None else self._key.read(row)
        return TimeRow(self._start.plain(row), end, minutes, key)

    def _questions(self, span: DiarySpan) -> list[dict[str, Any]]:
        first, until = span.window.start - self._longest, span.window.end
        given = {
            "vet": span.calendar.vet,
            "schedule": span.calendar.schedule,
            "type": span.type,
            "minutes": int(span.lasts.total_seconds() // 60),
            "from": first,
            "until": until,
        }
        if self._days_of is None:
            return [given]
        days = self._days_of(Interval(first, until))
        return [{**given, "day": day.isoformat()} for day in days]


def asks_by_day(times: TimesMap) -> bool:
    """Whether a call is about one day."""
    values = [tree.root for tree in times.query.values()]
    return "day" in times.names or any(getattr(value, "given", None) == "day" for value in values)


class DurationCalls(OwnedRows):
    """How long types last in a schedule, or in all."""

    def __init__(self, durations: DurationsMap, parts: Components) -> None:
        super().__init__(durations, parts)
        self._type = found_value(parts.converters, durations.type, GIVEN["type"])
        self._minutes = path(durations.minutes)

    async def read(self, calendar: Calendar, type_id: str) -> list[Any]:
        """The raw durations of a type; what cannot be read is none."""
        given = {"vet": calendar.vet, "schedule": calendar.schedule, "type": type_id}
        lasting = self.of(
            calendar, await self.rows(given), lambda row: (self._type.read(row), self._minutes(row))
        )
        return [row[1] for row in lasting if row is not None and row[0] == type_id]


class ScheduleRows(OwnedRows):
    """The calendars of a vet."""

    def __init__(self, schedules: SchedulesMap, parts: Components) -> None:
        super().__init__(schedules, parts)
        self._key = found_value(parts.converters, schedules.key, TEXT)

    async def read(self, vet: str) -> list[Any]:
        """The keys of the vet's schedules, in their order; BackendNonsense for an unreadable."""
        rows = await self.rows({"vet": vet})
        keys = self.of(Calendar(vet), rows, lambda row: (self._key.read(row),))
        if None in keys:
            raise BackendNonsense("a schedule of a vet has no readable key")
        return sorted(key[0] for key in keys if key is not None and key[0] is not None)


class DiaryCalls:
    """All calls of a diary, by the numbers of its sources."""

    def __init__(self, diary: Diary, parts: Components) -> None:
        mapped = diary.map
        self.hours = [HoursCalls(hours, parts) if hours.is_rows else None for hours in mapped.hours]
        self.busy = [TimeRows(busy, parts, diary) for busy in mapped.busy]
        self.slots = [TimeRows(slots, parts, diary) for slots in mapped.slots]
        self.durations = [DurationCalls(durations, parts) for durations in mapped.durations]
        self.schedules = None
        if mapped.schedules is not None:
            self.schedules = ScheduleRows(mapped.schedules, parts)
