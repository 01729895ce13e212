"""Stores the practice in entities and acts, with names and values beside them."""

from collections.abc import Iterable
from typing import Any

from tests.adapters.draft.schemas.spelling import LATER, PEOPLE, Put, day, finding, on, stamp
from tests.adapters.draft.schemas.world import SUPPLIERS, TYPES, VETS, World


def fill(world: World, put: Put) -> None:
    client = {c.id: 1000 + 3 * c.id for c in world.clients}
    pet = {p.id: 2000 + 3 * p.id for p in world.patients}
    vet = {key: 100 + key for key, *_ in VETS}
    kind_of = {key: 200 + key for key, *_ in TYPES}
    product = {p.id: 3001 + 3 * p.id for p in world.products}
    begun = stamp(on(2018, 12, 3, 9))
    put("users", ((n, first.lower(), "x", 1) for n, (_, first, _, _) in enumerate(PEOPLE, 1)))
    put(
        "entities",
        [
            (
                client[c.id],
                "party.customer",
                f"{c.last},{c.first}",
                1,
                stamp(c.created),
                stamp(c.updated),
            )
            for c in world.clients
        ]
        + [
            (pet[p.id], "party.patient", p.name, 1, stamp(p.created), stamp(p.updated))
            for p in world.patients
        ]
        + [
            (vet[key], "party.veterinarian", f"{first} {last}", 1, begun, begun)
            for key, first, last in VETS
        ]
        + [(kind_of[key], "entity.visitType", name, 1, begun, begun) for key, name, _ in TYPES]
        + [(300 + key, "party.supplier", name, 1, begun, begun) for key, name in SUPPLIERS]
        + [
            (product[p.id], "product.medication", p.name, 1, begun, stamp(p.updated))
            for p in world.products
        ]
        + [
            (400 + n, "party.location", name, 1, begun, begun)
            for n, name in ((1, "Nord"), (2, "Süd"))
        ],
    )

    def details(key: int, **values: object) -> Iterable[tuple[Any, ...]]:
        kinds = {bool: "boolean", int: "int", float: "money"}
        for name, value in values.items():
            if value is not None:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                yield key, name, kinds.get(type(value), "string"), text

    sexes = {"M": "MALE", "F": "FEMALE", "U": "UNSPECIFIED"}
    put(
        "entity_details",
        [
            row
            for c in world.clients
            for row in details(client[c.id], firstName=c.first, lastName=c.last)
        ]
        + [
            row
            for p in world.patients
            for row in details(
                pet[p.id],
                species=p.species,
                breed=p.breed,
                sex=sexes[p.sex],
                desexed=p.neutered,
                dateOfBirth=day(p.birth),
                colour=p.colour,
                microchip=p.chip,
                deceased=p.died is not None,
            )
        ]
        + [row for key, _, minutes in TYPES for row in details(kind_of[key], minutes=minutes)]
        + [
            row
            for p in world.products
            for row in details(
                product[p.id], productCode=p.code, onHand=p.quantity, reorderLevel=p.least
            )
        ],
    )
    contacts = [
        (client[c.id], kind, detail)
        for c in world.clients
        for kind, detail in (
            ("contact.phone", c.phone),
            ("contact.email", c.email),
            ("contact.address", f"{c.street}, {' '.join(c.town)}"),
        )
        if detail
    ]
    put("contacts", ((n, *row, 1) for n, row in enumerate(contacts, 1)))
    links = [(client[p.client.id], pet[p.id], stamp(p.created), None) for p in world.patients]
    links += [
        (client[p.id % 120 + 1], pet[p.id], begun, stamp(p.created))
        for p in world.patients
        if p.id % 12 == 0
    ]
    located = [(401 + p.id % 2, pet[p.id], begun, None) for p in world.patients[:40]]
    put(
        "entity_links",
        (
            (n, kind, *row)
            for n, (kind, row) in enumerate(
                [("link.owner", row) for row in links]
                + [("link.location", row) for row in located],
                1,
            )
        ),
    )
    states = {"SCHEDULED": "PENDING", "ARRIVED": "CHECKED_IN"}
    visits = {a.id: 10_000 + 2 * a.id for a in world.appointments}
    exams = {a.id: 20_001 + 2 * a.id for a in world.seen}
    bills = {i.id: 30_000 + 7 * i.id for i in world.invoices}
    put(
        "acts",
        [
            (
                visits[a.id],
                "act.appointment",
                stamp(a.start),
                stamp(a.end),
                states.get(a.status, a.status),
                a.reason,
                stamp(a.created),
            )
            for a in world.appointments
        ]
        + [
            (
                exams[a.id],
                "act.consultation",
                stamp(a.start + LATER),
                None,
                "COMPLETED" if a.id % 6 else "IN_PROGRESS",
                a.reason,
                stamp(a.start + LATER),
            )
            for a in world.seen
        ]
        + [
            (
                bills[i.id],
                "act.invoice",
                stamp(i.issued),
                None,
                "PAID" if i.status == "PAID" else "POSTED",
                None,
                stamp(i.issued),
            )
            for i in world.invoices
        ],
    )
    put(
        "act_details",
        [row for a in world.seen for row in details(exams[a.id], diagnosis=finding(a))]
        + [row for i in world.invoices for row in details(bills[i.id], invoiceNumber=i.number)],
    )
    parts = [
        (kind, visits[a.id], entity)
        for a in world.appointments
        for kind, entity in (
            ("participation.customer", client[a.patient.client.id]),
            ("participation.patient", pet[a.patient.id]),
            ("participation.clinician", vet[a.vet]),
            ("participation.visitType", kind_of[a.type]),
        )
    ]
    parts += [
        (kind, exams[a.id], entity)
        for a in world.seen
        for kind, entity in (
            ("participation.patient", pet[a.patient.id]),
            ("participation.clinician", vet[a.vet]),
        )
    ]
    parts += [("participation.customer", bills[i.id], client[i.client.id]) for i in world.invoices]
    put("participations", ((n, *row) for n, row in enumerate(parts, 1)))
    put("act_amounts", ((bills[i.id], i.total, i.tax, i.paid) for i in world.invoices))
    put(
        "product_prices",
        (
            (2 * p.id + n, kind, "Unit price", p.sale if n else 5, product[p.id], begun)
            for p in world.products
            for n, kind in enumerate(("price.fixed", "price.unit"))
        ),
    )
