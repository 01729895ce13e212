"""The calls that read a mapped backend's diary: hours, what blocks, slot rows, durations."""

from collections.abc import Mapping
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import orjson

from adapters.base import BackendNonsense
from adapters.mapped.diary import Diary
from adapters.mapped.session import Calendar, DiarySpan, HoursRow, TimeRow
from adapters.mapping.checker import GIVEN, TEXT, TIME
from adapters.mapping.models import (
    DurationsMap,
    HoursMap,
    Owned,
    RowSource,
    SchedulesMap,
    TimesMap,
    ValueSource,
)
from adapters.mapping.paths import holds, path
from adapters.rest.backend import Answer
from adapters.rest.paging import MOST_ROWS, Params, pager
from adapters.rest.records import FoundValue, RawValue
from adapters.rest.templates import Values
from adapters.rest.together import for_each
from adapters.rest.toolbox import Toolbox
from adapters.values.convert import Unreadable

ONE_DAY = timedelta(days=1)


class CallRows:
    """The rows of a call of the diary, all pages of it; `doubt` keeps those that may not count."""

    def __init__(
        self, rows: RowSource, tools: Toolbox, key: ValueSource | None = None, *, doubt: bool
    ) -> None:
        self._endpoint = tools.templates.call(rows, GIVEN)
        self._backend = tools.backend
        self._where = path(rows.where) if rows.where else None
        self._doubt = doubt
        self._key = None if key is None else RawValue(key)
        self._pager = pager(rows.page, path(rows.items), self._mark, self._endpoint.label)

    async def read(self, given: Mapping[str, Any]) -> list[Any]:
        """The rows that fulfil the condition; BackendNonsense where there is no end of them."""
        values = Values(given)

        async def ask(more: Params, link: str | None) -> Answer:
            if link is not None:
                raise BackendNonsense(f"{self._endpoint.label}: links are not followed here")
            return await self._backend.read(self._endpoint.request(values, more))

        rows: list[Any] = []
        async with aclosing(self._pager.batches(ask, None, MOST_ROWS)) as batches:
            async for batch in batches:
                rows += batch.rows
                if len(rows) > MOST_ROWS:
                    raise BackendNonsense(f"{self._endpoint.label}: it gives too many rows")
                if batch.last:
                    break
        return [row for row in rows if self._counts(row)]

    def _counts(self, row: Any) -> bool:
        try:
            return self._where is None or holds(self._where(row))
        except Unreadable:
            return self._doubt

    def _mark(self, row: Any) -> Any:
        try:
            return row if self._key is None else self._key.read(row)
        except Unreadable:
            return None


class OwnedRows:
    """Rows of the diary, and which of them are a calendar's."""

    def __init__(
        self, owned: Owned, tools: Toolbox, key: ValueSource | None = None, *, doubt: bool = False
    ) -> None:
        self.rows = CallRows(owned, tools, key, doubt=doubt)
        make = tools.values.make
        self._vet = None if owned.vet is None else make(owned.vet, GIVEN["vet"])
        self._schedule = None if owned.schedule is None else make(owned.schedule, TEXT)

    def is_of(self, row: Any, calendar: Calendar) -> bool:
        """Whether a row is the calendar's; Unreadable where nobody can tell."""
        if self._vet is not None:
            return bool(self._vet.read(row) == calendar.vet)
        if self._schedule is not None:
            return bool(self._schedule.read(row) == str(calendar.schedule))
        return True


class HoursCalls(OwnedRows):
    """Rows of working hours."""

    def __init__(self, hours: HoursMap, tools: Toolbox) -> None:
        super().__init__(hours, tools)
        when = hours.weekday or hours.day
        self._when = None if when is None else tools.values.make(when, TEXT)
        self._start, self._end = path(hours.start or "@"), path(hours.end or "@")

    async def read(self, calendar: Calendar) -> list[HoursRow | None]:
        """The rows of a calendar."""
        given = {"vet": calendar.vet, "schedule": calendar.schedule}
        found: list[HoursRow | None] = []
        for row in await self.rows.read(given):
            try:
                if self.is_of(row, calendar):
                    when = None if self._when is None else self._when.plain(row)
                    found.append(HoursRow(when, self._start(row), self._end(row)))
            except Unreadable:
                found.append(None)
        return found


class TimeRows(OwnedRows):
    """Rows that last from a start to an end. `longest` is how long one may, at the most."""

    def __init__(
        self, times: TimesMap, tools: Toolbox, key: FoundValue | None, longest: timedelta,
        *, doubt: bool,
    ) -> None:  # fmt: skip
        super().__init__(times, tools, times.key, doubt=doubt)
        self._key = key
        self._start = tools.values.make(times.start, TIME)
        self._end = None if times.end is None else tools.values.make(times.end, TIME)
        self._minutes = None if times.minutes is None else path(times.minutes)
        self._longest = longest
        self._by_day = asks_by_day(times)

    async def read(self, span: DiarySpan, diary: Diary) -> list[TimeRow | None]:
        """The rows that lie in the window, and some round it; None for an unreadable one."""
        answers = await for_each(self.rows.read, self._questions(span, diary))
        rows = answers[0]
        if len(answers) > 1:  # the same row may come with two days
            rows = list({orjson.dumps(row): row for each in answers for row in each}.values())
        found: list[TimeRow | None] = []
        for row in rows:
            try:
                if self.is_of(row, span.calendar):
                    found.append(self._row(row))
            except Unreadable:
                found.append(None)
        return found

    def _row(self, row: Any) -> TimeRow:
        end = None if self._end is None else self._end.plain(row)
        minutes = None if self._minutes is None else self._minutes(row)
        key = None if self._key is None else self._key.read(row)
        return TimeRow(self._start.plain(row), end, minutes, key)

    def _questions(self, span: DiarySpan, diary: Diary) -> list[dict[str, Any]]:
        first, window = span.window.start - self._longest, span.window
        given = {
            "vet": span.calendar.vet,
            "schedule": span.calendar.schedule,
            "type": span.type,
            "minutes": int(span.lasts.total_seconds() // 60),
            "from": first,
            "until": window.end,
        }
        if not self._by_day:
            return [given]
        days = diary.days_of(type(window)(first, window.end))
        return [{**given, "day": day.isoformat()} for day in days]


def asks_by_day(times: TimesMap) -> bool:
    """Whether a call is about one day."""
    values = [each.root for each in times.query.values()]
    return "day" in times.names or any(getattr(each, "given", None) == "day" for each in values)


class DurationCalls(OwnedRows):
    """How long types last in a schedule, or in all."""

    def __init__(self, durations: DurationsMap, tools: Toolbox) -> None:
        super().__init__(durations, tools)
        self._type = tools.values.make(durations.type, GIVEN["type"])
        self._minutes = path(durations.minutes)

    async def read(self, calendar: Calendar, type_id: str) -> list[Any]:
        """The raw durations of a type; what cannot be read is none."""
        given = {"vet": calendar.vet, "schedule": calendar.schedule, "type": type_id}
        found = []
        for row in await self.rows.read(given):
            try:
                if self.is_of(row, calendar) and self._type.read(row) == type_id:
                    found.append(self._minutes(row))
            except Unreadable:
                continue
        return found


class ScheduleRows(OwnedRows):
    """The calendars of a vet."""

    def __init__(self, schedules: SchedulesMap, tools: Toolbox) -> None:
        super().__init__(schedules, tools)
        self._key = tools.values.make(schedules.key, TEXT)

    async def read(self, vet: str) -> list[Any]:
        """The keys of the vet's schedules, in the backend's order."""
        calendar, found = Calendar(vet), []
        for row in await self.rows.read({"vet": vet}):
            try:
                key = self._key.read(row) if self.is_of(row, calendar) else None
            except Unreadable as error:
                raise BackendNonsense("a schedule of a vet has no readable key") from error
            if key is not None:
                found.append(key)
        return sorted(found)


class DiaryCalls:
    """All calls of a diary, by the numbers of its sources."""

    def __init__(self, diary: Diary, tools: Toolbox) -> None:
        said = diary.map
        self.diary = diary
        self.hours = [HoursCalls(each, tools) if each.is_rows else None for each in said.hours]
        self.busy = [
            TimeRows(each, tools, _appointment(each, tools), _longest(each.longest), doubt=True)
            for each in said.busy
        ]
        self.slots = [
            TimeRows(each, tools, _slot(each, tools), ONE_DAY, doubt=False) for each in said.slots
        ]
        self.durations = [DurationCalls(each, tools) for each in said.durations]
        self.schedules = None if said.schedules is None else ScheduleRows(said.schedules, tools)


def _longest(days: int | None) -> timedelta:
    return timedelta(days=days or 1)


def _appointment(times: TimesMap, tools: Toolbox) -> FoundValue | None:
    return None if times.key is None else tools.values.key(times.key, "appointments")


def _slot(times: TimesMap, tools: Toolbox) -> FoundValue | None:
    return None if times.key is None else tools.values.make(times.key, TEXT)
