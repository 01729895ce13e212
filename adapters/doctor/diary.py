"""The diary's sources: hours that open nothing, rows that block by mistake, overlaps."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import chain, groupby

from adapters.base import AdapterError, Record
from adapters.doctor.case import CheckStep, DoctorCase, FindingMaker, agreeing, counted, weighed
from adapters.doctor.values import TOLERABLE
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict
from adapters.mapped.diary import Block, BusySource, HoursSource, SlotsSource
from adapters.mapped.session import Calendar, DiarySpan, HoursRow, Session
from adapters.mapped.slots import Interval
from adapters.mapping.hours import Shift
from adapters.mapping.models import Owned
from adapters.values.convert import Unreadable

MINUTE = timedelta(minutes=1)
# What does not block, or no longer.
PAST = frozenset({"CANCELLED", "NO_SHOW", "COMPLETED", None})
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WEEK = range(1, 8)
# So many different weeks, and so many days with hours of their own, are told.
MOST_WEEKS, MOST_DAYS = 12, 7
# Times that can be read: what is wrong with such a row is its day.
_FINE = {"start": "08:00", "end": "09:00"}
# A time that is taken, and the public id of its appointment, where it is known to be one.
Taken = tuple[Interval, str | None]
# What blocks each vet, by public id.
Blocks = dict[str, list[Taken]]


def diary(case: DoctorCase) -> Iterator[CheckStep]:
    """Hours, vets, slot rows, what blocks, and the appointments to come."""
    if case.is_lost("resources", "vets") or case.is_lost("diary"):
        return
    own = case.core.diary
    for hours in own.hours:
        place: Place = ("diary", "hours", hours.number)
        if hours.hours.is_rows and not case.is_lost(*place):
            yield CheckStep("diary", "hours", partial(_hours, case, hours, place), place)
    if own.hours:
        yield CheckStep("diary", "vets", partial(_idle, case), ("diary", "hours"))
    yield CheckStep("diary", "vet", lambda _: _everybodys(case))
    for slots in own.free:
        place = ("diary", "slots", slots.number)
        yield CheckStep("diary", "slots", partial(_slots, case, slots, place), place)
    blocked: Blocks = {vet: [] for vet in case.vets()}
    for busy in own.busy:
        place = ("diary", "busy", busy.number)
        yield CheckStep("diary", "busy", partial(_busy, case, busy, place, blocked), place)
    if own.busy and not case.is_lost("resources", "appointments"):
        yield CheckStep("diary", "busy", partial(_missed, case, blocked), ("diary", "busy"))


async def _calendars(case: DoctorCase, session: Session) -> list[Calendar]:
    own = case.core.diary
    return [each for vet in case.vets() for each in await own.calendars(session, vet)]


def _whose(rows: Owned, calendar: Calendar) -> str:
    """Whose rows they are, so that they are read once; "" where nobody says it."""
    if rows.schedule is not None:
        return str(calendar.schedule)
    return calendar.vet if rows.vet is not None or rows.get is not None else ""


def _everybodys(case: DoctorCase) -> Iterator[Finding]:
    """The sources whose rows count for every vet, as they name none."""
    if not _several(case):
        return
    mapped, remedy = case.core.mapping.diary, "name it, unless they are meant for everybody"
    texts: dict[str, tuple[Sequence[Owned], str]] = {
        "hours": (mapped.hours, "no `vet` here: each row opens every vet's day"),
        "busy": (mapped.busy, "no `vet` here: each row blocks every vet"),
    }
    for name, (sources, text) in texts.items():
        for number, source in enumerate(sources):
            named = source.from_ is None or source.owner is not None
            if not named and not _of_nobody(source, sources):
                yield case.warning("diary", name, text, ("diary", name, number), remedy=remedy)


def _of_nobody(source: Owned, sources: Sequence[Owned]) -> bool:
    """Whether `where` takes those rows that have no vet, of which another source has the others."""
    beside = {each.vet.text for each in sources if each.from_ == source.from_ and each.vet}
    where = " ".join((source.where or "").lower().split())
    return any(f"{vet.lower()} is null" in where for vet in beside)


def _several(case: DoctorCase) -> bool:
    return len(case.samples.get("vets", [])) > 1


async def _hours(
    case: DoctorCase, source: HoursSource, place: Place, session: Session
) -> AsyncIterator[Finding]:
    read: dict[str, Sequence[HoursRow | None]] = {}
    for calendar in await _calendars(case, session):
        whose = _whose(source.hours, calendar)
        try:
            if whose not in read:
                read[whose] = await session.hours(source.number, calendar)
        except AdapterError as error:
            yield case.refused("diary", "hours", place, error, [calendar.vet])
            return
    for finding in _rows_read(case, source, place, [*chain.from_iterable(read.values())]):
        yield finding


def _rows_read(
    case: DoctorCase, source: HoursSource, place: Place, rows: Sequence[HoursRow | None]
) -> Iterator[Finding]:
    odd = [row for row in rows if row is None or not _reads(source, row._replace(**_FINE))]
    bad = [row for row in rows if row not in odd and row and not _reads(source, row)]
    if not rows:
        yield case.warning("diary", "hours", "no row: nobody works by this source", place)
    elif not odd and not bad:
        text = f"{counted(len(rows), 'row')} of working hours {agreeing(len(rows), 'are')} read"
        yield case.ok("diary", "hours", text)
    named = "weekday" if source.hours.weekday else "day"
    for name, some in ((named, odd), ("start", bad)):
        if some:
            text = f"{counted(len(some), 'row')} of {len(rows):,} cannot be read, and open nothing"
            remedy = "start and end read HH:MM, day YYYY-MM-DD"
            if name == "weekday":
                remedy = "weekday is 1 Monday to 7 Sunday (see `codes`)"
            verdict = weighed(len(some), len(rows), most=TOLERABLE)
            yield case.judged(verdict, "diary", "hours", text, (*place, name), remedy=remedy)


def _reads(source: HoursSource, row: HoursRow) -> bool:
    try:
        source.shift(row)
    except Unreadable:
        return False
    return True


async def _idle(case: DoctorCase, session: Session) -> AsyncIterator[Finding]:
    """The hours as they were read, and vets without any."""
    own = case.core.diary
    shifts = {vet: await own.shifts(session, vet) for vet in case.vets()}
    for finding in hours_read(case, shifts, case.examination.now.astimezone(own.zone).date()):
        yield finding
    idle, known = [vet for vet, shown in shifts.items() if not shown], len(shifts)
    if not idle:
        yield case.ok("diary", "vets", f"{known} vets, each with working hours")
        return
    text, verdict = f"{len(idle)} of {known} vets have no working hours", Verdict.WARNING
    if len(idle) == known and not own.free:
        verdict, text = Verdict.FAILED, f"{text}: nothing can be booked"
    place, remedy = ("diary", "hours", 0), "is `vet` the key of vets?"
    yield case.judged(verdict, "diary", "vets", text, place, remedy=remedy, ids=idle)


def hours_read(
    maker: FindingMaker, shifts: Mapping[str, Sequence[Shift]], day: date
) -> Iterator[Finding]:
    """The hours of vets by their public ids, those of the same hours together."""
    alike: dict[str, list[str]] = {}
    for vet, own in shifts.items():
        if own:
            alike.setdefault(said(own, day), []).append(vet)
    for text, vets in list(alike.items())[:MOST_WEEKS]:
        yield maker.ok("diary", "hours", f"{counted(len(vets), 'vet')}: {text}", ids=vets)
    if len(alike) > MOST_WEEKS:
        yield maker.ok("diary", "hours", f"and {len(alike) - MOST_WEEKS} other weeks of hours")


def said(shifts: Sequence[Shift], first: date) -> str:
    """`Mon-Fri 09:00-17:00; Sat 09:00-12:00`; hours of one day with their date."""
    weekly = {
        day: _times(shift for shift in shifts if shift.day is None and shift.weekday == day)
        for day in _WEEK
    }
    parts = []
    for times, alike in groupby(_WEEK, weekly.__getitem__):
        if times:
            days = [DAYS[day - 1] for day in alike]
            parts.append(f"{'-'.join(dict.fromkeys((days[0], days[-1])))} {times}")
    dates = sorted({shift.day for shift in shifts if shift.day and shift.day >= first})
    for day in dates[:MOST_DAYS]:
        times = _times(shift for shift in shifts if shift.day == day)
        parts.append(f"{DAYS[day.weekday()]} {day.isoformat()} {times}")
    if len(dates) > MOST_DAYS:
        parts.append(f"and {len(dates) - MOST_DAYS} later days")
    return "; ".join(parts) or f"no day from {first.isoformat()} on"


def _times(shifts: Iterable[Shift]) -> str:
    spans = sorted({(shift.start, shift.end) for shift in shifts})
    ends = ("24:00" if end == time() else f"{end:%H:%M}" for _, end in spans)
    return ", ".join(f"{start:%H:%M}-{end}" for (start, _), end in zip(spans, ends, strict=True))


def _span(case: DoctorCase, calendar: Calendar) -> DiarySpan:
    now = case.examination.now
    return DiarySpan(calendar, Interval(now, now + case.ahead), case.core.diary.default)


async def _slots(
    case: DoctorCase, source: SlotsSource, place: Place, session: Session
) -> AsyncIterator[Finding]:
    case.troubles.clear()
    count = 0
    for calendar in await _calendars(case, session):
        try:
            count += len(await source.read(session, _span(case, calendar)))
        except AdapterError as error:
            yield case.refused("diary", "slots", place, error, [calendar.vet])
            return
    if case.troubles:
        text = f"{counted(len(case.troubles), 'row')} cannot be read, and are free for nobody"
        yield case.failed("diary", "slots", text, (*place, "start"))
    elif not count:
        text = f"no row in {case.ahead.days} days: nothing is free by this source"
        yield case.warning("diary", "slots", text, place)
    else:
        yield case.ok("diary", "slots", f"{counted(count, 'row')} in {case.ahead.days} days")


async def _busy(
    case: DoctorCase, source: BusySource, place: Place, blocked: Blocks, session: Session
) -> AsyncIterator[Finding]:
    case.troubles.clear()
    read: dict[str, list[Block]] = {}
    for calendar in await _calendars(case, session):
        whose = _whose(source.busy, calendar)
        if whose not in read:
            try:
                found = await source.read(session, _span(case, calendar))
            except AdapterError as error:
                yield case.refused("diary", "busy", place, error, [calendar.vet])
                return
            read[whose] = [block for row in found for block in row]
        blocked[calendar.vet] += [_taken(session, block) for block in read[whose]]
    count = sum(map(len, read.values()))
    if case.troubles:
        rows = counted(len(case.troubles), "row")
        text = f"{rows} cannot be read, and block whatever they may mean"
        remedy = "say how the times are written (as, pattern, zero), or leave them out in `where`"
        yield case.failed("diary", "busy", text, (*place, "start"), remedy=remedy)
    else:
        text = f"{counted(count, 'row')} {agreeing(count, 'block')} the next {case.ahead.days} days"
        yield case.ok("diary", "busy", f"{text} or a part of them")
    if "" in read and _several(case):
        return  # whose each row is nobody says, so that none need be over another
    over: list[str] = []
    for blocks in read.values():
        booked = [_taken(session, block) for block in blocks if block.is_likely]
        over += _over(booked, case.examination.now)
    if over:
        owner = "schedule" if source.busy.schedule is not None else "vet"
        text = f"{len(over)} appointments to come lie over another of the same {owner}"
        remedy = "the desk should part them; or some of them do not block: see `where`"
        yield case.warning("diary", "overlaps", text, place, ids=over, remedy=remedy)


def _taken(session: Session, block: Block) -> Taken:
    return block.interval, None if block.key is None else session.appointment(block.key)


def _over(booked: Iterable[Taken], now: datetime) -> Iterator[str]:
    """Those appointments to come that begin before another one of the same diary has ended."""
    latest: tuple[Interval, str] | None = None
    known = ((taken, shown) for taken, shown in booked if shown is not None)
    for taken, shown in sorted(known):
        if taken.end <= now:
            continue
        # in an hour that comes twice one appointment may be at either time
        if latest is not None and latest[0].overlaps(taken) and latest[1] != shown:
            yield shown
        if latest is None or taken.end > latest[0].end:
            latest = taken, shown


def _missed(case: DoctorCase, blocked: Blocks, session: Session) -> Iterator[Finding]:
    """Whether appointments to come block: what busy does not see is offered again."""
    records = case.records(session, "appointments")
    known = [each for each in records if each["vetId"] in blocked and _is_to_come(case, each)]
    by_key = case.core.diary.knows_appointments
    lost = [each["id"] for each in known if not _blocks(each, blocked[each["vetId"]], by_key)]
    if lost:
        text = f"{len(lost)} of {len(known)} appointments to come block nothing: offered again"
        verdict = weighed(len(lost), len(known), most=TOLERABLE)
        remedy, place = "see `where`, `vet` and `start` there", ("diary", "busy")
        yield case.judged(verdict, "diary", "busy", text, place, ids=lost, remedy=remedy)
    elif known:
        yield case.ok("diary", "busy", f"{len(known)} appointments to come block their time")


def _is_to_come(case: DoctorCase, record: Record) -> bool:
    """Whether an appointment begins within the time that is looked at, and still stands."""
    if not record["scheduledAt"] or not record["id"] or record["status"] in PAST:
        return False
    begins = datetime.fromisoformat(record["scheduledAt"]).astimezone(UTC)
    return case.examination.now < begins < case.examination.now + case.ahead


def _blocks(appointment: Record, blocks: Iterable[Taken], by_key: bool) -> bool:
    begins = datetime.fromisoformat(appointment["scheduledAt"])
    beginning = Interval(begins, begins + MINUTE)
    return any(
        taken.overlaps(beginning) and (not by_key or shown == appointment["id"])
        for taken, shown in blocks
    )
