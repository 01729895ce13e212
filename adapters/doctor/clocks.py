"""Clocks that differ, and times that have not come yet."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from adapters.base import Record
from adapters.doctor.case import CheckStep, DoctorCase
from adapters.doctor.findings import MOST_IDS, FindingMaker, agreeing, rows
from adapters.examination import Finding
from adapters.mapped.session import Session
from adapters.values.convert import Converter
from adapters.values.times import UtcTime

# A clock that differs by more seconds is wrong.
APART = 60.0
# What is written now may be a little ahead.
ROOM = timedelta(minutes=2)
WRITTEN = ("createdAt", "updatedAt", "startedAt", "validatedAt")


def newest(case: DoctorCase) -> Iterator[CheckStep]:
    """One look at each resource's newest times."""
    for name in case.core.mapping.resources:
        for field in WRITTEN:
            if not case.is_lost("resources", name) and case.converter(name, field) is not None:
                run = partial(_newest, case, name, field)
                yield CheckStep("clock", f"{name}.{field}", run)


def _newest(case: DoctorCase, name: str, field: str, session: Session) -> Iterator[Finding]:
    zone, now = case.core.diary.zone, case.examination.now
    records, converter = case.records(session, name), case.converter(name, field)
    return future(case, (name, field), records, converter, zone, now)


def beside(maker: FindingMaker, apart: float, said: str) -> Finding:
    """The server's clock, so many seconds ahead of this machine's; `said` is told besides."""
    also = f"; {said}" if said else ""
    if abs(apart) <= APART:
        return maker.ok("clock", "server", f"it agrees with this machine's{also}")
    way = "ahead of" if apart > 0 else "behind"
    text = f"its clock is {abs(apart):.0f} s {way} this machine's{also}"
    return maker.warning("clock", "server", text, remedy="set one of them by the network's time")


def future(
    maker: FindingMaker,
    subject: tuple[str, str],
    records: Iterable[Record],
    converter: Converter,
    zone: ZoneInfo,
    now: datetime,
) -> Iterator[Finding]:
    """Times of a resource's field that should be past, and are not."""
    resource, name = subject
    count, ahead, furthest = 0, 0, timedelta()
    ids: list[str] = []
    for each in records:
        if not each[name]:
            continue
        count += 1
        further = datetime.fromisoformat(each[name]) - now
        if further > ROOM:
            ahead, furthest = ahead + 1, max(furthest, further)
            ids += [each["id"]] if each["id"] and len(ids) < MOST_IDS else []
    if not ahead:
        return
    place = ("resources", resource, "fields", name)
    text = f"{rows(ahead)} of {count:,} {agreeing(ahead, 'lie')} in the future"
    offset = now.astimezone(zone).utcoffset() or timedelta()
    if isinstance(converter, UtcTime) and furthest <= offset:
        text += (
            ", by no more than the clinic's zone: they look like local time, but are read as UTC"
        )
        remedy = "write `as: local time`"
        yield maker.failed("clock", f"{resource}.{name}", text, place, ids=ids, remedy=remedy)
    else:
        yield maker.warning("clock", f"{resource}.{name}", text, place, ids=ids)
