"""Everybody: clients, their homes and contacts, pets, vets, kinds of visit; and the stock."""

from collections.abc import Iterator
from datetime import timedelta
from random import Random

from adapters.sample import vocabulary as words
from examples.loading import Row
from examples.mariadb_eav.values import (
    FIRST_SUPPLIER,
    NO_DAY,
    NO_DAY_EITHER,
    NO_MOMENT,
    Ids,
    amount,
    old_day,
)
from examples.practice import KINDS, WARES, Practice
from examples.records import Animal, Client

Rows = Iterator[tuple[str, Row]]
SPECIES = ("DOG", "CAT", "RAB", "BIRD")
KIND_COLOURS = (0x2E86C1, 0x28B463, 0xCB4335, 0xF4D03F, 0x884EA0)
VETS = ("Peeters,Anke", "Maes,Joris", "Dubois,Céline", "Claes,Ruben", "Jacobs,Lotte")
PRODUCTS = 60


def party_rows(practice: Practice) -> Rows:
    """All parties and what is known of them."""
    ids = Ids(practice)
    yield from _house(practice, ids)
    rng = practice.stream("contacts")
    for client in practice.clients:
        yield from _client(rng, ids, client)
    for animal in practice.animals:
        yield from _pet(practice, ids, animal)


def _house(practice: Practice, ids: Ids) -> Rows:
    began = practice.takeover
    for number, (name, minutes, _) in enumerate(KINDS, 1):
        party = ids.type(number)
        yield "parties", (party, "TYPE", name, 1, began, None)
        yield "party_fields", (party, "MINUTES", "N", str(minutes))
        yield "party_fields", (party, "COLOUR", "N", str(KIND_COLOURS[number - 1]))
    for number in range(1, practice.vets + 1):
        party = ids.vet(number)
        yield "parties", (party, "VET", VETS[number % len(VETS)], 1, began, None)
        for each in ("Surgery", "Dentistry")[: number % 3]:
            yield "party_fields", (party, "SPECIALTY", "S", each)
    yield "parties", (ids.former_vet, "VET", "Willems,An", 0, began, practice.now)
    for number, name in enumerate(words.SUPPLIERS):
        yield "parties", (FIRST_SUPPLIER + number, "SUPP", name, 1, began, None)


def _client(rng: Random, ids: Ids, client: Client) -> Rows:
    party, home = ids.client(client.id), ids.home(client.id)
    name = client.last if client.first is None else f"{client.last},{client.first} "
    changed = client.changed or (None if client.id % 2 else NO_MOMENT)
    yield "parties", (party, "CUST", name, 0 if client.gone else 1, client.created, changed)
    yield "parties", (home, "HOME", f"Home {client.id}", 1, client.created, None)
    yield "links", (party, home, "HEAD", client.created.date(), NO_DAY_EITHER)
    if client.id % 4 == 1:  # the neighbour, who may fetch the animals, owns none of them
        neighbour = ids.client(client.id % len(ids.practice.clients) + 1)
        yield "links", (neighbour, home, "MEMBER", client.created.date(), NO_DAY)
    yield from _contacts(rng, party, client)


def _contacts(rng: Random, party: int, client: Client) -> Rows:
    """The one that no longer holds comes first, then a fax, then the ones that do."""
    at = client.created
    later = at + timedelta(days=30)

    def contact(kind: str, value: str, *, preferred: int = 0, active: int = 1, new: int = 0) -> Row:
        when = later if new else at
        return (party, kind, value, None, None, None, preferred, active, when)

    if client.id % 3 == 0:
        yield "contacts", contact("PHONE", f"{words.LANDLINES[0]} 00 00", preferred=1, active=0)
    if client.id % 5 == 0:
        yield "contacts", contact("FAX", f"{words.LANDLINES[1]} 11 11", preferred=1)
    if client.id % 10 != 1:
        if client.id % 2 == 0:  # the preferred one is older
            yield "contacts", contact("PHONE", client.phone, preferred=1)
        yield "contacts", contact("PHONE", f"{words.LANDLINES[2]} 22 22", new=1 - client.id % 2)
        if client.id % 2:
            yield "contacts", contact("PHONE", client.phone, new=1)
        yield "contacts", contact("EMAIL", client.email)
    second = rng.choice((None, "", "Bus 4"))
    row = (party, "ADDR", client.street, second, client.zip, client.town, 0, 1, at)
    yield "contacts", row


def _pet(practice: Practice, ids: Ids, animal: Animal) -> Rows:
    party = ids.pet(animal.id)
    active = 0 if animal.deleted else 1
    yield "parties", (party, "PET", animal.name, active, animal.created, None)
    yield from _lives(practice, ids, animal)
    for key, kind, value in _attributes(animal):
        if value is not None:
            yield "party_fields", (party, key, kind, value)


def _lives(practice: Practice, ids: Ids, animal: Animal) -> Rows:
    party, moved = ids.pet(animal.id), practice.sold
    began = animal.created.date()
    if animal.former is not None and began < moved:
        yield "links", (party, ids.home(animal.former), "LIVES_IN", began, moved)
        began = moved
    if animal.owner is not None:
        none = NO_DAY if animal.id % 2 else NO_DAY_EITHER
        yield "links", (party, ids.home(animal.owner), "LIVES_IN", began, none)


def _attributes(animal: Animal) -> Iterator[tuple[str, str, str | None]]:
    """Key, type tag and text; None where there is no row."""
    yield "SPECIES", "S", SPECIES[animal.species]
    yield "BREED", "S", animal.breed
    yield "SEX", "N", str(animal.sex)
    yield "NEUTERED", "S", {True: "Y", False: "N", None: None}[animal.neutered]
    if animal.born is not None:
        old = animal.id % 3 == 0
        yield "BORN", *(("E", old_day(animal.born)) if old else ("D", animal.born.isoformat()))
    yield "DIED", "D", NO_DAY_EITHER if animal.died is None else animal.died.isoformat()
    yield "COAT", "S", animal.coat
    if animal.grams is not None:
        light = animal.grams < 1_000
        kilos = f"{animal.grams / 1000:.1f}".replace(".", ",")
        yield "WEIGHT", *(("G", str(animal.grams)) if light else ("N", kilos))
    yield "CHIP", "S", animal.chip
    for alert in animal.alerts:
        yield "WARNING", "S", alert


def stock_rows(practice: Practice) -> Rows:
    """Products by their codes, their attributes, and the batches that make their quantity."""
    rng = practice.stream("stock")
    changed = practice.now - timedelta(days=3)
    for number in range(1, PRODUCTS + 1):
        ware = WARES[number % len(WARES)]
        code = f"{ware[:4].upper()}{number:03d}"
        name = f"{ware} {number * 5} mg"
        cost = rng.randrange(200, 150_000)
        supplier = FIRST_SUPPLIER + number % len(words.SUPPLIERS)
        prices = amount(cost * 3 // 2), amount(cost)
        edited = None if number % 4 else changed
        yield "products", (code, name, 0 if number % 20 == 0 else 1, *prices, supplier, edited)
        for key, kind, value in (
            ("GROUP", "S", "FOOD" if "food" in ware else "MED"),
            ("UNIT", "S", rng.choice(("box", "vial"))),
            ("SHELF", "S", f"K{number % 7}"),
            ("MIN", "N", rng.choice(("2,5", "8", "10", "25", "100"))),
        ):
            if key != "MIN" or number % 6:
                yield "product_fields", (code, key, kind, value)
        for batch in range(number % 4):
            day = practice.today + timedelta(days=30 * (batch + 1) + number)
            expires = NO_DAY_EITHER if batch == 0 else day
            left = rng.choice((0, 4, 9, 30)) if batch else 2.5
            yield "batches", (code, f"L{number:03d}-{batch}", left, expires)
