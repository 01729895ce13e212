"""Laws of times: inside working hours, of one zone, of a length that a type has; hours in use."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from adapters.base import Record
from adapters.doctor.case import DoctorCase, LawLook, Look
from adapters.doctor.laws.trials import told
from adapters.doctor.values import ENOUGH, pages
from adapters.documents.document import Place
from adapters.examination import Verdict, counted
from adapters.mapped.slots import ONE_DAY
from adapters.mapping.hours import Shift

# Statuses of appointments that were not held.
NOT_HELD = frozenset({"CANCELLED", "NO_SHOW"})
# How far back and ahead times are looked at.
AGO, AHEAD = timedelta(days=365), timedelta(days=90)
# A better reading must fit this much more of the times. Where fewer than FEW fit, the hours and the
# times are hardly those of one clinic.
BETTER, FEW = 0.03, 0.5
# A reading of one column alone must explain this much more of the rows.
CLEARLY = 0.3
# With a smaller share of the lengths known, they are hardly minutes of the types.
KNOWN = 0.2
# The longest that an appointment, or a consultation until it is validated, usually lasts.
USUAL = timedelta(hours=8)
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MORE = "here and wherever times are of that kind; is `zone` right?"
_WALL = "the clinic's wall clock"
_AS_LOCAL, _AS_UTC = f"write `as: local time`, {_MORE}", f"write `as: utc time`, {_MORE}"
# Other ways to read times: how many of the zone's offsets, and how many days, are added to a wall
# clock's time; then the words for it, and the remedy.
_READINGS = (
    (-1, 0, f"if what is read as UTC were {_WALL}", _AS_LOCAL),
    (1, 0, f"if what is read as {_WALL} were UTC", _AS_UTC),
    (0, -1, "a day earlier: weekday is 1 for Monday, and here one too low", "add 1 to weekday"),
    (0, 1, "a day later: weekday is 1 for Monday, and here one too high", "take 1 from weekday"),
)


class Visit(NamedTuple):
    """An appointment or consultation on the wall clock, with the hours of its vet.

    `by_day` has these by weekday, and those of one day by its date.
    """

    record: Record
    hours: Sequence[Shift]
    by_day: Mapping[date | int, Sequence[Shift]]
    begins: datetime
    ends: datetime


class Timed(NamedTuple):
    """A resource with times of a vet's work: its fields of start and end, and its noun."""

    resource: str
    start: str
    end: str
    noun: str


TIMED = (
    Timed("appointments", "scheduledAt", "endTime", "appointments"),
    Timed("consultations", "startedAt", "validatedAt", "consultations"),
)


def hour_laws(case: DoctorCase) -> Iterator[Look]:
    """Yields a look at each pair of times, and one at the hours."""
    has_hours = bool(case.adapter.diary.hours)
    for timed in TIMED:
        mapped = case.adapter.mapping.resources.get(timed.resource)
        if mapped is None or timed.start not in mapped.fields:
            continue
        place = ("resources", timed.resource, "fields", timed.start)
        if timed.end in mapped.fields:
            yield case.look("laws", timed.resource, partial(_pairs, timed), *place)
        if has_hours and "vetId" in mapped.fields:
            yield case.look("laws", timed.resource, partial(_in_hours, timed), *place)
    if has_hours and "appointments" in case.adapter.mapping.resources:
        yield case.look("laws", "hours", _worked, "diary", "hours")


def times_of(
    case: DoctorCase, timed: Timed, since: datetime, until: datetime, without: Set[str | None]
) -> Iterator[tuple[Record, datetime]]:
    """Yields the records that begin in the period, and when in UTC, without these statuses."""
    for record in chain.from_iterable(pages(case, timed.resource)):
        if record[timed.start] and record["status"] not in without:
            begins = datetime.fromisoformat(record[timed.start]).astimezone(UTC)
            if since < begins < until:
                yield record, begins


async def visits_of(case: DoctorCase, timed: Timed, *, until: timedelta = AHEAD) -> list[Visit]:
    """Returns the visits of the last year, and so far ahead, whose vets have hours."""
    own, now = case.adapter.diary, case.examination.now
    shifts = {vet: await own.shifts(case.session, vet) for vet in case.vets()}
    by_day: dict[str, dict[date | int, list[Shift]]] = defaultdict(lambda: defaultdict(list))
    for vet, some in shifts.items():
        for shift in some:
            by_day[vet][shift.day or shift.weekday].append(shift)
    visits = []
    for record, begins in times_of(case, timed, now - AGO, now + until, NOT_HELD):
        vet = record["vetId"]
        if hours := shifts.get(vet):
            # a consultation may be validated at any time
            end = record["endTime"] if timed.end == "endTime" else None
            ends = datetime.fromisoformat(end or record[timed.start])
            wall = begins.astimezone(own.zone)
            lasts = max(ends - begins, timedelta())
            visits.append(Visit(record, hours, by_day[vet], wall, wall + lasts))
    return visits


async def _in_hours(timed: Timed, case: DoctorCase, look: Look) -> None:
    """Tells how many times lie in their vets' hours, and if another reading puts more there."""
    part = case.law("times-in-hours", look)
    if part is None or not _could_look(case, part, timed):
        return
    visits = await visits_of(case, timed)
    if part.too_few(len(visits), ENOUGH):
        return

    def share(offsets: int, days: int) -> float:
        fits = (_fits(visit, offsets, days) for visit in visits)
        return sum(fits) / len(visits)

    weekdays: Iterator[Place] = (
        ("diary", "hours", number, "weekday" if hours.is_rows else "days")
        for number, hours in enumerate(case.adapter.mapping.diary.hours)
        if not hours.is_rows or hours.weekday is not None
    )
    weekday = next(weekdays, ())
    readings = [
        (share(offsets, days), text, remedy, weekday if days else look.place)
        for offsets, days, text, remedy in _READINGS
        if weekday or not days
    ]
    as_read, (best, text, remedy, at) = share(0, 0), max(readings, key=itemgetter(0))
    outside = [visit.record for visit in visits if not _fits(visit, 0, 0)]
    for record in outside:
        example = told(record, {timed.start: record[timed.start]})
        part.take(holds=False, example=example, shown=record["id"])
    percent = f"{as_read:.0%} of {len(visits):,} {timed.noun} lie within working hours"
    if best >= as_read + BETTER and best > FEW:
        part.breach(f"{percent}, and {best:.0%} would {text}", remedy=remedy, place=at)
    elif as_read < FEW:
        part.breach(percent, Verdict.WARNING, remedy="are these the hours in force?")
    else:
        part.ok(percent)


def _fits(visit: Visit, offsets: int, days: int) -> bool:
    def moved(wall: datetime) -> datetime:
        return wall + offsets * (wall.utcoffset() or timedelta()) + days * ONE_DAY

    return _in_shifts(visit.by_day, moved(visit.begins), moved(visit.ends))


def _in_shifts(
    by_day: Mapping[date | int, Sequence[Shift]], begins: datetime, ends: datetime
) -> bool:
    """Returns whether a shift of that day, or of the night before, has all of the time."""
    # closed days count too: these are the hours as they are read
    return any(
        _covers(shift, day, begins.replace(tzinfo=None), ends.replace(tzinfo=None))
        for day in (begins.date() - ONE_DAY, begins.date())
        for shift in (*by_day.get(day, ()), *by_day.get(day.isoweekday(), ()))
    )


def _covers(shift: Shift, day: date, first: datetime, last: datetime) -> bool:
    return datetime.combine(day, shift.start) <= first and last <= datetime.combine(
        day + (shift.end <= shift.start) * ONE_DAY, shift.end
    )


def _could_look(case: DoctorCase, part: LawLook, timed: Timed) -> bool:
    """Returns whether hours and records were read; else says that nothing could be looked at."""
    if case.is_lost("diary", "hours"):
        part.unseen()
        return False
    return case.could_look(part, "vets", timed.resource)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two times of a row, with the lengths that are known for its type."""

    record: Record
    start: datetime
    end: datetime
    lengths: frozenset[timedelta]

    def is_likely(self, more: timedelta) -> bool:
        """Returns whether the length makes sense, with so much added to the end."""
        lasts = self.end + more - self.start
        return lasts in self.lengths if self.lengths else timedelta() <= lasts <= USUAL


def _pairs_in(timed: Timed, case: DoctorCase) -> Iterator[Pair]:
    lengths: Mapping[str, frozenset[timedelta]] = {}
    if timed.resource == "appointments":
        lengths = {
            kind["id"]: frozenset({timedelta(minutes=kind["durationMinutes"])})
            for kind in case.samples.get("appointmentTypes", ())
            if kind["durationMinutes"] and 0 < kind["durationMinutes"] <= 2 * 24 * 60
        }
    for record in chain.from_iterable(pages(case, timed.resource)):
        if record[timed.start] and record[timed.end]:
            start, end = (datetime.fromisoformat(record[at]) for at in (timed.start, timed.end))
            known = lengths.get(record.get("appointmentTypeId") or "", frozenset())
            yield Pair(record, start, end, known)


async def _pairs(timed: Timed, case: DoctorCase, look: Look) -> None:
    """Looks at the lengths between two times: of one zone, and of a length that is known."""
    place, none = (*look.place[:3], timed.end), timedelta()
    alike = case.law("pairs-read-alike", look, *place)
    lengths = case.law("lengths-of-types", look, *place) if timed.end == "endTime" else None
    parts = [part for part in (alike, lengths) if part is not None]
    could = {case.could_look(part, timed.resource) for part in parts}
    if False in could:
        return
    # how many lengths are likely as they are, and with the end moved by the offset either way
    moved, likely = 0, Counter[int]()
    for pair in _pairs_in(timed, case):
        holds, shown = pair.is_likely(none), pair.record["id"]
        if alike is not None:
            at = {name: pair.record[name] for name in (timed.start, timed.end)}
            alike.take(holds=holds, example=told(pair.record, at), shown=shown)
        if lengths is not None and pair.lengths:
            minutes = {"minutes": int((pair.end - pair.start) / timedelta(minutes=1))}
            lengths.take(holds=holds, example=told(pair.record, minutes), shown=shown)
        if offset := pair.start.astimezone(case.adapter.diary.zone).utcoffset():
            moved += 1
            likely.update(way for way in (-1, 0, 1) if pair.is_likely(way * offset))
    if alike is not None and not alike.too_few(alike.count, ENOUGH):
        await _alike(timed, moved, likely, case, alike)
    if lengths is not None and not lengths.too_few(lengths.count, ENOUGH):
        _as_types(lengths)


def compare_lengths(lengths: Mapping[str, Set[timedelta]], case: DoctorCase, part: LawLook) -> None:
    """Tells how many appointments are as long as one of the lengths of their type."""
    for record in chain.from_iterable(pages(case, "appointments")):
        known = lengths.get(record.get("appointmentTypeId") or "")
        if known and record.get("scheduledAt") and record.get("endTime"):
            start, end = map(datetime.fromisoformat, (record["scheduledAt"], record["endTime"]))
            minutes = {"minutes": int((end - start) / timedelta(minutes=1))}
            example = told(record, minutes)
            part.take(holds=end - start in known, example=example, shown=record["id"])
    if not part.too_few(part.count, ENOUGH):
        _as_types(part)


def _as_types(part: LawLook) -> None:
    share = 1 - part.broken / part.count
    text = f"{share:.0%} of {part.count:,} appointments are as long as their type"
    if share < KNOWN:
        part.breach(text, Verdict.WARNING)
    else:
        part.ok(text)


async def _alike(
    timed: Timed, moved: int, likely: Counter[int], case: DoctorCase, part: LawLook
) -> None:
    """Says so where moving one of the two columns by the zone's offset explains most lengths."""
    text = f"{1 - part.broken / part.count:.0%} of {part.count:,} have a usual length"
    way = max((-1, 1), key=likely.__getitem__)
    best, as_read = (likely[it] / max(1, moved) for it in (way, 0))
    if best < as_read + CLEARLY or best <= FEW:
        part.ok(text)
        return
    # an end that is too late is the clinic's time read as UTC, or its start is UTC read as that
    kinds = (_WALL, "UTC") if way < 0 else ("UTC", _WALL)
    remedies = {_WALL: _AS_LOCAL, "UTC": _AS_UTC}
    names = dict(zip((timed.end, timed.start), kinds, strict=True))
    if blamed := await _blamed(timed, way, case):
        names = {blamed: names[blamed]}
    would = " or ".join(f"{name} were {kind}" for name, kind in names.items())
    remedy = " or ".join(f"of {name} {remedies[kind]}" for name, kind in names.items())
    at_line = (*part.look.place[:3], next(iter(names)))
    part.breach(f"{text}, and {best:.0%} would if {would}", remedy=remedy, place=at_line)


async def _blamed(timed: Timed, way: int, case: DoctorCase) -> str:
    """Returns the field that is read in the wrong zone, by the vets' hours; "" if they cannot say.

    `way` is how its end has to be moved.
    """
    visits = await visits_of(case, timed) if case.adapter.diary.hours else []
    if len(visits) < ENOUGH:
        return ""
    begun = [visit._replace(ends=visit.begins) for visit in visits]
    as_read, moved = (sum(_fits(visit, by, 0) for visit in begun) for by in (0, -way))
    if as_read == moved:
        return ""
    return timed.end if as_read > moved else timed.start


async def _worked(case: DoctorCase, look: Look) -> None:
    """Tells the weekly hours in which no appointment of the last year lies."""
    part = case.law("hours-are-worked", look)
    if part is None or not _could_look(case, part, TIMED[0]):
        return
    visits = await visits_of(case, TIMED[0], until=timedelta())
    expected, seen = Counter[tuple[int, str]](), set[tuple[int, str]]()
    per_vet: dict[str, list[Visit]] = {}
    for visit in visits:
        per_vet.setdefault(visit.record["vetId"], []).append(visit)
    for own in per_vet.values():
        weekly = {name_of(shift): shift for shift in own[0].hours if shift.day is None}
        for name, shift in weekly.items():
            expected[name] += len(own) // max(1, len(weekly))
            of_shift: dict[date | int, list[Shift]] = {shift.weekday: [shift]}
            if any(_in_shifts(of_shift, visit.begins, visit.begins) for visit in own):
                seen.add(name)
    _worked_told(part, expected, seen, len(visits))


def _worked_told(
    part: LawLook, expected: Counter[tuple[int, str]], seen: set[tuple[int, str]], count: int
) -> None:
    """Judges hours by how many appointments they should have if all had equally many."""
    sure = {name for name, many in expected.items() if many >= ENOUGH}
    idle = sorted(sure - seen)
    if idle:
        names = ", ".join(f"{DAYS[day - 1]} {times}" for day, times in idle[:3])
        more = f" and {len(idle) - 3} more" if len(idle) > 3 else ""
        text = f"none of {count:,} appointments of the last year began in {names}{more}"
        part.breach(text, Verdict.WARNING)
    elif sure or (expected.keys() <= seen and expected):
        shifts = counted(len(expected), "shift")
        part.ok(f"{counted(count, 'appointment')} of the last year in {shifts} of a week")
    else:
        part.note(f"{counted(count, 'appointment')} of the last year: too few to tell")


def name_of(shift: Shift) -> tuple[int, str]:
    """Returns the weekday of a shift, and its times in words."""
    return shift.weekday, f"{shift.start:%H:%M}-{shift.end:%H:%M}"
