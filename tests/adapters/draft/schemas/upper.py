"""Stores the practice in upper case, with Y and N, days and times of day apart."""

from typing import Any

from tests.adapters.draft.schemas.spelling import (
    BREEDS,
    CLOCK,
    LATER,
    PEOPLE,
    SPECIES,
    Put,
    day,
    finding,
    hours,
    stamp,
    yes,
)
from tests.adapters.draft.schemas.world import SUPPLIERS, TYPES, Patient, World


def fill(world: World, put: Put) -> None:
    put(
        "CLIENT",
        (
            (
                c.id,
                c.last,
                c.first,
                c.street,
                *reversed(c.town),
                c.phone,
                c.email,
                "Y",
                stamp(c.created),
            )
            for c in world.clients
        ),
    )

    def animal(p: Patient) -> tuple[Any, ...]:
        return (
            p.id,
            p.client.id,
            p.name,
            SPECIES.index(p.species) + 1,
            BREEDS.index(p.breed) + 1,
            p.sex,
            yes(p.neutered),
            day(p.birth),
            p.colour,
            p.weight,
            p.chip,
            yes(p.died is not None),
            stamp(p.created),
        )

    put("ANIMAL", map(animal, world.patients))
    put("SPECIES", ((n, name.title()) for n, name in enumerate(SPECIES, 1)))
    kinds = {p.breed: p.species for p in world.patients}
    put("BREED", ((n, SPECIES.index(kinds[each]) + 1, each) for n, each in enumerate(BREEDS, 1)))
    put(
        "STAFF",
        (
            (key, f"{first} {last}", "VET" if is_vet else "NURSE", "Y")
            for key, first, last, is_vet in PEOPLE
        ),
    )
    put("APPT_TYPE", TYPES)
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
        "APPOINTMENT",
        (
            (
                a.id,
                a.patient.id,
                a.vet,
                a.type,
                day(a.start),
                a.start.strftime(CLOCK),
                (a.end - a.start).seconds // 60,
                states.index(a.status),
                yes(a.urgent),
                a.reason,
                stamp(a.created),
                PEOPLE[a.id % 7][0],
            )
            for a in world.appointments
        ),
    )
    put(
        "VISIT",
        (
            (
                n,
                a.id,
                a.patient.id,
                a.vet,
                stamp(a.start + LATER),
                stamp(a.end) if a.id % 6 else "1900-01-01 00:00:00",
                finding(a),
            )
            for n, a in enumerate(world.seen, 1)
        ),
    )
    put(
        "INVOICE",
        (
            (
                i.id,
                i.number,
                i.client.id,
                stamp(i.issued),
                day(i.due),
                i.net,
                i.tax,
                i.total,
                i.paid,
                round(i.total - i.paid, 2),
            )
            for i in world.invoices
        ),
    )
    put(
        "INVOICE_LINE",
        (
            (key, i.id, pet.id, what, quantity, price, rate, 100 - rate, net)
            for i in world.invoices
            for key, pet, what, quantity, price, rate, net in i.lines
        ),
    )
    put(
        "ITEM",
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
                day(p.expires),
                p.supplier,
            )
            for p in world.products
        ),
    )
    put(
        "STOCK_MOVE",
        (
            (key, p.id, p.name, change, stamp(when))
            for p in world.products
            for key, when, change in p.moves
        ),
    )
    put("SUPPLIER", ((key, name, "Marienau") for key, name in SUPPLIERS))
    put("LOGIN", ((n, first, last, "x") for n, (_, first, last, _) in enumerate(PEOPLE, 1)))
    put("ROTA", hours(3, 4, 7))
