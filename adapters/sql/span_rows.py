"""What a vet's day is made of in a mapped system: working hours, what blocks, free slot rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, false, null, or_

from adapters.base import Report, Trouble
from adapters.mapped.slots import ONE_DAY, Interval
from adapters.mapped.spans import LONGEST_OPEN, is_day, lasting, readings, shortest, whole_day
from adapters.mapping.converters import Converters
from adapters.sql.calendars import Calendar, Whose
from adapters.sql.columns import Columns, rows_of, sql
from adapters.sql.engines.base import Speech, given
from adapters.sql.mapping import Busy, Rowspan, SlotRows
from adapters.values.convert import Unreadable
from adapters.values.times import ROOM, Epoch, TimeConverter
from adapters.values.wall_clock import PATTERN, written

Moments = tuple[datetime, ...]
# The first date that is more than a placeholder.
EARLIEST = datetime(1902, 1, 2, tzinfo=UTC)
LAST_DAY = "9999-12-31"
NO_DAYS = ("____-00%", "_______-00%")


@dataclass(frozen=True, slots=True)
class Block:
    """A time that is taken; `key` is the appointment's, where the source names one.

    `schedule` is the one that it blocks, None where it blocks the vet wherever that is. `is_likely`
    as `readings` has it: of a row in an hour that comes twice there are several.
    """

    interval: Interval
    key: Any = None
    schedule: Any = None
    is_likely: bool = True


class SpanRows:
    """Rows that last from a start to an end: what the sources of blocks and of slots share."""

    def __init__(self, rows: Rowspan, converters: Converters, report: Report, name: str) -> None:
        self._report = report
        self._name = name
        self.zone = converters.zone
        self.start_columns = Columns(rows.start.sql)
        self.start: TimeConverter = converters.moment(rows.start, columns=len(rows.start.sql))
        self.whose = Whose(rows.vet, rows.schedule)
        end = rows.end or rows.start
        self.end_columns = None if rows.end is None else Columns(end.sql)
        self.end: TimeConverter = converters.moment(end, columns=len(end.sql))
        self._minutes = sql(rows.minutes) if rows.minutes else null()

    def selected(self) -> list[ColumnElement[Any]]:
        end = [] if self.end_columns is None else self.end_columns.labelled("ends")
        return [*self.start_columns.labelled("starts"), *end, self._minutes.label("lasts")]

    def parts(self, row: Sequence[Any]) -> tuple[Any, Any, Any, Sequence[Any]]:
        """Raw start, raw end (None without one), raw length, and what else was selected."""
        at = self.start_columns.width
        end = None
        if self.end_columns is not None:
            end = self.end_columns.take(row, at)
            at += self.end_columns.width
        return self.start_columns.take(row, 0), end, row[at], row[at + 1 :]

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
        self._report(Trouble("unreadable", "slots", self._name, ""))


class BusyRows(SpanRows):
    """One source of what blocks: appointments, absences.

    Rows are chosen by their times as they are kept, generously; what then really blocks is decided
    on the times that were read. In doubt a row blocks, and is reported.
    """

    def __init__(
        self,
        busy: Busy,
        converters: Converters,
        default_minutes: int,
        report: Report,
        speech: Speech,
    ) -> None:
        super().__init__(busy, converters, report, "diary.busy")
        self._default = timedelta(minutes=default_minutes)
        self._endless = busy.endless
        self._longest = None if busy.longest is None else timedelta(days=busy.longest)
        self._key = None if busy.key is None else Columns(busy.key)
        selected = self.selected()
        if self._key is not None:
            selected += self._key.labelled("busy_key")
        self._rows = self.whose.rows(rows_of(busy, *selected))
        self._speech = speech
        self._statements = self._made()

    def _made(self) -> list[Select[Any]]:
        start = self._compared(self.start_columns, self.start)
        no_end, before_start = self._end_conditions(start)
        open_end = or_(no_end, before_start)
        recent = no_end if self._endless else start > given("early")
        until = self._until()
        near = and_(until, or_(self._since(), and_(open_end, recent)))
        odd = self._odd()
        if self._longest is None:
            return [self._rows.where(or_(near, odd))]
        # on the start as it is, so that an index serves
        bare = self.start_columns.parts[0]
        within = and_(bare >= given("first"), bare < given("until"))
        found = [self._rows.where(near, within), self._rows.where(odd)]
        if self._endless:
            found.append(self._rows.where(near, no_end))
        return found

    def _compared(self, columns: Columns, converter: TimeConverter) -> ColumnElement[Any]:
        """The first column, as it is compared: a text without what stands round it."""
        first = columns.parts[0]
        return self._speech.trimmed(first) if converter.as_text else first

    def _end_conditions(
        self, start: ColumnElement[Any]
    ) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        """Whether a row has no end at all, and whether its end makes no sense."""
        if self.end_columns is None:
            return null().is_(None), false()
        end = self._compared(self.end_columns, self.end)
        no_end = or_(end.is_(None), end < given("earliest_end"), *self._marks(end))
        return no_end, end < start

    def _marks(self, end: ColumnElement[Any]) -> Iterator[ColumnElement[bool]]:
        """Ends that mean none, and are no old dates: they matter where that is for good."""
        for zero in self.end.zero if self._endless else ():
            if isinstance(self.end, Epoch):
                yield end == given(None, int(zero))
            elif zero <= written(EARLIEST, PATTERN):
                continue
            elif self.end.as_text:
                yield end.like(f"{zero}%")
            elif is_day(zero):
                over = date.fromisoformat(zero) + ONE_DAY
                yield and_(end >= given(None, zero), end < given(None, over.isoformat()))

    def _since(self) -> ColumnElement[bool]:
        if self.end_columns is None:
            return false()
        return self._compared(self.end_columns, self.end) > given("since")

    def _until(self) -> ColumnElement[bool]:
        return self._compared(self.start_columns, self.start) < given("until")

    def _odd(self) -> ColumnElement[bool]:
        """Rows whose start is none that anybody means: they are looked at whatever the day."""
        raw = self.start_columns.parts[0]
        start = self._compared(self.start_columns, self.start)
        odd = or_(raw.is_(None), start < given("earliest"))
        if not self.start.as_text or not self.start.compares:
            return odd
        if not self._is_dashed():
            return odd
        nowhere = or_(*(start.like(each) for each in NO_DAYS))
        return or_(odd, self._speech.undated(raw), nowhere)

    def _is_dashed(self) -> bool:
        """Whether texts begin with YYYY-MM-DD, so that others can be told from them."""
        written = self.start.encode("2026-03-01T12:00:00Z")[0]
        first = written[0] if isinstance(written, tuple) else written
        return isinstance(first, str) and first.startswith("2026-03-0")

    def read(
        self, connection: Connection, calendar: Calendar, window: Interval
    ) -> Iterator[list[Block]]:
        """What blocks the calendar within the window, and a little beyond it: row by row."""
        bounds = self._bounds(window) | self.whose.bound(calendar)
        around = Interval(window.start - ROOM, window.end + ROOM)
        for statement in self._statements:
            for row in connection.execute(statement, bounds):
                start, end, minutes, rest = self.parts(row)
                key = None if self._key is None else self._key.take(rest, 0)
                schedule = self.whose.schedule(calendar)
                yield [
                    Block(interval, key, schedule, is_likely)
                    for interval, is_likely in self._intervals(around, start, end, minutes)
                ]

    def _bounds(self, window: Interval) -> dict[str, Any]:
        bounds = {
            "until": _first(self.start, window.end + ROOM),
            "early": _first(self.start, window.start - LONGEST_OPEN),
            "earliest": _first(self.start, EARLIEST),
        }
        if self.end_columns is not None:
            bounds["since"] = _first(self.end, window.start - ROOM)
            bounds["earliest_end"] = _first(self.end, EARLIEST)
        if self._longest is not None:
            longest = max(self._longest, LONGEST_OPEN) + ROOM
            bounds["first"] = _first(self.start, window.start - longest)
        return bounds

    def _intervals(
        self, around: Interval, start: Any, end: Any, minutes: Any
    ) -> Iterator[tuple[Interval, bool]]:
        """All times that a row may mean, as `readings` has them."""
        begins = self.instants(self.start, start)
        ends = self._ends(end, around)
        if begins:
            yield from self._between(begins, ends, minutes, around)
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
        elif ends == () and lasts is None and self._endless:
            yield Interval(begins[0], max(begins[0], around.end)), True
        else:
            yield from ((Interval(each, each + (lasts or self._default)), True) for each in begins)


def _first(converter: TimeConverter, moment: datetime) -> Any:
    """The first column of a moment as it is kept."""
    raw = converter.encode(moment)[0]
    return raw[0] if isinstance(raw, tuple) else raw


def _is_for_good(end: Any, zero: Sequence[str]) -> bool:
    """Whether it is what databases write for the end of time: in UTC it may lie beyond that."""
    shown = str(end[0] if isinstance(end, tuple) else end).strip()
    return shown == "infinity" or (shown[:10] == LAST_DAY and LAST_DAY not in zero)


class FreeRows(SpanRows):
    """Free slots that the practice system keeps as rows. In doubt a row offers nothing."""

    def __init__(self, slots: SlotRows, converters: Converters, report: Report) -> None:
        super().__init__(slots, converters, report, "diary.slots")
        start = self.start_columns.parts[0]
        self._statement = self.whose.rows(
            rows_of(slots, *self.selected(), sql(slots.key).label("slot_key"))
        ).where(start >= given("first"), start < given("until"))

    def read(self, connection: Connection, calendar: Calendar, window: Interval) -> Iterator[Block]:
        """The free rows that begin in the window, with their keys."""
        bounds = {
            "first": _first(self.start, window.start - ROOM),
            "until": _first(self.start, window.end + ROOM),
        } | self.whose.bound(calendar)
        for row in connection.execute(self._statement, bounds):
            raw_start, raw_end, minutes, rest = self.parts(row)
            starts = self.instants(self.start, raw_start)
            ends = self.instants(self.end, raw_end)
            if not starts or rest[0] is None:
                continue
            if ends == () and (lasts := self.length(minutes)):
                ends = tuple(each + lasts for each in starts)
            slot = shortest(starts, ends or ())
            if slot is not None and window.start <= slot.start < window.end:
                yield Block(slot, rest[0])
