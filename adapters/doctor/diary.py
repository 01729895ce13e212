"""Looks at the diary: hours that open nothing, false blocks, overlaps."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from itertools import chain, groupby
from typing import Any

from adapters.base import AdapterError, Record
from adapters.doctor.case import DoctorCase, Look
from adapters.doctor.laws.blocks import (
    FreeRows,
    Seen,
    SourceBlocks,
    block_laws,
    cause,
    free_laws,
)
from adapters.doctor.laws.calendars import lengths_judged, rows_judged
from adapters.doctor.laws.hours import DAYS, NOT_HELD, TIMED, times_of
from adapters.doctor.schedules import schedules
from adapters.examination import Verdict, agreeing, counted, weighed
from adapters.mapped.diary import BusySource, HoursSource, SlotsSource
from adapters.mapped.session import DiarySpan
from adapters.mapped.slots import Interval
from adapters.mapping.hours import Shift
from adapters.mapping.models import Owned

Source = HoursSource | SlotsSource | BusySource
# A source's rows by their owner, "" where none is named, and the vets that they count for.
SourceRows = dict[str, tuple[list[str], Sequence[Any]]]
# Statuses of appointments that do not block their time any more.
PAST = NOT_HELD | {"COMPLETED", None}
# How many different weeks, and days with hours of their own, are told.
MOST_WEEKS, MOST_DAYS = 12, 7
# Readable times: what cannot be read with these has an unreadable day.
_FINE = {"start": "08:00", "end": "09:00"}
# A taken time, and the public id of its appointment where it is known to be one.
Taken = tuple[Interval, str | None]
# What blocks each vet, by public id.
Blocks = dict[str, list[Taken]]


def diary(case: DoctorCase) -> Iterator[Look]:
    """Yields looks at hours, slot rows, vets, what blocks, and appointments past and to come."""
    own = case.adapter.diary
    if case.is_lost("resources", "vets") or case.is_lost("diary"):
        return
    yield from schedules(case)
    in_rows = [source for source in own.hours if source.hours.is_rows]
    yield from _of_each(case, "hours", in_rows, _hours)
    offered, rows = set[str](), FreeRows()
    yield from _of_each(case, "slots", own.free, partial(_slots, offered, rows))
    for source in own.free:
        if case.are_appointments(source.rows):
            run = partial(free_laws, rows, source.number)
            place = ("resources", "appointments", "where")
            yield case.look("laws", "slots", run, *place)
    if own.hours:
        yield case.look("diary", "vets", partial(_weeks, offered), "diary", "hours")
    yield _everybodys(case)
    yield _beyond(case)
    blocked: Blocks = {vet: [] for vet in case.vets()}
    seen = Seen()
    yield from _of_each(case, "busy", own.busy, partial(_busy, blocked, seen))
    if own.busy and not case.is_lost("resources", "appointments"):
        yield case.look("diary", "busy", partial(_missed, blocked, seen), "diary", "busy")
        yield case.look("laws", "busy", partial(block_laws, seen), "diary", "busy")


def _of_each(
    case: DoctorCase, kind: str, sources: Iterable[Source], tell: Callable[..., None]
) -> Iterator[Look]:
    for source in sources:
        yield case.look("diary", kind, partial(_read, source, tell), "diary", kind, source.number)


async def _read(source: Source, tell: Callable[..., None], case: DoctorCase, look: Look) -> None:
    """Reads the rows of a source for each vet, and lets `tell` judge them."""
    case.troubles.clear()  # rows that cannot be read are noted there from now on
    now, rows = case.examination.now, SourceRows()
    window, lasts = Interval(now, now + case.ahead), case.adapter.diary.default
    owned: Owned = source.hours if isinstance(source, HoursSource) else source.rows
    is_own = owned.vet is not None or bool(owned.method)
    for vet in case.vets():
        for calendar in await case.adapter.diary.calendars(case.session, vet):
            owner = str(calendar.schedule) if owned.schedule is not None else vet if is_own else ""
            try:
                if owner in rows:
                    pass
                elif isinstance(source, HoursSource):
                    rows[owner] = [], await case.session.hours(source.number, calendar)
                else:
                    span = DiarySpan(calendar, window, lasts)
                    rows[owner] = [], await source.read(case.session, span)
            except AdapterError as error:
                case.refused(look, error, vet)
                return
            rows[owner][0].append(vet)
    tell(source, rows, case, look)


def _everybodys(case: DoctorCase) -> Look:
    """Returns a look at the sources whose rows count for every vet, as they name none."""
    look, mapped = case.look("diary", "vet"), case.adapter.mapping.diary
    for kind, what in (("hours", "opens every vet's day"), ("busy", "blocks every vet")):
        sources: Sequence[Owned] = getattr(mapped, kind) if case.has_several_vets else ()
        for number, source in enumerate(sources):
            if source.from_ is None or source.owner is not None:
                continue
            # `where` may choose the rows without a vet, while another source has the others
            where = " ".join((source.where or "").lower().split())
            vets = [s.vet.text for s in sources if s.from_ == source.from_ and s.vet]
            if any(f"{vet.lower()} is null" in where for vet in vets):
                continue
            verdict, text = Verdict.WARNING, f"no `vet` here: each row {what}"
            remedy = "name it, unless they are meant for everybody"
            if kind == "busy" and getattr(source, "key", None) is None:  # they are no appointments
                verdict, text = Verdict.NOTE, f"{text}, as closed days do"
                remedy = "leave it so where that is meant; name `vet` where a row is of one vet"
            look.judge(verdict, text, "diary", kind, number, subject=kind, remedy=remedy)
    return look


def _beyond(case: DoctorCase) -> Look:
    """Returns a look at the vets whose diary is not looked at, as there are too many."""
    look, most, every = case.look("diary", "beyond"), len(case.vets()), len(case.every_vet())
    if most < every:
        text = f"of {every} vets the diary of the first {most} was looked at"
        look.warning(text, remedy="look at all of them: --all")
    return look


def _hours(source: HoursSource, read: SourceRows, case: DoctorCase, look: Look) -> None:
    rows = [row for _, some in read.values() for row in some]
    read_one = partial(case.adapter.diary.tried, "hours", source.shifts_in)
    odd = [row for row in rows if row is None or read_one(row._replace(**_FINE)) is None]
    bad = [row for row in rows if row not in odd and row and read_one(row) is None]
    if not rows:
        look.warning("no row: nobody works by this source")
    elif not odd and not bad:
        look.ok(f"{counted(len(rows), 'row')} of working hours {agreeing(len(rows), 'are')} read")
    for name, some in (("weekday" if source.hours.weekday else "day", odd), ("start", bad)):
        if some:
            text = f"{counted(len(some), 'row')} of {len(rows):,} cannot be read, and open nothing"
            remedy = "start and end read HH:MM, day YYYY-MM-DD"
            if name == "weekday":
                remedy = "weekday is 1 Monday to 7 Sunday (see `codes`)"
            look.judge(weighed(len(some), len(rows)), text, name, remedy=remedy)


async def _weeks(offered: set[str], case: DoctorCase, look: Look) -> None:
    """Tells the hours as they were read, and the vets without any, and without slot rows."""
    own = case.adapter.diary
    shifts = {vet: await own.shifts(case.session, vet) for vet in case.vets()}
    hours_told(look, shifts, case.examination.now.astimezone(own.zone).date())
    idle = [vet for vet, own_ in shifts.items() if not own_ and vet not in offered]
    known, else_ = len(shifts), " or slot rows" if own.free else ""
    first = "the first " if known < len(case.every_vet()) else ""
    text = f"{len(idle)} of {first}{known} vets have no working hours{else_}"
    remedy = "is `vet` the key of vets?"
    if not idle:
        look.ok(f"{first}{known} vets, each with working hours{else_}")
    elif len(idle) == known and not own.free:
        look.failed(f"{text}: nothing can be booked", 0, remedy=remedy, ids=idle)
    else:
        look.warning(text, 0, remedy=remedy, ids=idle)


def hours_told(look: Look, shifts: Mapping[str, Sequence[Shift]], day: date) -> None:
    """Tells the hours of vets by public id; vets with equal hours are told together."""
    alike: dict[str, list[str]] = {}
    for vet, own in shifts.items():
        if own:
            alike.setdefault(week_in_words(own, day), []).append(vet)
    for text, vets in list(alike.items())[:MOST_WEEKS]:
        look.ok(f"{counted(len(vets), 'vet')}: {text}", subject="hours", ids=vets)
    if len(alike) > MOST_WEEKS:
        look.ok(f"and {len(alike) - MOST_WEEKS} other weeks of hours", subject="hours")


def week_in_words(shifts: Sequence[Shift], first: date) -> str:
    """Returns `Mon-Fri 09:00-17:00; Sat 09:00-12:00`; hours of one day have their date."""
    parts = []
    weekly = [
        _times(shift for shift in shifts if shift.day is None and shift.weekday == day)
        for day in range(1, 8)
    ]
    for times, alike in groupby(range(7), weekly.__getitem__):
        if times:
            days = [DAYS[day] for day in alike]
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
    return ", ".join(
        f"{start:%H:%M}-{'24:00' if end == time() else f'{end:%H:%M}'}" for start, end in spans
    )


def _slots(
    offered: set[str],
    free: FreeRows,
    source: SlotsSource,
    read: SourceRows,
    case: DoctorCase,
    look: Look,
) -> None:
    """Judges slot rows, and adds the vets that have some to those `offered`."""
    offered.update(vet for vets, rows in read.values() if rows for vet in vets)
    free[source.number] = {offer.slot for _, rows in read.values() for offer in rows}
    count = sum(len(rows) for _, rows in read.values())
    if case.troubles:
        rows = counted(len(case.troubles), "row")
        look.failed(f"{rows} cannot be read, and are free for nobody", "start")
    elif not count:
        look.warning(f"no row in {case.ahead.days} days: nothing is free by this source")
    else:
        look.ok(f"{counted(count, 'row')} in {case.ahead.days} days")


def _busy(
    blocked: Blocks, seen: Seen, source: BusySource, read: SourceRows, case: DoctorCase, look: Look
) -> None:
    count, over, named = 0, list[str](), SourceBlocks(source)
    for vets, rows in read.values():
        blocks = list(chain.from_iterable(rows))
        shown = [None if it.key is None else case.session.appointment(it.key) for it in blocks]
        taken = [(it.interval, of) for it, of in zip(blocks, shown, strict=True)]
        count += len(taken)
        for vet in vets:
            blocked[vet] += taken
            named.take(taken, vet)
        named.keys |= {of: it.key for it, of in zip(blocks, shown, strict=True) if of is not None}
        likely = (each for each, it in zip(taken, blocks, strict=True) if it.is_likely)
        over += _over(likely, case.examination.now)
    if source.is_keyed:
        seen[source.number] = named
    if case.troubles:
        text = f"{counted(len(case.troubles), 'row')} cannot be read,"
        text += " and block whatever they may mean"
        remedy = "say how the times are written (as, pattern, zero), or leave them out in `where`"
        look.failed(text, "start", remedy=remedy)
    else:
        ahead = f"the next {case.ahead.days} days or a part of them"
        look.ok(f"{counted(count, 'row', 'block')} {ahead}")
    rows_judged(source, count, case, look)
    lengths_judged(source, chain.from_iterable(rows for _, rows in read.values()), case, look)
    # rows without an owner may belong to different vets
    if over and not ("" in read and case.has_several_vets):
        owner = "schedule" if source.rows.schedule is not None else "vet"
        text = f"{len(over)} appointments to come lie over another of the same {owner}"
        remedy = "the desk should part them; or some of them do not block: see `where`"
        look.warning(text, subject="overlaps", ids=over, remedy=remedy)


def _over(booked: Iterable[Taken], now: datetime) -> Iterator[str]:
    """Yields the ids of coming appointments that begin before an earlier one has ended."""
    latest: tuple[Interval, str] | None = None
    known = ((taken, shown) for taken, shown in booked if shown is not None)
    for taken, shown in sorted(known):
        if taken.end <= now:
            continue
        # in an hour that comes twice, one appointment may appear at both times
        if latest is not None and latest[0].overlaps(taken) and latest[1] != shown:
            yield shown
        if latest is None or taken.end > latest[0].end:
            latest = taken, shown


async def _missed(blocked: Blocks, seen: Seen, case: DoctorCase, look: Look) -> None:
    """Tells whether coming appointments block their time; else it would be offered again."""
    now, by_key = case.examination.now, case.adapter.diary.knows_appointments
    known, lost = 0, list[Record]()
    for record, begins in times_of(case, TIMED[0], now, now + case.ahead, PAST):
        shown, blocks = record["id"], blocked.get(record["vetId"])
        if blocks is None or not shown:
            continue
        known += 1
        beginning = Interval(begins, begins + timedelta(minutes=1))
        intervals = (taken for taken, other in blocks if not by_key or other == shown)
        if not any(taken.overlaps(beginning) for taken in intervals):
            lost.append(record)
    if lost:
        text = f"{len(lost)} of {known} appointments to come block nothing: offered again"
        verdict, ids = weighed(len(lost), known), [record["id"] for record in lost]
        place, remedy = cause(seen, lost)
        look.judge(verdict, text, place=place, ids=ids, remedy=remedy)
    elif known:
        look.ok(f"{known} appointments to come block their time")
