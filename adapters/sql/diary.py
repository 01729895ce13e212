"""Reads a mapped database's diary: hours, what blocks, slot rows, durations.

The statements choose rows generously, by their times as they are kept. What really blocks is
decided in adapters/mapped/diary.py, by the times that were read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from sqlalchemy import Select, and_, null, or_

from adapters.mapped.diary import EARLIEST, BusySource, SlotsSource, TimesSource
from adapters.mapped.session import HoursRow, ScheduleRow, TimeRow
from adapters.mapped.slots import Interval
from adapters.mapped.spans import LONGEST_OPEN, looks_like_day
from adapters.mapping.models import DurationsMap, HoursMap, Owned, SchedulesMap, ValueSource
from adapters.sql.columns import Columns, parts_of, rows_of, sql
from adapters.sql.comparisons import on_day
from adapters.sql.engines.base import Criterion, Expression, Speech, given
from adapters.sql.engines.statements import Parameters, ShapedStatement
from adapters.values.times import PATTERN, ROOM, Epoch, TimeConverter, written

NO_DAYS = ("____-00%", "_______-00%")


class CalendarRows:
    """The rows of a vet, of a schedule, or all of them, read with the owner as a parameter.

    `row` makes of each row what is returned: here the value of its only column.
    """

    row: Callable[[Any], Any] = itemgetter(0)

    def __init__(self, owned: Owned, *columns: Expression, order: Expression | None = None) -> None:
        self.by_vet = owned.schedule is None
        self._rows = rows_of(owned, *columns).order_by(order)
        self._owner = None if owned.owner is None else Columns((owned.owner.text,))
        self._statements = [self._rows]

    def questions(
        self, owners: Sequence[Any], bounds: Mapping[str, Any]
    ) -> Iterator[ShapedStatement]:
        """Yields what to ask for the rows of the owner, given by all spellings of its key."""
        owner, names = self._owner, tuple(bounds)
        keys = [] if owner is None else owners
        count = len(keys)
        values = (*keys, *bounds.values())
        for number, statement in enumerate(self._statements):

            def build(parameters: Parameters, rows: Select[Any] = statement) -> Select[Any]:
                given_keys = parameters.take(count)
                for name in names:
                    parameters.named(name)
                return rows if owner is None else rows.where(owner.among(given_keys))

            yield ShapedStatement((self, number, count), values, build)


class HoursRows(CalendarRows):
    """Working hours."""

    row = staticmethod(HoursRow._make)

    def __init__(self, hours: HoursMap) -> None:
        when = hours.weekday or hours.day
        columns = (when and when.text, hours.start, hours.end)
        super().__init__(hours, *(sql(column or "NULL") for column in columns))


class ScheduleRows(CalendarRows):
    """The schedules of a vet."""

    def __init__(self, schedules: SchedulesMap) -> None:
        key, kind = sql(schedules.key.text), _or_null(schedules.default_type)
        columns = (sql(each or "NULL") for each in (schedules.step, schedules.duration))
        type_in = kind.getter(3)
        self.row = lambda row: ScheduleRow(row[0], row[1], row[2], type_in(row))
        super().__init__(schedules, key, *columns, *kind.parts, order=key)


def vets_in(schedules: SchedulesMap) -> CalendarRows:
    """Returns what reads the raw keys of the vets of a schedule."""
    vet = (schedules.vet or schedules.key).text
    owner = {"vet": None, "schedule": schedules.key}
    return CalendarRows(schedules.model_copy(update=owner), sql(vet))


class DurationRows(CalendarRows):
    """How long a type lasts in a schedule, or in all."""

    def __init__(self, durations: DurationsMap) -> None:
        super().__init__(durations, sql(durations.minutes))
        self._type = Columns(durations.type.source)
        named = zip(self._type.parts, self.names, strict=True)
        self._statements = [self._rows.where(and_(*(part == given(name) for part, name in named)))]

    @property
    def names(self) -> Sequence[str]:
        """The parameters of a type's raw key."""
        return [f"type_{number}" for number in range(self._type.width)]

    def bounds(self, key: Any) -> dict[str, Any]:
        """Returns the parameters that find the rows of a type by its raw key."""
        return dict(zip(self.names, parts_of(key), strict=True))


class SpanRows(CalendarRows):
    """Rows that last from a start to an end.

    `bounds` are the parameters of the statements: moments of a window as the converter writes them.
    """

    def __init__(self, source: TimesSource) -> None:
        rows, columns = source.rows, list[Expression]()
        self._start, self._end = (_or_null(value) for value in (rows.start, rows.end))
        lasts, key = Columns((rows.minutes or "NULL",)), _or_null(rows.key)
        named = {"starts": self._start, "ends": self._end, "lasts": lasts, "row_key": key}
        parts = []
        for name, value in named.items():
            parts.append(value.getter(len(columns)))
            columns += value.labelled(name)
        self.row = lambda row: TimeRow(*(part(row) for part in parts))
        super().__init__(rows, *columns)
        self._bounds: dict[str, tuple[TimeConverter, Callable[[Interval], datetime]]] = {}

    def bounds(self, window: Interval) -> dict[str, Any]:
        """Returns the parameters that find the rows that may concern the window."""
        return {name: _first(how, at(window)) for name, (how, at) in self._bounds.items()}


class SlotRows(SpanRows):
    """Rows of free slots: those that begin in the window, and some around it."""

    def __init__(self, source: SlotsSource) -> None:
        super().__init__(source)
        start, how = self._start.parts[0], source.start
        self._statements = [self._rows.where(start >= given("first"), start < given("until"))]
        self._bounds = {
            "first": (how, lambda window: window.start - ROOM),
            "until": (how, lambda window: window.end + ROOM),
        }


class BusyRows(SpanRows):
    """Rows of what blocks: those that may reach into the window."""

    def __init__(self, source: BusySource, speech: Speech) -> None:
        super().__init__(source)
        self._endless = source.rows.endless
        self._from, self._until = source.start, source.end
        self._bounds = {
            "until": (self._from, lambda window: window.end + ROOM),
            "early": (self._from, lambda window: window.start - LONGEST_OPEN),
            "earliest": (self._from, lambda _: EARLIEST),
        }
        first_start = self._start.parts[0]
        start = speech.trimmed(first_start) if self._from.as_text else first_start
        no_end: Criterion = null().is_(None)
        senseless, reaching = [no_end], list[Criterion]()
        if source.rows.end is not None:
            end = self._end.parts[0]
            end = speech.trimmed(end) if self._until.as_text else end
            marks = self._marks(end) if self._endless else ()
            no_end = or_(end.is_(None), end < given("earliest_end"), *marks)
            senseless, reaching = [no_end, end < start], [end > given("since")]
            self._bounds["since"] = (self._until, lambda window: window.start - ROOM)
            self._bounds["earliest_end"] = (self._until, lambda _: EARLIEST)
        recent = no_end if self._endless else start > given("early")
        near = and_(start < given("until"), or_(*reaching, and_(or_(*senseless), recent)))
        odd = self._odd(start, speech)
        if source.rows.longest is None:
            self._statements = [self._rows.where(or_(near, odd))]
            return
        longest = max(timedelta(days=source.rows.longest), LONGEST_OPEN) + ROOM
        self._bounds["first"] = (self._from, lambda window: window.start - longest)
        # on the start as it is, so that an index can be used
        within = and_(first_start >= given("first"), first_start < given("until"))
        self._statements = [self._rows.where(near, within), self._rows.where(odd)]
        if self._endless:
            self._statements.append(self._rows.where(near, no_end))

    def _marks(self, end: Expression) -> list[Criterion]:
        """Returns the conditions for ends that mean none and are no old dates."""
        if isinstance(self._until, Epoch):
            return [end == given(None, int(mark)) for mark in self._until.none]
        as_text = self._until.as_text
        marks = [zero for zero in self._until.zero if zero > written(EARLIEST, PATTERN)]
        return [
            on_day(end, mark, as_text=as_text) for mark in marks if as_text or looks_like_day(mark)
        ]

    def _odd(self, start: Expression, speech: Speech) -> Criterion:
        """Returns the condition for rows without a usable start, which are read for any day."""
        kept, how = self._start.parts[0], self._from
        odd = or_(kept.is_(None), start < given("earliest"))
        # texts that begin with YYYY-MM-DD can be told from others
        shown = _first(how, "2026-03-01T12:00:00Z") if how.as_text and how.compares else ""
        if not shown.startswith("2026-03-0"):
            return odd
        return or_(odd, speech.undated(kept), *(start.like(no_day) for no_day in NO_DAYS))


def _or_null(source: ValueSource | None) -> Columns:
    return Columns(source.source if source else ("NULL",))


def _first(converter: TimeConverter, moment: datetime | str) -> Any:
    """Returns the first column of a moment as it is kept."""
    raw = converter.encode(moment)[0]
    return raw[0] if isinstance(raw, tuple) else raw
