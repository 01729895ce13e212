"""Stores the practice around a table of parties, with slot rows and moves of stock."""

from datetime import timedelta

from tests.adapters.draft.schemas.spelling import (
    BREEDS,
    LATER,
    PEOPLE,
    SPECIES,
    Put,
    day,
    finding,
    in_utc,
    on,
)
from tests.adapters.draft.schemas.world import SUPPLIERS, TYPES, VETS, World


def fill(world: World, put: Put) -> None:
    started = in_utc(on(2018, 12, 3, 9))
    put(
        "res_user",
        (
            (n, first.lower(), "x", f"{first} {last}", 1, started)
            for n, (_, first, last, _) in enumerate(PEOPLE, 1)
        ),
    )
    owners = {c.id: 200 + 2 * c.id for c in world.clients}
    staff = {key: 20 + key for key, *_ in PEOPLE}
    put(
        "party_party",
        [
            (staff[key], f"P{staff[key]}", first, last, 1, 1, started, started, 1)
            for key, first, last, _ in PEOPLE
        ]
        + [
            (60 + key, f"P{60 + key}", name, None, 0, 1, started, started, 1)
            for key, name in SUPPLIERS
        ]
        + [
            (
                owners[c.id],
                f"P{owners[c.id]}",
                c.first,
                c.last,
                1,
                1,
                in_utc(c.created),
                in_utc(c.updated),
                c.id % 7 + 1,
            )
            for c in world.clients
        ],
    )
    put("party_address", ((c.id, owners[c.id], c.street, *c.town, 1, 1) for c in world.clients))
    put(
        "party_contact_mechanism",
        [(2 * c.id, owners[c.id], "phone", c.phone, 1) for c in world.clients if c.phone]
        + [(2 * c.id + 1, owners[c.id], "email", c.email, 1) for c in world.clients if c.email]
        + [
            (1000 + c.id, owners[c.id], "fax", f"+49 30 777 {c.id:05}", 1)
            for c in world.clients
            if c.id % 9 == 0
        ],
    )
    put("vet_owner", ((c.id, owners[c.id], day(c.created)) for c in world.clients))
    put("vet_professional", ((key, staff[key], f"L-{key}") for key, *_ in VETS))
    put("vet_species", enumerate(SPECIES, 1))
    kinds = {p.breed: p.species for p in world.patients}
    put(
        "vet_breed",
        ((n, breed, SPECIES.index(kinds[breed]) + 1) for n, breed in enumerate(BREEDS, 1)),
    )
    put(
        "vet_patient",
        (
            (
                p.id,
                f"ANI-{p.id:06}",
                p.name,
                p.client.id,
                SPECIES.index(p.species) + 1,
                BREEDS.index(p.breed) + 1,
                p.sex.lower(),
                day(p.birth),
                p.died is not None,
                day(p.died),
                in_utc(p.created),
                in_utc(p.updated),
            )
            for p in world.patients
        ),
    )
    put("vet_visit_kind", TYPES)
    states = {"ARRIVED": "checked_in", "COMPLETED": "done", "CANCELLED": "user_cancelled"}
    put(
        "vet_appointment",
        [
            (
                a.id,
                a.patient.id,
                a.vet,
                a.type,
                in_utc(a.start),
                in_utc(a.end),
                states.get(a.status, a.status.lower()),
                "ab"[a.urgent],
                a.reason,
                in_utc(a.created),
                a.id % 7 + 1,
            )
            for a in world.appointments
        ]
        + [
            (
                5000 + n,
                None,
                VETS[n % 3][0],
                None,
                in_utc(at),
                in_utc(at + timedelta(minutes=30)),
                "free",
                "a",
                None,
                in_utc(on(2026, 2, 2, 12)),
                1,
            )
            for n in range(90)
            for at in [on(2026, 3, 9 + n // 18, 9) + timedelta(minutes=30 * (n % 18))]
        ],
    )
    put(
        "vet_evaluation",
        (
            (
                n,
                a.id,
                a.patient.id,
                a.vet,
                in_utc(a.start + LATER),
                in_utc(a.end),
                "signed" if a.id % 6 else "in_progress",
                finding(a),
                f"come back {a.reason}",
                in_utc(a.start + LATER),
            )
            for n, a in enumerate(world.seen, 1)
        ),
    )
    put(
        "account_invoice",
        [
            (
                i.id,
                i.number,
                "out",
                owners[i.client.id],
                "paid" if i.status == "PAID" else "posted",
                day(i.issued),
                i.net,
                i.tax,
                i.total,
                in_utc(i.issued),
            )
            for i in world.invoices
        ]
        + [
            (900 + n, f"S-{n}", "in", 60 + n % 3 + 1, "paid", "2025-05-06", 100, 19, 119, started)
            for n in range(1, 31)
        ],
    )
    put(
        "account_invoice_line",
        (
            (key, i.id, what, quantity, price, net)
            for i in world.invoices
            for key, _, what, quantity, price, _, net in i.lines
        ),
    )
    groups = sorted({p.category for p in world.products})
    put("product_category", enumerate(groups, 1))
    put(
        "product_template",
        (
            (
                100 + p.id,
                p.name,
                groups.index(p.category) + 1,
                p.sale,
                p.cost,
                p.unit,
                in_utc(p.updated),
            )
            for p in world.products
        ),
    )
    put("product_product", ((p.id, 100 + p.id, p.code) for p in world.products))
    put(
        "stock_location",
        [
            (1, "Supplier", "supplier", None),
            (2, "Customer", "customer", None),
            (3, "Warehouse", "view", None),
            (4, "Cabinet", "storage", 3),
            (5, "Fridge", "storage", 3),
        ],
    )
    put(
        "stock_move",
        (
            (
                key,
                p.id,
                *((1, 4) if change > 0 else (4, 2)),
                abs(change),
                state,
                day(when),
                in_utc(when),
            )
            for p in world.products
            for number, when, change in p.moves
            for key, state in ((number, "done"), (number + 5000, "draft"))
            if state == "done" or number % 10 == 1
        ),
    )
