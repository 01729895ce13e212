"""The rows of a booking in the sample clinic, their numbers and journal, and the gaps of years."""

from collections.abc import Callable
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample import vocabulary as words
from adapters.sample.catalogue import CONSULTATION
from adapters.sample.values import NO_MOMENT, awake, opening_moment, stamp, unstamp

LAST_NUMBER_BEFORE = 6400  # the counter is older than the oldest row
OLD_DAYS = 400
WITHOUT_END = 60
WITHOUT_VET = 40
WITHOUT_KIND = 24
UNDOCUMENTED = 3
WITHOUT_STATUS = 6


class Booking(NamedTuple):
    """A row of RDV."""

    id_rdv: int
    num_rdv: str
    id_animal: int
    id_veto: int | None
    id_type: int | None
    d_debut: str
    d_fin: str | None
    motif: str | None
    urgent: str | None
    statut: str | None
    dt_saisie: str
    ref_ext: str | None = None


class Entry(NamedTuple):
    """A row of RDV_JOURNAL."""

    id_journal: int
    id_rdv: int
    action: str
    qui: str
    d_action: str


def numbered(rows: list[Booking]) -> list[Booking]:
    """Ids from 1 and numbers from the counter, both in the order in which the desk took them."""
    taken = sorted(rows, key=lambda row: (row.dt_saisie, row.d_debut, row.id_veto or 0))
    return [
        row._replace(id_rdv=place, num_rdv=f"R{row.dt_saisie[:4]}-{LAST_NUMBER_BEFORE + place:06d}")
        for place, row in enumerate(taken, 1)
    ]


def journal(rng: Random, today: date, bookings: list[Booking]) -> list[Entry]:
    """One 'C' per booking, an 'A' for each cancelled one, an 'M' for some; by time."""
    latest = opening_moment(today)
    entries = []
    for row in bookings:
        entries.append(Entry(0, row.id_rdv, "C", rng.choice(words.DESKS), row.dt_saisie))
        action = "A" if row.statut == "A" else "M" if rng.random() < 0.12 else ""
        if action:
            until = min(unstamp(row.d_debut), latest)
            taken = unstamp(row.dt_saisie)
            later = awake(taken + (until - taken) * rng.random())
            entries.append(Entry(0, row.id_rdv, action, rng.choice(words.DESKS), stamp(later)))
    entries.sort(key=lambda entry: entry.d_action)
    return [entry._replace(id_journal=number) for number, entry in enumerate(entries, 1)]


def wear(rng: Random, today: date, rows: list[Booking]) -> list[Booking]:
    """What years of use left out: ends, vets, kinds, statuses, and a letter nobody can explain.

    A row without its kind is half an hour long, and one without its end as long as its kind:
    whoever falls back on those sees no overlap that was not there.
    """
    rows = list(rows)
    now = stamp(opening_moment(today))
    old = stamp(opening_moment(today - timedelta(days=OLD_DAYS)))

    def some(count: int, wanted: Callable[[Booking], bool]) -> list[int]:
        return rng.sample([place for place, row in enumerate(rows) if wanted(row)], count)

    for place in some(WITHOUT_END, lambda row: row.d_debut < old):
        rows[place] = rows[place]._replace(d_fin=rng.choice((None, NO_MOMENT)))
    for place in some(WITHOUT_VET, lambda row: row.d_debut < old and row.statut == "T"):
        rows[place] = rows[place]._replace(id_veto=None)
    for place in some(WITHOUT_KIND, lambda row: row.id_type == CONSULTATION.id_type):
        rows[place] = rows[place]._replace(id_type=None)
    for place in some(UNDOCUMENTED, lambda row: row.d_debut < old and row.statut == "T"):
        rows[place] = rows[place]._replace(statut="Z")
    for place in some(WITHOUT_STATUS, lambda row: row.d_debut > now and row.statut == "P"):
        rows[place] = rows[place]._replace(statut=None)
    return rows
