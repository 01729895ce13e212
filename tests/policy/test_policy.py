"""The shipped policy is the clinic's decision, and each level sees what the one before it sees."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.base import Trouble
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.resources import GOVERNED, INVOICE, RESOURCES
from gateway.policy.policy import ResourceRules, Version, compile_policy
from gateway.policy.reading.document import load_policy
from tests.policy.sights import opening

SHIPPED = Path(__file__).resolve().parents[2] / "policies.yaml"
BASIC, _, FULL = LEVELS


def ignore(trouble: Trouble) -> None:
    pass


# What each level adds, in the order of the answers.
DECISION = {
    "appointments": (
        "id clientId patientId appointmentTypeId vetId status displayStatus",
        "scheduledAt endTime isUrgent createdAt",
        "reason",
    ),
    "clients": ("id firstName lastName", "phone email createdAt updatedAt", "address"),
    "patients": (
        "id clientId name species status",
        "breed sex neutered birthDate color weightKg createdAt updatedAt",
        "microchip alerts",
    ),
    "consultations": (
        "id appointmentId patientId vetId status importance",
        "startedAt validatedAt createdAt",
        "ownerSummary ownerDiagnosis ownerInstructions",
    ),
    "invoices": (
        "id number clientId status lines[].id",
        "issuedAt dueAt currency subtotal taxTotal total amountPaid balance createdAt"
        " lines[].unitPrice lines[].quantity lines[].taxRate lines[].total"
        " payments[].paidAt payments[].amount",
        "lines[].description lines[].patientId payments[].method",
    ),
    "stock": (
        "id name category isLow",
        "reference unit quantity reorderThreshold expiresAt updatedAt salePrice",
        "location batchNumber supplier purchasePrice",
    ),
}


@pytest.mark.parametrize("resource", DECISION)
def test_the_shipped_policy_opens_what_was_decided_and_hides_the_rest(resource: str) -> None:
    policy = load_policy(SHIPPED, ignore)
    seen: list[str] = []
    for level, added in zip(LEVELS, DECISION[resource], strict=True):
        seen += added.split()
        assert policy.redactor(resource, level).visible == frozenset(seen)


def test_the_shipped_policy_gives_the_highest_level_everything() -> None:
    policy = load_policy(SHIPPED, ignore)
    assert set(DECISION) == {resource.name for resource in GOVERNED}
    for resource in GOVERNED:
        assert policy.redactor(resource.name, FULL).visible == frozenset(resource.paths)


def test_resources_that_no_level_governs_are_shown_whole() -> None:
    policy = load_policy(SHIPPED, ignore)
    for resource in RESOURCES:
        for level in () if resource.governed else LEVELS:
            assert policy.redactor(resource.name, level).visible == frozenset(resource.paths)


def test_only_the_test_of_the_recipes_edits_the_text_of_the_shipped_policy() -> None:
    """Others edit that of tests/policies.py, in which a new field of the contract is hidden."""
    reads = re.compile(r"(SHIPPED|shipped_policy\(\)|\"policies\.yaml\"\))\s*\.read_text\(")
    tests = Path(__file__).parents[1]
    found = {each.name for each in tests.glob("**/test_*.py") if reads.search(each.read_text())}
    assert found == {"test_recipes.py"}


def test_the_package_carries_the_policy_under_its_own_name() -> None:
    assert 'policies.yaml" = "gateway/policies.yaml"' in (
        SHIPPED.parent / "pyproject.toml"
    ).read_text(encoding="utf-8")


def within(smaller: Any, larger: Any) -> bool:
    """Whether every member of the one is a member of the other with the same value."""
    if isinstance(smaller, dict):
        return all(key in larger and within(smaller[key], larger[key]) for key in smaller)
    if isinstance(smaller, list):
        return len(smaller) == len(larger) and all(map(within, smaller, larger))
    return bool(smaller == larger)


SOME_ID = "0b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b10"
LINE = {
    "id": SOME_ID,
    "unitPrice": "45.00",
    "quantity": 2,
    "taxRate": "20.00",
    "total": "90.00",
    "description": "Vaccine",
    "patientId": SOME_ID,
}
FULL_INVOICE = {
    "id": SOME_ID,
    "number": "F-1",
    "clientId": SOME_ID,
    "status": "PAID",
    "lines": [LINE, LINE],
    "issuedAt": "2026-03-01T09:00:00Z",
    "dueAt": "2026-03-31",
    "currency": "EUR",
    "payments": [{"paidAt": "2026-03-02T09:00:00Z", "amount": "90.00", "method": "CARD"}],
}


@given(st.data())
def test_whatever_an_operator_decides_a_level_shows_all_that_the_one_before_it_shows(
    data: st.DataObject,
) -> None:
    choice = st.sampled_from([*LEVELS, None])
    opens = {
        resource.name: {path: data.draw(choice) for path in resource.paths} for resource in GOVERNED
    }
    rules = {
        name: ResourceRules({path: opening(level) for path, level in fields.items()}, {})
        for name, fields in opens.items()
    }
    version = Version(hash="0" * 64, content=b"", file="file")
    policy = compile_policy(version, rules, ignore)
    for resource in GOVERNED:
        basic, standard, full = (policy.redactor(resource.name, level).visible for level in LEVELS)
        assert basic <= standard <= full
        assert full == {path for path, level in opens[resource.name].items() if level}
    views = [json.loads(policy.redactor(INVOICE.name, each).one(FULL_INVOICE)) for each in LEVELS]
    assert within(views[0], views[1])
    assert within(views[1], views[2])


def test_the_lowest_level_of_an_invoice_shows_its_lines_by_their_ids_and_no_payments() -> None:
    policy = load_policy(SHIPPED, ignore)
    assert json.loads(policy.redactor("invoices", AccessLevel.BASIC).one(FULL_INVOICE)) == {
        "id": SOME_ID,
        "number": "F-1",
        "clientId": SOME_ID,
        "status": "PAID",
        "lines": [{"id": SOME_ID}, {"id": SOME_ID}],
    }


def test_a_policy_cannot_be_changed_once_it_is_compiled() -> None:
    policy = load_policy(SHIPPED, ignore)
    with pytest.raises(AttributeError):
        policy.hash = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        policy.rules["clients"].fields["phone"] = opening(BASIC)  # type: ignore[index]
