"""The diary's sources: hours that open nothing, rows that block by mistake, overlaps."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain

from adapters.base import AdapterError, Record
from adapters.doctor.case import CheckStep, DoctorCase
from adapters.doctor.findings import FindingMaker, agreeing, rows, weighed
from adapters.doctor.hours import hours_read, today
from adapters.doctor.values import TOLERABLE
from adapters.documents.document import Place
from adapters.examination import Finding, Verdict
from adapters.mapped.diary import Block, BusySource, HoursSource, SlotsSource
from adapters.mapped.session import Calendar, DiarySpan, HoursRow, Session
from adapters.mapped.slots import Interval
from adapters.mapping.models import Owned
from adapters.values.convert import Unreadable

MINUTE = timedelta(minutes=1)
# What does not block, or no longer.
PAST = frozenset({"CANCELLED", "NO_SHOW", "COMPLETED", None})
# A time of an appointment, and its public id.
Booked = tuple[Interval, str]
# What blocks each vet, by public id, with the appointments that are known to.
Blocks = dict[str, list[tuple[Interval, str | None]]]


def diary(case: DoctorCase, ahead: timedelta) -> Iterator[CheckStep]:
    """Hours, vets, slot rows, what blocks so far ahead, and the appointments to come."""
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
        yield CheckStep("diary", "slots", partial(_slots, case, slots, place, ahead), place)
    blocked: Blocks = {vet: [] for vet in case.vets()}
    for busy in own.busy:
        place = ("diary", "busy", busy.number)
        run = partial(_busy, case, busy, place, ahead, blocked)
        yield CheckStep("diary", "busy", run, place)
    if own.busy and not case.is_lost("resources", "appointments"):
        run_missed = partial(_missed, case, ahead, blocked)
        yield CheckStep("diary", "busy", run_missed, ("diary", "busy"))


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
    said, remedy = case.core.mapping.diary, "name it, unless they are meant for everybody"
    texts: dict[str, tuple[Sequence[Owned], str]] = {
        "hours": (said.hours, "no `vet` here: each row opens every vet's day"),
        "busy": (said.busy, "no `vet` here: each row blocks every vet"),
    }
    for name, (sources, text) in texts.items():
        for number, source in enumerate(sources):
            if source.from_ is None or source.owner is not None or _of_nobody(source, sources):
                continue
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
    for finding in _hours_read(case, source, place, [*chain.from_iterable(read.values())]):
        yield finding


def _hours_read(
    case: DoctorCase, source: HoursSource, place: Place, found: Sequence[HoursRow | None]
) -> Iterator[Finding]:
    named, total = "weekday" if source.hours.weekday else "day", len(found)
    odd = [row for row in found if row is None or not _reads(source, row._replace(**_FINE))]
    bad = [row for row in found if row not in odd and row and not _reads(source, row)]
    if not found:
        yield case.warning("diary", "hours", "no row: nobody works by this source", place)
    remedies = {
        "weekday": "weekday is 1 Monday to 7 Sunday (see `codes`)",
        "": "start and end read HH:MM, day YYYY-MM-DD",
    }
    for name, some in ((named, odd), ("start", bad)):
        if some:
            text = f"{rows(len(some))} of {total:,} cannot be read, and open nothing"
            remedy = remedies.get(name, remedies[""])
            verdict = weighed(len(some), total, most=TOLERABLE)
            yield case.judged(verdict, "diary", "hours", text, (*place, name), remedy=remedy)
    if found and not odd and not bad:
        text = f"{rows(total)} of working hours {agreeing(total, 'are')} read"
        yield case.ok("diary", "hours", text)


# Times that can be read: what is wrong with such a row is its day.
_FINE = {"start": "08:00", "end": "09:00"}


def _reads(source: HoursSource, row: HoursRow) -> bool:
    try:
        source.shift(row)
    except Unreadable:
        return False
    return True


async def _idle(case: DoctorCase, session: Session) -> AsyncIterator[Finding]:
    own = case.core.diary
    shifts = {vet: await own.shifts(session, vet) for vet in case.vets()}
    without = [vet for vet, shown in shifts.items() if not shown]
    for finding in hours_read(case, shifts, today(case.examination.now, own.zone)):
        yield finding
    yield idle(case, without, len(shifts), ("diary", "hours", 0), hopeless=not own.free)


def _span(case: DoctorCase, calendar: Calendar, ahead: timedelta) -> DiarySpan:
    now = case.examination.now
    return DiarySpan(calendar, Interval(now, now + ahead), case.core.diary.default)


async def _slots(
    case: DoctorCase, source: SlotsSource, place: Place, ahead: timedelta, session: Session
) -> AsyncIterator[Finding]:
    case.troubles.clear()
    count = 0
    for calendar in await _calendars(case, session):
        try:
            count += len(await source.read(session, _span(case, calendar, ahead)))
        except AdapterError as error:
            yield case.refused("diary", "slots", place, error, [calendar.vet])
            return
    if case.troubles:
        text = f"{rows(len(case.troubles))} cannot be read, and are free for nobody"
        yield case.failed("diary", "slots", text, (*place, "start"))
    elif not count:
        text = f"no row in {ahead.days} days: nothing is free by this source"
        yield case.warning("diary", "slots", text, place)
    else:
        yield case.ok("diary", "slots", f"{rows(count)} in {ahead.days} days")


async def _busy(
    case: DoctorCase,
    source: BusySource,
    place: Place,
    ahead: timedelta,
    blocked: Blocks,
    session: Session,
) -> AsyncIterator[Finding]:
    case.troubles.clear()
    owner = "schedule" if source.busy.schedule is not None else "vet"
    read: dict[str, list[Block]] = {}
    for calendar in await _calendars(case, session):
        whose = _whose(source.busy, calendar)
        if whose not in read:
            try:
                found = await source.read(session, _span(case, calendar, ahead))
            except AdapterError as error:
                yield case.refused("diary", "busy", place, error, [calendar.vet])
                return
            read[whose] = [block for row in found for block in row]
        blocked[calendar.vet] += [_named(session, block) for block in read[whose]]
    count = sum(map(len, read.values()))
    if case.troubles:
        text = f"{rows(len(case.troubles))} cannot be read, and block whatever they may mean"
        remedy = "say how the times are written (as, pattern, zero), or leave them out in `where`"
        yield case.failed("diary", "busy", text, (*place, "start"), remedy=remedy)
    else:
        text = f"{rows(count)} {agreeing(count, 'block')} the next {ahead.days} days"
        yield case.ok("diary", "busy", f"{text} or a part of them")
    if "" in read and _several(case):
        return  # whose each row is nobody says, so that none need be over another
    likely = ([b for b in blocks if b.is_likely and b.key is not None] for blocks in read.values())
    booked = [[_named(session, block) for block in blocks] for blocks in likely]
    known = [[(time, shown) for time, shown in own if shown is not None] for own in booked]
    for finding in overlaps(case, known, case.examination.now, place, owner):
        yield finding


def _named(session: Session, block: Block) -> tuple[Interval, str | None]:
    return block.interval, None if block.key is None else session.appointment(block.key)


def _missed(
    case: DoctorCase, ahead: timedelta, blocked: Blocks, session: Session
) -> Iterator[Finding]:
    """Whether appointments to come block: what busy does not see is offered again."""
    records = case.records(session, "appointments")
    coming = to_come(records, case.examination.now, ahead)
    known = [each for each in coming if each["vetId"] in blocked]
    by_key = case.core.diary.knows_appointments
    lost = [each["id"] for each in known if not _blocks(each, blocked[each["vetId"]], by_key)]
    return missed(case, lost, len(known))


def _blocks(
    appointment: Record, blocks: Iterable[tuple[Interval, str | None]], by_key: bool
) -> bool:
    begins = datetime.fromisoformat(appointment["scheduledAt"])
    beginning = Interval(begins, begins + MINUTE)
    return any(
        time.overlaps(beginning) and (not by_key or shown == appointment["id"])
        for time, shown in blocks
    )


def to_come(records: Iterable[Record], now: datetime, ahead: timedelta) -> list[Record]:
    """The appointments that begin before so much time has gone by, and still stand."""
    found = []
    for record in records:
        if not record["scheduledAt"] or not record["id"] or record["status"] in PAST:
            continue
        begins = datetime.fromisoformat(record["scheduledAt"])
        if now < begins.astimezone(UTC) < now + ahead:
            found.append(record)
    return found


def overlaps(
    maker: FindingMaker,
    diaries: Iterable[Iterable[Booked]],
    now: datetime,
    place: Place,
    whose: str = "vet",
) -> Iterator[Finding]:
    """Appointments that begin before another one of the same diary has ended.

    `whose` is a diary: a vet, or a schedule.
    """
    over = [each for own in diaries for each in _over(own, now)]
    if over:
        text = f"{len(over)} appointments to come lie over another of the same {whose}"
        remedy = "the desk should part them; or some of them do not block: see `where`"
        yield maker.warning("diary", "overlaps", text, place, ids=over, remedy=remedy)


def _over(own: Iterable[Booked], now: datetime) -> Iterator[str]:
    latest: Booked | None = None
    for time, shown in sorted(own):
        if time.end <= now:
            continue
        # in an hour that comes twice one appointment may be at either time
        if latest is not None and latest[0].overlaps(time) and latest[1] != shown:
            yield shown
        if latest is None or time.end > latest[0].end:
            latest = time, shown


def missed(maker: FindingMaker, ids: Sequence[str], looked: int) -> Iterator[Finding]:
    """What it means that the appointments `ids`, of so many to come, block nothing."""
    if ids:
        text = f"{len(ids)} of {looked} appointments to come block nothing: offered again"
        verdict = weighed(len(ids), looked, most=TOLERABLE)
        remedy, place = "see `where`, `vet` and `start` there", ("diary", "busy")
        yield maker.judged(verdict, "diary", "busy", text, place, ids=ids, remedy=remedy)
    elif looked:
        yield maker.ok("diary", "busy", f"{looked} appointments to come block their time")


def idle(
    maker: FindingMaker, ids: Sequence[str], known: int, place: Place, *, hopeless: bool
) -> Finding:
    """What it means that the vets `ids`, of so many, have no working hours.

    It is `hopeless` where free times come from nothing else.
    """
    if not ids:
        return maker.ok("diary", "vets", f"{known} vets, each with working hours")
    text, verdict = f"{len(ids)} of {known} vets have no working hours", Verdict.WARNING
    if len(ids) == known and hopeless:
        verdict, text = Verdict.FAILED, f"{text}: nothing can be booked"
    remedy = "is `vet` the key of vets?"
    return maker.judged(verdict, "diary", "vets", text, place, remedy=remedy, ids=ids)
