"""Laws of what blocks and of how long types last."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from itertools import chain, product
from typing import Any

from adapters.base import Record
from adapters.doctor.case import KEY, DoctorCase, Look
from adapters.doctor.laws.hours import compare_lengths
from adapters.doctor.laws.trials import told
from adapters.examination import Verdict, counted
from adapters.mapped.diary import BusySource
from adapters.mapped.session import Calendar
from adapters.mapped.slots import ONE_DAY, Block
from adapters.mapped.spans import lasting
from adapters.mapping.models import DurationsMap
from adapters.values.convert import Unreadable, plain

# A longer text is none of a length.
LONGEST_LENGTH = 12


def duration_laws(case: DoctorCase) -> Iterator[Look]:
    """Yields a look at the durations of types, and at each source of durations."""
    types = case.adapter.mapping.resources.get("appointmentTypes")
    if types is not None and "durationMinutes" in types.fields:
        place = ("resources", "appointmentTypes", "fields", "durationMinutes")
        yield case.look("laws", "appointmentTypes", _of_types, *place)
    for number, source in enumerate(case.adapter.mapping.diary.durations):
        run = partial(_in_calendars, number, source)
        yield case.look("laws", "durations", run, "diary", "durations", number, "minutes")


async def _of_types(case: DoctorCase, look: Look) -> None:
    part = case.law("durations-usable", look)
    if part is None or not case.could_look(part, "appointmentTypes"):
        return
    for record in case.samples["appointmentTypes"]:
        if (minutes := record["durationMinutes"]) is not None:
            example = told(record, {"durationMinutes": minutes})
            part.take(holds=_is_usable(minutes), example=example, shown=record["id"])
    part.tell(most=0.0)


async def _in_calendars(number: int, source: DurationsMap, case: DoctorCase, look: Look) -> None:
    part = case.law("durations-usable", look)
    if part is None:
        return
    if case.is_lost("diary", "durations"):
        part.unseen()
        return
    if not case.could_look(part, "vets", "appointmentTypes"):
        return
    kinds, lengths = case.samples["appointmentTypes"], dict[str, set[timedelta]]()
    pairs = list(product(kinds, await _calendars(source, case)))
    for kind, calendar in pairs[: case.most_durations]:
        where = _named(source, kind, calendar)
        try:
            rows = await case.session.durations(number, calendar, kind["id"] or "")
        except Unreadable:
            part.take(holds=False, example=f"{where}: a row of no type that can be read")
            continue
        for raw in rows:
            part.take(holds=_is_usable(raw), example=f"{where}: {_length(raw)}")
        usable = {lasts for raw in rows if _is_usable(raw) and (lasts := lasting(raw))}
        lengths.setdefault(kind["id"] or "", set()).update(usable)
    is_cut = len(pairs) > case.most_durations
    scope = f", in {case.most_durations} of {len(pairs):,} calendars of a type" if is_cut else ""
    part.tell(most=0.0, scope=scope)
    if compared := case.law("lengths-of-types", look):
        compare_lengths(lengths, case, compared)


async def _calendars(source: DurationsMap, case: DoctorCase) -> list[Calendar]:
    """Returns calendars, each schedule or vet of whom there may be rows once."""
    by_owner: dict[Any, Calendar] = {}
    for vet in case.vets():
        for calendar in await case.adapter.diary.calendars(case.session, vet):
            if source.of_schedule:
                owner = calendar.schedule
            else:
                owner = vet if source.vet is not None or source.get is not None else ""
            if owner is not None:
                by_owner.setdefault(str(owner), calendar)
    return list(by_owner.values())


def _named(source: DurationsMap, kind: Record, calendar: Calendar) -> str:
    there = f" in schedule {calendar.schedule}" if source.of_schedule else ""
    return f"type {kind[KEY] or 'unknown'}{there}"


def _is_usable(raw: Any) -> bool:
    try:
        lasting(raw)
    except Unreadable:
        return False
    return True


def _length(raw: Any) -> str:
    """Returns a raw length; what has letters in it is no length, and not told."""
    try:
        shown = plain(raw) or ""
    except Unreadable:
        shown = ""
    is_length = len(shown) <= LONGEST_LENGTH and not any(map(str.isalpha, shown))
    return shown if is_length and shown else "no length"


def rows_judged(source: BusySource, count: int, case: DoctorCase, look: Look) -> None:
    """Judges a source of what blocks that gives so many rows for the days ahead."""
    at = "where" if source.rows.where else "get" if source.rows.get else "from"
    part = case.law("busy-has-rows", look, *look.place, at)
    if part is None:
        return
    if count:
        part.ok(f"{counted(count, 'row')} of the days ahead")
        return
    some = case.has_blocks(source.number)
    if some is None:
        part.breach(f"no row in the next {case.ahead.days} days", Verdict.WARNING)
    elif some.kept:
        part.ok("no row of the days ahead, but earlier ones")
    elif some.there:
        verdict = Verdict.FAILED if source.is_keyed else Verdict.WARNING
        part.breach("`where` lets no row through, though there are rows", verdict)
    else:
        part.breach("it has no row at all", Verdict.WARNING, remedy="is there nothing yet?")


def lengths_judged(
    source: BusySource, blocks: Iterable[list[Block]], case: DoctorCase, look: Look
) -> None:
    """Judges how long appointments block; absences may last."""
    at = "end" if source.rows.end is not None else "minutes" if source.rows.minutes else "start"
    part = case.law("busy-within-a-day", look, *look.place, at)
    if part is None or not source.is_keyed:
        return
    for block in chain.from_iterable(blocks):
        if block.is_likely:
            lasts = block.interval.end - block.interval.start
            hours = f"{lasts / timedelta(hours=1):.0f} hours"
            shown = case.session.appointment(block.key)
            example = f"key {_own_key(block.key, shown, case)}: {hours}"
            part.take(holds=lasts <= ONE_DAY, example=example, shown=shown)
    part.tell()


def _own_key(raw: Any, shown: str | None, case: DoctorCase) -> str:
    """Returns an appointment's key as the practice writes it; over HTTP `raw` is a public id."""
    if shown is not None and "appointments" in case.adapter.readers:
        raw = next(iter(case.adapter.readers["appointments"].rows.ids.keys(shown)), raw)
    return " ".join(map(str, raw if isinstance(raw, tuple | list) else (raw,)))
