"""The people of the sample clinic: clients, vets and suppliers in one table of parties."""

from dataclasses import dataclass
from datetime import date
from random import Random
from typing import NamedTuple

from adapters.sample import vocabulary as words
from adapters.sample.values import YEAR, changed, flag, registered, stamp

ACTIVE_CLIENTS = 300
FORMER_CLIENTS = 12
ACTIVE_VETS = 6


class Person(NamedTuple):
    """A row of PERSONNES."""

    id_pers: int
    genre_pers: str
    civilite: str | None
    nom: str
    prenom: str | None
    raison_soc: str | None
    adresse1: str
    adresse2: str | None
    code_postal: str
    ville: str
    actif: str
    dt_creation: str
    dt_modif: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Everybody, and the groups that the other tables draw from."""

    persons: list[Person]

    def of(self, kind: str, *, active: bool) -> list[Person]:
        """Persons of one GENRE_PERS, by id."""
        wanted = (kind, flag(active))
        return [person for person in self.persons if (person.genre_pers, person.actif) == wanted]

    @property
    def lingering(self) -> Person:
        """The one former client whose animals still come."""
        return self.of("C", active=False)[0]


def make_people(rng: Random, today: date) -> People:
    """Everybody, numbered in the order in which they were entered, as an old table is."""
    drafts = [_client(rng, today, number) for number in range(ACTIVE_CLIENTS)]
    drafts += [_person(rng, today, "C", active=False) for _ in range(FORMER_CLIENTS)]
    drafts += [_person(rng, today, "V", active=True) for _ in range(ACTIVE_VETS)]
    drafts += [_person(rng, today, "V", active=False)]
    drafts += [_company(rng, today, "F", name) for name in words.SUPPLIERS]
    rng.shuffle(drafts)
    drafts.sort(key=lambda person: person.dt_creation)
    return People(
        persons=[draft._replace(id_pers=number) for number, draft in enumerate(drafts, 1)]
    )


def _client(rng: Random, today: date, number: int) -> Person:
    """An active client: first the companies, then the notable names, then the crowd."""
    companies = len(words.CLIENT_COMPANIES)
    if number < companies:
        return _company(rng, today, "C", words.CLIENT_COMPANIES[number])
    person = _person(rng, today, "C", active=True)
    if number >= companies + len(words.NOTABLE_CLIENTS):
        return person
    title, family, first = words.NOTABLE_CLIENTS[number - companies]
    return person._replace(civilite=title, nom=_family(rng, family), prenom=_padded(rng, first))


def _person(rng: Random, today: date, kind: str, *, active: bool) -> Person:
    """A private person; vets always have a first name, and they and former clients came early."""
    first = _padded(rng, rng.choice(words.FIRST_NAMES))
    client = kind == "C"
    created = registered(rng, today, oldest=15 * YEAR, newest=1 if client and active else 3 * YEAR)
    street, second, code, town = _address(rng)
    return Person(
        id_pers=0,
        genre_pers=kind,
        civilite=rng.choice(("M.", "Mme", "Mme", "M. et Mme", "", None)) if client else "Dr",
        nom=_family(rng, rng.choice(words.FAMILY_NAMES)),
        prenom="" if client and rng.random() < 0.06 else first,
        raison_soc=rng.choice((None, "")),
        adresse1=street,
        adresse2=second,
        code_postal=code,
        ville=town,
        actif=flag(active),
        dt_creation=stamp(created),
        dt_modif=changed(rng, created, today),
    )


def _company(rng: Random, today: date, kind: str, name: str) -> Person:
    """A company stands in the same columns: NOM empty, PRENOM NULL."""
    person = _person(rng, today, kind, active=True)
    return person._replace(civilite=None, nom="", prenom=None, raison_soc=_padded(rng, name))


def _family(rng: Random, name: str) -> str:
    """Half the desk types family names in capitals."""
    return _padded(rng, name.upper() if rng.random() < 0.5 else name)


def _padded(rng: Random, text: str) -> str:
    """Blanks around a third of the names."""
    if rng.random() > 1 / 3:
        return text
    before, after = rng.choice(((" ", ""), ("", " "), ("", "   "), (" ", " ")))
    return f"{before}{text}{after}"


def _address(rng: Random) -> tuple[str, str | None, str, str]:
    """Street, second line, postal code, town; a few know the town only."""
    code, town = rng.choice(words.TOWNS)
    street = f"{rng.randrange(1, 120)} {rng.choice(words.STREETS)}" if rng.random() > 0.03 else ""
    second = rng.choice(words.SECOND_LINES) if rng.random() < 0.15 else rng.choice((None, ""))
    return street, second, code, town.upper() if rng.random() < 0.3 else town
