"""Rooms and their rosters, appointments, free times that are rows, and consultations."""

from collections.abc import Iterator
from datetime import datetime, time, timedelta
from random import Random
from uuid import UUID

from examples.loading import Row
from examples.postgres_slots.values import (
    FORMER_VET,
    SLOT_ROOM,
    epoch,
    patient_id,
    room_of,
    slot_minutes,
    utc,
)
from examples.practice import DAYS_AHEAD, KINDS, Practice
from examples.records import Visit

Rows = Iterator[tuple[str, Row]]
STATES = {"planned": 1, "confirmed": 2, "done": 5, "cancelled": 8, "missed": 9}
COLOURS = ("teal", "Orange", None, "navy", "crimson")
VACCINATION = 2
FIRST_NUMBER = 100_000


def calendar_rows(practice: Practice) -> Rows:
    """Everything with a time."""
    yield from _rooms(practice)
    yield from _roster(practice)
    rng = practice.stream("consultations")
    made = 0
    for visit in practice.visits():
        made = visit.id
        yield "Appointment", _appointment(visit)
        if visit.state == "done" and visit.id % 2:
            yield "Consultation", _consultation(rng, visit)
    for number, starts in enumerate(_free_times(practice), made + 1):
        yield "Appointment", _free(number, starts)
    yield from _leave(practice)


def _rooms(practice: Practice) -> Rows:
    """One room per vet; vets 1 and 2 share the one for vaccinations, vet 2 also works in room 3."""
    for vet in range(1, practice.vets + 1):
        yield "Schedule", (room_of(vet), f"Room {vet}", slot_minutes(room_of(vet)))
        yield "StaffSchedule", (vet, room_of(vet))
    yield "Schedule", (SLOT_ROOM, "Vaccination room", slot_minutes(SLOT_ROOM))
    for vet, room in ((1, SLOT_ROOM), (2, SLOT_ROOM), (2, 3)):
        yield "StaffSchedule", (vet, room)
    for number, (name, minutes, _) in enumerate(KINDS, 1):
        yield "VisitType", (number, name, COLOURS[number - 1], number != 5)
        for vet in range(1, practice.vets + 1):
            room = room_of(vet)
            yield "VisitTypeSchedule", (number, room, slots_of(number, minutes, room))
    yield "VisitTypeSchedule", (VACCINATION, SLOT_ROOM, 1)


def slots_of(kind: int, minutes: int, room: int) -> int:
    """How many slots a kind of visit takes in a room; in small rooms a vaccination takes longer."""
    each = slot_minutes(room)
    return (20 if kind == VACCINATION and each == 5 else minutes) // each


def _roster(practice: Practice) -> Rows:
    for ahead in range(-30, 61):
        day = practice.today + timedelta(days=ahead)
        for shift in practice.shifts:
            if shift.weekday == day.isoweekday():
                yield "Roster", (room_of(shift.vet), day, shift.start, shift.end)


def _appointment(visit: Visit) -> Row:
    room = room_of(visit.vet)
    vet: int | None = visit.vet
    if visit.state == "done":  # nobody noted who, or it was one who has left since
        left: dict[int, int | None] = {4: None, 34: FORMER_VET}
        vet = left.get(visit.id % 90, vet)
    as_its_type = visit.id % 6 == 2 and slot_minutes(room) == 15
    return (
        visit.id, f"V-{FIRST_NUMBER + visit.id}", STATES[visit.state], room,
        vet, patient_id(visit.animal.id), visit.kind, utc(visit.start),
        None if as_its_type else visit.minutes, "Y" if visit.urgent else ("N", None)[visit.id % 2],
        visit.reason, utc(visit.created),
    )  # fmt: skip


def _free_times(practice: Practice) -> Iterator[datetime]:
    """Over noon, on weekdays, in the room for vaccinations."""
    for ahead in range(1, DAYS_AHEAD):
        day = practice.today + timedelta(days=ahead)
        if day.isoweekday() <= 5:
            noon = datetime.combine(day, time(12, 30))
            yield from (noon + timedelta(minutes=15 * place) for place in range(4))


def _free(number: int, starts: datetime) -> Row:
    nobody: tuple[UUID | None, int | None] = (None, None)
    created = utc(starts - timedelta(days=60))
    return (number, None, 0, SLOT_ROOM, None, *nobody, utc(starts), 15, "N", None, created)


def _consultation(rng: Random, visit: Visit) -> Row:
    began = epoch(visit.start) + 60 * rng.randrange(10)
    closed = rng.random() > 0.05
    return (
        visit.id, visit.id if visit.id % 20 != 1 else None, patient_id(visit.animal.id),
        visit.vet, closed, rng.choice(("LOW", "MID", "HIGH")), began,
        began + 1_200 if closed else 0, rng.choice(("All is well", "Wound cleaned", "")),
        rng.choice(("Healthy", "Otitis", None)), rng.choice(("Rest for a week", None)),
    )  # fmt: skip


def _leave(practice: Practice) -> Rows:
    """Vet 2 is away for a day, the last one until further notice."""
    monday = practice.today + timedelta(days=14 - practice.today.isoweekday() + 1)
    begins = datetime.combine(monday, time())
    yield "Leave", (2, utc(begins), utc(begins + timedelta(days=1)))
    far = datetime.combine(practice.today + timedelta(days=35), time())
    yield "Leave", (practice.vets, utc(far), None)
