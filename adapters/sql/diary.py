"""Bookings in a mapped system: checked, written, read back, found again, watched over."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from adapters.base import (
    BackendNonsense,
    Draft,
    Filter,
    NotFound,
    Record,
    SlotTaken,
    Watched,
)
from adapters.mapped.booked import check_patient, difference, draft_values, is_of
from adapters.mapped.repeated import KnownTimes, RepeatedHours
from adapters.mapped.slots import Interval
from adapters.mapped.spans import meant
from adapters.sql.calendars import Calendar
from adapters.sql.columns import sql
from adapters.sql.engines.base import Speech
from adapters.sql.mapping import Mapping as MappingFile
from adapters.sql.openings import Kind, Offer, Openings
from adapters.sql.reading import ResourceReader
from adapters.sql.span_rows import Block
from adapters.sql.steps import Done
from adapters.sql.writes import BookingWrites
from adapters.values.times import instant_text

# So many appointments of one patient at one time with one vet are looked through at the most.
MOST_ALIKE = 50
# Whose an appointment is, and when.
STANDS = ("vetId", "scheduledAt")


@dataclass(frozen=True, slots=True)
class Standing:
    """A booked appointment as it stands now, with its raw key."""

    public_id: str
    key: Any
    begins: datetime


class Diary:
    """Bookings: checked, written, read back, found again, and watched over."""

    def __init__(
        self,
        mapping: MappingFile,
        zone: ZoneInfo,
        readers: dict[str, ResourceReader],
        writes: BookingWrites,
        openings: Openings,
        speech: Speech,
        hours: RepeatedHours,
    ) -> None:
        self._zone = zone
        self._readers = readers
        self._booking = writes
        self._openings = openings
        self._speech = speech
        self._hours = hours
        reference = mapping.booking.reference
        self._reference = None if reference is None else sql(reference)

    def book(
        self,
        connection: Connection,
        draft: Draft,
        done: Done | None = None,
        known: KnownTimes | None = None,
    ) -> Record:
        """Check and write one appointment; the caller commits, or undoes it when this raises.

        `done` tells who gave it how far it came; `known` are booked times of others.
        """
        draft = self._booking.kept(draft)
        keys = self._keys(connection, draft)
        kind = self._openings.kind(connection, draft.appointment_type_id)
        calendars = self._locked(connection, keys["vetId"])
        offer = self._wanted(connection, calendars, kind, draft, known)
        done = done or Done()
        try:
            return self._written(connection, draft, offer, done, known)
        except Exception:
            self._booking.withdraw(connection, done)
            raise

    def _written(
        self,
        connection: Connection,
        draft: Draft,
        offer: Offer,
        done: Done,
        known: KnownTimes | None,
    ) -> Record:
        values = draft_values(draft, offer.interval)
        values |= {"schedule": offer.calendar.schedule, "slot": offer.slot}
        key = self._booking.write(connection, values, done, of_slot=offer.slot is not None)
        done.place = ("resources", "appointments")
        try:
            record = self._readers["appointments"].one(connection, key)
        except NotFound as error:
            raise BackendNonsense("the written appointment cannot be read back") from error
        mapped = self._readers["appointments"].table.by_name
        longer = offer.slot is not None
        record = self._hours.settled(record, offer.interval)
        other = difference(record, draft, offer.interval, mapped, longer=longer)
        if other is not None:
            done.place = ("resources", "appointments", "fields", other)
            raise BackendNonsense(f"the written appointment reads back with another {other}")
        done.place = ("booking", "reference")
        carrying = [each["id"] for each in self._carrying(connection, draft)]
        if self._reference is not None and record["id"] not in carrying:
            raise BackendNonsense("the written appointment does not carry its reference")
        done.place = ("diary", "busy")
        self._look_again(connection, offer, key, known)
        return record

    def _look_again(
        self, connection: Connection, offer: Offer, key: Any, known: KnownTimes | None
    ) -> None:
        """Whether what was written blocks, and nothing else does for as long as it lasts.

        A row of the practice's own may last longer than what was asked for.
        """
        wanted = offer.interval
        blocks = list(self._openings.blocking(connection, [offer.calendar], wanted, known))
        mine = ((each.interval, each.is_likely) for each in blocks if self._same(each.key, key))
        own = meant(mine, wanted)
        if not any(each.overlaps(wanted) for each in own):
            raise BackendNonsense("the written appointment blocks nothing: diary.busy misses it")
        others = [each.interval for each in blocks if not self._same(each.key, key)]
        if any(other.overlaps(each) for other in others for each in (wanted, *own)):
            raise SlotTaken("the practice's own desk took the time in between")

    def find(self, connection: Connection, draft: Draft, since: datetime) -> list[Record]:
        """The appointments that carry the draft's reference.

        Where the practice system keeps none: those that are all that the draft says, and were
        written at `since` or later by the practice's own clock. Looked for under the vet's lock, so
        that none is certain.
        """
        draft = self._booking.kept(draft)
        self._locked(connection, self._readers["vets"].key_of(draft.vet_id))
        booked = Interval(draft.scheduled_at, draft.scheduled_at + self._length(connection, draft))
        found = self._left_behind(connection, draft, since)
        return [self._hours.settled(each, booked) for each in found]

    def _length(self, connection: Connection, draft: Draft) -> timedelta:
        """How long the appointment was to be, as far as that is still known."""
        try:
            return self._openings.kind(connection, draft.appointment_type_id).duration
        except NotFound:
            return self._openings.kind(connection, None).duration

    def _left_behind(self, connection: Connection, draft: Draft, since: datetime) -> list[Record]:
        """The appointments that may be the draft's, with the times that are read."""
        reader = self._readers["appointments"]
        if self._reference is not None and draft.reference:
            carrying = self._carrying(connection, draft)
            # what the desk has given to another animal since is nobody's to be shown
            return [each for each in carrying if each["patientId"] == draft.patient_id]
        wanted = [
            Filter("equals", ("vetId",), draft.vet_id),
            Filter("around", ("scheduledAt",), draft.scheduled_at),
            Filter("equals", ("patientId",), draft.patient_id),
        ]
        if "createdAt" in reader.filterable:
            wanted.append(Filter("written since", ("createdAt",), since))
        found = reader.pages.read(connection, wanted, MOST_ALIKE, None).records
        at = {instant_text(each) for each in self._hours.readings(draft.scheduled_at)}
        mine = [each for each in found if is_of(each, draft, reader.table.by_name)]
        return [each for each in mine if each["scheduledAt"] in at]

    def overwritten(
        self,
        connection: Connection,
        public_ids: Sequence[str],
        known: KnownTimes,
    ) -> Watched:
        """What became of the appointments: read at once, and their vets' diaries once each."""
        of_vets: dict[str, list[Standing]] = {}
        unreadable = set()
        reader = self._readers["appointments"]
        for public_id, key, values in reader.pick(connection, public_ids, STANDS):
            if values is None:
                unreadable.add(public_id)
            elif all(values):  # else the desk has given it to nobody
                begins = datetime.fromisoformat(values[1])
                of_vets.setdefault(values[0], []).append(Standing(public_id, key, begins))
        over = {
            each
            for vet, all_ in of_vets.items()
            for each in self._over(connection, vet, all_, known)
        }
        return Watched(overwritten=frozenset(over), unreadable=frozenset(unreadable))

    def _over(
        self,
        connection: Connection,
        vet_id: str,
        appointments: Sequence["Standing"],
        known: KnownTimes,
    ) -> Iterator[str]:
        """Those of one vet's appointments that still block, and over which something else does."""
        try:
            vet = self._readers["vets"].key_of(vet_id)
        except NotFound:
            return
        begin = [each.begins for each in appointments]
        window = Interval(min(begin), max(begin) + timedelta(minutes=1))
        calendars = self._openings.calendars(connection, vet)
        blocks = list(self._openings.blocking(connection, calendars, window, known))
        value_of = self._readers["appointments"].value_of
        by_key: dict[tuple[str, ...], list[Block]] = {}
        for block in blocks:
            if block.key is not None:
                by_key.setdefault(value_of(block.key), []).append(block)
        for each in appointments:
            own = by_key.get(value_of(each.key), [])
            # what another vet does in a room that this one is not in is nothing to it
            mine = {None, *(block.schedule for block in own)}
            others = [one for one in blocks if one.schedule in mine and one not in own]
            times = [one.interval for one in own if one.is_likely]
            if any(one.is_likely and one.interval.overlaps(it) for it in times for one in others):
                yield each.public_id

    def _carrying(self, connection: Connection, draft: Draft) -> list[Record]:
        """The appointments that carry the draft's reference, where the mapping says what does."""
        if self._reference is None:
            return []
        reader = self._readers["appointments"]
        return reader.marked(connection, self._reference, draft.reference, MOST_ALIKE)

    def _keys(self, connection: Connection, draft: Draft) -> dict[str, Any]:
        """The keys of all that the draft names; NotFound, and what `check_patient` raises."""
        named = {
            "clientId": ("clients", draft.client_id),
            "patientId": ("patients", draft.patient_id),
            "vetId": ("vets", draft.vet_id),
        }
        keys = {name: self._readers[where].key_of(each) for name, (where, each) in named.items()}
        clients, patients = (draft.only.get(each, ()) for each in ("clients", "patients"))
        self._readers["clients"].must_exist(connection, keys["clientId"], clients)
        patient = self._readers["patients"].one(connection, keys["patientId"], patients)
        check_patient(patient, draft)
        keys["vetId"] = self._readers["vets"].must_exist(connection, keys["vetId"])
        return keys

    def _locked(self, connection: Connection, vet: Any) -> list[Calendar]:
        """The vet's calendars, alone for this booking. The order of the locks is one for all.

        A database may take two spellings of a key for one row: the lock takes them for one too.
        """
        name = ";".join(part.strip().casefold() for part in self._readers["vets"].value_of(vet))
        self._speech.lock(connection, f"vet:{name}")
        calendars = self._openings.calendars(connection, vet)
        for schedule in sorted(
            str(each.schedule) for each in calendars if each.schedule is not None
        ):
            self._speech.lock(connection, f"schedule:{schedule}")
        return calendars

    def _wanted(
        self,
        connection: Connection,
        calendars: list[Calendar],
        kind: Kind,
        draft: Draft,
        known: KnownTimes | None,
    ) -> Offer:
        """The offer that the draft asks for; SlotTaken where there is none."""
        try:
            day = draft.scheduled_at.astimezone(self._zone).date()
        except OverflowError as error:
            raise SlotTaken("beyond the calendar") from error
        for offer in self._openings.offers(connection, calendars, kind, day, draft.now, known):
            if offer.interval.start == draft.scheduled_at:
                return offer
        raise SlotTaken("not one of the free slots")

    def _same(self, one: Any, other: Any) -> bool:
        """Whether two raw keys name one appointment, however they are spelt."""
        if one is None or other is None:
            return False
        value_of = self._readers["appointments"].value_of
        return value_of(one) == value_of(other)
