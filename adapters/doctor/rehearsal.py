"""Lists the kinds of bookings that a mapping can produce, each with a free time to rehearse it at.

A kind is a calendar, a slot row or a computed time, with or without a type, a reason and urgency,
and a time after each change of the clock. How a rehearsal is made and undone, the doctor of each
adapter knows.
"""

import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from itertools import pairwise, product
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from adapters.base import Draft, NotFound, Record
from adapters.doctor.case import DoctorCase, Look
from adapters.documents.document import Place
from adapters.examination import counted
from adapters.mapped.appointment import DECEASED
from adapters.mapped.clock_change import KnownTimes
from adapters.mapped.session import Calendar, Offer, Session

# Days in which a free time is searched.
DAYS = 14
# Patients of which the first that can be booked is taken, and the most types that are tried.
MOST_PATIENTS, MOST_TYPES = 200, 100
REASON = "Contrôle"
# As long as the contract allows, with letters beyond ASCII and what SQL has to escape.
LONGEST = ('L\'état général: è 50 % \\ "x" ' * 18)[:500]
SLOT, SEVERAL, COMPUTED = "a slot row", "several slot rows", "a computed time"
# The vets with which a visit of several slot rows is searched.
FEW_VETS = 3
YEAR, NOON = 366, time(12)


class Free(NamedTuple):
    """A free time of a vet, as a booking would take it."""

    offer: Offer
    type: str | None

    @property
    def vet(self) -> str:
        return self.offer.calendar.vet

    @property
    def how(self) -> str:
        rows = len(self.offer.slots)
        return (COMPUTED, SLOT)[rows] if rows < 2 else SEVERAL


@dataclass(frozen=True, slots=True)
class BookingKind:
    """A kind of booking: its name in words, the draft, and the time that it is to take.

    `about` are the public ids that tell it from another of the same name.
    """

    words: str
    draft: Draft
    free: Free
    about: tuple[str, ...] = ()


class Planner:
    """Finds what can be rehearsed; the look is told of what cannot be, and why.

    `kinds` are the kinds of bookings, and `calendars` those of all vets.
    """

    def __init__(self, case: DoctorCase, session: Session, look: Look) -> None:
        self.kinds, self.calendars = list[BookingKind](), list[Calendar]()
        self._case, self._session, self._look = case, session, look
        self._diary, self._now = case.adapter.diary, case.examination.now
        self._today = self._now.astimezone(self._diary.zone).date()

    async def plan(self) -> None:
        animal = await self._animal()
        if animal is None:
            text = "no bookable client was found: no living animal leads to a client that is shown"
            place: Place = ("resources", "patients", "fields", "clientId")
            remedy = "see where clientId leads, and what `where` hides"
            self._look.failed(f"{text}, so nothing was rehearsed", place=place, remedy=remedy)
            return
        if not self._case.vets():
            text = "no vet was found, so nothing was rehearsed"
            self._look.failed(text, place=("resources", "vets"))
            return
        drafts = Drafts(self._now, animal)
        every = [row["id"] for row in self._case.samples.get("appointmentTypes", ()) if row["id"]]
        examples = await self._of_calendars(drafts)
        await self._by_type(examples, every[:MOST_TYPES])
        for how, plain in examples.items():
            vets = list(dict.fromkeys([plain.vet, *(kind.free.vet for kind in self.kinds)]))
            typed, without = await self._of_types(every[:MOST_TYPES], how, vets)
            if without and how != SEVERAL:
                text = f"{len(without)} of {counted(len(every), 'type')} have no free time as {how}"
                text = f"{text} in {DAYS} days: not rehearsed"
                self._look.warning(text, place=("diary",), ids=without)
            if plain.type is None:
                self.kinds += drafts.matrix(plain, typed[0] if typed else None)
            else:
                self.kinds += [drafts.kind(plain), *drafts.matrix(plain, None)]
            self.kinds += [drafts.kind(free) for free in typed[1:]]
            await self._of_changes(drafts, how, plain)

    async def renewed(self, kind: BookingKind) -> BookingKind | None:
        """Returns the kind at the first time of its own that is still free; None for none."""
        free, day = kind.free, kind.free.offer.interval.start.astimezone(self._diary.zone).date()
        now_free = await self._first(free.vet, free.type, free.how, day)
        if now_free is None:
            return None
        draft = replace(again(kind.draft), scheduled_at=now_free.offer.interval.start)
        return replace(kind, draft=draft, free=now_free)

    async def still_offered(self, session: Session, booked: BookingKind) -> Calendar | None:
        """Returns a calendar that shares the vet or the schedule and still offers the time."""
        taken, kind = booked.free.offer, booked.draft.appointment_type_id
        visit = await self._diary.visit(session, kind)
        day = taken.interval.start.astimezone(self._diary.zone).date()
        for other in self.calendars:
            is_room = other.schedule is not None and other.schedule == taken.calendar.schedule
            if is_room or other.vet == taken.calendar.vet:
                known = KnownTimes()
                offers = await self._diary.offers(session, other, visit, day, self._now, known)
                if any(offer.interval.overlaps(taken.interval) for offer in offers):
                    return other
        return None

    async def _animal(self) -> Record | None:
        """Returns the first animal that is alive and has a client, or None."""
        for patient in self._case.samples.get("patients", [])[:MOST_PATIENTS]:
            with suppress(NotFound, ValueError):
                if patient.get("status") != DECEASED and patient["id"]:
                    await self._session.reader("clients").exists(patient["clientId"] or "")
                    return patient
        return None

    async def _of_calendars(self, drafts: "Drafts") -> dict[str, Free]:
        """Plans a booking in each calendar; returns an example of each way to take a time."""
        examples: dict[str, Free] = {}
        idle = []
        for vet in self._case.vets():
            self.calendars += await self._diary.calendars(self._session, vet)
            first: dict[tuple[Calendar, str], Free] = {}
            async for free in self._free(vet, None, self._today, DAYS):
                first.setdefault((free.offer.calendar, free.how), free)
            idle += [] if first else [vet]
            for free in first.values():
                examples.setdefault(free.how, free)
                self.kinds.append(drafts.kind(free))
        if idle and examples:
            text = f"{len(idle)} of {counted(len(self._case.vets()), 'vet')} without a free time in"
            self._look.warning(f"{text} {DAYS} days: not rehearsed", place=("diary",), ids=idle)
        return examples

    async def _by_type(self, examples: dict[str, Free], types: Sequence[str]) -> None:
        """Adds examples of ways that only a type takes: it may be shorter than a row, or longer."""
        expected = dict(self._expected())
        ways = {*expected, *([SEVERAL] if SLOT in expected else [])}
        vets = dict.fromkeys([*(kind.free.vet for kind in self.kinds), *self._case.vets()])
        for how in sorted(ways - examples.keys()):
            some = list(vets) if how in expected else list(vets)[:FEW_VETS]
            found, _ = await self._of_types(types, how, some)
            if found:
                examples[how] = found[0]
            elif how in expected:
                told = f"{expected[how]} within {DAYS} days, so none was rehearsed"
                self._look.failed(told, place=("diary",))

    def _expected(self) -> Iterator[tuple[str, str]]:
        """Yields the ways to take a time that the mapping has, and words for their absence."""
        rows = {source.is_keyed for source in self._diary.free}
        if True in rows:
            yield SLOT, "no free slot row was found"
        if self._diary.hours or False in rows:
            yield COMPUTED, "no free time was worked out"

    async def _of_types(
        self, types: Sequence[str], how: str, vets: Sequence[str]
    ) -> tuple[list[Free], list[str]]:
        """Returns a free time for each type that has one with some vet, and the other types."""
        found, without = list[Free](), []
        for kind in types:
            for vet in vets:
                if (free := await self._first(vet, kind, how, self._today)) is not None:
                    found.append(free)
                    break
            else:
                without.append(kind)
        return found, without

    async def _of_changes(self, drafts: "Drafts", how: str, plain: Free) -> None:
        """Plans a booking after each of the next two changes of the clock."""
        for day in changes_of_clock(self._today, self._diary.zone):
            free = await self._first(plain.vet, plain.type, how, day)
            if free is not None:
                self.kinds.append(drafts.kind(free, f"after the clocks change on {day}"))
            elif how != SEVERAL:
                text = f"no free time as {how} in {DAYS} days after the clocks change on {day}"
                # where each row is of a day, the practice may not have come to write that one
                is_weekly = any(source.hours.day is None for source in self._diary.hours)
                tell = self._look.failed if how == COMPUTED and is_weekly else self._look.warning
                place = ("diary", "hours" if how == COMPUTED else "slots")
                tell(f"{text}: not rehearsed", place=place)

    async def _first(self, vet: str, kind: str | None, how: str, since: date) -> Free | None:
        async for free in self._free(vet, kind, since, DAYS):
            if free.how == how:
                return free
        return None

    async def _free(
        self, vet: str, kind: str | None, since: date, days: int
    ) -> AsyncIterator[Free]:
        """Yields free times as a partner sees them: of each start, the first offer counts."""
        visit = await self._diary.visit(self._session, kind)
        calendars = await self._diary.calendars(self._session, vet)
        for ahead in range(days + 1):
            day, found = since + timedelta(days=ahead), dict[datetime, Offer]()
            for calendar in calendars:
                offers = self._diary.offers(
                    self._session, calendar, visit, day, self._now, KnownTimes()
                )
                for offer in await offers:
                    found.setdefault(offer.interval.start, offer)
            for start in sorted(found):
                yield Free(found[start], kind)


def changes_of_clock(today: date, zone: ZoneInfo) -> list[date]:
    """Returns the days on which the clocks of a zone change next, at most two."""
    noons = [datetime.combine(today + timedelta(days=n), NOON, zone) for n in range(YEAR)]
    pairs = pairwise(noons)
    return [day.date() for before, day in pairs if before.utcoffset() != day.utcoffset()][:2]


@dataclass(frozen=True, slots=True)
class Drafts:
    """Makes the drafts of bookings for one animal."""

    now: datetime
    animal: Record

    def kind(self, free: Free, more: str = "", **asked: Any) -> BookingKind:
        """Returns a kind of booking, with what is `asked` beyond the animal, the vet and time."""
        reason, is_urgent = asked.get("reason"), asked.get("is_urgent", False)
        said = "no reason" if reason is None else f"a reason of {len(reason)} characters"
        parts = [
            free.how,
            "in a schedule" if free.offer.calendar.schedule is not None else "",
            "a type" if free.type else "no type",
            said,
            "urgent" if is_urgent else "",
            more,
        ]
        draft = Draft(
            client_id=self.animal["clientId"],
            patient_id=self.animal["id"],
            vet_id=free.vet,
            scheduled_at=free.offer.interval.start,
            appointment_type_id=free.type,
            reason=reason,
            is_urgent=is_urgent,
            now=self.now,
            reference=secrets.token_hex(8),
        )
        about = () if asked else (free.type or free.vet,)
        return BookingKind(", ".join(filter(None, parts)), draft, free, about)

    def matrix(self, free: Free, typed: Free | None) -> Iterator[BookingKind]:
        """Yields every combination of type, reason and urgency but the plain one."""
        for one, reason, is_urgent in product((free, typed), (None, REASON, LONGEST), (0, 1)):
            if one is not None and (one is not free or reason or is_urgent):
                yield self.kind(one, reason=reason, is_urgent=bool(is_urgent))


def again(draft: Draft) -> Draft:
    """Returns the draft of another attempt at the same time."""
    return replace(draft, reference=secrets.token_hex(8))
