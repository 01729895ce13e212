"""Contacts, patients with their owners through the years, staff, and the labels of all codes."""

from collections.abc import Iterator
from datetime import timedelta

from adapters.sample import vocabulary as words
from examples.loading import Row
from examples.postgres_slots.values import FORMER_VET, NURSE, epoch, patient_id, utc
from examples.practice import Practice
from examples.records import Animal, Client

Rows = Iterator[tuple[str, Row]]
SPECIES = ("canis", "felis", "lepus", "avis")
STAFF = ("Aalto, Aino", "Korhonen, Eero", "Laine, Helmi", "Niemi, Onni", "Virtanen, Saara")
LABELS = {
    "Species": {
        "canis": ("Dog", "Koira"),
        "felis": ("Cat", "Kissa"),
        "lepus": ("Rabbit", "Kani"),
        "avis": ("Bird", "Lintu"),
    },
    "State": {
        "1": ("Booked", "Varattu"),
        "2": ("Confirmed", "Vahvistettu"),
        "3": ("In the waiting room", "Odottaa"),
        "4": ("Being seen", "Vastaanotolla"),
        "5": ("Done", "Valmis"),
        "8": ("Called off", "Peruttu"),
        "9": ("Did not come", "Ei tullut"),
    },
    "Group": {"1": ("Medicine", "Lääke"), "2": ("Food", "Ruoka")},
}


def register_rows(practice: Practice) -> Rows:
    """Who is who."""
    yield from _labels()
    for client in practice.clients:
        yield "Contact", _contact(client)
    owned = 0
    for animal in practice.animals:
        yield from _patient(practice, animal)
        for row in _owners(practice, animal):
            owned += 1
            yield "Ownership", (owned, *row)
    yield from _staff(practice)


def _labels() -> Rows:
    for table, labels in LABELS.items():
        for key, (english, finnish) in labels.items():
            yield "Label", (table, key, "en", english)
            yield "Label", (table, key, "fi", finnish)
    number = 0
    for species, code in enumerate(SPECIES):
        yield "Species", (species + 1, code)
        for breed in words.BREEDS[words.SPECIES[species][0]]:
            number += 1
            yield "Breed", (number, species + 1, breed)


BREEDS = [
    (species, breed)
    for species in range(len(SPECIES))
    for breed in words.BREEDS[words.SPECIES[species][0]]
]


def _contact(client: Client) -> Row:
    """A company has no last name; the mobile number goes before the one at home, never the fax."""
    company = client.last if client.first is None else None
    mobile = client.phone if client.id % 3 else ""
    home = f"{words.LANDLINES[0]} 33 33" if client.id % 2 else None
    mails = (client.email, f" {client.email}; other{client.id}@example.org", None)[client.id % 3]
    state = "DELETED" if client.gone else "ACTIVE"
    changed = None if client.changed is None else utc(client.changed)
    return (
        client.id, client.first, "" if company else client.last, company, home, mobile,
        f"{words.LANDLINES[1]} 44 44", mails, client.street,
        "PL 12" if client.id % 4 == 0 else "", client.zip, client.town, (14, None)[client.id % 2],
        state, utc(client.created), changed,
    )  # fmt: skip


def _patient(practice: Practice, animal: Animal) -> Rows:
    key = patient_id(animal.id)
    breed = BREEDS.index((animal.species, animal.breed)) + 1
    neutered = {True: -1, False: 0, None: None}[animal.neutered]
    hide = True if animal.deleted else (None, False)[animal.id % 2]
    yield (
        "Patient",
        (key, animal.name, animal.species + 1, breed, animal.sex, neutered, animal.born,
         animal.died, animal.coat, animal.chip, hide, epoch(animal.created)),
    )  # fmt: skip
    if animal.grams is not None:
        first = utc(animal.created)
        yield "Weighing", (key, first + timedelta(days=2), animal.grams)
        yield "Weighing", (key, first + timedelta(days=1), animal.grams // 2)
    for place, alert in enumerate(animal.alerts):
        yield "Alert", (key, place, alert)


def _owners(practice: Practice, animal: Animal) -> Iterator[Row]:
    """Where it was bred, who had it before, who has it now, who cares for it on holidays."""
    key, began = patient_id(animal.id), animal.created.date()
    clients = len(practice.clients)
    if animal.id % 9 == 0:
        yield (key, animal.id % clients + 1, "BREEDER", began, None)
    moved = practice.sold
    if animal.former is not None and began < moved:
        yield (key, animal.former, "OWNER", began, moved)
        began = moved
    if animal.owner is not None:
        yield (key, animal.owner, "OWNER", began, None)
    if animal.id % 7 == 0:
        yield (key, (animal.id + 3) % clients + 1, "CARER", practice.today, None)


def _staff(practice: Practice) -> Rows:
    for number in range(1, practice.vets + 1):
        yield "Staff", (number, "Dr" if number % 2 else None, STAFF[number % len(STAFF)], None)
        yield "StaffFunction", (number, "VET")
        if number % 2:
            yield "StaffFunction", (number, "SURGEON")
    yield "Staff", (FORMER_VET, "Dr", "Heikkinen, Ilmari", practice.today - timedelta(days=90))
    yield "StaffFunction", (FORMER_VET, "VET")
    yield "Staff", (NURSE, None, "Mäki, Tuula", None)
    yield "StaffFunction", (NURSE, "NURSE")
