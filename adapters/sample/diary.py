"""The diary of the sample clinic: two years behind, six weeks ahead, and what the desk noted."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample import vocabulary as words
from adapters.sample.animals import Animal
from adapters.sample.bookings import Booking, numbered, wear
from adapters.sample.cases import REASONS
from adapters.sample.catalogue import (
    CHECK,
    CONSULTATION,
    EMERGENCY,
    FOR_CARNIVORES,
    GROOMING,
    KINDS,
    Kind,
)
from adapters.sample.hours import Roster, Sheet
from adapters.sample.owners import Herd
from adapters.sample.values import YEAR, opening_moment, stamp, unstamp

BOOKINGS = 2500
AHEAD = 500
AHEAD_DAYS = 42
AHEAD_CANCELLED = 26
PAST_DAYS = 2 * YEAR
PAST_VOID = 160  # cancelled, or nobody came
LINGERING_PAST = 3
KIND_WEIGHTS = (40, 22, 8, 7, 12, 4, 5, 2, 4)


class Place(NamedTuple):
    """A piece of a vet's time; a void one takes none of it away."""

    vet: int
    start: datetime
    kind: Kind
    void: bool = False

    @property
    def end(self) -> datetime:
        return self.start + timedelta(minutes=self.kind.duree_min)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Book:
    """What filling in one row needs to look at."""

    herd: Herd
    today: date
    now: datetime
    lingering: int


def make_bookings(
    rng: Random, today: date, roster: Roster, herd: Herd, lingering: int
) -> list[Booking]:
    """All rows of RDV; `lingering` is the former client whose animals still come."""
    book = _Book(herd=herd, today=today, now=opening_moment(today), lingering=lingering)
    one = timedelta(days=1)
    now = roster.sheets(today, today)
    ahead = roster.sheets(today + one, today + AHEAD_DAYS * one)
    past = roster.sheets(today - PAST_DAYS * one, today - one)[::-1]
    places = _places(rng, book, now, 2 * len(now), 0)
    places += _places(rng, book, ahead, AHEAD, AHEAD_CANCELLED)
    places += _places(rng, book, past, BOOKINGS - len(places), PAST_VOID)
    rows = [_booking(rng, book, place) for place in places]
    return numbered(wear(rng, today, _with_lingering(rng, book, rows)))


def _places(rng: Random, book: _Book, sheets: list[Sheet], count: int, void: int) -> list[Place]:
    """`count` places on the sheets, nearer days fuller; fewer only where half of it is taken."""
    places: list[Place] = []
    for _ in range(count * 40):
        if len(places) == count - void:
            break
        sheet = sheets[int(len(sheets) * rng.random() ** 1.4)]
        kind = _kind(rng, book, sheet.quarters[0])
        start = sheet.take(rng, kind.duree_min)
        if start is not None:
            places.append(Place(sheet.vet, start, kind))
    return places + [_void(rng, places, sheets) for _ in range(void)]


def _void(rng: Random, kept: list[Place], sheets: list[Sheet]) -> Place:
    """A cancelled place: half of them were given to somebody else since, half stay free."""
    other = rng.choice(kept)
    if rng.random() < 0.5:
        return other._replace(void=True)
    row: list[datetime] = []
    while not row:
        sheet = rng.choice(sheets)
        row = sheet.spot(rng, other.kind.duree_min)
    return Place(sheet.vet, row[0], other.kind, void=True)


def _kind(rng: Random, book: _Book, opens: datetime) -> Kind:
    """What brings them: nobody plans an emergency, and nights see little else."""
    planned = opens.date() > book.today
    if opens.hour >= 20:
        return CHECK if planned else EMERGENCY
    (kind,) = rng.choices(KINDS, KIND_WEIGHTS)
    if kind is EMERGENCY and planned:
        return CHECK
    if kind is GROOMING and opens.date() > book.today - timedelta(days=400):
        return CHECK  # no longer offered
    return kind


def _booking(rng: Random, book: _Book, place: Place) -> Booking:
    """One row, as the desk would have filled it in."""
    patient = _patient(rng, book, place)
    urgent = place.kind is EMERGENCY
    return Booking(
        id_rdv=0,
        num_rdv="",
        id_animal=patient.id_animal,
        id_veto=place.vet,
        id_type=place.kind.id_type,
        d_debut=stamp(place.start),
        d_fin=stamp(place.end),
        motif=rng.choice((None, "", *REASONS[place.kind.id_type] * 2)),
        urgent="O" if urgent else rng.choice(("N", "N", "N", None)),
        statut=_status(rng, place, book.now),
        dt_saisie=_taken_down(rng, place, patient, book.now),
    )


def _patient(rng: Random, book: _Book, place: Place) -> Animal:
    """An animal that could come on that day, for something that is done to its kind."""
    day = place.start.date()
    planned = day >= book.today
    while True:
        animal = rng.choice(book.herd.animals)
        fits = place.kind not in FOR_CARNIVORES or animal.code_esp in words.CARNIVORES
        if fits and book.herd.patient_on(animal, day, planned=planned):
            return animal


def _status(rng: Random, place: Place, now: datetime) -> str:
    """The letter that the desk would have set by `now`; it forgets a few."""
    if place.void:
        return "A" if place.start > now or rng.random() < 0.6 else "N"
    if place.end <= now:
        return rng.choices("TCP", (97, 2, 1))[0]
    if place.start <= now:
        return "E"
    if place.start <= now + timedelta(minutes=45):
        return "R"
    return rng.choice("PC")


def _taken_down(rng: Random, place: Place, patient: Animal, now: datetime) -> str:
    """When the booking was made: up to six weeks before, never before the animal was known."""
    latest = min(place.start, now) - timedelta(minutes=rng.randrange(10, 180))
    days = 0 if place.kind is EMERGENCY else rng.randrange(42)
    moment = latest - timedelta(days=days)
    if days:
        moment = moment.replace(hour=rng.randrange(8, 19), second=rng.randrange(60))
    elif moment.hour == 2:
        moment = moment.replace(hour=1)
    known = unstamp(patient.dt_creation) + timedelta(minutes=5)
    return stamp(max(moment, known))


def _with_lingering(rng: Random, book: _Book, rows: list[Booking]) -> list[Booking]:
    """Let the animals of the former client stand on some past rows and on one to come."""
    theirs = [row.id_animal for row in book.herd.ownerships if row.id_pers == book.lingering]
    now = stamp(book.now)
    simple = [place for place, row in enumerate(rows) if row.id_type == CONSULTATION.id_type]
    past = [place for place in simple if rows[place].d_debut < now]
    coming = [place for place in simple if rows[place].d_debut[:10] > now[:10]]
    rows = list(rows)
    for place in rng.sample(past, LINGERING_PAST) + rng.sample(coming, 1):
        rows[place] = rows[place]._replace(id_animal=rng.choice(theirs))
    return rows
