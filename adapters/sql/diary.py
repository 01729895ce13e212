"""The statements that read a mapped database's diary: hours, what blocks, slot rows, durations.

Rows are chosen by their times as they are kept, generously; what then really blocks is decided in
adapters/mapped/diary.py, on the times that were read.
"""

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, false, null, or_

from adapters.mapped.diary import EARLIEST, BusySource, Diary, SlotsSource, TimesSource
from adapters.mapped.session import HoursRow, TimeRow
from adapters.mapped.slots import ONE_DAY, Interval
from adapters.mapped.spans import LONGEST_OPEN, is_day
from adapters.mapping.models import DiaryMap, HoursMap, Owned
from adapters.sql.columns import Columns, rows_of, sql
from adapters.sql.engines.base import Speech, given
from adapters.values.times import ROOM, Epoch, TimeConverter
from adapters.values.wall_clock import PATTERN, written

NO_DAYS = ("____-00%", "_______-00%")
Row = Sequence[Any]


class _Rows:
    """The rows of a vet, of a schedule, or all of them: a statement with the owner bound."""

    def __init__(self, owned: Owned) -> None:
        self.by_schedule = owned.schedule is not None
        self._owner = None if owned.owner is None else sql(owned.owner.text)

    def of_owner(self, statement: Select[Any]) -> Select[Any]:
        if self._owner is None:
            return statement
        return statement.where(self._owner.in_(given("owner", expanding=True)))

    def bound(self, vets: Sequence[Any], schedule: Any) -> dict[str, Any]:
        if self._owner is None:
            return {}
        return {"owner": [schedule] if self.by_schedule else list(vets)}


class HoursRows(_Rows):
    """Rows of working hours."""

    def __init__(self, hours: HoursMap) -> None:
        super().__init__(hours)
        when = hours.weekday or hours.day
        columns = ("NULL" if when is None else when.text, hours.start, hours.end)
        self.every_row = rows_of(hours, *(sql(each or "NULL") for each in columns))
        self._statement = self.of_owner(self.every_row)

    def read(self, connection: Connection, vets: Sequence[Any], schedule: Any) -> list[HoursRow]:
        """The rows of a calendar."""
        found = connection.execute(self._statement, self.bound(vets, schedule))
        return [HoursRow(*row) for row in found]


class DurationRows(_Rows):
    """How long types last in a schedule, or in all."""

    def __init__(self, durations: Any) -> None:
        super().__init__(durations)
        self._type = Columns(durations.type.source)
        rows = rows_of(durations, sql(durations.minutes)).where(self._type.named("type"))
        self._statement = self.of_owner(rows)

    def read(
        self, connection: Connection, vets: Sequence[Any], schedule: Any, type_key: Any
    ) -> list[Any]:
        """The raw durations of a type, by its raw key."""
        bounds = self.bound(vets, schedule) | self._type.bound("type", type_key)
        return [row[0] for row in connection.execute(self._statement, bounds)]


class _TimeRows(_Rows):
    """Rows that last from a start to an end; `columns` are those of their keys."""

    def __init__(self, source: TimesSource, speech: Speech) -> None:
        rows = source.rows
        super().__init__(rows)
        self.source = source
        self._speech = speech
        self._start = Columns(rows.start.source)
        self._end = None if rows.end is None else Columns(rows.end.source)
        self._key = None if rows.key is None else Columns(rows.key.source)
        minutes = sql(rows.minutes) if rows.minutes else null()
        ends = [] if self._end is None else self._end.labelled("ends")
        keys = [] if self._key is None else self._key.labelled("row_key")
        selected = [*self._start.labelled("starts"), *ends, minutes.label("lasts"), *keys]
        self._rows = self.of_owner(rows_of(rows, *selected))

    def _row(self, row: Row) -> TimeRow:
        at, end = self._start.width, None
        if self._end is not None:
            end = self._end.take(row, at)
            at += self._end.width
        key = None if self._key is None else self._key.take(row, at + 1)
        return TimeRow(self._start.take(row, 0), end, row[at], key)

    def _compared(self, columns: Columns, converter: TimeConverter) -> ColumnElement[Any]:
        """The first column, as it is compared: a text without what stands round it."""
        first = columns.parts[0]
        return self._speech.trimmed(first) if converter.as_text else first


class BusyRows(_TimeRows):
    """Rows of what blocks."""

    def __init__(self, source: BusySource, speech: Speech) -> None:
        super().__init__(source, speech)
        self._busy, self._from, self._until = source.busy, source.start, source.end
        self._longest = source.longest
        self._statements = self._made()

    def _made(self) -> list[Select[Any]]:
        start = self._compared(self._start, self._from)
        no_end, before_start = self._end_conditions(start)
        recent = no_end if self._busy.endless else start > given("early")
        open_end = or_(no_end, before_start)
        near = and_(start < given("until"), or_(self._since(), and_(open_end, recent)))
        odd = self._odd(start)
        if self._longest is None:
            return [self._rows.where(or_(near, odd))]
        # on the start as it is, so that an index serves
        bare = self._start.parts[0]
        within = and_(bare >= given("first"), bare < given("until"))
        found = [self._rows.where(near, within), self._rows.where(odd)]
        if self._busy.endless:
            found.append(self._rows.where(near, no_end))
        return found

    def _end_conditions(
        self, start: ColumnElement[Any]
    ) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        """Whether a row has no end at all, and whether its end makes no sense."""
        if self._end is None:
            return null().is_(None), false()
        end = self._compared(self._end, self._until)
        no_end = or_(end.is_(None), end < given("earliest_end"), *self._marks(end))
        return no_end, end < start

    def _marks(self, end: ColumnElement[Any]) -> Iterator[ColumnElement[bool]]:
        """Ends that mean none, and are no old dates: they matter where that is for good."""
        for zero in self._until.zero if self._busy.endless else ():
            if isinstance(self._until, Epoch):
                yield end == given(None, int(zero))
            elif zero <= written(EARLIEST, PATTERN):
                continue
            elif self._until.as_text:
                yield end.like(f"{zero}%")
            elif is_day(zero):
                over = date.fromisoformat(zero) + ONE_DAY
                yield and_(end >= given(None, zero), end < given(None, over.isoformat()))

    def _since(self) -> ColumnElement[bool]:
        if self._end is None:
            return false()
        return self._compared(self._end, self._until) > given("since")

    def _odd(self, start: ColumnElement[Any]) -> ColumnElement[bool]:
        """Rows whose start is none that anybody means: they are looked at whatever the day."""
        raw = self._start.parts[0]
        odd = or_(raw.is_(None), start < given("earliest"))
        if not self._from.as_text or not self._from.compares or not self._is_dashed():
            return odd
        nowhere = or_(*(start.like(each) for each in NO_DAYS))
        return or_(odd, self._speech.undated(raw), nowhere)

    def _is_dashed(self) -> bool:
        """Whether texts begin with YYYY-MM-DD, so that others can be told from them."""
        first = self._from.encode("2026-03-01T12:00:00Z")[0]
        shown = first[0] if isinstance(first, tuple) else first
        return isinstance(shown, str) and shown.startswith("2026-03-0")

    def read(
        self, connection: Connection, vets: Sequence[Any], schedule: Any, window: Interval
    ) -> list[TimeRow]:
        """The rows that may block within the window."""
        bounds = self._bounds(window) | self.bound(vets, schedule)
        return [
            self._row(row)
            for statement in self._statements
            for row in connection.execute(statement, bounds)
        ]

    def _bounds(self, window: Interval) -> dict[str, Any]:
        bounds = {
            "until": _first(self._from, window.end + ROOM),
            "early": _first(self._from, window.start - LONGEST_OPEN),
            "earliest": _first(self._from, EARLIEST),
        }
        if self._end is not None:
            bounds["since"] = _first(self._until, window.start - ROOM)
            bounds["earliest_end"] = _first(self._until, EARLIEST)
        if self._longest is not None:
            longest = max(self._longest, LONGEST_OPEN) + ROOM
            bounds["first"] = _first(self._from, window.start - longest)
        return bounds


class SlotRows(_TimeRows):
    """Rows of free slots."""

    def __init__(self, source: SlotsSource, speech: Speech) -> None:
        super().__init__(source, speech)
        start = self._start.parts[0]
        self._statement = self._rows.where(start >= given("first"), start < given("until"))

    def read(
        self, connection: Connection, vets: Sequence[Any], schedule: Any, window: Interval
    ) -> list[TimeRow]:
        """The free rows that begin in the window, and some round it."""
        bounds = {
            "first": _first(self.source.start, window.start - ROOM),
            "until": _first(self.source.start, window.end + ROOM),
        } | self.bound(vets, schedule)
        return [self._row(row) for row in connection.execute(self._statement, bounds)]


def _first(converter: TimeConverter, moment: datetime) -> Any:
    """The first column of a moment as it is kept."""
    raw = converter.encode(moment)[0]
    return raw[0] if isinstance(raw, tuple) else raw


class DiaryRows:
    """All statements of a diary, by the numbers of its sources."""

    def __init__(self, diary: Diary, speech: Speech) -> None:
        said: DiaryMap = diary.map
        self.hours = [HoursRows(each) if each.is_rows else None for each in said.hours]
        self.busy = [BusyRows(each, speech) for each in diary.busy]
        self.slots = [SlotRows(each, speech) for each in diary.free]
        self.durations = [DurationRows(each) for each in said.durations]
        self._schedules = None
        if said.schedules is not None and said.schedules.vet is not None:
            key = sql(said.schedules.key.text)
            mine = sql(said.schedules.vet.text).in_(given("vet", expanding=True))
            self._schedules = rows_of(said.schedules, key).where(mine).order_by(key)

    def schedules(self, connection: Connection, vets: Sequence[Any]) -> list[Any]:
        """The keys of a vet's schedules, in their order."""
        if self._schedules is None:
            return []
        return [row[0] for row in connection.execute(self._schedules, {"vet": list(vets)})]
