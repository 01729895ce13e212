"""What is legal and risky is said where it stands; the shipped policy has nothing of it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from adapters.documents.document import read_document
from adapters.documents.problems import Severity, run
from gateway.contract.fields import EMAIL
from gateway.contract.fields import TEXT as TEXT_FORMAT
from gateway.contract.resources import GOVERNED
from gateway.policy.reading import CHECKS, checks
from gateway.policy.reading.checks import check_policy
from gateway.policy.reading.document import Reading, parse_policy
from tests.policies import TEXT, moved

SHIPPED = Path(__file__).resolve().parents[2] / "policies.yaml"
CLIENTS = """\
  BASIC: [id, firstName, lastName]
  STANDARD: [phone, email, createdAt, updatedAt]
  FULL: [address]
"""
MOVED = """\
  BASIC: [id, firstName, lastName, ^phone]
  STANDARD: [email, createdAt, updatedAt]
  FULL: [address]
"""
OPEN = MOVED.replace("^", "")
MASKED = """\
  BASIC: [id, firstName, lastName, {phone: ^last(8)}]
  STANDARD: [phone, email, createdAt, updatedAt]
  FULL: [address]
"""
STOCK = """\
  BASIC: [id, name, category, isLow]
  STANDARD: [reference, unit, quantity, reorderThreshold, expiresAt, updatedAt, salePrice]
"""
OWN = parse_policy(TEXT.encode(), "policies.yaml", lambda trouble: None)
TAX = "    - taxTotal\n    - total\n"

# The second opinion on `personal` in the contract, without which `policy check` warns of nothing:
# what reaches a person or opens a door, and every other text.
PERSONAL = {
    "clients": "phone email address",
    "patients": "microchip",
    "stock": "location",
}
HARMLESS = {
    "appointments": "displayStatus reason",
    "clients": "firstName lastName",
    "patients": "name species breed color alerts",
    "consultations": "ownerSummary ownerDiagnosis ownerInstructions",
    "invoices": "number lines[].description currency payments[].method",
    "stock": "name category reference unit batchNumber supplier",
}

# A change to the text, `^` where the warning is, its code and text.
RISKS = [
    (CLIENTS, MOVED, "personal-at-basic",
     "clients.phone is open to every key; usually it opens at STANDARD"),
    ("STANDARD: [phone, email, createdAt, updatedAt]\n  FULL: [address]",
     "STANDARD: [phone, email, createdAt, updatedAt, ^address]\n  FULL: []", "opened-early",
     "clients.address opens at STANDARD; usually it opens at FULL"),
    (CLIENTS, MASKED, "weak-mask", "last(8) shows most of clients.phone"),
    (STOCK, STOCK.replace("isLow]", "isLow, {salePrice: ^rounded(1)}]"), "weak-mask",
     "rounded(1) shows most of stock.salePrice"),
    ("STANDARD: [scheduledAt", "STANDARD: [status, scheduledAt", "told-elsewhere", ""),
    (TAX, "    - ^taxTotal\n", "told-elsewhere",
     "total is hidden from STANDARD, which subtotal and taxTotal tell it"),
    ("stock:\n", "stock:\n  only: {category: ^not Controlled}\n", "odd-comparison",
     "'not Controlled' is compared as it stands, sign for sign; values to leave out are written"
     " {not: [A, B]}, comparisons {min: 1} and so on"),
    ("stock:\n", "stock:\n  only: {category: [Food, ^= ml]}\n", "odd-comparison",
     "'= ml' is compared as it stands, sign for sign; values to leave out are written"
     " {not: [A, B]}, comparisons {min: 1} and so on"),
]  # fmt: skip


def warned(tmp_path: Path, text: str) -> list[tuple[int, int, str, str]]:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    found = check_policy(file)
    assert found.errors == ()
    return [(each.line, each.column, each.code, each.text) for each in found.warnings]


@pytest.mark.parametrize(("old", "new", "code", "text"), RISKS, ids=[each[1] for each in RISKS])
def test_a_risk_is_told_at_its_place(
    tmp_path: Path, old: str, new: str, code: str, text: str
) -> None:
    assert TEXT.count(old) == 1
    changed = TEXT.replace(old, new)
    if code == "told-elsewhere" and not text:
        changed = changed.replace("status, ^displayStatus", "displayStatus").replace(
            "vetId, status, displayStatus]", "vetId, ^displayStatus]"
        )
        text = "status is hidden from BASIC, which displayStatus tells it"
    elif code == "told-elsewhere":
        changed = changed.replace(
            'FULL: ["lines[].description"', 'FULL: [total, "lines[].description"'
        )
    before, _, after = changed.partition("^")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert (line, column, code, text) in warned(tmp_path, before + after)


def test_the_shipped_policy_has_no_warning() -> None:
    found = check_policy(SHIPPED)
    assert (found.errors, found.warnings) == ((), ())
    assert found.policy is not None


def test_a_field_that_is_hidden_more_than_usual_or_masked_well_is_no_risk(tmp_path: Path) -> None:
    assert warned(tmp_path, moved("clients.address", "never")) == []
    masked = TEXT.replace(CLIENTS, MASKED.replace("^last(8)", "last(2)"))
    assert warned(tmp_path, masked) == []
    listed = "alerts]\n  only: {species: [Dog], status: {not: [DECEASED]}}\n"
    assert warned(tmp_path, TEXT.replace("alerts]\n", listed)) == []


def test_levels_that_see_the_same_everywhere_are_told_once(tmp_path: Path) -> None:
    text = TEXT
    for resource in GOVERNED:
        for path in resource.paths:
            if OWN.rules[resource.name].opened_at(path) == "FULL":
                text = moved(f"{resource.name}.{path}", "never", text)
    [(line, column, code, said)] = warned(tmp_path, text)
    assert (code, column) == ("equal-levels", 3)
    assert text.splitlines()[line - 1] == "  FULL: []"
    assert said == "FULL adds nothing to STANDARD in any resource: both see the same"


def test_risks_are_told_beside_errors(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(TEXT.replace(CLIENTS, MOVED.replace("^", "").replace("email", "emial")))
    found = check_policy(file)
    assert [each.code for each in found.errors] == ["unknown-field"]
    assert [each.code for each in found.warnings] == ["personal-at-basic"]


def texts_of_the_contract() -> set[str]:
    """The fields in which anything can be written, as `clients.phone`."""
    return {
        f"{resource.name}.{path}"
        for resource in GOVERNED
        for path in resource.paths
        if (field := resource.at(path)).format in (TEXT_FORMAT, EMAIL) and not field.values
    }


def listed(fields: Mapping[str, str]) -> set[str]:
    return {f"{name}.{path}" for name, paths in fields.items() for path in paths.split()}


def test_somebody_has_decided_of_each_text_whether_it_reaches_a_person() -> None:
    undecided = texts_of_the_contract() - listed(PERSONAL) - listed(HARMLESS)
    assert not undecided, "name each under PERSONAL or HARMLESS, at the top of this file"
    assert listed(HARMLESS) <= texts_of_the_contract() - listed(PERSONAL)


def test_what_reaches_a_person_is_marked_in_the_contract_and_never_at_basic() -> None:
    policy = check_policy(SHIPPED).policy
    assert policy is not None
    marked = {
        (resource.name, path)
        for resource in GOVERNED
        for path in resource.paths
        if resource.at(path).personal
    }
    assert {f"{name}.{path}" for name, path in marked} == listed(PERSONAL), (
        "what is PERSONAL here has personal=True in gateway/contract/resources.py, and nothing else"
    )
    for name, path in marked:
        assert policy.rules[name].opened_at(path) != "BASIC"


def test_every_kind_of_warning_is_produced_here() -> None:
    warnings = {code for code, kind in CHECKS.items() if kind.severity is Severity.WARNING}
    assert {code for _, _, code, _ in RISKS} | {"equal-levels"} == warnings


def test_what_is_usual_is_left_out_where_it_is_the_same_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = read_document(_file(tmp_path, TEXT.replace(CLIENTS, OPEN)))
    reading = Reading(document)
    monkeypatch.setattr(checks, "_usual", lambda: reading.rules)
    assert [each.text for each in run(checks.RISKS, reading)] == [
        "clients.phone is open to every key"
    ]


def _file(folder: Path, text: str) -> Path:
    (folder / "mine.yaml").write_text(text)
    return folder / "mine.yaml"
