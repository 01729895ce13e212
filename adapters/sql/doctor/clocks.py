"""The database's clock and zone beside this machine's and the clinic's."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain

from sqlalchemy import Connection

from adapters.examine import Finding
from adapters.findings.clocks import WRITTEN, beside, future
from adapters.sql.doctor.case import Case, Step
from adapters.sql.doctor.values import every_record


def clocks(case: Case) -> Iterator[Step]:
    """One look at the server's clock, and one at each resource's newest times."""
    yield Step("clock", "server", lambda connection: _server(connection, case))
    for name, reader in case.readers():
        for field in WRITTEN:
            if field in reader.table.by_name:
                run = partial(_future, case=case, name=name, field=field)
                yield Step("clock", f"{name}.{field}", run)


def _server(connection: Connection, case: Case) -> Iterator[Finding]:
    clock = case.parts.engine.speech.clock(connection)
    here = datetime.now(UTC)
    utc, local = _read(clock.utc), _read(clock.local)
    apart = (utc - here.replace(tzinfo=None)).total_seconds()
    clinic = here.astimezone(case.parts.converters.zone).replace(tzinfo=None)
    said = f"the server's zone is {clock.zone}"
    if abs(local - clinic) > timedelta(minutes=15):
        said += f": NOW() in the mapping is not the clinic's time ({case.parts.mapping.zone})"
    yield beside(case, apart, said)


def _read(shown: str) -> datetime:
    return datetime.fromisoformat(shown[:19])


def _future(connection: Connection, case: Case, name: str, field: str) -> Iterator[Finding]:
    parts = case.parts
    records = chain.from_iterable(every_record(connection, case, name))
    converter = parts.readers[name].table.by_name[field].converter
    zone, now = parts.converters.zone, case.examination.now
    yield from future(case, (name, field), records, converter, zone, now)
