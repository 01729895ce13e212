"""The animals of the sample clinic, and what is known of them that has no column."""

from datetime import date, datetime, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample import vocabulary as words
from adapters.sample.people import People, Person
from adapters.sample.values import (
    NO_DAY,
    YEAR,
    Extra,
    changed,
    desk_moment,
    flag,
    quantity,
    stamp,
    takeover,
    unstamp,
)

FATES = {"well": 398, "dead": 24, "dead, still active": 4, "moved away": 24, "deleted": 10}
LINGERING = 2  # animals of the former client who still comes
ORPHANS = 5


class Animal(NamedTuple):
    """A row of ANIMAUX."""

    id_animal: int
    nom: str
    code_esp: str
    race: str | None
    sexe: str
    sterilise: str | None
    dt_naissance: str
    dt_deces: str
    actif: str
    supprime: int
    dt_creation: str
    dt_modif: str | None


Draft = tuple[Animal, Person | None]  # an animal and its owner of today


def make_animals(rng: Random, today: date, people: People) -> list[Draft]:
    """Every animal, by entry; the first drafts are the special ones, the others' fate is by lot."""
    clients = people.of("C", active=True)
    special = LINGERING + ORPHANS
    fates = [fate for fate, count in FATES.items() for _ in range(count)]
    fates = fates[:special] + rng.sample(fates[special:], len(fates) - special)
    owners: list[Person | None] = [people.lingering] * LINGERING + [None] * ORPHANS
    owners += [rng.choice(clients) for _ in fates[special:]]
    drafts = [
        (_animal(rng, today, owner, fate), owner) for owner, fate in zip(owners, fates, strict=True)
    ]
    drafts.sort(key=lambda draft: draft[0].dt_creation)
    return [
        (row._replace(id_animal=number), owner) for number, (row, owner) in enumerate(drafts, 1)
    ]


def make_extras(rng: Random, animals: list[Animal]) -> list[Extra]:
    """The extra fields of all animals."""
    return [row for animal in animals for row in _extras(rng, animal)]


def _animal(rng: Random, today: date, owner: Person | None, fate: str) -> Animal:
    """One animal; it was entered after its owner was, and died, if so, after it was entered."""
    (species,) = rng.choices([code for code, _ in words.SPECIES], words.SPECIES_WEIGHTS)
    first = unstamp(owner.dt_creation) if owner else takeover(today) + timedelta(days=900)
    created = _entered(rng, first, today)
    if owner and owner.actif == "N":
        created = first + timedelta(days=20)
    born = created.date() - timedelta(days=int(60 + 9 * YEAR * rng.random() ** 3))
    dies = fate.startswith("dead")
    left = (today - created.date()).days
    death = created.date() + timedelta(days=rng.randrange(left)) if dies else None
    return Animal(
        id_animal=0,
        nom=rng.choice(words.ANIMAL_NAMES),
        code_esp=species,
        race=rng.choice(words.BREEDS[species]) if rng.random() < 0.9 else rng.choice(("", None)),
        sexe=rng.choices("MFI", (47, 47, 6))[0],
        sterilise=rng.choices(("O", "N", None), (50, 30, 20))[0],
        dt_naissance=NO_DAY if rng.random() < 0.08 else born.isoformat(),
        dt_deces=death.isoformat() if death else NO_DAY,
        actif=flag(fate not in ("dead", "moved away")),
        supprime=int(fate == "deleted"),
        dt_creation=stamp(created),
        dt_modif=changed(rng, created, today),
    )


def _entered(rng: Random, first: datetime, today: date) -> datetime:
    """Some day from the owner's own entry to yesterday; the old ones came over with the owner."""
    days = (today - first.date()).days
    return max(first, desk_moment(rng, first.date() + timedelta(days=rng.randrange(days))))


def _extras(rng: Random, animal: Animal) -> list[Extra]:
    """Coat, weight, chip and alerts; each is missing for part of the animals."""

    def extra(field: str, kind: str, value: str) -> Extra:
        return Extra(0, "ANIMAUX", animal.id_animal, field, kind, value)

    lightest, heaviest = words.WEIGHTS[animal.code_esp]
    alerts = ";".join(rng.sample(words.ALERTS, rng.choice((1, 1, 2, 3))))
    chipped = 0.75 if animal.code_esp in words.CARNIVORES else 0.15
    chances = (
        (0.8, extra("ROBE", "T", rng.choice(words.COATS))),
        (0.75, extra("POIDS", "N", quantity(rng.randint(lightest, heaviest)))),
        (chipped, extra("PUCE", "T", f"2502690{rng.randrange(10**8):08d}")),
        (0.15, extra("ALERTES", "T", alerts)),
    )
    return [row for chance, row in chances if rng.random() < chance]
