"""Books in a mapped system, finds bookings again, and tells which of them were overwritten."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from adapters import base
from adapters.base import AdapterError, BackendNonsense, Draft, Record, SlotTaken, Watched
from adapters.mapped.appointment import TakenMeanwhile, check_patient
from adapters.mapped.clock_change import KnownTimes, RepeatedHours
from adapters.mapped.diary import Diary, VisitKind
from adapters.mapped.generated import RowValue
from adapters.mapped.session import Calendar, Offer, Session
from adapters.mapped.slots import Block, Interval
from adapters.mapped.spans import narrowed
from adapters.values.times import Later, instant_text

MINUTE = timedelta(minutes=1)
MISSED = "diary.busy misses it there"
# How many other vets of a schedule are looked at, where no source tells what blocks the schedule.
MOST_OTHERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingFlow:
    """The steps of a booking; `fields` are those of an appointment that the mapping fills.

    `has_reference` tells whether an appointment carries the draft's reference. Where the diary is
    `asked_by_day`, booked appointments are watched day by day too.
    """

    diary: Diary
    hours: RepeatedHours
    fields: Mapping[str, RowValue]
    has_reference: bool
    asked_by_day: bool

    async def book(self, session: Session, draft: Draft, known: KnownTimes) -> Record:
        """Checks and writes one appointment, reads it back, and checks the diary again.

        Raises SlotTaken, NotFound, PatientDeceased, Rejected, OutcomeUnknown, or BackendNonsense
        where something else was written than was asked for. `known` are times booked by others.
        """
        draft = session.kept(draft)
        async with session.before_writing():
            offer = await self._offer(session, draft, known)
        # where no type was asked for, the schedule may have one that is booked then
        draft = replace(draft, appointment_type_id=offer.type)
        appointment = await session.write(draft, offer)
        async with session.after_writing():
            session.progress.place = ("resources", "appointments")
            record = await session.reader("appointments").one(appointment)
            record = self.hours.settled(record, offer.interval)
            wrong = await self._wrong_with(session, record, draft, offer, known)
        if wrong is not None:
            await session.withdraw()
            raise wrong
        return record

    async def _offer(self, session: Session, draft: Draft, known: KnownTimes) -> Offer:
        """Locks the vet's calendars; returns the offer that the draft asks for."""
        clients, patients = (draft.only.get(name, ()) for name in ("clients", "patients"))
        _, patient, _, visit = await session.together(
            session.reader("clients").exists(draft.client_id, clients),
            session.reader("patients").one(draft.patient_id, patients),
            session.reader("vets").exists(draft.vet_id),
            self.diary.visit(session, draft.appointment_type_id),
        )
        check_patient(patient, draft)
        calendars = await self._locked(session, draft.vet_id)
        try:
            day = draft.scheduled_at.astimezone(self.diary.zone).date()
        except OverflowError as error:
            raise SlotTaken("beyond the calendar") from error
        for calendar in calendars:
            for offer in await self.diary.offers(session, calendar, visit, day, draft.now, known):
                if offer.interval.start == draft.scheduled_at:
                    return offer
        raise SlotTaken("not one of the free slots")

    async def _locked(self, session: Session, vet: str) -> list[Calendar]:
        """Locks the vet and each of the vet's schedules; returns the vet's calendars.

        All lock in the same order, so that no two wait for each other.
        """
        await session.lock(Calendar(vet))
        calendars = await self.diary.calendars(session, vet)
        named = [calendar for calendar in calendars if calendar.schedule is not None]
        for calendar in sorted(named, key=lambda calendar: str(calendar.schedule)):
            await session.lock(calendar)
        if not named:
            await session.lock_alone(vet)
        return calendars

    def _difference(self, record: Record, expected: Mapping[str, Any]) -> str | None:
        """Returns the first mapped field that is not as expected."""
        names = (name for name in expected if name in self.fields)
        return next((name for name in names if record[name] != expected[name]), None)

    async def _wrong_with(
        self, session: Session, record: Record, draft: Draft, offer: Offer, known: KnownTimes
    ) -> AdapterError | None:
        progress, interval = session.progress, offer.interval
        expected = _drafted(draft) | {"status": "SCHEDULED", "endTime": instant_text(interval.end)}
        if (other := self._difference(record, expected)) is not None:
            progress.place = ("resources", "appointments", "fields", other)
            return BackendNonsense(f"the new appointment reads back with another {other}")
        progress.place = ("booking", "reference")
        if self.has_reference and draft.reference:
            carrying = await session.left_behind(draft, interval, draft.now)
            if record["id"] not in [appointment["id"] for appointment in carrying]:
                return BackendNonsense("the new appointment is not found by its reference")
        progress.place = ("diary", "busy")
        return await self._clash(session, record["id"], draft, offer, known)

    async def _clash(
        self, session: Session, appointment: str, draft: Draft, offer: Offer, known: KnownTimes
    ) -> AdapterError | None:
        """Returns an error unless the appointment, and nothing else, blocks all of its time.

        It has to block its vet, and its schedule for each vet; no visit is as short as the minute
        by which an end may be written earlier. A row of the practice's own may last longer than the
        time that was asked for.
        """
        if not self.diary.busy:
            return None
        offered = offer.interval
        visit = VisitKind(draft.appointment_type_id, offered.end - offered.start)
        blocks = await self.diary.blocks_of(session, [offer.calendar], offered, visit, known)
        named = _named(session, blocks)
        mine = [block for name, block in named if name == appointment]
        # what it blocks of its vet (False), and of its schedule (True)
        own = {
            side: _booked([b for b in mine if (b.schedule is not None) == side], offered)
            for side in (False, True)
        }
        spans = [*own[False], *own[True]]
        if not any(map(offered.overlaps, spans)):
            return BackendNonsense("the new appointment blocks nothing: diary.busy misses it")
        has_schedule = offer.calendar.schedule is not None
        keyed = self.diary.keyed_by_schedule
        missed = {side for side in keyed if not offered.is_covered(own[side], MINUTE)}
        if False in missed or (has_schedule and missed):
            what = "vet" if False in missed else "schedule"
            if any(map(offered.overlaps, own[False not in missed])):
                text = f"the new appointment blocks its {what} for a part of its time alone"
                return BackendNonsense(f"{text}: see end and minutes in diary.busy")
            return BackendNonsense(f"the new appointment does not block its {what}: {MISSED}")
        is_shared = has_schedule and True not in keyed
        if is_shared and await self._is_open(session, appointment, offer, visit, known):
            text = "the new appointment does not block its schedule for another vet"
            return BackendNonsense(f"{text}: {MISSED}")
        others = [block.interval for name, block in named if name != appointment]
        clashes = any(other.overlaps(span) for other in others for span in (offered, *spans))
        return TakenMeanwhile("the desk booked that time in between") if clashes else None

    async def _is_open(
        self, session: Session, appointment: str, offer: Offer, visit: VisitKind, known: KnownTimes
    ) -> bool:
        """Returns whether the appointment leaves some of its time open to another vet there."""
        others = [replace(offer.calendar, vet=vet) for vet in await session.sharing(offer.calendar)]
        for calendar in others[:MOST_OTHERS]:
            blocks = await self.diary.blocks_of(session, [calendar], offer.interval, visit, known)
            mine = [block for name, block in _named(session, blocks) if name == appointment]
            if not offer.interval.is_covered(_booked(mine, offer.interval), MINUTE):
                return True
        return False

    async def find(self, session: Session, draft: Draft, since: datetime) -> list[Record]:
        """Returns the appointments that carry the draft's reference.

        Where the practice system keeps none: those that match the draft, and that may be written at
        `since` or later by the practice's own clock. It holds the locks of a booking.
        """
        draft = session.kept(draft)
        calendars = list[Calendar]()
        with suppress(base.NotFound, BackendNonsense):  # the vet may be gone: locked all the same
            calendars = await self._locked(session, draft.vet_id)
        lasts: timedelta | None = None
        with suppress(base.NotFound):  # the type may be gone, and with it the length
            lasts = (await self.diary.visit(session, draft.appointment_type_id)).lasts
        booked = Interval(draft.scheduled_at, draft.scheduled_at + (lasts or self.diary.default))
        candidates = await session.left_behind(draft, booked, since)
        records = [self.hours.settled(record, booked) for record in candidates]
        if self.has_reference and draft.reference:
            # the desk may have given it to another animal since: then it is not shown
            return [record for record in records if record["patientId"] == draft.patient_id]
        # where no type was asked for, that of a schedule may have been booked
        types = {draft.appointment_type_id}
        if draft.appointment_type_id is None and self.diary.has_default_types:
            types |= {there.type for there in calendars}
        drafts = [_drafted(replace(draft, appointment_type_id=type_id)) for type_id in types]
        return [
            record
            for record in records
            if any(self._difference(record, drafted) is None for drafted in drafts)
            and self._may_be_written(record.get("createdAt"), since)
        ]

    def _may_be_written(self, created: str | None, since: datetime) -> bool:
        """Returns whether an appointment created then may be of `since` or later."""
        if not created:
            return True
        converter: Any = self.fields["createdAt"].converter
        first = since.replace(microsecond=0)
        with suppress(ValueError):
            if not isinstance(converter, Later):
                first = datetime.fromisoformat(converter.decode(converter.first_written(since)))
            return datetime.fromisoformat(created) >= first
        return True

    async def overwritten(
        self, session: Session, appointments: Sequence[str], known: KnownTimes
    ) -> Watched:
        """Returns which appointments the desk has booked over, and which cannot be read."""
        if not self.diary.knows_appointments:
            return Watched()
        names = ["vetId", "scheduledAt"]
        by_type = self.asked_by_day and "appointmentTypeId" in self.fields
        picked = await session.reader("appointments").pick(
            appointments, [*names, "appointmentTypeId"] if by_type else names
        )
        groups: dict[tuple[Any, ...], dict[str, datetime]] = defaultdict(dict)
        for appointment, values in picked.items():
            # without a vet or a time nothing can be booked over it
            if values is not None and values[0] and values[1]:
                vet, begins = values[0], datetime.fromisoformat(values[1])
                day = self.diary.day_of(begins) if self.asked_by_day else None
                groups[vet, day, values[2] if by_type else None][appointment] = begins
        looks = (self._over(session, key[0], key[2], group, known) for key, group in groups.items())
        over = await session.together(*looks)
        return Watched(
            overwritten=frozenset(appointment for group in over for appointment in group),
            unreadable=frozenset(name for name, values in picked.items() if values is None),
        )

    async def _over(
        self, session: Session, vet: str, type_id: str | None, begins: Mapping[str, datetime],
        known: KnownTimes,
    ) -> list[str]:  # fmt: skip
        """Returns those of one vet's appointments that still block a time blocked by others."""
        window = Interval(min(begins.values()), max(begins.values()) + MINUTE)
        try:
            session.keys(vet)
        except base.NotFound:  # no vet has that id
            return []
        calendars = await self.diary.calendars(session, vet)
        visit = VisitKind(type_id, self.diary.default)
        blocks = await self.diary.blocks_of(session, calendars, window, visit, known)
        named = _named(session, blocks)
        return [appointment for appointment in begins if _is_over(appointment, named)]


def _drafted(draft: Draft) -> dict[str, Any]:
    """Returns the fields that an appointment of the draft has, whatever became of it since."""
    reason = (draft.reason or "").strip() or None
    return draft.asked | {"scheduledAt": instant_text(draft.scheduled_at), "reason": reason}


def _named(session: Session, blocks: Iterable[Block]) -> list[tuple[str | None, Block]]:
    """Pairs each block with the public id of its appointment, if it has one."""
    return [
        (None if block.key is None else session.appointment(block.key), block) for block in blocks
    ]


def _booked(blocks: Sequence[Block], offered: Interval) -> list[Interval]:
    """Returns what blocks of one appointment take, sorted."""
    return sorted(block.interval for block in narrowed(blocks, offered) if block.is_likely)


def _is_over(appointment: str, named: Sequence[tuple[str | None, Block]]) -> bool:
    """Returns whether the appointment blocks a time that something else blocks too."""
    mine = [block for name, block in named if name == appointment]
    # blocks of a schedule that the appointment is not in do not concern it
    schedules = {None, *(block.schedule for block in mine)}
    return any(
        other.is_likely and own.is_likely and other.interval.overlaps(own.interval)
        for name, other in named
        if name != appointment and other.schedule in schedules
        for own in mine
    )
