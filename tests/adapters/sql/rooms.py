"""A small practice whose vets work in rooms, each with a grid, lengths and a usual type."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from adapters.base import Adapter, Draft, Query
from tests.races.practice import KINDS, ZONE, Practice, practice, working_days

EVERY_KIND = [
    kind if kind == "sqlite" else pytest.param(kind, marks=pytest.mark.long) for kind in KINDS
]
DAY = working_days(1, datetime.now(UTC).date())[0]
NOW = datetime.now(UTC).replace(microsecond=0)
# Vets 1 and 2 share room 7; room 8 is of vet 1 alone; vet 3 has none.
ROOMS = (
    "CREATE TABLE room (vet INTEGER, id INTEGER, step VARCHAR(9), lasts VARCHAR(9), kind INTEGER)",
    "INSERT INTO room VALUES (1, 7, NULL, NULL, NULL), (2, 7, NULL, NULL, NULL),"
    " (1, 8, NULL, NULL, NULL)",
    "CREATE TABLE opens (room INTEGER, days VARCHAR(20), starts TIME, ends TIME)",
    "INSERT INTO opens VALUES (7, '1-5', '09:00', '10:00'), (8, '1,2,3,4,5', '10:00', '12:00')",
    "CREATE TABLE lengths (kind INTEGER, room INTEGER, lasts VARCHAR(9))",
    "ALTER TABLE appointment ADD COLUMN room INTEGER",
)
HOURS = """\
  hours:
    - {from: opens, schedule: room, weekday: days, start: starts, end: ends}
    - {from: hours, where: vet = 3, vet: vet, weekday: weekday, start: opens, end: closes}"""
BLOCKED = """\
    - from: appointment b
      where: b.state = 'BOOKED'
      schedule: b.room
      key: b.id
      start: b.starts
      end: b.ends
"""
SCHEDULES = """\
  schedules: {from: room, vet: vet, key: id, step: step, duration: lasts, default_type: kind}
  durations: [{from: lengths, type: kind, schedule: room, minutes: lasts, only: true}]
"""


def in_rooms(made: Practice, *pairs: tuple[str, str]) -> str:
    """The practice's mapping with rooms, and other texts in it."""
    hours = made.mapping.partition("  hours: ")[2].partition("\n")[0]
    return changed(
        made.mapping,
        (f"  hours: {hours}", HOURS),
        ("    - {from: absence", f"{BLOCKED}    - {{from: absence"),
        ("booking:\n", f"{SCHEDULES}booking:\n"),
        ("state: BOOKED\n", "state: BOOKED\n        room: {draft: schedule}\n"),
        *pairs,
    )


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    return text


@contextmanager
def rooms(kind: str, folder: Path, *more: str, offers_all: bool = True) -> Iterator[Practice]:
    """One where each room offers all types, or those of `lengths` alone."""
    every = (
        "INSERT INTO lengths SELECT DISTINCT k.id, r.id, CAST(NULL AS CHAR(9)) FROM kind k, room r"
    )
    with practice(kind, folder, *ROOMS, *([every] if offers_all else []), *more) as made:
        yield made


async def free(
    adapter: Adapter, vet: int = 1, kind: int | None = None, day: date = DAY
) -> list[tuple[str, int]]:
    """When each of the free times begins on the wall, and its minutes."""
    values = {"vetId": (await ids(adapter, "vets"))[vet - 1], "date": day}
    if kind is not None:
        values["appointmentTypeId"] = (await ids(adapter, "appointmentTypes"))[kind - 1]
    query = Query(resource="slots", now=NOW, values=values)
    spans = [
        [datetime.fromisoformat(slot[name]) for name in ("startTime", "endTime")]
        for slot in (await adapter.read_many(query)).records
    ]
    return [
        (f"{start.astimezone(ZONE):%H:%M}", int((end - start).total_seconds()) // 60)
        for start, end in spans
    ]


async def ids(adapter: Adapter, resource: str) -> list[str]:
    records = (await adapter.read_many(Query(resource=resource, now=NOW))).records
    return [record["id"] for record in records]


async def draft(
    adapter: Adapter, at: str, vet: int = 1, kind: int | None = None, day: date = DAY
) -> Draft:
    """One for that time on the wall."""
    hour, minute = map(int, at.split(":"))
    begins = datetime(day.year, day.month, day.day, hour, minute, tzinfo=ZONE).astimezone(UTC)
    made = Draft(
        client_id=(await ids(adapter, "clients"))[0],
        patient_id=(await ids(adapter, "patients"))[0],
        vet_id=(await ids(adapter, "vets"))[vet - 1],
        scheduled_at=begins,
        appointment_type_id=None,
        reason="a test",
        is_urgent=False,
        now=NOW,
    )
    if kind is None:
        return made
    return replace(made, appointment_type_id=(await ids(adapter, "appointmentTypes"))[kind - 1])


async def booked(adapter: Adapter, at: str, **more: int) -> tuple[str | None, int]:
    """Books it; the type and the minutes of the answer."""
    wanted = await draft(adapter, at, **more)
    record = await adapter.create_appointment(wanted)
    begins, ends = (datetime.fromisoformat(record[name]) for name in ("scheduledAt", "endTime"))
    assert begins == wanted.scheduled_at
    return record["appointmentTypeId"], int((ends - begins) / timedelta(minutes=1))
