"""The consultations of the sample clinic: what the vets wrote after a visit."""

from datetime import date, datetime, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample.bookings import Booking
from adapters.sample.cases import CASES, INTERNAL_NOTES
from adapters.sample.catalogue import CONSULTATION
from adapters.sample.hours import Roster
from adapters.sample.owners import Herd
from adapters.sample.values import NO_MOMENT, awake, opening_moment, stamp, unstamp

KEPT = 1200
DELETED = 15
WALK_INS = 60
FORGOTTEN = 12  # recent ones that nobody has validated yet
FORGOTTEN_DAYS = 45


class Consult(NamedTuple):
    """A row of CONSULTATIONS."""

    id_cons: int
    id_rdv: int | None
    id_animal: int
    id_veto: int
    etat: str
    importance: str
    d_debut: str
    d_valid: str
    resume: str
    diagnostic: str
    consignes: str
    notes_internes: str
    supprime: int
    dt_creation: str


class _Visit(NamedTuple):
    """What a consultation is about; without a booking it has no id."""

    booking: int | None
    animal: int
    vet: int
    kind: int
    start: datetime


def make_consults(
    rng: Random, today: date, bookings: list[Booking], roster: Roster, herd: Herd
) -> list[Consult]:
    """Those of the visits that are over, of the ones going on, and of some walk-ins; by time."""
    running = [_of_booking(row) for row in bookings if row.statut == "E" and row.id_veto]
    done = [_of_booking(row) for row in bookings if row.statut == "T" and row.id_veto]
    walk_ins = [_walk_in(rng, today, roster, herd) for _ in range(WALK_INS)]
    chosen = rng.sample(done, KEPT + DELETED - WALK_INS - len(running))
    rows = [_consult(rng, today, visit) for visit in chosen + walk_ins]
    deleted = set(rng.sample(range(len(rows)), DELETED))
    rows = [row._replace(supprime=int(place in deleted)) for place, row in enumerate(rows)]
    rows = _forgotten(rng, today, rows)
    rows += [_in_progress(_consult(rng, today, visit)) for visit in running]
    rows.sort(key=lambda row: (row.d_debut, row.id_veto, row.id_animal))
    return [row._replace(id_cons=number) for number, row in enumerate(rows, 1)]


def _of_booking(row: Booking) -> _Visit:
    kind = row.id_type or CONSULTATION.id_type
    return _Visit(row.id_rdv, row.id_animal, row.id_veto or 0, kind, unstamp(row.d_debut))


def _walk_in(rng: Random, today: date, roster: Roster, herd: Herd) -> _Visit:
    """Somebody who came to a vet on duty without a booking, on some day of the last two years."""
    while True:
        day = today - timedelta(days=rng.randrange(1, 700))
        sheets = roster.sheets(day, day)
        animal = rng.choice(herd.animals)
        if sheets and herd.patient_on(animal, day, planned=False):
            sheet = rng.choice(sheets)
            start = rng.choice(sheet.quarters)
            return _Visit(None, animal.id_animal, sheet.vet, CONSULTATION.id_type, start)


def _consult(rng: Random, today: date, visit: _Visit) -> Consult:
    """A validated consultation with the texts of one of the cases of its kind."""
    start = visit.start + timedelta(minutes=rng.randrange(10), seconds=rng.randrange(60))
    end = start + timedelta(minutes=rng.choice((15, 20, 35, 60, 24 * 60)))
    case = rng.choice(CASES.get(visit.kind, CASES[CONSULTATION.id_type]))
    measured = f" Température {rng.randrange(379, 396) / 10:.1f} °C.".replace(".", ",", 1)
    return Consult(
        id_cons=0,
        id_rdv=visit.booking,
        id_animal=visit.animal,
        id_veto=visit.vet,
        etat="V",
        importance=rng.choices("123", (60, 30, 10))[0],
        d_debut=stamp(start),
        d_valid=stamp(awake(min(end, opening_moment(today)))),
        resume=case.summary + (measured if rng.random() < 0.4 else ""),
        diagnostic=case.diagnosis,
        consignes=case.advice,
        notes_internes=rng.choice(INTERNAL_NOTES),
        supprime=0,
        dt_creation=stamp(start),
    )


def _in_progress(row: Consult) -> Consult:
    """Not validated: there is no diagnosis yet."""
    return row._replace(etat="E", d_valid=NO_MOMENT, diagnostic="")


def _forgotten(rng: Random, today: date, rows: list[Consult]) -> list[Consult]:
    """Leave some recent ones open, as busy vets do."""
    since = (today - timedelta(days=FORGOTTEN_DAYS)).isoformat()
    recent = [place for place, row in enumerate(rows) if row.d_debut > since and not row.supprime]
    for place in rng.sample(recent, FORGOTTEN):
        rows[place] = _in_progress(rows[place])
    return rows
