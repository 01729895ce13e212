"""The database's clock and zone beside this machine's and the clinic's."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import Connection

from adapters.examine import Finding
from adapters.sql.doctor.case import Case, Step, rows
from adapters.times import UtcTime

# A clock that differs by more is wrong.
APART = 60.0
# What is written now may be a little ahead.
ROOM = timedelta(minutes=2)
WRITTEN = ("createdAt", "updatedAt", "startedAt", "validatedAt")


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
    if abs(apart) > APART:
        way = "ahead of" if apart > 0 else "behind"
        text = f"its clock is {abs(apart):.0f} s {way} this machine's; {said}"
        yield case.warning("clock", "server", text, remedy="set one of them by the network's time")
    else:
        yield case.ok("clock", "server", f"it agrees with this machine's; {said}")


def _read(shown: str) -> datetime:
    return datetime.fromisoformat(shown[:19])


def _future(_: Connection, case: Case, name: str, field: str) -> Iterator[Finding]:
    now = case.examination.now
    found = [
        (e["id"], datetime.fromisoformat(e[field])) for e in case.samples.get(name, ()) if e[field]
    ]
    ahead = [(shown, moment - now) for shown, moment in found if moment > now + ROOM]
    if not ahead:
        return
    place = ("resources", name, "fields", field)
    text = f"{rows(len(ahead))} of {len(found):,} lie in the future"
    offset = now.astimezone(case.parts.converters.zone).utcoffset() or timedelta()
    converter = case.parts.readers[name].table.by_name[field].converter
    ids = [shown for shown, _ in ahead if shown]
    if isinstance(converter, UtcTime) and max(each for _, each in ahead) <= offset:
        text += (
            ", by no more than the clinic's zone: they look like local time, but are read as UTC"
        )
        yield case.failed(
            "clock", f"{name}.{field}", text, place, ids=ids, remedy="write `as: local time`"
        )
    else:
        yield case.warning("clock", f"{name}.{field}", text, place, ids=ids)
