"""Looks at schedules that cannot be read, and at types that no schedule offers."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, product
from typing import Any

from adapters.base import NotFound
from adapters.doctor.case import DoctorCase, Look
from adapters.doctor.values import LONGEST_CODE
from adapters.examination import agreeing, counted
from adapters.mapped.session import Calendar, ScheduleRow
from adapters.mapped.spans import grid, lasting
from adapters.values.convert import Unreadable

# How many rows one line names.
MOST_NAMED = 5
_LENGTH = "write minutes or HH:MM, at most two days (2,880 minutes); NULL where there is none"


def schedules(case: DoctorCase) -> Iterator[Look]:
    """Yields looks at the schedules, and at each source of durations that offers its own alone."""
    mapped = case.adapter.mapping.diary
    if mapped.schedules is not None:
        yield case.look("diary", "schedules", _schedules, "diary", "schedules")
    for number, source in enumerate(mapped.durations):
        if source.only:
            tell = partial(_offered, number)
            yield case.look("diary", "durations", tell, "diary", "durations", number)


async def _schedules(case: DoctorCase, look: Look) -> None:
    """Tells the schedules whose row cannot be read, and the steps of the others."""
    rows: dict[Any, ScheduleRow] = {}
    several = dict[Any, None]()
    for vet in case.vets():
        own = {row.key: row for row in await case.session.schedules(vet)}
        several |= dict.fromkeys(key for key in own if key in rows and key is not None)
        rows |= own
    _unshared(case, look, [_short(key) for key in several])
    bad: dict[str, list[str]] = {}
    for row in rows.values():
        name, value = await _wrong_with(case, row)
        if name:
            bad.setdefault(name, []).append(f"{_short(value)} in schedule {_short(row.key)}")
    for name, some in bad.items():
        remedy = "a step is 5 to 240 minutes" if name == "step" else _LENGTH
        if name == "default_type":
            remedy = "it is the key of one of appointmentTypes"
        text = f"{_named(some)} cannot be read: nothing is free there"
        look.failed(text, name, remedy=remedy)
    if not rows:
        look.warning("no vet has a schedule", remedy="is `vet` the key of vets?")
    elif not bad:
        text = f"{counted(len(rows), 'schedule')} of {counted(len(case.vets()), 'vet')}"
        look.ok(f"{text} {agreeing(len(rows), 'are')} read")


def _unshared(case: DoctorCase, look: Look, several: list[str]) -> None:
    """Tells schedules of several vets where the mapping says that there are none."""
    mapped = case.adapter.mapping.diary.schedules
    if several and mapped is not None and not mapped.shared:
        text = f"{_named(several)} of more than one vet: two vets would be booked in one at once"
        remedy = "leave `shared: false` out, and give what blocks a schedule in busy"
        look.failed(text, "shared", remedy=remedy)


async def _wrong_with(case: DoctorCase, row: ScheduleRow) -> tuple[str, Any]:
    """Returns the name and the value of what cannot be read in a schedule; "" for nothing."""
    own = case.adapter.diary
    if row.key is None:
        return "key", None
    for name, read, value in (("step", grid, row.step), ("duration", lasting, row.lasts)):
        try:
            read(value)
        except Unreadable:
            return name, value
    with suppress(Unreadable, NotFound):
        kind = own.type_of(row.type)
        if kind is not None:
            await case.session.reader("appointmentTypes").one(kind)
        return "", None
    return "default_type", row.type


async def _offered(number: int, case: DoctorCase, look: Look) -> None:
    """Tells the types that a source offers nowhere, as they have no row."""
    types = [row["id"] for row in case.samples.get("appointmentTypes", ()) if row["id"]]
    of_schedule = case.adapter.mapping.diary.durations[number].of_schedule
    calendars = await _calendars(case, of_schedule=of_schedule)
    missing, asked, is_cut = dict.fromkeys(types), 0, False
    for calendar, type_id in product(calendars, types):
        if type_id not in missing:
            continue
        if is_cut := asked == case.most_durations:
            break
        asked += 1
        with suppress(Unreadable):  # a law tells of it
            if await case.session.durations(number, calendar, type_id):
                del missing[type_id]
    offered = len(types) - len(missing)
    if not asked:
        look.failed("nothing could be asked: there is no vet, no schedule or no type")
    elif not offered:
        text = "no type has a row here, so none is offered"
        remedy = "is `type` the key of appointmentTypes, and `schedule` that of schedules?"
        look.failed(text, "type", remedy=remedy)
    elif missing and not is_cut:
        text = f"{counted(len(missing), 'type', 'have')} no row here: offered nowhere"
        look.warning(text, "only", ids=missing)
    else:
        what = "schedules" if of_schedule else "vets"
        more = f"; for the other {len(missing)} not all {len(calendars)} {what} were looked at"
        text = f"{counted(offered, 'type', 'are')} offered somewhere"
        look.ok(text + (more if missing else ""))


async def _calendars(case: DoctorCase, *, of_schedule: bool) -> list[Calendar]:
    """Returns the calendars that a source of durations is asked for, each schedule once."""
    every = [await case.adapter.diary.calendars(case.session, vet) for vet in case.vets()]
    known = {
        str(calendar.schedule) if of_schedule else calendar.vet: calendar
        for calendar in chain.from_iterable(every)
        if calendar.schedule is not None or not of_schedule
    }
    return list(known.values())


def _named(some: list[str]) -> str:
    """Returns `2 rows (often in schedule 7, ...)`."""
    more = ", ..." if len(some) > MOST_NAMED else ""
    return f"{counted(len(some), 'row')} ({', '.join(some[:MOST_NAMED])}{more})"


def _short(value: Any) -> str:
    shown = " ".join(str(value).split())
    return shown if len(shown) <= LONGEST_CODE else f"{shown[:LONGEST_CODE]}..."
