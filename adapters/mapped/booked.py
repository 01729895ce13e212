"""What a draft asks for, and what keeps it from being booked."""

from typing import Any

from adapters.base import Draft, NotFound, PatientDeceased, Record, SlotTaken
from adapters.mapped.slots import Interval

DECEASED = "DECEASED"


class TakenMeanwhile(SlotTaken):
    """The time was taken while the appointment was written: that booking was made, and undone."""


def check_patient(patient: Record, draft: Draft) -> None:
    """NotFound where the animal is another client's; PatientDeceased where it is that.

    An animal whose status is not mapped, or has a code that the mapping does not name, is not
    known to be deceased and can be booked.
    """
    if patient["clientId"] != draft.client_id:
        raise NotFound("the patient is not this client's")
    if patient.get("status") == DECEASED:
        raise PatientDeceased("the patient is deceased")


def draft_values(draft: Draft, booked: Interval) -> dict[str, Any]:
    """The draft by the names that a mapping uses: those of DRAFT_FIELDS."""
    return {
        **draft.asked,
        "endTime": booked.end,
        "minutes": int((booked.end - booked.start).total_seconds()) // 60,
        "createdAt": draft.now,
        "reference": draft.reference,
    }
