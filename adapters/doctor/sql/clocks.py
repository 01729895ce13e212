"""The database's clock and zone beside this machine's and the clinic's."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

from sqlalchemy import Connection

from adapters.doctor.clocks import WRITTEN, beside, future
from adapters.doctor.sql.case import Case, Step
from adapters.doctor.sql.values import every_record
from adapters.examination import Finding

# The wall clock of the server, by the names that the engines have for it.
_now = re.compile(
    r"\b(?:NOW|GETDATE|SYSDATE|SYSDATETIME)\s*\(|\bCURRENT_TIMESTAMP\b|\bLOCALTIME(?:STAMP)?\b",
    re.IGNORECASE,
).search


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
    said = "the database uses this machine's zone"
    if clock.zone:
        said = f"the server's zone is {clock.zone}"
    spelt = _now_in(case.document.data)
    if spelt and abs(local - clinic) > timedelta(minutes=15):
        zone = case.parts.mapping.zone
        said += f", so {spelt} in the mapping is not the clinic's time ({zone})"
    yield beside(case, apart, said)


def _now_in(data: Any) -> str:
    """How the mapping's SQL asks for the server's own time, "" where it does not."""
    if isinstance(data, str):
        found = _now(data)
        return found[0].replace("(", "()") if found else ""
    members = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return next(filter(None, map(_now_in, members)), "")


def _read(shown: str) -> datetime:
    return datetime.fromisoformat(shown[:19])


def _future(connection: Connection, case: Case, name: str, field: str) -> Iterator[Finding]:
    parts = case.parts
    records = chain.from_iterable(every_record(connection, case, name))
    converter = parts.readers[name].table.by_name[field].converter
    zone, now = parts.converters.zone, case.examination.now
    yield from future(case, (name, field), records, converter, zone, now)
