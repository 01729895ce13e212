"""The diary of a mapped system: what is free, and a booking that is checked, written, read back."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Any

from sqlalchemy import (
    Connection,
    Select,
    and_,
    bindparam,
    func,
    or_,
)

from adapters.base import (
    BackendNonsense,
    Draft,
    Filter,
    NotFound,
    Record,
    Report,
    SlotTaken,
    Trouble,
)
from adapters.convert import TimeConverter, Unreadable, instant_text
from adapters.mapping import Busy, Hours, Mapping
from adapters.slots import ONE_DAY, Interval, Shift, day_window, free_slots
from adapters.sql.converters import Converters
from adapters.sql.reading import ResourceReader, rows_of, sql
from adapters.sql.writes import BookingWrites

# Bounds are compared as the backend writes them: a change of the clocks, or a T between day and
# time, needs some room. What then really blocks is decided on the times that were read.
ROOM = timedelta(days=1, hours=2)
BLANKS = " \t\n\v\f\r"
LONGEST_OPEN = timedelta(days=2)
MOST_MINUTES = 1_000_000
# So many appointments of one patient at one time with one vet are looked through at the most.
MOST_ALIKE = 50
UNREADABLE = object()
# What a date begins with, in SQLite's words, and the first that is more than a placeholder.
DATED = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*"
EARLIEST = "1902"
NO_DAYS = ("____-00%", "_______-00%")
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
NEW = "SCHEDULED"


class ShiftRows:
    """One source of working hours."""

    def __init__(self, hours: Hours, report: Report) -> None:
        self._report = report
        columns = [sql(hours.weekday), sql(hours.start), sql(hours.end)]
        self._statement = rows_of(hours, *columns).where(sql(hours.vet) == bindparam("vet"))

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
        self, busy: Busy, converters: Converters, default_minutes: int, report: Report
    ) -> None:
        self._report = report
        self._start: TimeConverter = converters.moment(busy.start)
        self._end: TimeConverter = converters.moment(busy.end)
        self._default = timedelta(minutes=default_minutes)
        self._endless = busy.endless
        self._longest = None if busy.longest is None else timedelta(days=busy.longest)
        raw = sql(busy.start.sql), sql(busy.end.sql), sql(busy.minutes or "NULL")
        start, end = (func.trim(each, BLANKS) for each in raw[:2])
        rows: Select[Any] = rows_of(busy, *raw).where(sql(busy.vet) == bindparam("vet"))
        open_end = or_(end.is_(None), end < start)
        no_end = or_(end.is_(None), end < EARLIEST)
        recent = no_end if busy.endless else start > bindparam("early")
        near = and_(
            start < bindparam("until"),
            or_(end > bindparam("since"), and_(open_end, recent)),
        )
        # what is no date to begin with, or none that anybody means
        nowhere = or_(*(raw[0].like(each) for each in NO_DAYS))
        odd = or_(raw[0].is_(None), raw[0].op("NOT GLOB")(DATED), raw[0] < EARLIEST, nowhere)
        if self._longest is None:
            self._statements = [rows.where(or_(near, odd))]
        else:
            # on the start as it is, so that an index serves
            within = and_(raw[0] >= bindparam("first"), raw[0] < bindparam("until"))
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


class Diary:
    """Free times and bookings."""

    def __init__(
        self,
        mapping: Mapping,
        converters: Converters,
        readers: dict[str, ResourceReader],
        report: Report,
    ) -> None:
        self._readers = readers
        self._zone = converters.zone
        self._step = timedelta(minutes=mapping.diary.step)
        self._minutes = mapping.diary.duration
        self._shifts = [ShiftRows(hours, report) for hours in mapping.diary.hours]
        self._busy = [
            BusyRows(each, converters, self._minutes, report) for each in mapping.diary.busy
        ]
        self._booking = BookingWrites(mapping, converters)
        reference = mapping.booking.reference
        self._reference = None if reference is None else sql(reference)

    def slots(self, connection: Connection, query_values: Any, now: datetime) -> list[Record]:
        """The free slots of a day as records."""
        vet = self._readers["vets"].key_of(query_values["vetId"])
        self._readers["vets"].must_exist(connection, vet)
        type_id = query_values.get("appointmentTypeId")
        duration = self._duration(connection, type_id)
        free = self._free(connection, vet, query_values["date"], duration, now)
        return [
            {"startTime": instant_text(each.start), "endTime": instant_text(each.end)}
            for each in free
        ]

    def book(self, connection: Connection, draft: Draft) -> Record:
        """Check and write one appointment; the caller holds the lock and commits."""
        keys = self._keys(connection, draft)
        duration = self._duration(connection, draft.appointment_type_id)
        try:
            wanted = Interval(draft.scheduled_at, draft.scheduled_at + duration)
            day = draft.scheduled_at.astimezone(self._zone).date()
            free = self._free(connection, keys["vetId"], day, duration, draft.now)
        except OverflowError as error:
            raise SlotTaken("beyond the calendar") from error
        if wanted not in free:
            raise SlotTaken("not one of the free slots")
        key = self._booking.write(connection, self._booking.draft_values(draft, wanted))
        try:
            record = self._readers["appointments"].one(connection, key)
        except NotFound as error:
            raise BackendNonsense("the written appointment cannot be read back") from error
        _verify(record, draft, wanted, self._readers["appointments"].filterable)
        if self._reference is not None and record not in self._carrying(connection, draft):
            raise BackendNonsense("the written appointment does not carry its reference")
        if wanted in self._free(connection, keys["vetId"], day, duration, draft.now):
            raise BackendNonsense("the written appointment blocks nothing: diary.busy misses it")
        return record

    def find(self, connection: Connection, draft: Draft, since: datetime) -> list[Record]:
        """The appointments that carry the draft's reference.

        Where the practice system keeps none: those that are all that the draft says, and were
        written at `since` or later by the practice's own clock.
        """
        reader = self._readers["appointments"]
        if self._reference is not None and draft.reference:
            carrying = self._carrying(connection, draft)
            # what the desk has given to another animal since is nobody's to be shown
            return [each for each in carrying if each["patientId"] == draft.patient_id]
        wanted = [
            Filter("equals", ("vetId",), draft.vet_id),
            Filter("equals", ("scheduledAt",), draft.scheduled_at),
            Filter("equals", ("patientId",), draft.patient_id),
        ]
        if "createdAt" in reader.filterable:
            wanted.append(Filter("written since", ("createdAt",), since))
        found = reader.page(connection, wanted, MOST_ALIKE, None).records
        return [each for each in found if _is_of(each, draft, reader.filterable)]

    def _carrying(self, connection: Connection, draft: Draft) -> list[Record]:
        """The appointments that carry the draft's reference, where the mapping says what does."""
        if self._reference is None:
            return []
        reader = self._readers["appointments"]
        return reader.marked(connection, self._reference, draft.reference, MOST_ALIKE)

    def _keys(self, connection: Connection, draft: Draft) -> dict[str, int]:
        """The keys of all that the draft names; NotFound, also for another client's animal."""
        named = {
            "clientId": ("clients", draft.client_id),
            "patientId": ("patients", draft.patient_id),
            "vetId": ("vets", draft.vet_id),
        }
        keys = {name: self._readers[where].key_of(each) for name, (where, each) in named.items()}
        self._readers["clients"].must_exist(connection, keys["clientId"])
        patient = self._readers["patients"].one(connection, keys["patientId"])
        if patient["clientId"] != draft.client_id:
            raise NotFound("the patient is not this client's")
        self._readers["vets"].must_exist(connection, keys["vetId"])
        return keys

    def _duration(self, connection: Connection, type_id: str | None) -> timedelta:
        if type_id is None:
            return timedelta(minutes=self._minutes)
        reader = self._readers["appointmentTypes"]
        kind = reader.one(connection, reader.key_of(type_id))
        minutes = kind["durationMinutes"]
        if minutes and timedelta(minutes=min(minutes, MOST_MINUTES)) > LONGEST_OPEN:
            raise BackendNonsense("an appointment type lasts longer than two days")
        return timedelta(minutes=minutes if minutes and minutes > 0 else self._minutes)

    def _free(
        self, connection: Connection, vet: int, day: date, duration: timedelta, now: datetime
    ) -> list[Interval]:
        try:
            window = day_window(day, self._zone)
            wide = Interval(window.start, window.end + duration)
            busy = [each for rows in self._busy for each in rows.read(connection, vet, wide)]
            shifts = [each for rows in self._shifts for each in rows.read(connection, vet)]
            free = free_slots(
                day, self._zone, shifts, busy, duration=duration, step=self._step, now=now
            )
        except OverflowError:  # the first and the last days of the calendar
            return []
        return [each for each in free if self._booking.can_write(each)]


def _is_of(record: Record, draft: Draft, mapped: frozenset[str]) -> bool:
    """Whether an appointment is what this very draft would have made, whatever became of it."""
    expected = {
        "clientId": draft.client_id,
        "appointmentTypeId": draft.appointment_type_id,
        "reason": (draft.reason or "").strip() or None,
        "isUrgent": draft.is_urgent,
    }
    return all(record[name] == value for name, value in expected.items() if name in mapped)


def _verify(record: Record, draft: Draft, wanted: Interval, mapped: frozenset[str]) -> None:
    """What was written reads back as what was asked for; else BackendNonsense, and no booking."""
    expected = {
        "vetId": draft.vet_id,
        "patientId": draft.patient_id,
        "clientId": draft.client_id,
        "appointmentTypeId": draft.appointment_type_id,
        "scheduledAt": instant_text(wanted.start),
        "endTime": instant_text(wanted.end),
        "isUrgent": draft.is_urgent,
        "reason": (draft.reason or "").strip() or None,
        "status": NEW,
    }
    for name, value in expected.items():
        if name in mapped and record[name] != value:
            raise BackendNonsense(f"the written appointment reads back with another {name}")
