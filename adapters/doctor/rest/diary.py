"""The diary's sources in the days to come: hours that open nothing, what blocks, overlaps."""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from functools import partial

from adapters.base import AdapterError, Record
from adapters.doctor.diary import Booked, idle, missed, overlaps, to_come
from adapters.doctor.findings import agreeing, rows, short
from adapters.doctor.hours import hours_read, today
from adapters.doctor.rest.case import Case, Step
from adapters.doctor.zones import fitting, visits_of
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.mapped.slots import Interval, Shift
from adapters.rest.availability import Asked, Hours, Span, Spans
from adapters.rest.mapping import HoursCall
from adapters.rest.paging import NoArray, may_be_empty

DAYS = 14
MOST_VETS = 10
MINUTE = timedelta(minutes=1)

Shifts = dict[str, list[Shift]]


def diary(case: Case) -> Iterator[Step]:
    """One look at each source, and at the appointments to come."""
    if not case.samples.get("vets"):
        return
    shifts: Shifts = {each: [] for each in _vets(case)}
    spans: dict[str, list[Span]] = {each: [] for each in _vets(case)}
    own = case.parts.diary
    for number, hours in enumerate(own.hours):
        place: Place = ("diary", "hours", number)
        yield Step("diary", "hours", partial(_hours, case, hours, place, shifts), place)
    if own.hours:
        yield Step("diary", "vets", partial(_idle, case, shifts))
        yield Step("clock", "appointments", partial(_zones, case, shifts))
    for number, free in enumerate(own.free):
        place = ("diary", "free", number)
        yield Step("diary", "free", partial(_free, case, free, place), place)
    for number, busy in enumerate(own.busy):
        place = ("diary", "busy", number)
        yield Step("diary", "busy", partial(_busy, case, busy, place, spans), place)
    if own.busy:
        yield Step("diary", "busy", partial(_missed, case, spans))


def _vets(case: Case) -> list[str]:
    return [each["id"] for each in case.samples["vets"][:MOST_VETS] if each["id"]]


def _asked(case: Case, vet: str) -> Asked:
    now = case.examination.now
    minutes = case.parts.mapping.diary.duration
    return Asked(vet, Interval(now, now + timedelta(days=DAYS)), minutes)


async def _hours(case: Case, hours: Hours, place: Place, shifts: Shifts) -> AsyncIterator[Finding]:
    case.troubles.clear()
    count = 0
    for vet in shifts:
        try:
            found = await hours.shifts(_asked(case, vet))
        except AdapterError as error:
            yield _unanswered(case, "hours", place, error, vet)
            return
        shifts[vet] += found
        count += len(found)
    bad = len(case.troubles)
    if bad:
        text = f"{rows(bad)} of {bad + count:,} cannot be read, and open nothing"
        remedy = "weekday is 1 Monday to 7 Sunday (see `codes`), start and end read HH:MM"
        yield case.failed("diary", "hours", text, (*place, "weekday"), remedy=remedy)
    elif not count:
        yield case.warning("diary", "hours", "no row: nobody works by this source", place)
    else:
        yield case.ok(
            "diary", "hours", f"{rows(count)} of working hours {agreeing(count, 'are')} read"
        )


def _unanswered(case: Case, subject: str, place: Place, error: AdapterError, vet: str) -> Finding:
    judged = case.warning if may_be_empty(error) else case.failed
    at = "items" if isinstance(error, NoArray) else "get"
    return judged("diary", subject, short(error), (*place, at), ids=[vet])


async def _idle(case: Case, shifts: Shifts) -> AsyncIterator[Finding]:
    without = [vet for vet, own in shifts.items() if not own]
    hopeless = not case.parts.mapping.diary.free
    zone = case.parts.tools.values.converters.zone
    for each in hours_read(case, shifts, today(case.examination.now, zone)):
        yield each
    yield idle(case, without, len(shifts), ("diary", "hours", 0), hopeless=hopeless)


async def _zones(case: Case, shifts: Shifts) -> AsyncIterator[Finding]:
    asked = isinstance(case.parts.mapping.diary.hours[0], HoursCall)
    zone, now = case.parts.tools.values.converters.zone, case.examination.now
    visits = visits_of(case.samples.get("appointments", ()), zone, now)
    weekday = ("diary", "hours", 0, "weekday" if asked else "days")
    for each in fitting(case, visits, shifts, weekday):
        yield each


async def _free(case: Case, free: Spans, place: Place) -> AsyncIterator[Finding]:
    case.troubles.clear()
    count = 0
    for vet in _vets(case):
        try:
            count += len(await free.read(_asked(case, vet)))
        except AdapterError as error:
            yield _unanswered(case, "free", place, error, vet)
            return
    if case.troubles:
        text = f"{rows(len(case.troubles))} cannot be read, and are free for nobody"
        yield case.failed("diary", "free", text, (*place, "start"))
    elif not count:
        text = f"no row in {DAYS} days: nothing is free by this source"
        yield case.warning("diary", "free", text, place)
    else:
        yield case.ok("diary", "free", f"{rows(count)} in {DAYS} days")


async def _busy(
    case: Case, busy: Spans, place: Place, spans: dict[str, list[Span]]
) -> AsyncIterator[Finding]:
    case.troubles.clear()
    diaries: list[list[Booked]] = []
    count = 0
    for vet in spans:
        try:
            found = await busy.read(_asked(case, vet))
        except AdapterError as error:
            yield _unanswered(case, "busy", place, error, vet)
            return
        spans[vet] += found
        count += len(found)
        diaries.append(
            [(each.time, each.key) for each in found if each.key is not None and each.is_likely]
        )
    if case.troubles:
        text = f"{rows(len(case.troubles))} cannot be read, and block whatever they may mean"
        remedy = "say how the times are written (as, pattern, zero), or leave them out in `where`"
        yield case.failed("diary", "busy", text, (*place, "start"), remedy=remedy)
    else:
        text = f"{rows(count)} {agreeing(count, 'block')} the next {DAYS} days or a part of them"
        yield case.ok("diary", "busy", text)
    for each in overlaps(case, diaries, case.examination.now, place):
        yield each


async def _missed(case: Case, spans: dict[str, list[Span]]) -> AsyncIterator[Finding]:
    """Whether appointments to come block: what busy does not see is offered again."""
    ahead = timedelta(days=DAYS)
    coming = to_come(case.samples.get("appointments", ()), case.examination.now, ahead)
    known = [each for each in coming if each["vetId"] in spans]
    by_key = any(each.knows_appointments for each in case.parts.diary.busy)
    lost = [each["id"] for each in known if not _blocks(each, spans[each["vetId"]], by_key=by_key)]
    for each in missed(case, lost, len(known)):
        yield each


def _blocks(appointment: Record, spans: list[Span], *, by_key: bool) -> bool:
    begins = datetime.fromisoformat(appointment["scheduledAt"])
    beginning = Interval(begins, begins + MINUTE)
    return any(
        each.time.overlaps(beginning) and (not by_key or each.key == appointment["id"])
        for each in spans
    )
