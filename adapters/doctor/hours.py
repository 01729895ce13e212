"""The working hours that were read, as a person says them: a wrong weekday or zone shows there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from itertools import groupby
from zoneinfo import ZoneInfo

from adapters.doctor.findings import FindingMaker
from adapters.examination import Finding
from adapters.mapping.hours import Shift

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# So many different weeks, and so many days with hours of their own, are told.
MOST_WEEKS, MOST_DAYS = 12, 7
_WEEK = range(1, 8)


def hours_read(
    maker: FindingMaker, shifts: Mapping[str, Sequence[Shift]], day: date
) -> Iterator[Finding]:
    """The hours of vets by their public ids, those of the same hours together."""
    alike: dict[str, list[str]] = {}
    for vet, own in shifts.items():
        if own:
            alike.setdefault(said(own, day), []).append(vet)
    for text, vets in list(alike.items())[:MOST_WEEKS]:
        yield maker.ok("diary", "hours", f"{_vets(len(vets))}: {text}", ids=vets)
    if len(alike) > MOST_WEEKS:
        yield maker.ok("diary", "hours", f"and {len(alike) - MOST_WEEKS} other weeks of hours")


def today(now: datetime, zone: ZoneInfo) -> date:
    return now.astimezone(zone).date()


def said(shifts: Iterable[Shift], first: date) -> str:
    """`Mon-Fri 09:00-17:00; Sat 09:00-12:00`; hours of one day with their date."""
    own = list(shifts)
    weekly = {day: _times(e for e in own if e.day is None and e.weekday == day) for day in _WEEK}
    parts = [
        f"{_run([DAYS[day - 1] for day in days])} {times}"
        for times, days in groupby(_WEEK, weekly.__getitem__)
        if times
    ]
    dates = sorted({each.day for each in own if each.day is not None and each.day >= first})
    for day in dates[:MOST_DAYS]:
        times = _times(each for each in own if each.day == day)
        parts.append(f"{DAYS[day.weekday()]} {day.isoformat()} {times}")
    if len(dates) > MOST_DAYS:
        parts.append(f"and {len(dates) - MOST_DAYS} later days")
    return "; ".join(parts) or f"no day from {first.isoformat()} on"


def _run(days: Sequence[str]) -> str:
    return days[0] if len(days) == 1 else f"{days[0]}-{days[-1]}"


def _times(shifts: Iterable[Shift]) -> str:
    spans = sorted({(each.start, each.end) for each in shifts})
    return ", ".join(f"{start:%H:%M}-{_end(end)}" for start, end in spans)


def _end(end: time) -> str:
    return "24:00" if end == time() else f"{end:%H:%M}"


def _vets(count: int) -> str:
    return "1 vet" if count == 1 else f"{count} vets"
