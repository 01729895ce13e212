"""Whether appointments lie within working hours as they are read, or would if read otherwise."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from adapters.base import Record
from adapters.doctor.case import CheckStep, DoctorCase
from adapters.doctor.findings import FindingMaker
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.mapped.session import Session
from adapters.mapped.slots import ONE_DAY
from adapters.mapping.hours import Shift

AGO, AHEAD = timedelta(days=365), timedelta(days=90)
ENOUGH = 20
# A better reading must fit so much more of the appointments.
BETTER = 0.03
# Where fewer than these fit, hours and appointments are hardly of one clinic.
FEW = 0.5

Move = Callable[[datetime], datetime]
# Whose appointment, the wall clock's time of it, and of its end.
Visit = tuple[str, datetime, datetime]


def zones(case: DoctorCase) -> Iterator[CheckStep]:
    """One look; none where no hours are known."""
    lost = case.is_lost("diary") or case.is_lost("resources", "vets")
    if case.core.mapping.diary.hours and case.samples.get("vets") and not lost:
        yield CheckStep(
            "clock", "appointments", lambda session: _fits(session, case), ("diary", "hours")
        )


async def _fits(session: Session, case: DoctorCase) -> AsyncIterator[Finding]:
    own, now = case.core.diary, case.examination.now
    shifts = {vet: await own.shifts(session, vet) for vet in case.vets()}
    visits = visits_of(case.records(session, "appointments"), own.zone, now)
    for finding in fitting(case, visits, shifts, _weekday(case)):
        yield finding


def _weekday(case: DoctorCase) -> Place | None:
    """Where the mapping says on which weekday hours are; None where none repeat weekly."""
    for number, hours in enumerate(case.core.mapping.diary.hours):
        if not hours.is_rows or hours.weekday is not None:
            return ("diary", "hours", number, "weekday" if hours.is_rows else "days")
    return None


def fitting(
    maker: FindingMaker,
    visits: Iterable[Visit],
    shifts: Mapping[str, list[Shift]],
    weekday: Place | None,
) -> Iterator[Finding]:
    """What it means how many fit into the hours of their vets; nothing is said of a few.

    `weekday` is where the mapping says which day hours are of; None where none repeat weekly.
    """
    known = [each for each in visits if shifts.get(each[0])]
    if len(known) < ENOUGH:
        return
    moves = _moves(weekly=weekday is not None)
    shares = {name: _share(known, shifts, move) for name, move in moves.items()}
    as_read = shares.pop("as read")
    best = max(shares, key=lambda name: shares[name])
    percent = f"{as_read:.0%} of {len(known):,} appointments lie within working hours"
    if shares[best] >= as_read + BETTER and shares[best] > FEW:
        what, remedy = _SAID[best]
        place = weekday if "day" in best and weekday is not None else _AT
        text = f"{percent}, and {shares[best]:.0%} {what}"
        yield maker.failed("clock", "appointments", text, place, remedy=remedy)
    elif as_read < FEW:
        place, remedy = ("diary", "hours"), "are these the hours in force?"
        yield maker.warning("clock", "appointments", percent, place, remedy=remedy)
    else:
        yield maker.ok("clock", "appointments", percent)


def visits_of(records: Iterable[Record], zone: ZoneInfo, now: datetime) -> Iterator[Visit]:
    """The appointments of a year that took place, or are to."""
    for each in records:
        if not each["scheduledAt"] or each["status"] in ("CANCELLED", "NO_SHOW"):
            continue
        begins = datetime.fromisoformat(each["scheduledAt"])
        if not now - AGO < begins < now + AHEAD:
            continue
        ends = datetime.fromisoformat(each["endTime"]) if each["endTime"] else begins
        wall = begins.astimezone(zone)
        yield each["vetId"] or "", wall, wall + max(ends - begins, timedelta())


def _moves(*, weekly: bool) -> dict[str, Move]:
    moves: dict[str, Move] = {
        "as read": lambda wall: wall,
        "local": lambda wall: wall - _offset(wall),
        "utc": lambda wall: wall + _offset(wall),
    }
    if weekly:
        moves["day before"] = lambda wall: wall - ONE_DAY
        moves["day after"] = lambda wall: wall + ONE_DAY
    return moves


def _offset(wall: datetime) -> timedelta:
    return wall.utcoffset() or timedelta()


def _share(visits: list[Visit], shifts: Mapping[str, list[Shift]], move: Move) -> float:
    fit = sum(_within(shifts[vet], move(begins), move(ends)) for vet, begins, ends in visits)
    return fit / len(visits)


def _within(shifts: list[Shift], begins: datetime, ends: datetime) -> bool:
    first, last = begins.replace(tzinfo=None), ends.replace(tzinfo=None)
    for shift in shifts:
        for day in (first.date() - ONE_DAY, first.date()):
            if _begins_on(shift, day):
                opens = datetime.combine(day, shift.start)
                closes = datetime.combine(
                    day if shift.end > shift.start else day + ONE_DAY, shift.end
                )
                if opens <= first and last <= closes:
                    return True
    return False


def _begins_on(shift: Shift, day: date) -> bool:
    """Whether the clinic is closed on that day or not."""
    return shift.day == day if shift.day is not None else shift.weekday == day.isoweekday()


_AT: Place = ("resources", "appointments", "fields", "scheduledAt")
_SAID = {
    "local": (
        "would if what is read as UTC were the clinic's wall clock",
        "write `as: local time`, here and wherever times are of that kind; is `zone` right?",
    ),
    "utc": (
        "would if what is read as the clinic's wall clock were UTC",
        "write `as: utc time`, here and wherever times are of that kind; is `zone` right?",
    ),
    "day before": (
        "would a day earlier: weekday is 1 for Monday, and here one too low",
        "add 1 to weekday",
    ),
    "day after": (
        "would a day later: weekday is 1 for Monday, and here one too high",
        "take 1 from weekday",
    ),
}
