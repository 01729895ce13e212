"""The statements that read a mapped database's diary: hours, what blocks, slot rows, durations.

Rows are chosen by their times as they are kept, generously; what then really blocks is decided in
adapters/mapped/diary.py, on the times that were read.
"""

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, Select, and_, false, null, or_

from adapters.mapped.diary import EARLIEST, BusySource, Diary, SlotsSource, TimesSource
from adapters.mapped.session import HoursRow, TimeRow
from adapters.mapped.slots import ONE_DAY, Interval
from adapters.mapped.spans import LONGEST_OPEN, is_day
from adapters.mapping.models import HoursMap, Owned
from adapters.sql.columns import Columns, rows_of, sql
from adapters.sql.engines.base import Criterion, Expression, Speech, given
from adapters.values.times import ROOM, Epoch, TimeConverter
from adapters.values.wall_clock import PATTERN, written

NO_DAYS = ("____-00%", "_______-00%")


class _OwnedRows:
    """The rows of a vet, of a schedule, or all of them: a statement with the owner bound."""

    def __init__(self, owned: Owned) -> None:
        self._by_schedule = owned.schedule is not None
        self._owner = None if owned.owner is None else sql(owned.owner.text)

    def of_owner(self, statement: Select[Any]) -> Select[Any]:
        if self._owner is None:
            return statement
        return statement.where(self._owner.in_(given("owner", expanding=True)))

    def bound(self, vets: Sequence[Any], schedule: Any) -> dict[str, Any]:
        if self._owner is None:
            return {}
        return {"owner": [schedule] if self._by_schedule else list(vets)}


class HoursRows(_OwnedRows):
    """Rows of working hours."""

    def __init__(self, hours: HoursMap) -> None:
        super().__init__(hours)
        when = hours.weekday or hours.day
        columns = ("NULL" if when is None else when.text, hours.start, hours.end)
        rows = rows_of(hours, *(sql(column or "NULL") for column in columns))
        self._statement = self.of_owner(rows)

    def read(self, connection: Connection, vets: Sequence[Any], schedule: Any) -> list[HoursRow]:
        """The rows of a calendar."""
        found = connection.execute(self._statement, self.bound(vets, schedule))
        return [HoursRow(*row) for row in found]


class DurationRows(_OwnedRows):
    """How long types last in a schedule, or in all."""

    def __init__(self, durations: Any) -> None:
        super().__init__(durations)
        self._type = Columns(durations.type.source)
        rows = rows_of(durations, sql(durations.minutes)).where(self._type.named("type"))
        self._statement = self.of_owner(rows)

    def read(
        self, connection: Connection, vets: Sequence[Any], schedule: Any, type_key: Any
    ) -> Sequence[Any]:
        """The raw durations of a type, by its raw key."""
        bounds = self.bound(vets, schedule) | self._type.bound("type", type_key)
        return connection.execute(self._statement, bounds).scalars().all()


class SpanRows(_OwnedRows):
    """Rows that last from a start to an end."""

    def __init__(self, source: TimesSource) -> None:
        rows = source.rows
        super().__init__(rows)
        self._start = Columns(rows.start.source)
        self._end = Columns(rows.end.source if rows.end else ())
        self._key = Columns(rows.key.source if rows.key else ())
        self._first_start = self._start.parts[0]
        minutes = sql(rows.minutes) if rows.minutes else null()
        selected = [*self._start.labelled("starts"), *self._end.labelled("ends")]
        selected += [minutes.label("lasts"), *self._key.labelled("row_key")]
        self._rows = self.of_owner(rows_of(rows, *selected))
        self._statements: list[Select[Any]] = []

    def _bounds(self, window: Interval) -> dict[str, Any]:
        raise NotImplementedError

    def read(
        self, connection: Connection, vets: Sequence[Any], schedule: Any, window: Interval
    ) -> list[TimeRow]:
        """The rows that may concern the window."""
        bounds = self._bounds(window) | self.bound(vets, schedule)
        return [
            self._row(row)
            for statement in self._statements
            for row in connection.execute(statement, bounds)
        ]

    def _row(self, row: Sequence[Any]) -> TimeRow:
        at = self._start.width
        lasts = at + self._end.width
        end = self._end.take(row, at) if self._end.width else None
        key = self._key.take(row, lasts + 1) if self._key.width else None
        return TimeRow(self._start.take(row, 0), end, row[lasts], key)


class SlotRows(SpanRows):
    """Rows of free slots: those that begin in the window, and some round it."""

    def __init__(self, source: SlotsSource) -> None:
        super().__init__(source)
        self._converter = source.start
        start = self._first_start
        self._statements = [self._rows.where(start >= given("first"), start < given("until"))]

    def _bounds(self, window: Interval) -> dict[str, Any]:
        return {
            "first": _first(self._converter, window.start - ROOM),
            "until": _first(self._converter, window.end + ROOM),
        }


class BusyRows(SpanRows):
    """Rows of what blocks: those that may reach into the window."""

    def __init__(self, source: BusySource, speech: Speech) -> None:
        super().__init__(source)
        self._endless, self._longest = source.busy.endless, source.longest
        self._from, self._until = source.start, source.end
        start = _compared(self._first_start, self._from, speech)
        ends_after: Criterion = false()
        no_end: Criterion = null().is_(None)
        before_start: Criterion = false()
        if self._end.width:
            end = _compared(self._end.parts[0], self._until, speech)
            ends_after = end > given("since")
            no_end = or_(end.is_(None), end < given("earliest_end"), *self._marks(end))
            before_start = end < start
        recent = no_end if self._endless else start > given("early")
        open_end = and_(or_(no_end, before_start), recent)
        near = and_(start < given("until"), or_(ends_after, open_end))
        odd = self._odd(start, speech)
        if self._longest is None:
            self._statements = [self._rows.where(or_(near, odd))]
            return
        # on the start as it is, so that an index serves
        within = and_(self._first_start >= given("first"), self._first_start < given("until"))
        self._statements = [self._rows.where(near, within), self._rows.where(odd)]
        if self._endless:
            self._statements.append(self._rows.where(near, no_end))

    def _marks(self, end: Expression) -> Iterator[Criterion]:
        """Ends that mean none, and are no old dates: they matter where that is for good."""
        for zero in self._until.zero if self._endless else ():
            if isinstance(self._until, Epoch):
                yield end == given(None, int(zero))
            elif zero <= written(EARLIEST, PATTERN):
                continue
            elif self._until.as_text:
                yield end.like(f"{zero}%")
            elif is_day(zero):
                over = date.fromisoformat(zero) + ONE_DAY
                yield and_(end >= given(None, zero), end < given(None, over.isoformat()))

    def _odd(self, start: Expression, speech: Speech) -> Criterion:
        """Rows whose start is none that anybody means: they are looked at whatever the day."""
        odd = or_(self._first_start.is_(None), start < given("earliest"))
        if not self._from.as_text or not self._from.compares:
            return odd
        # texts that begin with YYYY-MM-DD can be told from others
        shown = _first(self._from, "2026-03-01T12:00:00Z")
        if not isinstance(shown, str) or not shown.startswith("2026-03-0"):
            return odd
        nowhere = or_(*(start.like(no_day) for no_day in NO_DAYS))
        return or_(odd, speech.undated(self._first_start), nowhere)

    def _bounds(self, window: Interval) -> dict[str, Any]:
        bounds = {
            "until": _first(self._from, window.end + ROOM),
            "early": _first(self._from, window.start - LONGEST_OPEN),
            "earliest": _first(self._from, EARLIEST),
        }
        if self._end.width:
            bounds["since"] = _first(self._until, window.start - ROOM)
            bounds["earliest_end"] = _first(self._until, EARLIEST)
        if self._longest is not None:
            longest = max(self._longest, LONGEST_OPEN) + ROOM
            bounds["first"] = _first(self._from, window.start - longest)
        return bounds


def _compared(first: Expression, converter: TimeConverter, speech: Speech) -> Expression:
    """The first column, as it is compared: a text without what stands round it."""
    return speech.trimmed(first) if converter.as_text else first


def _first(converter: TimeConverter, moment: datetime | str) -> Any:
    """The first column of a moment as it is kept."""
    raw = converter.encode(moment)[0]
    return raw[0] if isinstance(raw, tuple) else raw


class DiaryRows:
    """All statements of a diary, by the numbers of its sources."""

    def __init__(self, diary: Diary, speech: Speech) -> None:
        said = diary.map
        self.hours = [HoursRows(hours) if hours.is_rows else None for hours in said.hours]
        self.busy = [BusyRows(source, speech) for source in diary.busy]
        self.slots = [SlotRows(source) for source in diary.free]
        self.durations = [DurationRows(durations) for durations in said.durations]
        self._schedules = None
        if said.schedules is not None and said.schedules.vet is not None:
            key = sql(said.schedules.key.text)
            mine = sql(said.schedules.vet.text).in_(given("vet", expanding=True))
            self._schedules = rows_of(said.schedules, key).where(mine).order_by(key)

    def schedules(self, connection: Connection, vets: Sequence[Any]) -> Sequence[Any]:
        """The keys of a vet's schedules, in their order."""
        if self._schedules is None:
            return []
        return connection.execute(self._schedules, {"vet": list(vets)}).scalars().all()
