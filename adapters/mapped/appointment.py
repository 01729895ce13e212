"""Checks a draft against its patient, and gives its values the names that mappings use."""

from typing import Any
from uuid import UUID, uuid5

from adapters.base import Draft, NotFound, PatientDeceased, Record, SlotTaken
from adapters.mapped.session import Offer
from adapters.mapped.slots import Interval

DECEASED, CANCELLED = "DECEASED", "CANCELLED"
# Of the UUIDs that are made of references.
_NAMESPACE = UUID("6f0c1d52-5d0b-4e0e-9a37-0d5a3f6f2c11")


class TakenMeanwhile(SlotTaken):
    """A time that was taken while the appointment was written. The appointment was undone."""


def check_patient(patient: Record, draft: Draft) -> None:
    """Raises NotFound for another client's animal, PatientDeceased for a deceased one.

    An animal whose status is not mapped, or has a code unknown to the mapping, can be booked.
    """
    if patient["clientId"] != draft.client_id:
        raise NotFound("the patient is not this client's")
    if patient.get("status") == DECEASED:
        raise PatientDeceased("the patient is deceased")


def uuid_of(reference: str) -> str | None:
    """Returns the UUID that stands for a booking's reference; None for no reference."""
    return str(uuid5(_NAMESPACE, reference)) if reference else None


def offered_values(draft: Draft, offer: Offer) -> dict[str, Any]:
    """Returns the values of a draft and its offer, those of DRAFT_FIELDS and DRAFT_KEYS.

    `slots` are the keys of all rows that the offer takes.
    """
    keys = {"schedule": offer.calendar.schedule, "slot": offer.slot, "firstSlot": offer.slot}
    return draft_values(draft, offer.interval) | keys | {"slots": offer.slots}


def draft_values(draft: Draft, booked: Interval) -> dict[str, Any]:
    """Returns the values of a draft by the names that a mapping uses, those of DRAFT_FIELDS."""
    return {
        **draft.asked,
        "endTime": booked.end,
        "minutes": int((booked.end - booked.start).total_seconds()) // 60,
        "createdAt": draft.now,
        "reference": draft.reference,
        "uuid": uuid_of(draft.reference),
    }
