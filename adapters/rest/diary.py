"""Reads a mapped backend's diary by calls: hours, what blocks, slot rows, durations."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import orjson

from adapters.base import BackendNonsense, FieldShape
from adapters.mapped.generated import RowValue
from adapters.mapped.session import Calendar, DiarySpan, HoursRow, ScheduleRow, TimeRow
from adapters.mapped.slots import ONE_DAY
from adapters.mapped.spans import lasting
from adapters.mapping import models
from adapters.mapping.checker import GIVEN, TEXT, TIME
from adapters.mapping.models import BusyMap, DiaryMap, ValueSource
from adapters.mapping.paths import holds, path
from adapters.rest.backend import for_each
from adapters.rest.paging import MOST_ROWS, Pager
from adapters.rest.records import json_value, own_id, raw_value, references
from adapters.rest.requests import TemplateValues
from adapters.rest.resource import Components
from adapters.values.convert import Text, Unreadable

T = TypeVar("T")
A = TypeVar("A")
Reads = Callable[[A], Awaitable[list[T]]]
NOTHING = RowValue(lambda row: None, lambda raw: None, Text())


class OwnedRows:
    """The rows of a call of the diary, and which of them belong to a calendar.

    Where nobody can tell whether the mapping's condition holds, only rows that block count.
    """

    def __init__(self, owned: models.Owned, parts: Components) -> None:
        self._endpoint = parts.templates.call(owned, GIVEN)
        self._parts, self._doubt = parts, isinstance(owned, BusyMap)
        self._where = path(owned.where) if owned.where else None
        key = owned.key if isinstance(owned, models.TimesMap) else None
        mark = raw_value(key) if key else path("@")
        self._pager = Pager(owned.page, path(owned.items), mark, self._endpoint.label)
        self._owned, self._is_vets = owned, owned.vet is not None
        self._owner = self.value(owned.owner, GIVEN["vet"] if self._is_vets else TEXT)
        # where references are typed a row may be of several
        several = owned.owner is not None and owned.owner.reference is not None
        self._owners = references(owned.owner) if owned.owner is not None and several else None

    def value(self, source: ValueSource | None, shape: FieldShape) -> RowValue:
        """Returns what reads a value of a row; NOTHING for one that is not mapped."""
        if source is None:
            return NOTHING
        make, columns = self._parts.converters.make, len(source.expressions)
        return json_value(source, shape, make(source, shape, columns=columns))

    async def read(
        self, calendar: Calendar, make: Callable[[Any], T], *given: dict[str, Any]
    ) -> list[T | None]:
        """Returns what is made of each row, asked for with each of `given`; None if unreadable."""
        of = {"vet": calendar.vet, "schedule": calendar.schedule}
        answers = await for_each(self._rows, [of | more for more in given or ({},)])
        rows = answers[0]
        if len(answers) > 1:  # the same row may come with two days
            rows = list({orjson.dumps(row): row for answer in answers for row in answer}.values())
        values: list[T | None] = []
        whose = calendar.vet if self._is_vets else str(calendar.schedule)
        for row in rows:
            try:
                if self._owned.owner is None or self._is_of(row, whose):
                    values.append(make(row))
            except Unreadable:
                values.append(None)
        return values

    def _is_of(self, row: Any, whose: str) -> bool:
        if self._owners is None:
            return bool(self._owner.read(row) == whose)
        return whose in map(self._owner.decode, self._owners(row))

    async def _rows(self, given: dict[str, Any]) -> list[Any]:
        """Returns the rows that fulfil the condition. Raises BackendNonsense for too many."""
        ask = self._parts.backend.pages(self._endpoint, TemplateValues(given))
        rows = await self._pager.first(ask, MOST_ROWS + 1)
        if len(rows) > MOST_ROWS:
            raise BackendNonsense(f"{self._endpoint.label}: it gives too many rows")
        return [row for row in rows if self._counts(row)]

    def _counts(self, row: Any) -> bool:
        try:
            return self._where is None or holds(self._where(row))
        except Unreadable:
            return self._doubt


def hours_reader(hours: models.HoursMap, parts: Components) -> Reads[Calendar, HoursRow | None]:
    rows = OwnedRows(hours, parts)
    when = rows.value(hours.weekday or hours.day, TEXT).plain
    start, end = path(hours.start or "@"), path(hours.end or "@")
    return lambda calendar: rows.read(
        calendar, lambda row: HoursRow(when(row), start(row), end(row))
    )


def times_reader(times: models.TimesMap, parts: Components) -> Reads[DiarySpan, TimeRow | None]:
    """Returns what reads rows in a window, or begun some days before: slots or what blocks."""
    is_busy = isinstance(times, BusyMap)
    rows = OwnedRows(times, parts)
    longest = timedelta(days=(times.longest if isinstance(times, BusyMap) else None) or 1)
    key = rows.value(times.key, TEXT)
    if is_busy and times.key is not None:
        key = own_id(times.key, parts.converters.ids("appointments"))
    start, end = rows.value(times.start, TIME), rows.value(times.end, TIME)
    last = times.end or times.start
    ends = parts.converters.moment(last, columns=len(last.expressions))
    minutes_of = path(times.minutes) if times.minutes else NOTHING.plain
    sent = [getattr(tree.root, "given", None) for tree in times.query.values()]
    by_day = "day" in times.names or "day" in sent

    def row_of(row: Any) -> TimeRow:
        ends_at, minutes = end.plain(row), minutes_of(row)
        if is_busy and times.end is not None and not ends.instants(ends_at):
            lasting(minutes)  # unreadable, so that the row blocks the whole time
        return TimeRow(start.plain(row), ends_at, minutes, key.read(row))

    async def read(span: DiarySpan) -> list[TimeRow | None]:
        first, until = span.window.start - longest, span.window.end
        minutes = int(span.lasts.total_seconds() // 60)
        given = {"type": span.type, "minutes": minutes, "from": first, "until": until}
        if not by_day:
            return await rows.read(span.calendar, row_of, given)
        moments, zone = (first, until - timedelta.resolution), parts.converters.zone
        day, last = (moment.astimezone(zone).date() for moment in moments)
        days = (day + number * ONE_DAY for number in range((last - day).days + 1))
        daily = [{**given, "day": local_day.isoformat()} for local_day in days]
        return await rows.read(span.calendar, row_of, *daily)

    return read


def durations_reader(
    durations: models.DurationsMap, parts: Components
) -> Callable[[Calendar, str], Awaitable[list[Any]]]:
    """Returns what reads the raw durations of a type; it raises Unreadable for a doubtful row."""
    rows = OwnedRows(durations, parts)
    types = rows.value(durations.type, GIVEN["type"])
    minutes = path(durations.minutes)

    async def read(calendar: Calendar, type_id: str) -> list[Any]:
        pairs = await rows.read(
            calendar, lambda row: (types.read(row), minutes(row)), {"type": type_id}
        )
        if None in pairs:
            raise Unreadable
        return [pair[1] for pair in pairs if pair is not None and pair[0] == type_id]

    return read


def schedules_reader(schedules: models.SchedulesMap, parts: Components) -> Reads[str, ScheduleRow]:
    """Returns what reads a vet's schedules, sorted; that raises BackendNonsense for a bad key."""
    rows = OwnedRows(schedules, parts)
    key, kind = rows.value(schedules.key, TEXT), rows.value(schedules.default_type, GIVEN["type"])
    step, duration = (path(each or "`null`") for each in (schedules.step, schedules.duration))

    def row_of(row: Any) -> ScheduleRow:
        return ScheduleRow(key.read(row), step(row), duration(row), kind.plain(row))

    async def read(vet: str) -> list[ScheduleRow]:
        found = await rows.read(Calendar(vet), row_of)
        if None in found:
            raise BackendNonsense("a schedule of a vet has no readable key")
        named = [row for row in found if row is not None and row.key is not None]
        return sorted(named, key=lambda row: str(row.key))

    return read


class DiaryCalls:
    """All calls of a diary, by the numbers of its sources."""

    def __init__(self, mapped: DiaryMap, parts: Components) -> None:
        rows = ((number, hours) for number, hours in enumerate(mapped.hours) if hours.is_rows)
        self.hours = {number: hours_reader(hours, parts) for number, hours in rows}
        self.busy = [times_reader(busy, parts) for busy in mapped.busy]
        self.slots = [times_reader(slots, parts) for slots in mapped.slots]
        self.durations = [durations_reader(source, parts) for source in mapped.durations]
        source = mapped.schedules
        self.schedules = None if source is None else schedules_reader(source, parts)
