"""Stores the practice as a French product has it, with side tables of codes."""

from datetime import timedelta

from tests.adapters.draft.schemas.spelling import (
    BREEDS,
    LATER,
    PEOPLE,
    SPECIES,
    Put,
    day,
    finding,
    hours,
    on,
    stamp,
)
from tests.adapters.draft.schemas.world import SUPPLIERS, TYPES, World


def fill(world: World, put: Put) -> None:
    begun = stamp(on(2018, 12, 3, 9))
    people = [
        (
            c.id + 50,
            "C",
            c.last,
            c.first,
            None,
            c.street,
            *c.town,
            0,
            stamp(c.created),
            stamp(c.updated),
        )
        for c in world.clients
    ]
    people += [
        (key, "V" if is_vet else "A", last, first, None, None, None, None, 0, begun, None)
        for key, first, last, is_vet in PEOPLE
    ]
    people += [
        (20 + key, "F", None, None, name, "Quai 1", "13001", "Port", 0, begun, None)
        for key, name in SUPPLIERS
    ]
    put("personnes", people)
    put("genres", (("C", "Client"), ("V", "Vétérinaire"), ("A", "Assistant"), ("F", "Fournisseur")))
    put(
        "telephones",
        [(2 * c.id, c.id + 50, "MOBILE", c.phone, 1) for c in world.clients if c.phone]
        + [
            (2 * c.id + 1, c.id + 50, "FAX", f"+33 1 777 {c.id:05}", 0)
            for c in world.clients
            if c.id % 4 == 0
        ],
    )
    put("courriels", ((c.id, c.id + 50, c.email) for c in world.clients if c.email))
    names = ("Chat", "Chien", "Lapin")
    put("especes", enumerate(names, 1))
    kinds = {p.breed: p.species for p in world.patients}
    put("races", ((n, SPECIES.index(kinds[breed]) + 1, breed) for n, breed in enumerate(BREEDS, 1)))
    put(
        "animaux",
        (
            (
                p.id,
                p.name,
                SPECIES.index(p.species) + 1,
                BREEDS.index(p.breed) + 1,
                p.sex.replace("U", "I"),
                p.neutered,
                day(p.birth),
                p.colour,
                p.weight,
                p.chip,
                day(p.died),
                0,
                stamp(p.created),
                stamp(p.updated),
            )
            for p in world.patients
        ),
    )
    owned = [(p.id, p.client.id + 50, stamp(p.created), None) for p in world.patients]
    owned += [
        (p.id, (p.client.id + 4) % 120 + 51, stamp(p.created - timedelta(300)), stamp(p.created))
        for p in world.patients
        if p.id % 9 == 0
    ]
    put("proprietaires", ((n, *row) for n, row in enumerate(owned, 1)))
    put("types_rdv", TYPES)
    labels = ["Planifié", "Confirmé", "Arrivé", "En cours", "Terminé", "Annulé", "Absent"]
    put("etats_rdv", enumerate(labels, 1))
    states = [
        "SCHEDULED",
        "CONFIRMED",
        "ARRIVED",
        "IN_PROGRESS",
        "COMPLETED",
        "CANCELLED",
        "NO_SHOW",
    ]
    put(
        "rendez_vous",
        (
            (
                a.id,
                a.patient.id,
                a.vet,
                a.type,
                stamp(a.start),
                stamp(a.end),
                states.index(a.status) + 1,
                a.urgent,
                a.reason,
                stamp(a.created),
            )
            for a in world.appointments
        ),
    )
    put(
        "consultations",
        (
            (
                n,
                a.id,
                a.patient.id,
                a.vet,
                stamp(a.start + LATER),
                stamp(a.end),
                finding(a),
                stamp(a.start + LATER),
            )
            for n, a in enumerate(world.seen, 1)
        ),
    )
    bills = {"PAID": "payée", "PARTIALLY_PAID": "partielle", "ISSUED": "émise"}
    put(
        "factures",
        (
            (
                i.id,
                i.number,
                i.client.id + 50,
                bills[i.status],
                stamp(i.issued),
                day(i.due),
                i.net,
                i.tax,
                i.total,
            )
            for i in world.invoices
        ),
    )
    put(
        "lignes_facture",
        ((key, i.id, pet.id, *line) for i in world.invoices for key, pet, *line in i.lines),
    )
    put(
        "reglements",
        (
            (key, i.id, stamp(when), amount, method)
            for i in world.invoices
            for key, when, amount, method in i.payments
        ),
    )
    put(
        "produits",
        (
            (
                p.id,
                p.name,
                p.category,
                p.code,
                p.unit,
                p.least,
                p.sale,
                p.cost,
                p.place,
                stamp(p.updated),
            )
            for p in world.products
        ),
    )
    put(
        "lots",
        (
            (2 * p.id + n, p.id, f"{p.batch}-{n}", left, day(p.expires + timedelta(40 * n)))
            for p in world.products
            for n, left in enumerate((p.quantity // 2, p.quantity - p.quantity // 2))
        ),
    )
    put(
        "utilisateurs",
        ((n, first.lower(), last, "x", "tous") for n, (_, first, last, _) in enumerate(PEOPLE, 1)),
    )
    towns = sorted({c.town for c in world.clients})
    put("villes", ((n, name, code) for n, (code, name) in enumerate(towns, 1)))
    put("horaires", hours(3, 4, 7))
