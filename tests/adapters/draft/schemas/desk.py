"""Stores the practice as a German product for the desktop has it."""

from datetime import datetime

from tests.adapters.draft.schemas.spelling import (
    GERMAN,
    GERMAN_STAMP,
    LATER,
    PEOPLE,
    Put,
    day,
    finding,
    hours,
    yes,
)
from tests.adapters.draft.schemas.world import SUPPLIERS, TYPES, World


def fill(world: World, put: Put) -> None:
    def at(moment: datetime) -> str:
        return moment.strftime(GERMAN_STAMP)

    put(
        "KUNDEN",
        (
            (
                c.id,
                "Frau" if c.id % 2 else "Herr",
                c.first,
                c.last,
                c.street,
                *c.town,
                c.phone,
                f"+49 30 777 {c.id:05}",
                c.email,
                at(c.created),
                "N",
            )
            for c in world.clients
        ),
    )
    kinds = {"dog": "Hund", "cat": "Katze", "rabbit": "Kaninchen"}
    put(
        "PATIENTEN",
        (
            (
                p.id,
                p.client.id,
                p.name,
                kinds[p.species],
                p.breed,
                p.sex.replace("F", "W"),
                yes(p.neutered, "JN"),
                day(p.birth, GERMAN),
                p.colour,
                p.weight,
                p.chip,
                yes(p.died is not None, "JN"),
            )
            for p in world.patients
        ),
    )
    put(
        "MITARB",
        (
            (key, f"{first} {last}", "TA" if is_vet else "TFA", f"{first[0]}{last[0]}")
            for key, first, last, is_vet in PEOPLE
        ),
    )
    states = dict(zip(("SCHEDULED", "CONFIRMED", "ARRIVED", "IN_PROGRESS"), "GBWI", strict=True))
    states |= {"COMPLETED": "E", "CANCELLED": "A", "NO_SHOW": "N"}
    put(
        "TERMIN",
        (
            (
                a.id,
                a.patient.id,
                a.vet,
                a.type,
                day(a.start, GERMAN),
                a.start.strftime("%H:%M"),
                (a.end - a.start).seconds // 60,
                states[a.status],
                yes(a.urgent, "JN"),
                a.reason,
                at(a.created),
            )
            for a in world.appointments
        ),
    )
    put("TERMART", TYPES)
    put(
        "KARTEI",
        (
            (n, a.patient.id, a.vet, a.id, at(a.start + LATER), finding(a), "o.B.", at(a.end))
            for n, a in enumerate(world.seen, 1)
        ),
    )
    bills = {"PAID": "B", "PARTIALLY_PAID": "T", "ISSUED": "O"}
    put(
        "RECHN",
        (
            (
                i.id,
                i.number,
                i.client.id,
                bills[i.status],
                at(i.issued),
                day(i.due, GERMAN),
                i.net,
                i.tax,
                i.total,
                i.paid,
            )
            for i in world.invoices
        ),
    )
    put(
        "RECHNPOS",
        ((key, i.id, pet.id, *line) for i in world.invoices for key, pet, *line in i.lines),
    )
    put(
        "ARTIKEL",
        (
            (
                p.id,
                p.name,
                p.category,
                p.code,
                p.unit,
                p.quantity,
                p.least,
                day(p.expires, GERMAN),
                p.sale,
                p.cost,
                p.place,
                p.batch,
                p.supplier,
            )
            for p in world.products
        ),
    )
    put("LIEF", ((key, name, "Marienau", "+49 30 888123") for key, name in SUPPLIERS))
    towns = sorted({c.town for c in world.clients})
    put("ORTE", ((n, *town) for n, town in enumerate(towns, 1)))
    put(
        "BENUTZER",
        ((n, first, "x", "01.03.2026 08:00") for n, (_, first, _, _) in enumerate(PEOPLE, 1)),
    )
    put("ARBZEIT", hours(3, 4, 7))
