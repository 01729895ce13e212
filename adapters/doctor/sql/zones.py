"""Whether the database's appointments lie within the working hours of their vets."""

from collections.abc import Iterator
from itertools import chain

from sqlalchemy import Connection

from adapters.doctor.sql.case import Case, Step
from adapters.doctor.sql.diary import vets
from adapters.doctor.sql.values import every_record
from adapters.doctor.zones import fitting, visits_of
from adapters.documents.document import Place
from adapters.examination import Finding


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
