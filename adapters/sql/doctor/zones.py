"""Whether appointments lie within working hours as they are read, or would if read otherwise."""

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from adapters.document import Place
from adapters.examine import Finding
from adapters.slots import ONE_DAY, Shift
from adapters.sql.doctor.case import Case, Step
from adapters.sql.doctor.diary import vets

AGO, AHEAD = timedelta(days=365), timedelta(days=90)
ENOUGH = 20
# A better reading must fit so much more of the appointments.
BETTER = 0.03
# Where fewer than these fit, hours and appointments are hardly of one clinic.
FEW = 0.5

Move = Callable[[datetime], datetime]
# The wall clock's time of an appointment, and of its end.
Visit = tuple[str, datetime, datetime]


def zones(case: Case) -> Iterator[Step]:
    """One look; none where no hours are known."""
    lost = case.is_lost("diary") or case.is_lost("resources", "vets")
    if case.parts.mapping.diary.hours and not lost:
        yield Step("clock", "appointments", lambda c: _fits(c, case), ("diary", "hours"))


def _fits(connection: Connection, case: Case) -> Iterator[Finding]:
    shifts = {shown: case.parts.diary.shifts(connection, key) for shown, key in vets(case)}
    visits = [each for each in _visits(case) if shifts.get(each[0])]
    if len(visits) < ENOUGH:
        return
    shares = {name: _share(visits, shifts, move) for name, move in _moves(case).items()}
    as_read = shares.pop("as read")
    best = max(shares, key=lambda name: shares[name])
    percent = f"{as_read:.0%} of {len(visits):,} appointments lie within working hours"
    if shares[best] >= as_read + BETTER and shares[best] > FEW:
        place, what, remedy = _SAID[best](case)
        yield case.failed(
            "clock",
            "appointments",
            f"{percent}, and {shares[best]:.0%} {what}",
            place,
            remedy=remedy,
        )
    elif as_read < FEW:
        yield case.warning(
            "clock",
            "appointments",
            percent,
            ("diary", "hours"),
            remedy="are these the hours in force?",
        )
    else:
        yield case.ok("clock", "appointments", percent)


def _visits(case: Case) -> Iterator[Visit]:
    zone, now = case.parts.converters.zone, case.examination.now
    for each in case.samples.get("appointments", ()):
        if not each["scheduledAt"] or each["status"] in ("CANCELLED", "NO_SHOW"):
            continue
        begins = datetime.fromisoformat(each["scheduledAt"])
        if not now - AGO < begins < now + AHEAD:
            continue
        ends = datetime.fromisoformat(each["endTime"]) if each["endTime"] else begins
        wall = begins.astimezone(zone)
        yield each["vetId"] or "", wall, wall + max(ends - begins, timedelta())


def _moves(case: Case) -> dict[str, Move]:
    moves: dict[str, Move] = {
        "as read": lambda wall: wall,
        "local": lambda wall: wall - _offset(wall),
        "utc": lambda wall: wall + _offset(wall),
    }
    if any(each.weekday for each in case.parts.mapping.diary.hours):
        moves["day before"] = lambda wall: wall - ONE_DAY
        moves["day after"] = lambda wall: wall + ONE_DAY
    return moves


def _offset(wall: datetime) -> timedelta:
    return wall.utcoffset() or timedelta()


def _share(visits: list[Visit], shifts: dict[str, list[Shift]], move: Move) -> float:
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


_Said = tuple[Place, str, str]


def _at(case: Case) -> Place:
    return ("resources", "appointments", "fields", "scheduledAt")


def _weekday(case: Case) -> Place:
    numbered = enumerate(case.parts.mapping.diary.hours)
    return ("diary", "hours", next(n for n, each in numbered if each.weekday), "weekday")


_SAID: dict[str, Callable[[Case], Any]] = {
    "local": lambda case: (
        _at(case),
        "would if what is read as UTC were the clinic's wall clock",
        "write `as: local time`, here and wherever times are of that kind; is `zone` right?",
    ),
    "utc": lambda case: (
        _at(case),
        "would if what is read as the clinic's wall clock were UTC",
        "write `as: utc time`, here and wherever times are of that kind; is `zone` right?",
    ),
    "day before": lambda case: (
        _weekday(case),
        "would a day earlier: weekday is 1 for Monday, and here one too low",
        "add 1 to weekday",
    ),
    "day after": lambda case: (
        _weekday(case),
        "would a day later: weekday is 1 for Monday, and here one too high",
        "take 1 from weekday",
    ),
}
