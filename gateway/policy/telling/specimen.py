"""Specimens: made-up records with a value in every field, always the same, valid by the contract.

Nothing of them is a clinic's: they show what a policy does, in previews, panels and tests.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID, uuid5

from adapters.base import Record
from gateway.contract import fields as formats
from gateway.contract.fields import Field, Resource

_NAMESPACE = UUID("6f1a7c52-3d0e-5b8a-9c41-2e7d8f6b0a13")
# How many items a list of objects has.
ITEMS = 2

# A value for each field that is no id; below a list of objects one for each item. Where a value
# could be the same under a mask (a first of January, a round sum), another one was taken.
_VALUES: Mapping[str, Mapping[str, Any]] = {
    "appointments": {
        "status": "SCHEDULED",
        "displayStatus": "Scheduled",
        "scheduledAt": "2026-03-12T09:30:00Z",
        "endTime": "2026-03-12T10:00:00Z",
        "isUrgent": False,
        "createdAt": "2026-03-02T14:05:00Z",
        "reason": "Limps on the left foreleg since Sunday",
    },
    "clients": {
        "firstName": "Anna",
        "lastName": "Martin",
        "phone": "06 12 34 56 78",
        "email": "anna.martin@example.org",
        "createdAt": "2019-05-14T08:12:00Z",
        "updatedAt": "2026-02-20T16:40:00Z",
        "address": "12 rue des Lilas, 75011 Paris",
    },
    "patients": {
        "name": "Biscotte",
        "species": "Dog",
        "status": "ACTIVE",
        "breed": "Beagle",
        "sex": "FEMALE",
        "neutered": True,
        "birthDate": "2020-06-18",
        "color": "Tricolour",
        "weightKg": 12.4,
        "createdAt": "2020-08-03T10:20:00Z",
        "updatedAt": "2026-02-20T16:40:00Z",
        "microchip": "250269604123456",
        "alerts": ["Bites when its paws are touched", "Allergic to penicillin"],
    },
    "consultations": {
        "status": "VALIDATED",
        "importance": "IMPORTANT",
        "startedAt": "2026-03-12T09:34:00Z",
        "validatedAt": "2026-03-12T10:21:00Z",
        "createdAt": "2026-03-12T09:33:00Z",
        "ownerSummary": "Biscotte was seen for a limp; nothing is broken.",
        "ownerDiagnosis": "A sprain of the left carpus",
        "ownerInstructions": "Rest for ten days, short walks on a lead.",
    },
    "invoices": {
        "number": "2026-0412",
        "status": "PARTIALLY_PAID",
        "lines[].unitPrice": ("45.50", "8.20"),
        "lines[].quantity": (1.5, 2.25),
        "lines[].taxRate": ("20.50", "5.50"),
        "lines[].total": ("68.25", "18.45"),
        "lines[].description": ("Consultation", "Anti-inflammatory, 100 ml"),
        "issuedAt": "2026-03-12T10:25:00Z",
        "dueAt": "2026-04-11",
        "currency": "EUR",
        "subtotal": "86.70",
        "taxTotal": "15.01",
        "total": "101.71",
        "amountPaid": "61.25",
        "balance": "40.46",
        "createdAt": "2026-03-12T10:24:00Z",
        "payments[].paidAt": ("2026-03-12T10:27:00Z", "2026-03-20T08:00:00Z"),
        "payments[].amount": ("40.75", "20.50"),
        "payments[].method": ("Card", "Bank transfer"),
    },
    "stock": {
        "name": "Meloxicam 1.5 mg/ml",
        "category": "Medicine",
        "isLow": True,
        "reference": "MEL-15-100",
        "unit": "bottle",
        "quantity": 3.5,
        "reorderThreshold": 5.5,
        "expiresAt": "2027-09-30",
        "updatedAt": "2026-03-11T17:02:00Z",
        "salePrice": "24.90",
        "location": "Cabinet B, shelf 2",
        "batchNumber": "L24A0917",
        "supplier": "Pharmavet",
        "purchasePrice": "13.35",
    },
    "appointmentTypes": {"name": "Consultation", "durationMinutes": 30, "color": "#2E86AB"},
    "slots": {"startTime": "2026-03-12T09:30:00Z", "endTime": "2026-03-12T10:00:00Z"},
    "vets": {"name": "Dr Claire Petit"},
}
# For a field that the table does not name yet.
_BY_FORMAT: Mapping[str, Any] = MappingProxyType(
    {
        formats.TEXT.name: "An example",
        formats.EMAIL.name: "anna.martin@example.org",
        formats.BOOLEAN.name: True,
        formats.INTEGER.name: 30,
        formats.NUMBER.name: 12.4,
        formats.INSTANT.name: "2026-03-12T09:30:00Z",
        formats.DAY.name: "2026-03-12",
        formats.MONEY.name: "45.50",
        formats.PERCENT.name: "20.50",
        formats.COLOR.name: "#2E86AB",
    }
)


def specimen(resource: Resource) -> Record:
    """A record of the resource, as answers carry it; its ids name the other specimens."""
    return {each.name: _member(resource, each) for each in resource.fields}


def _member(resource: Resource, field: Field) -> Any:
    if not field.fields:
        return _value(resource, field, field.name, 0)
    return [
        {
            each.name: _value(resource, each, f"{field.name}[].{each.name}", n)
            for each in field.fields
        }
        for n in range(ITEMS)
    ]


def _value(resource: Resource, field: Field, path: str, number: int) -> Any:
    if field.format is formats.UUID:
        named = f"{field.refers}.id" if field.refers else f"{resource.name}.{path}"
        return str(uuid5(_NAMESPACE, f"{named}.{number}" if number and not field.refers else named))
    known = _VALUES.get(resource.name, {})
    if path in known:
        value = known[path]
        return value[number] if "[]." in path else value
    value = field.values[0] if field.values else _BY_FORMAT[field.format.name]
    return [value] if field.many else value
