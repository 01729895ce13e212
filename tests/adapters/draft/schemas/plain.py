"""Stores the practice in one table per thing, with every time in UTC."""

from tests.adapters.draft.schemas.spelling import (
    LATER,
    PEOPLE,
    Put,
    day,
    finding,
    hours,
    in_utc,
    on,
)
from tests.adapters.draft.schemas.world import TYPES, VETS, World


def fill(world: World, put: Put) -> None:
    started = in_utc(on(2019, 1, 2, 9))
    put(
        "users",
        (
            (n, f"{first}@clinic.example".lower(), "x", f"{first} {last}", "member", None, started)
            for n, (_, first, last, _) in enumerate(PEOPLE, 1)
        ),
    )
    put("veterinarians", ((key, n, first, last, 1) for n, (key, first, last) in enumerate(VETS, 1)))
    put(
        "clients",
        (
            (
                c.id,
                c.first,
                c.last,
                c.phone,
                c.email,
                c.street,
                *c.town,
                in_utc(c.created),
                in_utc(c.updated),
            )
            for c in world.clients
        ),
    )
    sexes = {"M": "male", "F": "female", "U": "unknown"}
    put(
        "pets",
        (
            (
                p.id,
                p.client.id,
                p.name,
                p.species,
                p.breed,
                sexes[p.sex],
                p.neutered,
                day(p.birth),
                p.colour,
                p.weight,
                p.chip,
                day(p.died),
                in_utc(p.created),
                in_utc(p.updated),
            )
            for p in world.patients
        ),
    )
    put("appointment_types", TYPES)
    put(
        "appointments",
        (
            (
                a.id,
                a.patient.id,
                a.vet,
                a.type,
                in_utc(a.start),
                in_utc(a.end),
                a.status.lower(),
                a.urgent,
                a.reason,
                a.id % 7 + 1,
                in_utc(a.created),
                in_utc(a.created + LATER),
            )
            for a in world.appointments
        ),
    )
    put(
        "medical_records",
        (
            (
                n,
                a.id,
                a.patient.id,
                a.vet,
                in_utc(a.start + LATER),
                in_utc(a.end),
                finding(a),
                in_utc(a.start + 2 * LATER),
            )
            for n, a in enumerate(world.seen, 1)
        ),
    )
    put(
        "invoices",
        (
            (
                i.id,
                i.number,
                i.client.id,
                i.status.lower(),
                in_utc(i.issued),
                day(i.due),
                i.net,
                i.tax,
                i.total,
                in_utc(i.issued - LATER),
            )
            for i in world.invoices
        ),
    )
    put(
        "invoice_items",
        ((key, i.id, pet.id, *line) for i in world.invoices for key, pet, *line in i.lines),
    )
    put(
        "payments",
        (
            (key, i.id, in_utc(when), amount, method)
            for i in world.invoices
            for key, when, amount, method in i.payments
        ),
    )
    put(
        "products",
        (
            (
                p.id,
                p.name,
                p.category,
                p.code,
                p.unit,
                p.quantity,
                p.least,
                day(p.expires),
                p.sale,
                p.cost,
                in_utc(p.updated),
            )
            for p in world.products
        ),
    )
    put(
        "stock_movements",
        (
            (key, p.id, p.name, change, in_utc(when))
            for p in world.products
            for key, when, change in p.moves
        ),
    )
    kinds = ("list", "friends", "staff")
    put(
        "price_lists",
        (
            (p.id * 3 + n, p.id, kind, p.sale - n, "2025-01-01")
            for p in world.products
            for n, kind in enumerate(kinds)
        ),
    )
    put("working_hours", hours(3, 4, 7))
