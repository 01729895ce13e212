"""BookingFlow in a mapped system: checked, written, read back, found again, and watched over."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from adapters.base import (
    AdapterError,
    BackendNonsense,
    Draft,
    NotFound,
    Record,
    SlotTaken,
    Watched,
)
from adapters.mapped.booked import TakenMeanwhile, check_patient, difference, is_of
from adapters.mapped.diary import Block, Diary, VisitKind
from adapters.mapped.repeated import KnownTimes, RepeatedHours
from adapters.mapped.session import BookedVisit, Calendar, Offer, Session
from adapters.mapped.slots import Interval
from adapters.mapped.spans import meant
from adapters.values.times import Later, instant_text

MINUTE = timedelta(minutes=1)


class BookingFlow:
    """Books appointments; `fields` are those that the mapping fills, with their converters.

    `has_reference` is whether an appointment carries the draft's reference. Where the diary is
    `asked_by_day`, booked appointments are looked after day by day, too.
    """

    def __init__(
        self,
        diary: Diary,
        hours: RepeatedHours,
        fields: Any,
        *,
        has_reference: bool,
        asked_by_day: bool,
    ) -> None:
        self._diary = diary
        self._hours = hours
        self._fields = fields
        self._has_reference = has_reference
        self._asked_by_day = asked_by_day

    async def book(self, session: Session, draft: Draft, known: KnownTimes) -> Record:
        """Check and write one appointment, read it back, and look again at the diary.

        SlotTaken, NotFound, PatientDeceased, Rejected, BackendNonsense where what was written is
        not what was asked for, or OutcomeUnknown. `known` are booked times of others.
        """
        draft = session.kept(draft)
        async with session.before_writing():
            visit = await self._checked(session, draft)
            calendars = await self._locked(session, draft.vet_id)
            offer = await self._wanted(session, calendars, visit, draft, known)
        appointment = await session.write(draft, offer)
        async with session.after_writing():
            session.progress.place = ("resources", "appointments")
            record = await session.one("appointments", appointment)
            record = self._hours.settled(record, offer.interval)
            wrong = await self._wrong_with(session, record, draft, offer, known)
        if wrong is not None:
            await session.withdraw()
            raise wrong
        return record

    async def _checked(self, session: Session, draft: Draft) -> VisitKind:
        """What is to be booked; NotFound, and what `check_patient` raises."""
        clients, patients = (draft.only.get(name, ()) for name in ("clients", "patients"))
        found = await session.together(
            session.exists("clients", draft.client_id, clients),
            session.one("patients", draft.patient_id, patients),
            session.exists("vets", draft.vet_id),
            self._diary.visit(session, draft.appointment_type_id),
        )
        check_patient(found[1], draft)
        visit: VisitKind = found[3]
        return visit

    async def _locked(self, session: Session, vet: str) -> list[Calendar]:
        """The vet's calendars, alone for this booking. The order of the locks is one for all."""
        await session.lock(Calendar(vet))
        calendars = await self._diary.calendars(session, vet)
        named = (calendar for calendar in calendars if calendar.schedule is not None)
        for calendar in sorted(named, key=lambda calendar: str(calendar.schedule)):
            await session.lock(calendar)
        return calendars

    async def _wanted(
        self,
        session: Session,
        calendars: Sequence[Calendar],
        visit: VisitKind,
        draft: Draft,
        known: KnownTimes,
    ) -> Offer:
        """The offer that the draft asks for; SlotTaken where there is none."""
        try:
            day = draft.scheduled_at.astimezone(self._diary.zone).date()
        except OverflowError as error:
            raise SlotTaken("beyond the calendar") from error
        for calendar in calendars:
            for offer in await self._diary.offers(session, calendar, visit, day, draft.now, known):
                if offer.interval.start == draft.scheduled_at:
                    return offer
        raise SlotTaken("not one of the free slots")

    async def _wrong_with(
        self, session: Session, record: Record, draft: Draft, offer: Offer, known: KnownTimes
    ) -> AdapterError | None:
        longer, progress = offer.slot is not None, session.progress
        other = difference(record, draft, offer.interval, self._fields, longer=longer)
        if other is not None:
            progress.place = ("resources", "appointments", "fields", other)
            return BackendNonsense(f"the new appointment reads back with another {other}")
        progress.place = ("booking", "reference")
        if self._has_reference and draft.reference:
            carrying = await session.carrying(draft, offer.interval)
            if record["id"] not in [each["id"] for each in carrying]:
                return BackendNonsense("the new appointment is not found by its reference")
        progress.place = ("diary", "busy")
        return await self._clash(session, record["id"], draft, offer, known)

    async def _clash(
        self,
        session: Session,
        appointment: str,
        draft: Draft,
        offer: Offer,
        known: KnownTimes,
    ) -> AdapterError | None:
        """Whether the appointment blocks, and nothing else does for as long as it lasts.

        A row of the practice's own may last longer than what was asked for.
        """
        if not self._diary.busy:
            return None
        wanted, nothing = offer.interval, "the new appointment blocks nothing: diary.busy misses it"
        visit = VisitKind(draft.appointment_type_id, wanted.end - wanted.start)
        blocks = await self._diary.blocks_of(session, [offer.calendar], wanted, visit, known)
        if not self._diary.knows_appointments:
            over = [each for each in blocks if each.interval.overlaps(wanted)]
            said = "the desk booked that time in between"
            taken = TakenMeanwhile(said) if over[1:] else None
            return taken if over else BackendNonsense(nothing)
        mine: list[Block] = []
        others: list[Block] = []
        for block in blocks:
            is_mine = block.key is not None and session.appointment(block.key) == appointment
            (mine if is_mine else others).append(block)
        own = meant(((each.interval, each.is_likely) for each in mine), wanted)
        if not any(each.overlaps(wanted) for each in own):
            return BackendNonsense(nothing)
        if any(other.interval.overlaps(each) for other in others for each in (wanted, *own)):
            return TakenMeanwhile("the practice's own desk took the time in between")
        return None

    async def find(self, session: Session, draft: Draft, since: datetime) -> list[Record]:
        """The appointments that carry the draft's reference.

        Where the practice system keeps none: those that are all that the draft says, and were
        written at `since` or later by the practice's own clock. Looked for under the vet's lock.
        """
        draft = session.kept(draft)
        await session.lock(Calendar(draft.vet_id))
        lasts = await self._length(session, draft)
        booked = Interval(draft.scheduled_at, draft.scheduled_at + lasts)
        read = await session.left_behind(draft, booked, since)
        found = [self._hours.settled(each, booked) for each in read]
        if self._has_reference and draft.reference:
            # what the desk has given to another animal since is nobody's to be shown
            return [each for each in found if each["patientId"] == draft.patient_id]
        return [each for each in found if self._is_of(each, draft, since)]

    async def _length(self, session: Session, draft: Draft) -> timedelta:
        """How long the appointment was to be, as far as that is still known."""
        try:
            return (await self._diary.visit(session, draft.appointment_type_id)).lasts
        except NotFound:
            return self._diary.default

    def _is_of(self, record: Record, draft: Draft, since: datetime) -> bool:
        """Whether an appointment is what this very draft would have made, then or later."""
        same = {
            "vetId": draft.vet_id,
            "patientId": draft.patient_id,
            "scheduledAt": instant_text(draft.scheduled_at),
        }
        if any(record[name] != value for name, value in same.items() if name in self._fields):
            return False
        if not is_of(record, draft, self._fields):
            return False
        created = record.get("createdAt")
        with suppress(ValueError):
            return not created or datetime.fromisoformat(created) >= self._first_read(since)
        return True

    def _first_read(self, since: datetime) -> datetime:
        """The earliest time that reads from what was written at `since` or later."""
        converter: Any = self._fields["createdAt"].converter
        if isinstance(converter, Later):
            return since.replace(microsecond=0)
        return datetime.fromisoformat(converter.decode(converter.first_written(since)))

    async def overwritten(
        self, session: Session, appointments: Sequence[str], known: KnownTimes
    ) -> Watched:
        """What became of the appointments: read at once, and their vets' diaries once each."""
        if not self._diary.knows_appointments:
            return Watched()
        found = await session.standing(appointments)
        groups: dict[Any, list[BookedVisit]] = defaultdict(list)
        for standing in found.values():
            if standing is not None:
                day = self._diary.day_of(standing.begins)
                groups[standing.vet, *([standing.type, day] if self._asked_by_day else [])].append(
                    standing
                )
        over = await session.together(
            *(self._over(session, standings, known) for standings in groups.values())
        )
        return Watched(
            overwritten=frozenset(each for group in over for each in group),
            unreadable=frozenset(each for each, standing in found.items() if standing is None),
        )

    async def _over(
        self, session: Session, appointments: Sequence[BookedVisit], known: KnownTimes
    ) -> list[str]:
        """Those of one vet's appointments that still block, and over which something else does."""
        begins = [each.begins for each in appointments]
        window, first = Interval(min(begins), max(begins) + MINUTE), appointments[0]
        try:
            session.keys(first.vet)
        except NotFound:  # whose it is nobody knows here
            return []
        calendars = await self._diary.calendars(session, first.vet)
        visit = VisitKind(first.type, self._diary.default)
        blocks = await self._diary.blocks_of(session, calendars, window, visit, known)
        of = [None if each.key is None else session.appointment(each.key) for each in blocks]
        named = list(zip(of, blocks, strict=True))
        return [each.id for each in appointments if _is_over(each.id, named)]


def _is_over(appointment: str, blocks: Sequence[tuple[str | None, Block]]) -> bool:
    """Whether the appointment blocks a time that something else blocks too."""
    own = [block for of, block in blocks if of == appointment]
    # what another vet does in a room that this one is not in is nothing to it
    mine = {None, *(block.schedule for block in own)}
    others = [block for of, block in blocks if of != appointment and block.schedule in mine]
    return any(
        other.is_likely and each.is_likely and other.interval.overlaps(each.interval)
        for each in own
        for other in others
    )
