"""What a draft asks for, and whether an appointment of the practice system is that."""

from typing import Any

from adapters.base import Draft, NotFound, PatientDeceased, Record, SlotTaken
from adapters.mapped.slots import Interval
from adapters.values.times import instant_text


class TakenMeanwhile(SlotTaken):
    """The time was taken while the appointment was written: that booking was made, and undone."""


NEW = "SCHEDULED"
DECEASED = "DECEASED"


def check_patient(patient: Record, draft: Draft) -> None:
    """NotFound where the animal is another client's; PatientDeceased where it is that.

    An animal whose status is not mapped, or has a code that the mapping does not name, is not
    known to be deceased and can be booked.
    """
    if patient["clientId"] != draft.client_id:
        raise NotFound("the patient is not this client's")
    if patient.get("status") == DECEASED:
        raise PatientDeceased("the patient is deceased")


def difference(
    record: Record, draft: Draft, wanted: Interval, mapped: Any, *, longer: bool = False
) -> str | None:
    """The first mapped field in which a new appointment is not what was asked for; None.

    `longer` where it may end later, as a free row of the practice's own has an end of its own.
    """
    expected = _asked(draft) | {
        "vetId": draft.vet_id,
        "patientId": draft.patient_id,
        "scheduledAt": instant_text(wanted.start),
        "endTime": instant_text(wanted.end),
        "status": NEW,
    }
    if longer:
        del expected["endTime"]
    return _other(record, expected, mapped)


def is_of(record: Record, draft: Draft, mapped: Any) -> bool:
    """Whether an appointment is what this very draft would have made, whatever became of it."""
    return _other(record, _asked(draft), mapped) is None


def draft_values(draft: Draft, wanted: Interval) -> dict[str, Any]:
    """The draft by the names that a mapping uses: those of DRAFT_FIELDS."""
    return {
        "clientId": draft.client_id,
        "patientId": draft.patient_id,
        "vetId": draft.vet_id,
        "appointmentTypeId": draft.appointment_type_id,
        "scheduledAt": wanted.start,
        "endTime": wanted.end,
        "minutes": int((wanted.end - wanted.start).total_seconds()) // 60,
        "createdAt": draft.now,
        "reason": draft.reason,
        "isUrgent": draft.is_urgent,
        "reference": draft.reference,
    }


def _asked(draft: Draft) -> dict[str, Any]:
    return {
        "clientId": draft.client_id,
        "appointmentTypeId": draft.appointment_type_id,
        "isUrgent": draft.is_urgent,
        "reason": (draft.reason or "").strip() or None,
    }


def _other(record: Record, expected: dict[str, Any], mapped: Any) -> str | None:
    return next(
        (name for name, value in expected.items() if name in mapped and record[name] != value), None
    )
