"""Lists the kinds of bookings that a mapping can produce, each with a free time to rehearse it at.

A kind is a calendar, a slot row or a computed time, with or without a type, a reason and urgency,
and a time after each change of the clock. How a rehearsal is made and undone, the doctor of each
adapter knows.
"""

import secrets
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from functools import partial
from itertools import chain, pairwise, product
from math import inf
from typing import Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

from adapters.base import AdapterError, Draft, NotFound, Record
from adapters.doctor.case import DoctorCase, Look
from adapters.documents.document import Place
from adapters.examination import UNREHEARSED, Verdict, counted, short
from adapters.mapped.appointment import DECEASED
from adapters.mapped.clock_change import KnownTimes
from adapters.mapped.session import Calendar, DiarySpan, Offer, Session
from adapters.mapped.slots import day_window, is_on, working_times

T = TypeVar("T")
# Days in which a free time is searched.
DAYS = 14
# Patients of which the first that can be booked is taken.
MOST_PATIENTS = 200
# The most vets, and types, that are rehearsed, and those that are told one by one where none is.
MOST, MOST_TOLD = 200, 20
# Seconds that one way to take a time may be searched.
PATIENCE = 300.0
# Letters that a column of an old encoding lacks.
REASON = "Łucja: contrôle \N{DOG FACE}"
# As long as the contract allows, with letters beyond ASCII and what SQL has to escape.
LONGEST = ('L\'état général: è 50 % \\ "x" ' * 18)[:500]
SLOT, SEVERAL, COMPUTED = "a slot row", "several slot rows", "a computed time"
# The vets with which a visit of several slot rows is searched, and a time after a clock changed.
FEW_VETS = 3
YEAR, NOON, HOUR = 366, clock_time(12), timedelta(hours=1)
TYPES = "appointmentTypes"


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


@dataclass(slots=True)
class Search:
    """A search for free times: the first of each way that was found, and the day to go on with."""

    found: dict[str, Free] = field(default_factory=dict)
    ahead: int = 0


class VetTimes(NamedTuple):
    """A vet's calendars, each with its longest shift, and the first free times in each of them."""

    longest: dict[Calendar, timedelta]
    first: dict[tuple[Calendar, str], Free]


class Planner:
    """Finds what can be rehearsed; the look is told of what cannot be, and why.

    `kinds` are the kinds of bookings, and `calendars` those of all vets, each with the length of
    its longest shift. Each question has a session of its own, and each way to take a time its own
    PATIENCE for all of them.
    """

    def __init__(self, case: DoctorCase, look: Look) -> None:
        self.kinds, self.calendars = list[BookingKind](), dict[Calendar, timedelta]()
        self._case, self._look = case, look
        self._diary, self._now = case.adapter.diary, case.examination.now
        self._today = self._now.astimezone(self._diary.zone).date()
        self._searches = defaultdict[tuple[str, str | None, date], Search](Search)
        # what was not searched to its end, and why
        self._until, self._unsearched = inf, dict[str, str]()

    async def plan(self) -> None:
        animal = await self._case.run(self._animal)
        if animal is None:
            text = "no bookable client was found: no living animal leads to a client that is shown"
            place: Place = ("resources", "patients", "fields", "clientId")
            remedy = "see where clientId leads, and what `where` hides"
            self._look.failed(f"{text}, so nothing was rehearsed", place=place, remedy=remedy)
            return
        drafts, vets, types = Drafts(self._now, animal), self._ids("vets"), self._ids(TYPES)
        if not vets or not self._expected:
            text, place = "no vet was found", ("resources", "vets")
            if vets:
                text, place = "the diary has neither hours nor slots", ("diary",)
            self._look.failed(f"{text}, so nothing was rehearsed", place=place)
            return
        examples, idle = await self._of_calendars(drafts, vets[:MOST])
        await self._by_type(examples, types[:MOST], vets[:MOST])
        ways: dict[str, list[str]] = {kind: [] for kind in types[:MOST]}
        for how, plain in examples.items():
            known = [plain.vet, *(each.free.vet for each in self.kinds), *vets[:MOST]]
            order = list(dict.fromkeys(known))
            self._begin()
            some = order[:FEW_VETS] if how == SEVERAL else order
            typed = await self._of_types(types[:MOST], how, some)
            for free in typed:
                ways[free.type or ""].append(how)
            if plain.type is None:
                self.kinds += drafts.matrix(plain, typed[0] if typed else None)
            else:
                self.kinds += [drafts.kind(plain), *drafts.matrix(plain, None)]
            self.kinds += [drafts.kind(free) for free in typed[1:]]
            self._begin()
            await self._of_changes(drafts, how, plain)
        if examples:
            self._tell_types(ways, set(examples) - {SEVERAL}, len(types))
            await self._of_idle(drafts, idle, types[:MOST], len(vets))

    async def renewed(self, kind: BookingKind) -> BookingKind | None:
        """Returns the kind at the first time of its own that is still free; None for none."""
        free, day = kind.free, kind.free.offer.interval.start.astimezone(self._diary.zone).date()
        asked = partial(self._searched, free.vet, free.type, free.how, day, 0)
        now_free = (await self._case.run(asked)).found.get(free.how)
        if now_free is None:
            return None
        draft = replace(again(kind.draft), scheduled_at=now_free.offer.interval.start)
        return replace(kind, draft=draft, free=now_free)

    async def is_offered(self, kind: BookingKind) -> bool:
        """Returns whether the very time of a kind is offered now."""
        free, begins = kind.free, kind.free.offer.interval.start
        day = begins.astimezone(self._diary.zone).date()

        async def offered(session: Session) -> bool:
            days = self._by_day(session, free.vet, free.type, day)
            return any(each.offer.interval.start == begins for each in await anext(days))

        return await self._case.run(offered)

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

    def _ids(self, resource: str) -> list[str]:
        return [each["id"] for each in self._case.samples.get(resource, ()) if each["id"]]

    def _begin(self) -> None:
        """Gives the searches that follow their time."""
        self._until = time.monotonic() + PATIENCE

    async def _animal(self, session: Session) -> Record | None:
        """Returns the first animal that is alive and has a client, or None."""
        for patient in self._case.samples.get("patients", [])[:MOST_PATIENTS]:
            with suppress(NotFound, ValueError):
                if patient.get("status") != DECEASED and patient["id"]:
                    await session.reader("clients").exists(patient["clientId"] or "")
                    return patient
        return None

    async def _of_calendars(
        self, drafts: "Drafts", vets: Sequence[str]
    ) -> tuple[dict[str, Free], list[str]]:
        """Plans a booking in each calendar.

        Returns an example of each way to take a time, and the vets without any.
        """
        examples: dict[str, Free] = {}
        idle = []
        self._begin()
        for vet in vets:
            times = await self._asked(vet, partial(self._times_of, vet)) or VetTimes({}, {})
            self.calendars |= times.longest
            idle += [] if times.first else [vet]
            for free in times.first.values():
                examples.setdefault(free.how, free)
                self.kinds.append(drafts.kind(free))
        return examples, idle

    async def _times_of(self, vet: str, session: Session) -> VetTimes:
        """Returns the first free times of each way in each calendar of a vet, without a type."""
        calendars = await self._diary.calendars(session, vet)
        longest = {each: await self._longest(session, each) for each in calendars}
        times, whole = VetTimes(longest, {}), set(product(calendars, self._expected))
        async for day in self._by_day(session, vet, None, self._today):
            for free in day:
                times.first.setdefault((free.offer.calendar, free.how), free)
            if whole <= times.first.keys():
                break
        return times

    async def _longest(self, session: Session, calendar: Calendar) -> timedelta:
        """Returns how long the longest shift of a calendar is."""
        each = [await source.shifts(session, calendar) for source in self._diary.hours]
        return max((shift.lasts for shifts in each for shift in shifts), default=timedelta())

    async def _by_type(
        self, examples: dict[str, Free], types: Sequence[str], every: Sequence[str]
    ) -> None:
        """Adds examples of ways that only a type takes: it may be shorter than a row, or longer."""
        ways = {*self._expected, *([SEVERAL] if SLOT in self._expected else [])}
        vets = list(dict.fromkeys([*(kind.free.vet for kind in self.kinds), *every]))
        for how in sorted(ways - examples.keys()):
            self._begin()
            some = vets if how in self._expected else vets[:FEW_VETS]
            found = await self._of_types(types, how, some)
            if found:
                examples[how] = found[0]
            elif how in self._expected:
                told = f"{self._expected[how]} within {DAYS} days, so none was rehearsed"
                self._look.failed(told, place=("diary",))

    @property
    def _expected(self) -> dict[str, str]:
        """The ways to take a time that the mapping has, and words for their absence."""
        rows = {source.is_keyed for source in self._diary.free}
        ways = {SLOT: "no free slot row was found"} if True in rows else {}
        if self._diary.hours or False in rows:
            ways[COMPUTED] = "no free time was worked out"
        return ways

    async def _of_types(self, types: Sequence[str], how: str, vets: Sequence[str]) -> list[Free]:
        """Returns a free time for each type that has one with some vet."""
        found = list[Free]()
        for kind in types:
            for vet in await self._asked(kind, partial(self._fitting, kind, how, vets)) or ():
                if (free := await self._first(kind, vet, kind, how, self._today)) is not None:
                    found.append(free)
                    break
        return found

    async def _fitting(
        self, kind: str, how: str, vets: Sequence[str], session: Session
    ) -> list[str]:
        """Returns the vets with whom a type may have a free time: a shift is as long as it is."""
        if how != COMPUTED or not all(source.is_keyed for source in self._diary.free):
            return list(vets)
        visit, fitting = await self._diary.visit(session, kind), set[str]()
        for calendar, longest in self.calendars.items():
            if calendar.vet in vets and calendar.vet not in fitting:
                lasts = await self._diary.lasts(session, calendar, visit)
                if lasts is not None and lasts <= longest + HOUR:
                    fitting.add(calendar.vet)
        return [vet for vet in vets if vet in fitting]

    async def _of_idle(
        self, drafts: "Drafts", idle: Sequence[str], types: Sequence[str], count: int
    ) -> None:
        """Plans a booking of some type with each vet who has no time without one, and tells.

        A vet without hours and rows is no kind of booking, and one may be away, or booked up.
        """
        self._begin()
        lost, taken, bare = list[str](), list[str](), list[str]()
        planned = {kind.free.vet for kind in self.kinds}
        for vet in (vet for vet in idle if vet not in planned):
            clear = await self._asked(vet, partial(self._clear, vet))
            if clear == []:
                bare.append(vet)
                continue
            for how, kind in product(self._expected, types):
                fitting = await self._asked(vet, partial(self._fitting, kind, how, [vet]))
                free = await self._first(vet, vet, kind, how, self._today) if fitting else None
                if free is not None:
                    self.kinds.append(drafts.kind(free))
                    break
            else:
                is_taken = clear and not any(clear) and vet not in self._unsearched
                (taken if is_taken else lost).append(vet)
        law = "vets-are-bookable"
        if (part := self._case.law(law, self._look, "resources", "vets")) is None:
            lost += [*taken, *bare]
        else:
            for vets, text, verdict in (
                (taken, f"taken or away in all hours and rows of {DAYS} days", Verdict.WARNING),
                (bare, f"without hours and slot rows in {DAYS} days", Verdict.NOTE),
            ):
                if vets:
                    part.ids = vets[:MOST_TOLD]
                    part.breach(f"{counted(len(vets), 'vet')} {text}: not rehearsed", verdict)
        self._lost(law, "vet", lost, count, "resources", "vets")

    async def _clear(self, vet: str, session: Session) -> list[bool]:
        """Returns of each shift and slot row of a vet that is to come whether nothing blocks it."""
        diary, clear = self._diary, list[bool]()
        visit = await diary.visit(session, None)
        for calendar in await diary.calendars(session, vet):
            each = [await source.shifts(session, calendar) for source in diary.hours]
            for day in (self._today + timedelta(days=number) for number in range(DAYS + 1)):
                window = day_window(day, diary.zone)
                span = DiarySpan(calendar, window, visit.lasts or diary.default, visit.type)
                times = list(working_times(day, diary.zone, chain.from_iterable(each)))
                for source in diary.free if day not in diary.closed else ():
                    times += [offer.interval for offer in await source.read(session, span)]
                some = [
                    time
                    for time in times
                    if time.start > self._now and is_on(time.start, day, diary.zone)
                ]
                blocks = await diary.blocks(session, span, KnownTimes()) if some else ()
                clear += [not any(it.interval.overlaps(time) for it in blocks) for time in some]
        return clear

    def _tell_types(self, found: Mapping[str, list[str]], ways: set[str], count: int) -> None:
        """Tells the types without a free time, and those that have none in one of the ways."""
        lost = [kind for kind, own in found.items() if not own]
        self._lost("types-are-bookable", "type", lost, count, "resources", TYPES)
        for how in sorted(ways):
            some = [kind for kind, own in found.items() if own and how not in own]
            if some:
                text = f"{counted(len(some), 'type', 'have')} no free time as {how} in {DAYS} days"
                more = ", and was rehearsed otherwise" if len(some) == 1 else ""
                more = more or ", and were rehearsed otherwise"
                self._look.note(f"{text}{more}", place=("diary",), ids=some)

    def _lost(self, law: str, noun: str, lost: Sequence[str], count: int, *place: str) -> None:
        """Tells the vets or types that could not be rehearsed, and those beyond the first MOST."""
        beyond, part = count - MOST, self._case.law(law, self._look, *place)
        if part is None:
            if (many := len(lost) + max(0, beyond)) > 0:
                text = f"{counted(many, noun, 'were')} not rehearsed, which `accepted` allows"
                self._look.note(text, place=("accepted", law), ids=lost)
            return
        for each in lost[:MOST_TOLD]:
            part.ids = [each]
            why = self._unsearched.get(each, f"no free time was found in {DAYS} days")
            part.breach(f"{why}, so no booking was rehearsed with this {noun}")
        few = len(lost) - MOST_TOLD
        for many, verb, why in ((few, "have", "no free time"), (beyond, "come", f"behind {MOST}")):
            if many > 0:
                part.ids = []
                part.breach(f"{counted(many, f'more {noun}', verb)} {why}: not rehearsed")

    async def _of_changes(self, drafts: "Drafts", how: str, plain: Free) -> None:
        """Plans a booking after each of the next two changes of the clock."""
        for day in changes_of_clock(self._today, self._diary.zone):
            about, free = f"{how} {day}", None
            vets = dict.fromkeys([plain.vet, *(kind.free.vet for kind in self.kinds)])
            for vet in list(vets)[:FEW_VETS]:
                free = free or await self._first(about, vet, plain.type, how, day)
            if free is not None:
                self.kinds.append(drafts.kind(free, f"after the clocks change on {day}"))
            elif how != SEVERAL:
                after = f"after the clocks change on {day}"
                text = f"no free time as {how} in {DAYS} days {after}"
                # where each row is of a day, the practice may not have come to write that one
                is_weekly = any(source.hours.day is None for source in self._diary.hours)
                tell = self._look.failed if how == COMPUTED and is_weekly else self._look.warning
                place = ("diary", "hours" if how == COMPUTED else "slots")
                if about in self._unsearched:
                    tell, text = self._look.failed, f"{self._unsearched[about]}, {how}, {after}"
                tell(f"{text}: not rehearsed", place=place, code=UNREHEARSED)

    async def _first(
        self, about: str, vet: str, kind: str | None, how: str, since: date
    ) -> Free | None:
        """Returns the first free time of a way, for what the search is `about`; None for none."""
        search = self._searches[vet, kind, since]
        if how not in search.found and search.ahead <= DAYS:
            asked = partial(self._searched, vet, kind, how, since, search.ahead)
            if (more := await self._asked(about, asked)) is None:
                return None
            search.found, search.ahead = more.found | search.found, more.ahead
        return search.found.get(how)

    async def _searched(
        self, vet: str, kind: str | None, how: str, since: date, ahead: int, session: Session
    ) -> Search:
        """Searches day by day until a free time of that way is found."""
        search = Search(ahead=ahead)
        async for day in self._by_day(session, vet, kind, since, ahead):
            search.ahead += 1
            for free in day:
                search.found.setdefault(free.how, free)
            if how in search.found:
                break
        return search

    async def _by_day(
        self, session: Session, vet: str, kind: str | None, since: date, ahead: int = 0
    ) -> AsyncIterator[list[Free]]:
        """Yields each day's times as a partner sees them: of each start, the first offer counts."""
        visit = await self._diary.visit(session, kind)
        calendars = await self._diary.calendars(session, vet)
        for number in range(ahead, DAYS + 1):
            day, found = since + timedelta(days=number), dict[datetime, Offer]()
            for calendar in calendars:
                offers = self._diary.offers(session, calendar, visit, day, self._now, KnownTimes())
                for offer in await offers:
                    found.setdefault(offer.interval.start, offer)
            yield [Free(found[start], kind) for start in sorted(found)]

    async def _asked(self, about: str, flow: Callable[[Session], Awaitable[T]]) -> T | None:
        """Returns what a flow gives in a session of its own; None once the time is used up."""
        if time.monotonic() > self._until:
            self._unsearched[about] = f"the search took longer than {PATIENCE:.0f} s"
            return None
        try:
            return await self._case.run(flow)
        except AdapterError as error:
            self._unsearched[about] = f"no free time could be searched: {short(error)}"
            return None


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
        long = f"a reason of {len(LONGEST)} characters"
        said = {None: "no reason", LONGEST: long}.get(reason, "a reason with any letters")
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
