"""Whether the database's appointments lie within the working hours of their vets."""

from collections.abc import Iterator
from itertools import chain

from sqlalchemy import Connection

from adapters.document import Place
from adapters.examine import Finding
from adapters.findings.zones import fitting, visits_of
from adapters.sql.doctor.case import Case, Step
from adapters.sql.doctor.diary import vets
from adapters.sql.doctor.values import every_record


def zones(case: Case) -> Iterator[Step]:
    """One look; none where no hours are known."""
    lost = case.is_lost("diary") or case.is_lost("resources", "vets")
    if case.parts.mapping.diary.hours and not lost:
        yield Step("clock", "appointments", lambda c: _fits(c, case), ("diary", "hours"))


def _fits(connection: Connection, case: Case) -> Iterator[Finding]:
    shifts = {shown: case.parts.openings.shifts(connection, key) for shown, key in vets(case)}
    zone, now = case.parts.converters.zone, case.examination.now
    records = chain.from_iterable(every_record(connection, case, "appointments"))
    visits = visits_of(records, zone, now)
    yield from fitting(case, visits, shifts, _weekday(case))


def _weekday(case: Case) -> Place | None:
    numbered = enumerate(case.parts.mapping.diary.hours)
    places = (("diary", "hours", n, "weekday") for n, each in numbered if each.weekday)
    return next(places, None)
