"""The sample clinic, made once and copied for each test that changes it."""

import fcntl
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy.engine import URL

from adapters.base import Adapter, AdapterOptions, Draft, Filter, Query, Record, Trouble
from adapters.sample import MAPPING, create
from adapters.sql.adapter import SqlAdapter
from gateway.backend import shapes

TODAY = date(2026, 3, 4)
NOW = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
SECRET = b"0123456789abcdef0123456789abcdef"
# Where the processes of a run find what one of them made; the first begins the others.
_TEMPLATES = "TEST_TEMPLATES"
if _TEMPLATES not in os.environ:
    _kept = TemporaryDirectory()
    os.environ[_TEMPLATES] = _kept.name


def copy_to(folder: Path, today: date = TODAY) -> Path:
    """A fresh copy of the clinic's database, as it is on that day."""
    template = Path(os.environ[_TEMPLATES]) / f"{today}.db"
    with template.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            create(template, today=today)
    return Path(shutil.copy(template, folder / "clinic.db"))


# A practice system that keeps no reference of another program's: one line each that goes.
WITHOUT_REFERENCE = ("reference: r.REF_EXT", "REF_EXT: {draft: reference}")


def connect(
    database: Path,
    troubles: list[Trouble] | None = None,
    *,
    mapping: str | None = None,
    **more: Any,
) -> SqlAdapter:
    """The sample's own mapping, or another text, over a database file."""
    kept = [] if troubles is None else troubles
    file = MAPPING
    if mapping is not None:
        file = database.with_suffix(".yaml")
        file.write_text(mapping)
    return SqlAdapter(
        AdapterOptions(
            url=URL.create("sqlite", database=str(database)).render_as_string(),
            mapping=file,
            secret=SECRET,
            shapes=shapes(),
            report=kept.append,
            **more,
        )
    )


def mapping_without(*lines: str) -> str:
    """The sample's mapping without the lines that hold these texts."""
    kept = [each for each in MAPPING.read_text().splitlines() if not any(t in each for t in lines)]
    assert len(kept) == len(MAPPING.read_text().splitlines()) - len(lines)
    return "\n".join(kept)


def run(database: Path, sql: str, *values: object) -> list[Any]:
    """A statement of the clinic's own desk, and its rows."""
    with closing(sqlite3.connect(database)) as connection, connection:
        return connection.execute(sql, values).fetchall()


def ask(resource: str, **more: object) -> Query:
    """A query at the tests' own present."""
    return Query(resource=resource, now=NOW, **more)  # type: ignore[arg-type]


async def everything(
    adapter: Adapter, resource: str, *filters: Filter, limit: int = 37
) -> list[Record]:
    """All records of a resource, page by page; no page but the last is short."""
    page = await adapter.read_many(ask(resource, limit=limit, filters=filters))
    records = page.records
    while page.after is not None:
        assert len(page.records) + page.skipped == limit
        assert len(page.after) <= 200
        page = await adapter.read_many(
            ask(resource, limit=limit, filters=filters, after=page.after)
        )
        records += page.records
    return records


async def slots(
    adapter: Adapter, vet: str, day: date, kind: str | None = None, now: datetime = NOW
) -> list[Record]:
    """The free times of a vet on a day."""
    values = {"vetId": vet, "date": day, "appointmentTypeId": kind}
    query = Query(resource="slots", now=now, values=values)
    return (await adapter.read_many(query)).records


async def a_draft(adapter: Adapter, **more: Any) -> Draft:
    """A draft that fits: a living animal of a present client, the first free time from tomorrow."""
    clients = {each["id"] for each in (await adapter.read_many(ask("clients", limit=500))).records}
    patients = (await adapter.read_many(ask("patients", limit=500))).records
    patient = next(each for each in patients if each["clientId"] in clients)
    vets = (await adapter.read_many(ask("vets"))).records
    for ahead in range(1, 15):
        free = await slots(adapter, vets[0]["id"], TODAY + timedelta(days=ahead))
        if free:
            break
    draft = Draft(
        client_id=patient["clientId"],
        patient_id=patient["id"],
        vet_id=vets[0]["id"],
        scheduled_at=datetime.fromisoformat(free[0]["startTime"]),
        appointment_type_id=None,
        reason="Boite depuis hier\nà gauche",
        is_urgent=True,
        now=NOW,
        reference="0123456789abcdef",
    )
    return replace(draft, **more)
