"""The database's clock and zone beside this machine's and the clinic's."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from adapters.doctor.case import CheckStep
from adapters.doctor.clocks import beside
from adapters.doctor.sql.case import SqlCase
from adapters.examination import Finding

# The wall clock of the server, by the names that the engines have for it.
_now = re.compile(
    r"\b(?:NOW|GETDATE|SYSDATE|SYSDATETIME)\s*\(|\bCURRENT_TIMESTAMP\b|\bLOCALTIME(?:STAMP)?\b",
    re.IGNORECASE,
).search


def clocks(case: SqlCase) -> Iterator[CheckStep]:
    """One look at the server's clock."""
    yield CheckStep("clock", "server", lambda session: _server(session.connection, case))


def _server(connection: Connection, case: SqlCase) -> Iterator[Finding]:
    clock = case.speech.clock(connection)
    here = datetime.now(UTC)
    utc, local = _read(clock.utc), _read(clock.local)
    apart = (utc - here.replace(tzinfo=None)).total_seconds()
    clinic = here.astimezone(case.core.diary.zone).replace(tzinfo=None)
    said = "the database uses this machine's zone"
    if clock.zone:
        said = f"the server's zone is {clock.zone}"
    spelt = _now_in(case.document.data)
    if spelt and abs(local - clinic) > timedelta(minutes=15):
        zone = case.core.mapping.zone
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
