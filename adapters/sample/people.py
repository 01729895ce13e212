"""Makes the people and animals of the sample clinic, their contacts, owners and keepers."""

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from adapters.sample import vocabulary as words
from adapters.sample.rows import NO_DAY, YEAR, Chance, Row, flag, numbered, quantity, row_of, stamp

ACTIVE_CLIENTS = 300
FORMER_CLIENTS = 12
ACTIVE_VETS = 6
# The kinds of a person's rows in the order of entry, and the weight of each set.
CONTACTS = {"": 8, "T": 14, "M": 5, "TM": 30, "TTM": 20, "XTM": 8, "TMM": 5, "TTXM": 10}
FATES = {"well": 398, "dead": 24, "dead, still active": 4, "moved away": 24, "deleted": 10}
LINGERING = 2  # animals of the former client who still comes
ORPHANS = 5
HANDED_OVER = 40
KEEPERS = 30

Person, Animal, Ownership = map(row_of, ("PERSONNES", "ANIMAUX", "PROPRIETAIRES"))
Owned = tuple[Row, Row | None]  # an animal and its owner of today


def of_kind(persons: list[Row], kind: str, *, active: bool) -> list[Row]:
    """Returns the persons of one GENRE_PERS, in their order."""
    marks = (kind, flag(active))
    return [person for person in persons if (person.genre_pers, person.actif) == marks]


def lingering(persons: list[Row]) -> Row:
    """Returns the one former client whose animals still come."""
    return of_kind(persons, "C", active=False)[0]


def make_people(rng: Chance) -> list[Row]:
    """Returns all persons, numbered in the order in which they were entered."""
    persons = [_company(rng, "C", name) for name in words.CLIENT_COMPANIES]
    for title, family, first in words.NOTABLE_CLIENTS:
        named = _person(rng, "C", active=True)._replace(civilite=title)
        persons += [named._replace(nom=_family(rng, family), prenom=_padded(rng, first))]
    kinds = [("C", True)] * (ACTIVE_CLIENTS - len(persons)) + [("C", False)] * FORMER_CLIENTS
    kinds += [("V", True)] * ACTIVE_VETS + [("V", False)]
    persons += [_person(rng, kind, active=active) for kind, active in kinds]
    persons += [_company(rng, "F", name) for name in words.SUPPLIERS]
    rng.shuffle(persons)
    persons.sort(key=lambda person: person.dt_creation)
    return [row._replace(id_pers=number) for number, row in enumerate(persons, 1)]


def _person(rng: Chance, kind: str, *, active: bool) -> Row:
    first = _padded(rng, rng.choice(words.FIRST_NAMES))
    client = kind == "C"
    created = rng.registered(oldest=15 * YEAR, newest=1 if client and active else 3 * YEAR)
    code, town = rng.choice(words.TOWNS)
    street = f"{rng.randrange(1, 120)} {rng.choice(words.STREETS)}" if rng.random() > 0.03 else ""
    second = rng.choice(words.SECOND_LINES) if rng.random() < 0.15 else rng.choice((None, ""))
    town = town.upper() if rng.random() < 0.3 else town
    return Person(
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
        dt_modif=rng.changed(created),
    )


def _company(rng: Chance, kind: str, name: str) -> Row:
    """Returns a company, which uses a person's columns: NOM is empty and PRENOM NULL."""
    person = _person(rng, kind, active=True)
    return person._replace(civilite=None, nom="", prenom=None, raison_soc=_padded(rng, name))


def _family(rng: Chance, name: str) -> str:
    return _padded(rng, name.upper() if rng.random() < 0.5 else name)


def _padded(rng: Chance, text: str) -> str:
    if rng.random() > 1 / 3:
        return text
    before, after = rng.choice(((" ", ""), ("", " "), ("", "   "), (" ", " ")))
    return f"{before}{text}{after}"


def make_contacts(rng: Chance, persons: list[Row]) -> list[Row]:
    """Returns the rows of COORDONNEES, person by person.

    The first of two rows of a kind is usually inactive. At most one of each kind is preferred,
    sometimes an inactive one.
    """
    contacts = list[Row]()
    for person in persons:
        (kinds,) = rng.choices(list(CONTACTS), list(CONTACTS.values()))
        since, rows = date.fromisoformat(person.dt_creation[:10]), []
        for position, kind in enumerate(kinds):
            active = rng.random() > (0.75 if kind in kinds[position + 1 :] else 0.04)
            day = since + timedelta(days=rng.randrange((rng.today - since).days))
            created = max(stamp(rng.at_desk(day)), person.dt_creation)
            rows.append((kind, _reach(rng, person, kind), flag(active), created))
        preferred = {kind: place for place, kind in enumerate(kinds) if rng.random() < 0.55}
        contacts += [
            (person.id_pers, kind, value, flag(preferred.get(kind) == place), active, created)
            for place, (kind, value, active, created) in enumerate(rows)
        ]
    return numbered(contacts)


def _reach(rng: Chance, person: Row, kind: str) -> str:
    """Returns a telephone or fax number or an e-mail address that reaches nobody."""
    if kind == "M":  # ' Éléonore LEFÈVRE' is 'eleonore.lefevre'
        name = person.raison_soc if not person.nom else f"{person.prenom} {person.nom}"
        letters = unicodedata.normalize("NFKD", (name or "").lower())
        kept = "".join(c if c.isalnum() else " " for c in letters if c.isascii())
        return f"{'.'.join(kept.split())}@{rng.choice(words.MAIL_DOMAINS)}"
    mobile = kind == "T" and rng.random() < 0.6
    prefix = words.MOBILE if mobile else rng.choice(words.LANDLINES)
    number = f"{prefix} {rng.randrange(100):02d} {rng.randrange(100):02d}"
    style = rng.random()
    if style < 0.8:
        return number if style < 0.6 else number.replace(" ", ".")
    return number.replace(" ", "") if style < 0.95 else f"+33 {number[1:]}"


def make_animals(rng: Chance, persons: list[Row]) -> list[Owned]:
    """Returns every animal with its owner, in the order of entry."""
    clients = of_kind(persons, "C", active=True)
    special = LINGERING + ORPHANS
    fates = [fate for fate, count in FATES.items() for _ in range(count)]
    fates = fates[:special] + rng.sample(fates[special:], len(fates) - special)
    owners: list[Row | None] = [lingering(persons)] * LINGERING + [None] * ORPHANS
    owners += [rng.choice(clients) for _ in fates[special:]]
    owned = [(_animal(rng, owner, fate), owner) for owner, fate in zip(owners, fates, strict=True)]
    owned.sort(key=lambda pair: pair[0].dt_creation)
    return [(row._replace(id_animal=number), owner) for number, (row, owner) in enumerate(owned, 1)]


def _animal(rng: Chance, owner: Row | None, fate: str) -> Row:
    """Returns an animal that was entered after its owner was, and died after that if it is dead."""
    (species,) = rng.choices([code for code, _ in words.SPECIES], words.SPECIES_WEIGHTS)
    known = stamp(rng.takeover + timedelta(days=900))
    first = datetime.fromisoformat(owner.dt_creation if owner else known)
    days = rng.randrange((rng.today - first.date()).days)
    # an old animal came over with its owner
    created = max(first, rng.at_desk(first.date() + timedelta(days=days)))
    if owner and owner.actif == "N":
        created = first + timedelta(days=20)
    born = created.date() - timedelta(days=int(60 + 9 * YEAR * rng.random() ** 3))
    left = (rng.today - created.date()).days
    is_dead = fate.startswith("dead")
    death = created.date() + timedelta(days=rng.randrange(left)) if is_dead else None
    return Animal(
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
        dt_modif=rng.changed(created),
    )


def make_extras(rng: Chance, animals: list[Row]) -> list[Row]:
    """Returns the rows of CHAMPS_SUPPL without their keys; each is missing for some animals."""
    rows: list[Row] = []
    for animal in animals:
        lightest, heaviest = words.WEIGHTS[animal.code_esp]
        alerts = ";".join(rng.sample(words.ALERTS, rng.choice((1, 1, 2, 3))))
        chipped = 0.75 if animal.code_esp in words.CARNIVORES else 0.15
        for chance, *extra in (
            (0.8, "ROBE", "T", rng.choice(words.COATS)),
            (0.75, "POIDS", "N", quantity(rng.randint(lightest, heaviest))),
            (chipped, "PUCE", "T", f"2502690{rng.randrange(10**8):08d}"),
            (0.15, "ALERTES", "T", alerts),
        ):
            if rng.random() < chance:
                rows.append(("ANIMAUX", animal.id_animal, *extra))
    return rows


@dataclass(frozen=True, slots=True)
class Herd:
    """All animals, and their owners over time."""

    animals: list[Row]
    ownerships: list[Row]
    owners: dict[int, list[Row]]

    def owner_on(self, animal: int, day: str) -> int | None:
        """Returns whose animal it was on that day; the day of leaving is the next owner's."""
        rows = (row for row in self.owners.get(animal, ()) if row.dt_debut <= day)
        owners = (row.id_pers for row in rows if row.dt_fin == NO_DAY or day < row.dt_fin)
        return next(owners, None)

    def patient_on(self, animal: Row, day: date, *, planned: bool) -> bool:
        """Returns whether it could come that day: known, alive, and owned where it is `planned`."""
        text = day.isoformat()
        dead = animal.dt_deces != NO_DAY and (planned or animal.dt_deces < text)
        if dead or animal.supprime or animal.dt_creation[:10] >= text:
            return False
        return not planned or (
            animal.actif == "O" and self.owner_on(animal.id_animal, text) is not None
        )


def make_herd(rng: Chance, owned: list[Owned], clients: list[Row]) -> Herd:
    """Returns the animals with the rows of their owners and keepers, by first day."""
    rows = _owners(rng, owned, clients) + _keepers(rng, owned, clients)
    rows.sort(key=lambda row: (row.dt_debut, row.id_animal, row.id_pers))
    ownerships = [row._replace(id_prop=number) for number, row in enumerate(rows, 1)]
    owners: dict[int, list[Row]] = {}
    for row in ownerships:
        if row.role == "P":
            owners.setdefault(row.id_animal, []).append(row)
    return Herd([animal for animal, _ in owned], ownerships, owners)


def _known(rng: Chance, clients: list[Row], animal: Row, other: Row | None) -> Row:
    """Returns a client, not `other`, entered before the animal; `clients` are in that order."""
    count = bisect_right(clients, animal.dt_creation, key=lambda person: person.dt_creation)
    return rng.choice([person for person in clients[:count] if person is not other])


def _owners(rng: Chance, pairs: list[Owned], clients: list[Row]) -> list[Row]:
    """Returns a current owner for each owned animal, and for some a former one before it."""
    old = rng.ago(200).isoformat()
    owned = [(animal, owner) for animal, owner in pairs if owner is not None]
    settled = [animal for animal, owner in owned if animal.dt_creation < old and owner.actif == "O"]
    handed = {animal.id_animal for animal in rng.sample(settled, HANDED_OVER)}
    rows = []
    for animal, owner in owned:
        since = animal.dt_creation[:10]
        if animal.id_animal in handed:
            before = _known(rng, clients, animal, owner)
            first = date.fromisoformat(since)
            days = rng.randrange(30, (rng.today - first).days - 10)
            end = (first + timedelta(days=days)).isoformat()
            rows.append(Ownership(0, animal.id_animal, before.id_pers, "P", since, end))
            since = end
        rows.append(Ownership(0, animal.id_animal, owner.id_pers, "P", since, NO_DAY))
    return rows


def _keepers(rng: Chance, pairs: list[Owned], clients: list[Row]) -> list[Row]:
    """Returns keepers, who look like owners; two animals without an owner have one too."""
    old = rng.ago(100).isoformat()
    known = [pair for pair in pairs if pair[0].dt_creation < old]
    orphans = [pair for pair in known if pair[1] is None][:2]
    rows = []
    for animal, owner in orphans + rng.sample([p for p in known if p[1]], KEEPERS - len(orphans)):
        keeper = _known(rng, clients, animal, owner)
        since = date.fromisoformat(animal.dt_creation[:10])
        since += timedelta(days=rng.randrange((rng.today - since).days - 60))
        end = since + timedelta(days=rng.randrange(5, 50)) if owner and rng.random() < 0.4 else None
        until = end.isoformat() if end else NO_DAY
        rows.append(Ownership(0, animal.id_animal, keeper.id_pers, "D", since.isoformat(), until))
    return rows
