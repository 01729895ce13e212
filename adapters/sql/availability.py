"""What a vet's day is made of in a mapped system: the working hours, and what blocks."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any

from sqlalchemy import Connection, Select, and_, or_

from adapters.base import Report, Trouble
from adapters.convert import TimeConverter, Unreadable
from adapters.converters import Converters
from adapters.slots import ONE_DAY, Interval, Shift
from adapters.sql.engines.base import Speech, given
from adapters.sql.mapping import Busy, Hours
from adapters.sql.reading import rows_of, sql

# Bounds are compared as the backend writes them: a change of the clocks, or a T between day and
# time, needs some room. What then really blocks is decided on the times that were read.
ROOM = timedelta(days=1, hours=2)
LONGEST_OPEN = timedelta(days=2)
UNREADABLE = object()
# The first date that is more than a placeholder.
EARLIEST = "1902"
NO_DAYS = ("____-00%", "_______-00%")
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch


class ShiftRows:
    """One source of working hours."""

    def __init__(self, hours: Hours, report: Report) -> None:
        self._report = report
        columns = [sql(hours.weekday), sql(hours.start), sql(hours.end)]
        self._statement = rows_of(hours, *columns).where(sql(hours.vet) == given("vet"))

    def read(self, connection: Connection, vet: int) -> Iterator[Shift]:
        """The shifts of a vet; a row that can't be read opens nothing."""
        for weekday, start, end in connection.execute(self._statement, {"vet": vet}):
            try:
                yield Shift(_weekday(weekday), _clock(start), _clock(end))
            except (TypeError, ValueError, OverflowError):
                self._report(Trouble("unreadable", "slots", "diary.hours", ""))


def _weekday(raw: Any) -> int:
    day = int(raw)
    if not 1 <= day <= 7:
        raise ValueError(raw)
    return day


def _clock(raw: Any) -> time:
    shown = str(raw).strip()
    read = time() if shown.startswith("24:00") else time.fromisoformat(shown)
    if read.tzinfo is not None:  # a wall clock has no offset
        raise ValueError(raw)
    return read


class BusyRows:
    """One source of what blocks a vet: appointments, absences.

    Rows are chosen by their times as texts, generously; what then really blocks is decided on the
    times that were read. In doubt a row blocks, and is reported.
    """

    def __init__(
        self,
        busy: Busy,
        converters: Converters,
        default_minutes: int,
        report: Report,
        speech: Speech,
    ) -> None:
        self._report = report
        self._start: TimeConverter = converters.moment(busy.start)
        self._end: TimeConverter = converters.moment(busy.end)
        self._default = timedelta(minutes=default_minutes)
        self._endless = busy.endless
        self._longest = None if busy.longest is None else timedelta(days=busy.longest)
        raw = sql(busy.start.sql), sql(busy.end.sql), sql(busy.minutes or "NULL")
        start, end = (speech.trimmed(each) for each in raw[:2])
        rows: Select[Any] = rows_of(busy, *raw).where(sql(busy.vet) == given("vet"))
        open_end = or_(end.is_(None), end < start)
        no_end = or_(end.is_(None), end < EARLIEST)
        recent = no_end if busy.endless else start > given("early")
        near = and_(
            start < given("until"),
            or_(end > given("since"), and_(open_end, recent)),
        )
        # what is no date to begin with, or none that anybody means
        nowhere = or_(*(start.like(each) for each in NO_DAYS))
        odd = or_(raw[0].is_(None), speech.undated(raw[0]), start < EARLIEST, nowhere)
        if self._longest is None:
            self._statements = [rows.where(or_(near, odd))]
        else:
            # on the start as it is, so that an index serves
            within = and_(raw[0] >= given("first"), raw[0] < given("until"))
            self._statements = [rows.where(near, within), rows.where(odd)]
            if busy.endless:
                self._statements.append(rows.where(near, no_end))

    def read(self, connection: Connection, vet: int, window: Interval) -> Iterator[Interval]:
        """What blocks the vet within the window, and a little beyond it."""
        bounds = {
            "vet": vet,
            "until": self._start.encode(window.end + ROOM)[0],
            "since": self._end.encode(window.start - ROOM)[0],
            "early": self._start.encode(window.start - LONGEST_OPEN)[0],
        }
        if self._longest is not None:
            longest = max(self._longest, LONGEST_OPEN) + ROOM
            bounds["first"] = self._start.encode(window.start - longest)[0]
        around = Interval(window.start - ROOM, window.end + ROOM)
        for statement in self._statements:
            for start, end, minutes in connection.execute(statement, bounds):
                yield from self._interval(around, start, end, minutes)

    def _interval(self, around: Interval, start: Any, end: Any, minutes: Any) -> Iterator[Interval]:
        begins = self._instant(self._start, start, latest=False)
        ends = self._instant(self._end, _whole_day(end), latest=True)
        if isinstance(begins, datetime):
            yield Interval(begins, self._end_of(begins, ends, minutes, around))
        elif isinstance(ends, datetime):  # nobody knows from when on: from the beginning
            yield Interval(min(around.start, ends), ends)
        elif UNREADABLE in (begins, ends):
            yield around

    def _end_of(self, begins: datetime, ends: object, minutes: Any, around: Interval) -> datetime:
        """The end as it is written where that makes sense, else after the minutes."""
        if isinstance(ends, datetime) and ends > begins:
            return ends
        if ends is None and self._endless:
            return max(begins, around.end)
        return begins + self._length(minutes)

    def _instant(self, converter: TimeConverter, raw: Any, *, latest: bool) -> datetime | object:
        """The time; None where there is none, UNREADABLE where nobody can tell."""
        try:
            return converter.instant(raw, latest=latest)
        except Unreadable:
            self._unusable()
            return UNREADABLE

    def _length(self, minutes: Any) -> timedelta:
        """So many minutes; where they make no sense, the default."""
        if not minutes:
            return self._default
        try:
            length = timedelta(minutes=int(minutes))
        except (ValueError, TypeError, OverflowError):
            length = timedelta()
        if timedelta() < length <= LONGEST_OPEN:
            return length
        self._unusable()
        return self._default

    def _unusable(self) -> None:
        self._report(Trouble("unreadable", "slots", "diary.busy", ""))


def _whole_day(end: Any) -> Any:
    """An end that is a day without a time lasts until that day is over."""
    shown = end.strip() if isinstance(end, str) else end
    if isinstance(shown, str) and _DAY(shown):
        with suppress(ValueError, OverflowError):
            return (date.fromisoformat(shown) + ONE_DAY).isoformat()
    return end
