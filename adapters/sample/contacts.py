"""How to reach the people of the sample clinic: telephones, faxes and mail, used and given up."""

import unicodedata
from datetime import date, timedelta
from random import Random
from typing import NamedTuple

from adapters.sample import vocabulary as words
from adapters.sample.people import Person
from adapters.sample.values import desk_moment, flag, stamp, unstamp

CONTACTS = {  # kinds of rows per person, in the order of entry, and how common the set is
    "": 8,
    "T": 14,
    "M": 5,
    "TM": 30,
    "TTM": 20,
    "XTM": 8,
    "TMM": 5,
    "TTXM": 10,
}


class Contact(NamedTuple):
    """A row of COORDONNEES."""

    id_coord: int
    id_pers: int
    type: str
    valeur: str
    prefere: str
    actif: str
    dt_creation: str


def make_contacts(rng: Random, today: date, persons: list[Person]) -> list[Contact]:
    """The rows of everybody, person by person."""
    rows = [row for person in persons for row in _contacts(rng, person, today)]
    return [row._replace(id_coord=number) for number, row in enumerate(rows, 1)]


def _contacts(rng: Random, person: Person, today: date) -> list[Contact]:
    """The rows of one person: of two of a kind the first is usually given up, one is preferred."""
    (kinds,) = rng.choices(list(CONTACTS), list(CONTACTS.values()))
    since = unstamp(person.dt_creation).date()
    rows = []
    for position, kind in enumerate(kinds):
        superseded = kind in kinds[position + 1 :]
        active = rng.random() > (0.75 if superseded else 0.04)
        day = since + timedelta(days=rng.randrange((today - since).days))
        created = max(desk_moment(rng, day), unstamp(person.dt_creation))
        value = _reach(rng, person, kind)
        rows.append(Contact(0, person.id_pers, kind, value, "N", flag(active), stamp(created)))
    return _preferred(rng, rows)


def _preferred(rng: Random, rows: list[Contact]) -> list[Contact]:
    """Mark at most one row of each kind; now and then it is one that is no longer in use."""
    chosen = {row.type: number for number, row in enumerate(rows) if rng.random() < 0.55}
    return [
        row._replace(prefere=flag(chosen.get(row.type) == number))
        for number, row in enumerate(rows)
    ]


def _reach(rng: Random, person: Person, kind: str) -> str:
    """A telephone or fax number, or a mail address, that reaches nobody."""
    if kind == "M":
        name = person.raison_soc if not person.nom else f"{person.prenom} {person.nom}"
        return f"{_plain(name or '')}@{rng.choice(words.MAIL_DOMAINS)}"
    mobile = kind == "T" and rng.random() < 0.6
    prefix = words.MOBILE if mobile else rng.choice(words.LANDLINES)
    number = f"{prefix} {rng.randrange(100):02d} {rng.randrange(100):02d}"
    style = rng.random()
    if style < 0.6:
        return number
    if style < 0.8:
        return number.replace(" ", ".")
    return number.replace(" ", "") if style < 0.95 else f"+33 {number[1:]}"


def _plain(name: str) -> str:
    """A name as the local part of a mail address: ' Éléonore LEFÈVRE' is 'eleonore.lefevre'."""
    letters = unicodedata.normalize("NFKD", name.lower())
    kept = "".join(c if c.isascii() and c.isalnum() else " " for c in letters if c.isascii())
    return ".".join(kept.split())
