"""Who owned which animal of the sample clinic when, and who only kept it."""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample.animals import Animal, Draft
from adapters.sample.people import Person
from adapters.sample.values import NO_DAY

HANDED_OVER = 40
KEEPERS = 30


class Ownership(NamedTuple):
    """A row of PROPRIETAIRES."""

    id_prop: int
    id_animal: int
    id_pers: int
    role: str
    dt_debut: str
    dt_fin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Herd:
    """All animals, and who owned which when."""

    animals: list[Animal]
    ownerships: list[Ownership]
    owners: dict[int, list[Ownership]]

    def owner_on(self, animal: int, day: date) -> int | None:
        """Whose animal it was on that day (half open: the day of leaving is the next one's)."""
        text = day.isoformat()
        for row in self.owners.get(animal, ()):
            if row.dt_debut <= text and (row.dt_fin == NO_DAY or text < row.dt_fin):
                return row.id_pers
        return None

    def patient_on(self, animal: Animal, day: date, *, planned: bool) -> bool:
        """Whether it could be brought on that day: known, alive, and owned if yet to come."""
        text = day.isoformat()
        dead = animal.dt_deces != NO_DAY and (planned or animal.dt_deces < text)
        if dead or animal.supprime or animal.dt_creation[:10] >= text:
            return False
        return not planned or (
            animal.actif == "O" and self.owner_on(animal.id_animal, day) is not None
        )


def make_herd(rng: Random, today: date, drafts: list[Draft], clients: list[Person]) -> Herd:
    """The animals with the dated rows of their owners and keepers, by first day."""
    owned = [(animal, owner) for animal, owner in drafts if owner is not None]
    rows = _owners(rng, today, owned, clients) + _keepers(rng, today, drafts, clients)
    rows.sort(key=lambda row: (row.dt_debut, row.id_animal, row.id_pers))
    ownerships = [row._replace(id_prop=number) for number, row in enumerate(rows, 1)]
    owners: dict[int, list[Ownership]] = {}
    for row in ownerships:
        if row.role == "P":
            owners.setdefault(row.id_animal, []).append(row)
    return Herd(animals=[animal for animal, _ in drafts], ownerships=ownerships, owners=owners)


def _known(rng: Random, clients: list[Person], animal: Animal, other: Person | None) -> Person:
    """A client, not `other`, who was one before the animal came; `clients` stand by entry."""
    count = bisect_right(clients, animal.dt_creation, key=lambda person: person.dt_creation)
    return rng.choice([person for person in clients[:count] if person is not other])


def _owners(
    rng: Random, today: date, owned: list[tuple[Animal, Person]], clients: list[Person]
) -> list[Ownership]:
    """One current owner each; some animals had another one before, without a gap."""
    old = (today - timedelta(days=200)).isoformat()
    settled = [animal for animal, owner in owned if animal.dt_creation < old and owner.actif == "O"]
    handed = {animal.id_animal for animal in rng.sample(settled, HANDED_OVER)}
    rows = []
    for animal, owner in owned:
        since = animal.dt_creation[:10]
        if animal.id_animal in handed:
            before = _known(rng, clients, animal, owner)
            first = date.fromisoformat(since)
            change = first + timedelta(days=rng.randrange(30, (today - first).days - 10))
            end = change.isoformat()
            rows.append(Ownership(0, animal.id_animal, before.id_pers, "P", since, end))
            since = end
        rows.append(Ownership(0, animal.id_animal, owner.id_pers, "P", since, NO_DAY))
    return rows


def _keepers(
    rng: Random, today: date, pairs: list[Draft], clients: list[Person]
) -> list[Ownership]:
    """Look-alikes of an owner: two animals without one have a keeper too."""
    old = (today - timedelta(days=100)).isoformat()
    known = [pair for pair in pairs if pair[0].dt_creation < old]
    orphans = [pair for pair in known if pair[1] is None][:2]
    others = rng.sample([pair for pair in known if pair[1]], KEEPERS - len(orphans))
    rows = []
    for animal, owner in orphans + others:
        keeper = _known(rng, clients, animal, owner)
        since = date.fromisoformat(animal.dt_creation[:10])
        since += timedelta(days=rng.randrange((today - since).days - 60))
        end = since + timedelta(days=rng.randrange(5, 50)) if owner and rng.random() < 0.4 else None
        until = end.isoformat() if end else NO_DAY
        rows.append(Ownership(0, animal.id_animal, keeper.id_pers, "D", since.isoformat(), until))
    return rows
