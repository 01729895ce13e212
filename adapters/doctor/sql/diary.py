"""The diary's own rows: hours that open nothing, rows that block by mistake, overlaps."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

from sqlalchemy import Connection

from adapters.base import NotFound, Trouble
from adapters.doctor.diary import Booked, idle, missed, overlaps, to_come
from adapters.doctor.findings import agreeing, rows, weighed
from adapters.doctor.hours import hours_read, today
from adapters.doctor.sql.case import Case, Step
from adapters.doctor.sql.values import every_record, referred_id
from adapters.doctor.values import TOLERABLE
from adapters.documents.document import Place
from adapters.examination import Finding
from adapters.mapped.slots import Interval
from adapters.sql.calendars import Calendar
from adapters.sql.columns import rows_of, sql
from adapters.sql.hours import ShiftRows
from adapters.sql.keyed import KeyedRows
from adapters.sql.mapping import Busy, Hours
from adapters.sql.span_rows import Block, BusyRows
from adapters.values.convert import Unreadable

AHEAD = timedelta(days=90)
MOST_VETS = 50
MOST_APPOINTMENTS = 50
Source = Hours | Busy


def diary(case: Case) -> Iterator[Step]:
    """Hours, vets, what blocks, and the appointments to come."""
    mapping = case.parts.mapping.diary
    for number, hours in enumerate(mapping.hours):
        place: Place = ("diary", "hours", number)
        if hours.from_ is not None and not case.is_lost(*place):
            yield Step(
                "diary", "hours", partial(_hours, case=case, hours=hours, place=place), place
            )
    if case.is_lost("resources", "vets") or case.is_lost("diary"):
        return
    if mapping.hours:
        yield Step("diary", "vets", lambda c: _idle(c, case), ("diary", "hours"))
    yield Step("diary", "vet", lambda c: _everybodys(case))
    for number, busy in enumerate(mapping.busy):
        place = ("diary", "busy", number)
        yield Step("diary", "busy", partial(_busy, case=case, busy=busy, place=place), place)
    if not case.is_lost("resources", "appointments"):
        yield Step("diary", "busy", lambda c: _missed(c, case), ("diary", "busy"))


def vets(case: Case) -> list[tuple[str, Any]]:
    """The first vets, by public id and raw key."""
    found = []
    for record in case.samples.get("vets", [])[:MOST_VETS]:
        try:
            found.append((record["id"], case.parts.readers["vets"].key_of(record["id"] or "")))
        except NotFound:
            continue
    return found


def _everybodys(case: Case) -> Iterator[Finding]:
    """The sources whose rows count for every vet, as they name none."""
    if not _several(case):
        return
    mapping, remedy = case.parts.mapping.diary, "name it, unless they are meant for everybody"
    said: dict[str, tuple[Sequence[Source], str]] = {
        "hours": (mapping.hours, "no `vet` here: each row opens every vet's day"),
        "busy": (mapping.busy, "no `vet` here: each row blocks every vet"),
    }
    for name, (sources, text) in said.items():
        for number, each in enumerate(sources):
            if each.from_ is None or each.vet is not None or each.schedule is not None:
                continue
            if not _of_nobody(each, sources):
                yield case.warning("diary", name, text, ("diary", name, number), remedy=remedy)


def _of_nobody(source: Source, sources: Sequence[Source]) -> bool:
    """Whether `where` takes those rows that have no vet, of which another source has the others."""
    beside = {each.vet for each in sources if each.from_ == source.from_ and each.vet is not None}
    where = " ".join((source.where or "").lower().split())
    return any(f"{vet.lower()} is null" in where for vet in beside)


def _several(case: Case) -> bool:
    return len(case.samples.get("vets", [])) > 1


def _hours(connection: Connection, case: Case, hours: Hours, place: Place) -> Iterator[Finding]:
    columns = (hours.weekday or hours.day, hours.start, hours.end)
    source = ShiftRows(hours, frozenset(), lambda trouble: None)
    found = list(connection.execute(rows_of(hours.rows, *(sql(e or "NULL") for e in columns))))
    bad = {"when": 0, "times": 0}
    for when, start, end in found:
        if not _reads(source, when, "08:00", "09:00"):
            bad["when"] += 1
        elif not _reads(source, when, start, end):
            bad["times"] += 1
    if not found:
        yield case.warning("diary", "hours", "no row: nobody works by this source", place)
    named = {"when": "weekday" if hours.weekday else "day", "times": "start"}
    for kind, count in bad.items():
        if count:
            text = f"{rows(count)} of {len(found):,} cannot be read, and open nothing"
            remedy = "weekday is 1 Monday to 7 Sunday" if kind == "when" and hours.weekday else ""
            verdict = weighed(count, len(found), most=TOLERABLE)
            yield case.judged(
                verdict,
                "diary",
                "hours",
                text,
                (*place, named[kind]),
                remedy=remedy or "start and end read HH:MM, day YYYY-MM-DD",
            )
    if found and not any(bad.values()):
        yield case.ok(
            "diary",
            "hours",
            f"{rows(len(found))} of working hours {agreeing(len(found), 'are')} read",
        )


def _reads(source: ShiftRows, when: Any, start: Any, end: Any) -> bool:
    try:
        source.shift(when, start, end)
    except (TypeError, ValueError, OverflowError, Unreadable):
        return False
    return True


def _idle(connection: Connection, case: Case) -> Iterator[Finding]:
    known = vets(case)
    shifts = {shown: case.parts.openings.shifts(connection, key) for shown, key in known}
    without = [shown for shown, own in shifts.items() if not own]
    hopeless = not case.parts.mapping.diary.slots
    yield from hours_read(case, shifts, today(case.examination.now, case.parts.converters.zone))
    yield idle(case, without, len(known), ("diary", "hours", 0), hopeless=hopeless)


def _busy(connection: Connection, case: Case, busy: Busy, place: Place) -> Iterator[Finding]:
    troubles: list[Trouble] = []
    parts, now = case.parts, case.examination.now
    source = BusyRows(
        busy, parts.converters, parts.mapping.diary.duration, troubles.append, parts.engine.speech
    )
    window = Interval(now, now + AHEAD)
    blocks = [
        [each for row in source.read(connection, calendar, window) for each in row]
        for calendar in _calendars(connection, case, busy)
    ]
    count = sum(map(len, blocks))
    if troubles:
        text = f"{rows(len(troubles))} cannot be read, and block whatever they may mean"
        remedy = "say how the times are written (as, pattern, zero), or leave them out in `where`"
        yield case.failed("diary", "busy", text, (*place, "start"), remedy=remedy)
    else:
        block = agreeing(count, "block")
        text = f"{rows(count)} {block} the next {AHEAD.days} days or a part of them"
        yield case.ok("diary", "busy", text)
    if busy.vet is None and busy.schedule is None and _several(case):
        return  # whose each row is nobody says, so that none need be over another
    table = parts.readers["appointments"].table
    booked = [[*_booked(own, table)] for own in blocks]
    whose = "vet" if busy.schedule is None else "schedule"
    yield from overlaps(case, booked, now, place, whose)


def _calendars(connection: Connection, case: Case, busy: Busy) -> list[Calendar]:
    """Those whose rows a source has; what is nobody's own is looked at once."""
    of = case.parts.openings.calendars
    found = [each for _, key in vets(case) for each in of(connection, key)]
    if busy.schedule is not None:
        return list({str(each.schedule): each for each in found}.values())
    if busy.vet is not None:
        return list({str(each.vet): each for each in found}.values())
    return found[:1]


def _booked(blocks: Sequence[Block], table: KeyedRows) -> Iterator[Booked]:
    """Those blocks that are appointments."""
    for each in blocks:
        shown = None if each.key is None else referred_id(table, each.key)
        if shown is not None and each.is_likely:
            yield each.interval, shown


def _missed(connection: Connection, case: Case) -> Iterator[Finding]:
    """Whether appointments to come block: what busy does not see is offered again."""
    known = dict(vets(case))
    reader, lost, looked = case.parts.readers["appointments"], [], 0
    records = chain.from_iterable(every_record(connection, case, "appointments"))
    coming = to_come(records, case.examination.now, AHEAD)
    for record in coming[:MOST_APPOINTMENTS]:
        if record["vetId"] not in known:
            continue
        looked += 1
        begins = datetime.fromisoformat(record["scheduledAt"])
        window = Interval(begins, begins + timedelta(minutes=1))
        found = case.parts.openings.blocks(connection, known[record["vetId"]], window)
        own = reader.value_of(reader.key_of(record["id"]))
        if not any(
            b.key is not None and reader.value_of(b.key) == own and b.interval.overlaps(window)
            for b in found
        ):
            lost.append(record["id"])
    yield from missed(case, lost, looked)
