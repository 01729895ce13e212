"""Clocks that differ, times that have not come yet, and appointments outside working hours."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from adapters.base import Record
from adapters.doctor.case import MOST_IDS, CheckStep, DoctorCase, FindingMaker, agreeing, counted
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.mapped.session import Session
from adapters.mapped.slots import ONE_DAY
from adapters.mapping.hours import Shift
from adapters.values.times import UtcTime

# Seconds; a clock that differs by more is wrong.
APART = 60.0
# What is written now may be a little ahead.
ROOM = timedelta(minutes=2)
WRITTEN = ("createdAt", "updatedAt", "startedAt", "validatedAt")
# Appointments that are looked at, and how many are enough to judge by.
AGO, AHEAD = timedelta(days=365), timedelta(days=90)
ENOUGH = 20
# A better reading must fit so much more of the appointments.
BETTER = 0.03
# Where fewer than these fit, hours and appointments are hardly of one clinic.
FEW = 0.5
_AS_READ: Place = ("resources", "appointments", "fields", "scheduledAt")

# Whose appointment, the wall clock's time of it, and of its end.
Visit = tuple[str, datetime, datetime]


def beside(maker: FindingMaker, apart: float, said: str) -> Finding:
    """The server's clock, so many seconds ahead of this machine's; `said` is told besides."""
    also = f"; {said}" if said else ""
    if abs(apart) <= APART:
        return maker.ok("clock", "server", f"it agrees with this machine's{also}")
    way = "ahead of" if apart > 0 else "behind"
    text = f"its clock is {abs(apart):.0f} s {way} this machine's{also}"
    return maker.warning("clock", "server", text, remedy="set one of them by the network's time")


def newest(case: DoctorCase) -> Iterator[CheckStep]:
    """One look at each resource's newest times."""
    for name in case.core.mapping.resources:
        for field in WRITTEN:
            if not case.is_lost("resources", name) and case.converter(name, field) is not None:
                yield CheckStep("clock", f"{name}.{field}", partial(_future, case, name, field))


def _future(case: DoctorCase, resource: str, name: str, session: Session) -> Iterator[Finding]:
    """Times that should be past, and are not."""
    now, count, ahead, furthest = case.examination.now, 0, 0, timedelta()
    ids: list[str] = []
    for record in case.records(session, resource):
        if not record[name]:
            continue
        count += 1
        further = datetime.fromisoformat(record[name]) - now
        if further > ROOM:
            ahead, furthest = ahead + 1, max(furthest, further)
            ids += [record["id"]] if record["id"] and len(ids) < MOST_IDS else []
    if not ahead:
        return
    place, subject = ("resources", resource, "fields", name), f"{resource}.{name}"
    text = f"{counted(ahead, 'row')} of {count:,} {agreeing(ahead, 'lie')} in the future"
    if isinstance(case.converter(resource, name), UtcTime) and furthest <= _offset(
        now.astimezone(case.core.diary.zone)
    ):
        text += ", by no more than the clinic's zone:"
        text += " they look like local time, but are read as UTC"
        yield case.failed("clock", subject, text, place, ids=ids, remedy="write `as: local time`")
    else:
        yield case.warning("clock", subject, text, place, ids=ids)


def zones(case: DoctorCase) -> Iterator[CheckStep]:
    """One look at how appointments fit into working hours; none where no hours are known."""
    lost = case.is_lost("diary") or case.is_lost("resources", "vets")
    if case.core.mapping.diary.hours and case.samples.get("vets") and not lost:
        yield CheckStep("clock", "appointments", partial(_fitting, case), ("diary", "hours"))


async def _fitting(case: DoctorCase, session: Session) -> AsyncIterator[Finding]:
    """What it means how many fit into the hours of their vets; nothing is said of a few."""
    own = case.core.diary
    shifts = {vet: await own.shifts(session, vet) for vet in case.vets()}
    visits = _visits(case.records(session, "appointments"), own.zone, case.examination.now)
    known = [visit for visit in visits if shifts.get(visit[0])]
    if len(known) < ENOUGH:
        return
    as_read = _share(known, shifts, lambda wall: wall)
    readings = [way for way in _readings(_weekday(case)) if way.place]
    shares = [_share(known, shifts, way.move) for way in readings]
    best, reading = max(zip(shares, readings, strict=True), key=lambda pair: pair[0])
    percent = f"{as_read:.0%} of {len(known):,} appointments lie within working hours"
    if best >= as_read + BETTER and best > FEW:
        text = f"{percent}, and {best:.0%} {reading.text}"
        place, remedy = reading.place, reading.remedy
        yield case.failed("clock", "appointments", text, place, remedy=remedy)
    elif as_read < FEW:
        place, remedy = ("diary", "hours"), "are these the hours in force?"
        yield case.warning("clock", "appointments", percent, place, remedy=remedy)
    else:
        yield case.ok("clock", "appointments", percent)


def _weekday(case: DoctorCase) -> Place:
    """Where the mapping says on which weekday hours are; () where none repeat weekly."""
    for number, hours in enumerate(case.core.mapping.diary.hours):
        if not hours.is_rows or hours.weekday is not None:
            return ("diary", "hours", number, "weekday" if hours.is_rows else "days")
    return ()


def _visits(records: Iterable[Record], zone: ZoneInfo, now: datetime) -> Iterator[Visit]:
    """The appointments of a year that took place, or are to."""
    for record in records:
        if not record["scheduledAt"] or record["status"] in ("CANCELLED", "NO_SHOW"):
            continue
        begins = datetime.fromisoformat(record["scheduledAt"])
        if now - AGO < begins < now + AHEAD:
            ends = datetime.fromisoformat(record["endTime"]) if record["endTime"] else begins
            wall = begins.astimezone(zone)
            yield record["vetId"] or "", wall, wall + max(ends - begins, timedelta())


def _offset(wall: datetime) -> timedelta:
    return wall.utcoffset() or timedelta()


@dataclass(frozen=True, slots=True)
class TimeReading:
    """Another way to read times: what it makes of a wall clock's time, and what to say of it."""

    move: Callable[[datetime], datetime]
    place: Place
    text: str
    remedy: str


def _readings(weekday: Place) -> tuple[TimeReading, ...]:
    """`weekday` is where the mapping says which day hours are of; () where none repeat weekly."""
    more = "here and wherever times are of that kind; is `zone` right?"
    return (
        TimeReading(
            lambda wall: wall - _offset(wall),
            _AS_READ,
            "would if what is read as UTC were the clinic's wall clock",
            f"write `as: local time`, {more}",
        ),
        TimeReading(
            lambda wall: wall + _offset(wall),
            _AS_READ,
            "would if what is read as the clinic's wall clock were UTC",
            f"write `as: utc time`, {more}",
        ),
        TimeReading(
            lambda wall: wall - ONE_DAY,
            weekday,
            "would a day earlier: weekday is 1 for Monday, and here one too low",
            "add 1 to weekday",
        ),
        TimeReading(
            lambda wall: wall + ONE_DAY,
            weekday,
            "would a day later: weekday is 1 for Monday, and here one too high",
            "take 1 from weekday",
        ),
    )


def _share(
    visits: list[Visit], shifts: Mapping[str, list[Shift]], move: Callable[[datetime], datetime]
) -> float:
    fit = sum(_within(shifts[vet], move(begins), move(ends)) for vet, begins, ends in visits)
    return fit / len(visits)


def _within(shifts: list[Shift], begins: datetime, ends: datetime) -> bool:
    first, last = begins.replace(tzinfo=None), ends.replace(tzinfo=None)
    for shift in shifts:
        for day in (first.date() - ONE_DAY, first.date()):
            closing = day if shift.end > shift.start else day + ONE_DAY
            opens = datetime.combine(day, shift.start)
            closes = datetime.combine(closing, shift.end)
            # a closed day counts too: these are the hours as they are read
            is_that_day = shift.day == day if shift.day else shift.weekday == day.isoweekday()
            if is_that_day and opens <= first and last <= closes:
                return True
    return False
