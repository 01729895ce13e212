"""What of a draft can be sent: every name that a mapping may use stands for something."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.base import Draft, NotFound, PatientDeceased
from adapters.mapped.appointment import check_patient, draft_values
from adapters.mapped.slots import Interval
from adapters.mapping.conversion import DRAFT_FIELDS

START = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
DRAFT = Draft(
    client_id="c",
    patient_id="p",
    vet_id="v",
    scheduled_at=START,
    appointment_type_id="t",
    reason="Vaccine",
    is_urgent=False,
    now=START - timedelta(days=1),
    reference="R1",
)


def test_a_draft_has_a_value_for_every_name_that_a_mapping_may_use() -> None:
    values = draft_values(DRAFT, Interval(START, START + timedelta(minutes=45)))
    assert set(values) == set(DRAFT_FIELDS)
    assert None not in values.values()
    assert values["minutes"] == 45


def patient(status: str | None) -> dict[str, Any]:
    return {"id": "p", "clientId": DRAFT.client_id, "status": status}


def test_an_animal_that_has_died_is_refused() -> None:
    with pytest.raises(PatientDeceased):
        check_patient(patient("DECEASED"), DRAFT)
    with pytest.raises(NotFound):  # nobody learns that of another client's animal
        check_patient(patient("DECEASED") | {"clientId": "another"}, DRAFT)


@pytest.mark.parametrize("status", ["ACTIVE", "INACTIVE", None])
def test_an_animal_that_is_not_known_to_have_died_is_bookable(status: str | None) -> None:
    check_patient(patient(status), DRAFT)
    check_patient({"id": "p", "clientId": DRAFT.client_id}, DRAFT)
