"""Bookings in a mapped system: checked, written, read back, found again, and watched over."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters import base
from adapters.base import AdapterError, BackendNonsense, Draft, Record, SlotTaken, Watched
from adapters.mapped.booked import TakenMeanwhile, check_patient
from adapters.mapped.diary import Diary, VisitKind
from adapters.mapped.records import RowValue
from adapters.mapped.repeated import KnownTimes, RepeatedHours
from adapters.mapped.session import Calendar, Offer, Session
from adapters.mapped.slots import Block, Interval
from adapters.mapped.spans import narrowed
from adapters.values.times import Later, instant_text

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookingFlow:
    """Books appointments; `fields` are those that the mapping fills of them.

    `has_reference` is whether an appointment carries the draft's reference. Where the diary is
    `asked_by_day`, booked appointments are looked after day by day, too.
    """

    diary: Diary
    hours: RepeatedHours
    fields: Mapping[str, RowValue]
    has_reference: bool
    asked_by_day: bool

    async def book(self, session: Session, draft: Draft, known: KnownTimes) -> Record:
        """Check and write one appointment, read it back, and look again at the diary.

        SlotTaken, NotFound, PatientDeceased, Rejected, BackendNonsense where what was written is
        not what was asked for, or OutcomeUnknown. `known` are booked times of others.
        """
        draft = session.kept(draft)
        async with session.before_writing():
            offer = await self._offer(session, draft, known)
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
        """The free time that the draft asks for, with the vet's calendars locked for it."""
        clients, patients = (draft.only.get(name, ()) for name in ("clients", "patients"))
        _, patient, _, visit = await session.together(
            session.reader("clients").exists(draft.client_id, clients),
            session.reader("patients").one(draft.patient_id, patients),
            session.reader("vets").exists(draft.vet_id),
            self.diary.visit(session, draft.appointment_type_id),
        )
        check_patient(patient, draft)
        # the order of the locks is one for all
        await session.lock(Calendar(draft.vet_id))
        calendars = await self.diary.calendars(session, draft.vet_id)
        named = [calendar for calendar in calendars if calendar.schedule is not None]
        for calendar in sorted(named, key=lambda calendar: str(calendar.schedule)):
            await session.lock(calendar)
        try:
            day = draft.scheduled_at.astimezone(self.diary.zone).date()
        except OverflowError as error:
            raise SlotTaken("beyond the calendar") from error
        for calendar in calendars:
            for offer in await self.diary.offers(session, calendar, visit, day, draft.now, known):
                if offer.interval.start == draft.scheduled_at:
                    return offer
        raise SlotTaken("not one of the free slots")

    def _difference(self, record: Record, expected: Mapping[str, Any]) -> str | None:
        """The first mapped field in which an appointment is not as expected."""
        found = (name for name in expected if name in self.fields)
        return next((name for name in found if record[name] != expected[name]), None)

    async def _wrong_with(
        self, session: Session, record: Record, draft: Draft, offer: Offer, known: KnownTimes
    ) -> AdapterError | None:
        progress, wanted = session.progress, offer.interval
        expected = _asked(draft) | {"status": "SCHEDULED", "endTime": instant_text(wanted.end)}
        if offer.slot is not None:  # a free row of the practice's own has an end of its own
            del expected["endTime"]
        if (other := self._difference(record, expected)) is not None:
            progress.place = ("resources", "appointments", "fields", other)
            return BackendNonsense(f"the new appointment reads back with another {other}")
        progress.place = ("booking", "reference")
        if self.has_reference and draft.reference:
            carrying = await session.left_behind(draft, wanted, draft.now)
            if record["id"] not in [each["id"] for each in carrying]:
                return BackendNonsense("the new appointment is not found by its reference")
        progress.place = ("diary", "busy")
        return await self._clash(session, record["id"], draft, offer, known)

    async def _clash(
        self, session: Session, appointment: str, draft: Draft, offer: Offer, known: KnownTimes
    ) -> AdapterError | None:
        """Whether the appointment blocks, and nothing else does for as long as it lasts.

        A row of the practice's own may last longer than what was asked for.
        """
        if not self.diary.busy:
            return None
        wanted = offer.interval
        visit = VisitKind(draft.appointment_type_id, wanted.end - wanted.start)
        blocks = await self.diary.blocks_of(session, [offer.calendar], wanted, visit, known)
        own = blocks
        clashes = sum(block.interval.overlaps(wanted) for block in blocks) > 1
        if self.diary.knows_appointments:
            named = _named(session, blocks)
            mine = [block for name, block in named if name == appointment]
            own = [block for block in narrowed(mine, wanted) if block.is_likely]
            spans = [wanted, *(block.interval for block in own)]
            others = [block.interval for name, block in named if name != appointment]
            clashes = any(other.overlaps(span) for other in others for span in spans)
        if not any(block.interval.overlaps(wanted) for block in own):
            return BackendNonsense("the new appointment blocks nothing: diary.busy misses it")
        return TakenMeanwhile("the desk booked that time in between") if clashes else None

    async def find(self, session: Session, draft: Draft, since: datetime) -> list[Record]:
        """The appointments that carry the draft's reference.

        Where the practice system keeps none: those that are all that the draft says, and were
        written at `since` or later by the practice's own clock. Looked for under the vet's lock.
        """
        draft = session.kept(draft)
        await session.lock(Calendar(draft.vet_id))
        try:
            lasts = (await self.diary.visit(session, draft.appointment_type_id)).lasts
        except base.NotFound:  # how long it was to be is no longer known
            lasts = self.diary.default
        booked = Interval(draft.scheduled_at, draft.scheduled_at + lasts)
        read = await session.left_behind(draft, booked, since)
        found = [self.hours.settled(record, booked) for record in read]
        if self.has_reference and draft.reference:
            # what the desk has given to another animal since is nobody's to be shown
            return [record for record in found if record["patientId"] == draft.patient_id]
        return [
            record
            for record in found
            if self._difference(record, _asked(draft)) is None
            and self._may_be_written(record.get("createdAt"), since)
        ]

    def _may_be_written(self, created: str | None, since: datetime) -> bool:
        """Whether an appointment that reads as created then may be written at `since` or later."""
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
        """What became of the appointments: read at once, and their vets' diaries once each."""
        if not self.diary.knows_appointments:
            return Watched()
        names = ["vetId", "scheduledAt"]
        by_type = self.asked_by_day and "appointmentTypeId" in self.fields
        found = await session.reader("appointments").pick(
            appointments, [*names, "appointmentTypeId"] if by_type else names
        )
        groups: dict[tuple[Any, ...], dict[str, datetime]] = defaultdict(dict)
        for appointment, values in found.items():
            # one without a vet or a time the desk has given to nobody
            if values is not None and values[0] and values[1]:
                vet, begins = values[0], datetime.fromisoformat(values[1])
                day = self.diary.day_of(begins) if self.asked_by_day else None
                groups[vet, day, values[2] if by_type else None][appointment] = begins
        asked = (self._over(session, key[0], key[2], group, known) for key, group in groups.items())
        over = await session.together(*asked)
        return Watched(
            overwritten=frozenset(appointment for group in over for appointment in group),
            unreadable=frozenset(name for name, values in found.items() if values is None),
        )

    async def _over(
        self, session: Session, vet: str, type_id: str | None, begins: Mapping[str, datetime],
        known: KnownTimes,
    ) -> list[str]:  # fmt: skip
        """Those of one vet's appointments that still block, and over which something else does."""
        window = Interval(min(begins.values()), max(begins.values()) + MINUTE)
        try:
            session.keys(vet)
        except base.NotFound:  # whose it is nobody knows here
            return []
        calendars = await self.diary.calendars(session, vet)
        visit = VisitKind(type_id, self.diary.default)
        blocks = await self.diary.blocks_of(session, calendars, window, visit, known)
        named = _named(session, blocks)
        return [appointment for appointment in begins if _is_over(appointment, named)]


def _asked(draft: Draft) -> dict[str, Any]:
    """What an appointment of the draft reads as, whatever became of it since."""
    reason = (draft.reason or "").strip() or None
    return draft.asked | {"scheduledAt": instant_text(draft.scheduled_at), "reason": reason}


def _named(session: Session, blocks: Iterable[Block]) -> list[tuple[str | None, Block]]:
    """Each with the public id of its appointment, where it has one."""
    return [
        (None if block.key is None else session.appointment(block.key), block) for block in blocks
    ]


def _is_over(appointment: str, named: Sequence[tuple[str | None, Block]]) -> bool:
    """Whether the appointment blocks a time that something else blocks too."""
    mine = [block for name, block in named if name == appointment]
    # what another vet does in a room that this one is not in is nothing to it
    schedules = {None, *(block.schedule for block in mine)}
    return any(
        other.is_likely and own.is_likely and other.interval.overlaps(own.interval)
        for name, other in named
        if name != appointment and other.schedule in schedules
        for own in mine
    )
