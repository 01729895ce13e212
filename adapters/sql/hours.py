"""When a vet works, and how long a type of appointment lasts there: rows, or what is written."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Connection, Select

from adapters.base import Report, Trouble
from adapters.mapped.slots import Shift
from adapters.mapped.spans import lasting
from adapters.sql.calendars import Calendar, Whose
from adapters.sql.columns import Columns, rows_of, sql
from adapters.sql.mapping import Durations, Hours
from adapters.values.convert import Unreadable
from adapters.values.wall_clock import clock, wall


class ShiftRows:
    """One source of working hours: rows, or what the mapping itself says."""

    def __init__(self, hours: Hours, closed: frozenset[date], report: Report) -> None:
        self._report = report
        self._closed = closed
        self._written = [replace(each, closed=closed) for each in hours.shifts]
        self._vets = _texts(hours.vets)
        self._schedules = _texts(hours.schedules)
        self._whose = Whose(hours.vet, hours.schedule)
        self._dated = hours.day is not None
        self._statement = None if hours.from_ is None else self._whose.rows(_hours_of(hours))

    def read(self, connection: Connection, calendar: Calendar) -> Iterator[Shift]:
        """The shifts of a calendar; a row that can't be read opens nothing."""
        if self._statement is None:
            if _is_in(calendar.vets, self._vets) and _is_in([calendar.schedule], self._schedules):
                yield from self._written
            return
        for row in connection.execute(self._statement, self._whose.bound(calendar)):
            try:
                yield self.shift(*row)
            except (TypeError, ValueError, OverflowError, Unreadable):
                self._report(Trouble("unreadable", "slots", "diary.hours", ""))

    def shift(self, when: Any, start: Any, end: Any) -> Shift:
        """A row as a shift; ValueError, TypeError, OverflowError or Unreadable where it is none."""
        if not self._dated:
            return Shift(_weekday(when), clock(start), clock(end), closed=self._closed)
        day = wall(when, ())
        if day is None:
            raise Unreadable
        return Shift(0, clock(start), clock(end), day.date(), self._closed)


def _hours_of(hours: Hours) -> Select[Any]:
    columns = (hours.weekday or hours.day, hours.start, hours.end)
    return rows_of(hours.rows, *(sql(each or "NULL") for each in columns))


def _texts(keys: Sequence[Any] | None) -> frozenset[str] | None:
    return None if keys is None else frozenset(map(str, keys))


def _is_in(spellings: Sequence[Any], keys: frozenset[str] | None) -> bool:
    return keys is None or any(str(each) in keys for each in spellings)


def _weekday(raw: Any) -> int:
    """1 is Monday; Sunday is 7 or 0."""
    day = int(raw)
    if not 0 <= day <= 7:
        raise ValueError(raw)
    return day or 7


class DurationRows:
    """How long types last in a schedule, or in all."""

    def __init__(self, durations: Durations, report: Report) -> None:
        self._report = report
        self._type = Columns(durations.type)
        self._whose = Whose(None, durations.schedule)
        rows = rows_of(durations, sql(durations.minutes)).where(self._type.named("type"))
        self._statement = self._whose.rows(rows)

    def read(self, connection: Connection, calendar: Calendar, kind: Any) -> timedelta | None:
        """The duration of a type, by its raw key; None where no row says it."""
        bounds = self._whose.bound(calendar) | self._type.bound("type", kind)
        for row in connection.execute(self._statement, bounds):
            try:
                lasts = lasting(row[0])
            except Unreadable:
                self._report(Trouble("unreadable", "slots", "diary.durations", ""))
                continue
            if lasts is not None:
                return lasts
        return None
