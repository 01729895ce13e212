"""What a vet's day is made of: working hours, what blocks, and what the backend says is free."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import orjson

from adapters.base import BackendNonsense, FieldShape, Trouble
from adapters.mapped.repeated import RepeatedHours
from adapters.mapped.slots import Interval, Shift
from adapters.mapped.spans import lasting, narrowed, readings, whole_day
from adapters.rest.backend import Answer
from adapters.rest.mapping import Found, HoursCall, HoursWritten, Many, Times
from adapters.rest.paging import MOST_ROWS, Params, pager
from adapters.rest.paths import holds, path
from adapters.rest.records import FoundValue, FoundValues, RawValue
from adapters.rest.templates import Values
from adapters.rest.together import for_each
from adapters.rest.toolbox import Toolbox
from adapters.values.convert import Unreadable
from adapters.values.times import TimeConverter

# What calls of the diary can be given.
GIVEN = {
    "vet": FieldShape(format="uuid", refers="vets"),
    "type": FieldShape(format="uuid", refers="appointmentTypes"),
    "day": FieldShape(format="date"),
    "from": FieldShape(format="date-time"),
    "until": FieldShape(format="date-time"),
    "minutes": FieldShape(format="integer"),
}
TIME = FieldShape(format="date-time")
_VET = GIVEN["vet"]
_TEXT = FieldShape(format="text")


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose day is asked about: public ids, the local days that matter, and their window."""

    vet: str
    window: Interval
    minutes: int
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time; `key` is the public id of its appointment, where it is one's.

    `is_likely` as `readings` has it: of a row in an hour that comes twice there are several.
    """

    time: Interval
    key: str | None = None
    is_likely: bool = True


class Hours(Protocol):
    """A source of working hours."""

    async def shifts(self, asked: Asked) -> list[Shift]: ...


class WrittenHours:
    """Working hours that stand in the mapping."""

    def __init__(self, hours: HoursWritten, values: FoundValues) -> None:
        key = values.make(Found(path="@"), _VET)
        self._vets = None if hours.vets is None else {key.read(each) for each in hours.vets}
        start, end = _clock(hours.start), _clock(hours.end)
        self._shifts = [Shift(day, start, end) for day in hours.days]

    async def shifts(self, asked: Asked) -> list[Shift]:
        return self._shifts if self._vets is None or asked.vet in self._vets else []


class AskedHours:
    """Working hours that the backend tells."""

    def __init__(self, hours: HoursCall, tools: Toolbox) -> None:
        self._tools = tools
        self._rows = Rows(hours, hours.where, tools)
        self._vet = None if hours.vet is None else tools.values.make(hours.vet, _VET)
        self._weekday = tools.values.make(hours.weekday, _TEXT)
        self._start, self._end = path(hours.start), path(hours.end)

    async def shifts(self, asked: Asked) -> list[Shift]:
        rows = await self._rows.read({"vet": asked.vet})
        return [shift for row in rows for shift in self._shift(row, asked.vet)]

    def _shift(self, row: Any, vet: str) -> Iterator[Shift]:
        """A row's shift; one that can't be read opens nothing."""
        try:
            if self._vet is None or self._vet.read(row) == vet:
                day = _weekday(self._weekday.read(row))
                yield Shift(day, _clock(self._start(row)), _clock(self._end(row)))
        except (Unreadable, TypeError, ValueError, OverflowError):
            self._tools.report(Trouble("unreadable", "slots", "diary.hours", ""))


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


class Rows:
    """The rows of a call of the diary, all pages of it; `doubt` keeps those that may not count."""

    def __init__(
        self,
        call: Many,
        where: str | None,
        tools: Toolbox,
        key: Found | None = None,
        *,
        doubt: bool = False,
    ) -> None:
        self._endpoint = tools.templates.call(call, GIVEN)
        self._backend = tools.backend
        self._where = path(where) if where else None
        self._doubt = doubt
        self._key = None if key is None else RawValue(key)
        page = call.page if isinstance(call, Times) else None
        self._pager = pager(page, path(call.items), self._mark, self._endpoint.label)

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


class Spans:
    """A source of spans of time of a vet. In doubt one that `blocks` does, and another is none."""

    def __init__(
        self,
        times: Times,
        tools: Toolbox,
        zone: ZoneInfo,
        default: int,
        hours: RepeatedHours,
        *,
        blocks: bool,
    ) -> None:
        values = tools.values
        self._hours = hours
        self._report, self._zone, self._blocks = tools.report, zone, blocks
        self._name = "diary.busy" if blocks else "diary.free"
        self._rows = Rows(times, times.where, tools, times.key, doubt=blocks)
        self._vet = None if times.vet is None else values.make(times.vet, _VET)
        self._key = None if times.key is None else values.key(times.key, "appointments")
        self._start = values.make(times.start, TIME)
        self._end = None if times.end is None else values.make(times.end, TIME)
        self._minutes = None if times.minutes is None else path(times.minutes)
        self._default = timedelta(minutes=default)
        self._endless = times.endless
        self._longest = timedelta(days=times.longest)
        self._by_day = asks_by_day(times)

    @property
    def knows_appointments(self) -> bool:
        """Whether it can tell which appointment a span is of."""
        return self._key is not None

    async def read(self, asked: Asked) -> list[Span]:
        """The spans that lie in the window, and some round it."""
        answers = await for_each(self._rows.read, self._questions(asked))
        rows = answers[0]
        if len(answers) > 1:  # the same row may come with two days
            rows = list({orjson.dumps(row): row for each in answers for row in each}.values())
        return await self._narrowed([list(self._span(row, asked)) for row in rows])

    async def _narrowed(self, rows: Sequence[Sequence[Span]]) -> list[Span]:
        """The spans of all rows; of a booked appointment the time that is kept of it alone."""
        unclear = {row[0].key for row in rows if len(row) > 1 and row[0].key is not None}
        booked = await self._hours.known(unclear)
        return [each for row in rows for each in _settled(row, booked)]

    def _questions(self, asked: Asked) -> list[dict[str, Any]]:
        first = asked.window.start - self._longest
        given = {
            "vet": asked.vet,
            "type": asked.type,
            "minutes": asked.minutes,
            "from": first,
            "until": asked.window.end,
        }
        if not self._by_day:
            return [given]
        day = first.astimezone(self._zone).date()
        last = (asked.window.end - timedelta(microseconds=1)).astimezone(self._zone).date()
        days = [day + timedelta(days=number) for number in range((last - day).days + 1)]
        return [{**given, "day": each.isoformat()} for each in days]

    def _span(self, row: Any, asked: Asked) -> Iterator[Span]:
        try:
            if self._vet is not None and self._vet.read(row) != asked.vet:
                return
            key = None if self._key is None else self._key.read(row)
            times = list(self._times(row, asked.window))
        except Unreadable:
            self._report(Trouble("unreadable", "slots", self._name, ""))
            if self._blocks:
                yield Span(asked.window)
            return
        if self._blocks:
            yield from (Span(time, key, is_likely) for time, is_likely in times)
        elif times:  # in doubt the least is free
            yield Span(min((time for time, _ in times), key=_least), key)

    def _times(self, row: Any, window: Interval) -> Iterator[tuple[Interval, bool]]:
        """All times that a row may mean, as `readings` has them."""
        begins = _instants(self._start, self._start.plain(row))
        ends: tuple[datetime, ...] = ()
        if self._end is not None:
            ends = _instants(self._end, whole_day(self._end.plain(row)))
        if not begins:
            if ends and self._blocks:  # nobody knows from when on: from the beginning
                yield Interval(min(window.start, ends[-1]), ends[-1]), True
        elif ends and begins[0] < ends[-1]:
            is_clear = len(begins) == len(ends) == 1
            lasts = None if is_clear else self._length_said(row)
            yield from readings(begins, ends, lasts, self._zone)
        elif not ends and self._endless:
            yield Interval(begins[0], max(begins[0], window.end)), True
        else:
            yield from ((Interval(each, each + self._length(row)), True) for each in begins)

    def _length(self, row: Any) -> timedelta:
        """So many minutes as the row says; where it says none, the default."""
        return self._length_said(row) or self._default

    def _length_said(self, row: Any) -> timedelta | None:
        return lasting(None if self._minutes is None else self._minutes(row))


def _settled(row: Sequence[Span], booked: Mapping[str, Interval]) -> Sequence[Span]:
    """What a row blocks: where its appointment is booked, no other time that it may mean."""
    key = row[0].key if len(row) > 1 else None
    if key is None or key not in booked:
        return row
    found = narrowed(((each.time, each.is_likely) for each in row), booked[key])
    return [Span(time, key, is_likely) for time, is_likely in found]


def asks_by_day(times: Times) -> bool:
    """Whether a call is about one day."""
    values = [each.root for each in times.query.values()]
    return "day" in times.names or any(getattr(each, "given", None) == "day" for each in values)


def _instants(found: FoundValue, raw: Any) -> tuple[datetime, ...]:
    converter: TimeConverter = found.converter  # type: ignore[assignment]  # of a time
    return converter.instants(raw)


def _least(time: Interval) -> tuple[timedelta, datetime]:
    return time.end - time.start, time.start
