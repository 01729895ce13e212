"""The diary: appointments and visits as acts, who takes part, working hours, absences."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random

from examples.loading import Row
from examples.mariadb_eav.values import NO_DAY, Ids, clock, length
from examples.practice import Practice
from examples.records import Visit

Rows = Iterator[tuple[str, Row]]
STATUS = {
    "planned": None,
    "confirmed": "CONF",
    "done": "DONE",
    "cancelled": "CANC",
    "missed": "MISS",
}
LABELS = {
    "CONF": "Bevestigd",
    "ARRI": "Aangekomen",
    "BUSY": "Bezig",
    "DONE": "Afgewerkt",
    "CANC": "Geannuleerd",
    "MISS": "Niet gekomen",
    "PLAN": "Gepland",
}
MIDNIGHT = datetime.min.time()


def visit_rows(practice: Practice) -> Rows:
    """Acts from 1: an appointment, then the visit that follows it, if there was one."""
    ids = Ids(practice)
    rng = practice.stream("consultations")
    act = 0
    for visit in practice.visits():
        act += 1
        yield from _appointment(ids, visit, act)
        if visit.state == "done" and visit.id % 2:
            yield from _visit(rng, ids, visit, act)
            act += 1
    yield "numbers", ("APPT", 40_000 + act)
    for code, label in LABELS.items():
        yield "lookups", ("STATUS", code, label)
    for code, label in (("DOG", "Hond"), ("CAT", "Kat"), ("RAB", "Konijn"), ("BIRD", "Vogel")):
        yield "lookups", ("SPECIES", code, label)


def _appointment(ids: Ids, visit: Visit, act: int) -> Rows:
    number = f"A-{40_000 + act:06d}"
    lasts = None if visit.id % 6 == 2 else length(visit.minutes)
    yield (
        "acts",
        (act, "appointment", number, visit.start.date(), visit.start.time(), lasts,
         STATUS[visit.state], 1 if visit.urgent else (0, None)[visit.id % 2], 1, visit.reason,
         None, visit.created),
    )  # fmt: skip
    vet: int | None = ids.vet(visit.vet)
    if visit.state == "done":  # nobody noted who, or it was one who has left since
        left: dict[int, int | None] = {4: None, 34: ids.former_vet}
        vet = left.get(visit.id % 90, vet)
    for role, party in (
        ("PET", ids.pet(visit.animal.id)),
        ("VET", vet),
        ("TYPE", ids.type(visit.kind)),
    ):
        if party is not None:
            yield from _takes_part(visit, act, role, party)
    top = visit.start - datetime.combine(visit.start.date(), MIDNIGHT)
    bottom = top + timedelta(minutes=visit.minutes)
    box = (act, ids.vet(visit.vet), clock(top), clock(bottom), visit.start.date())
    yield "calendar", box


def _takes_part(visit: Visit, act: int, role: str, party: int) -> Rows:
    end = visit.start + timedelta(minutes=visit.minutes)
    yield "participations", (act, role, party, visit.start, end, 1)


def _visit(rng: Random, ids: Ids, visit: Visit, appointment: int) -> Rows:
    act, began = appointment + 1, visit.start + timedelta(minutes=rng.randrange(10))
    open_ = rng.random() < 0.05
    status = "BUSY" if open_ else "DONE"
    yield (
        "acts",
        (act, "visit", None, began.date(), began.time(), None, status, None,
         0 if visit.id % 40 == 1 else 1, visit.reason, appointment, began),
    )  # fmt: skip
    yield from _takes_part(visit, act, "PET", ids.pet(visit.animal.id))
    yield from _takes_part(visit, act, "VET", ids.vet(visit.vet))
    weight = rng.choice("123")
    for key, kind, value in (
        ("IMPORTANCE", "N", weight),
        ("SUMMARY", "S", rng.choice(("All is well", "Wound cleaned", None))),
        ("DIAGNOSIS", "S", rng.choice(("Healthy", "Otitis", None))),
        ("HOMECARE", "S", rng.choice(("Rest for a week", None))),
        ("VALIDATED", "D", None if open_ else f"{began + timedelta(minutes=20):%Y-%m-%d %H:%M}"),
        ("INTERNAL", "S", "Owner is slow to pay"),
    ):
        if value is not None:
            yield "act_fields", (act, key, kind, value)


def diary_rows(practice: Practice) -> Rows:
    """Weekly hours, one row per shift; absences of one vet, of one until further notice, of all."""
    ids = Ids(practice)
    for shift in practice.shifts:
        day = shift.weekday % 7  # Sunday is 0
        yield "work_hours", (ids.vet(shift.vet), day, shift.start, shift.end, 1)
    yield "work_hours", (ids.vet(1), 0, "08:00:00", "20:00:00", 0)  # no longer on Sundays
    away = practice.today + timedelta(days=practice_weekday(practice, 2))
    yield "absences", (ids.vet(2), away, away)
    yield "absences", (ids.vet(practice.vets), practice.today + timedelta(days=35), NO_DAY)
    closed = practice.today + timedelta(days=practice_weekday(practice, 5) + 28)
    yield "absences", (None, closed, closed)


def practice_weekday(practice: Practice, weekday: int) -> int:
    """Days until the first such weekday that is at least a week ahead; 1 is Monday."""
    return 7 + (weekday - practice.today.isoweekday()) % 7
