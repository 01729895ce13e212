"""The diary of a mapped system: what is free, and a booking that is checked, written, read back."""

from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from adapters.base import BackendNonsense, Draft, Filter, NotFound, Record, Report, SlotTaken
from adapters.convert import instant_text
from adapters.converters import Converters
from adapters.slots import Interval, day_window, free_slots
from adapters.sql.availability import LONGEST_OPEN, BusyRows, ShiftRows
from adapters.sql.engines.base import Speech
from adapters.sql.mapping import Mapping
from adapters.sql.reading import ResourceReader, sql
from adapters.sql.writes import BookingWrites

MOST_MINUTES = 1_000_000
# So many appointments of one patient at one time with one vet are looked through at the most.
MOST_ALIKE = 50
NEW = "SCHEDULED"


class Diary:
    """Free times and bookings."""

    def __init__(
        self,
        mapping: Mapping,
        converters: Converters,
        readers: dict[str, ResourceReader],
        report: Report,
        speech: Speech,
    ) -> None:
        self._readers = readers
        self._zone = converters.zone
        self._step = timedelta(minutes=mapping.diary.step)
        self._minutes = mapping.diary.duration
        self._shifts = [ShiftRows(hours, report) for hours in mapping.diary.hours]
        self._busy = [
            BusyRows(each, converters, self._minutes, report, speech) for each in mapping.diary.busy
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
