"""What of a draft can be sent: every name that a mapping may use stands for something."""

from datetime import UTC, datetime, timedelta

from adapters.base import Draft
from adapters.booked import draft_values
from adapters.conversion import DRAFT_FIELDS
from adapters.slots import Interval

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
