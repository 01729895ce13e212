"""Cases beside a policy: read strictly, tried on what answers partners, and counted."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.documents.problems import DocumentErrors
from gateway.contract.access import LEVELS, AccessLevel
from gateway.contract.fields import Resource
from gateway.contract.resources import GOVERNED
from gateway.policy.cases import (
    INSIDE,
    OUTSIDE,
    PolicyCase,
    cases_beside,
    coverage,
    read_cases,
    run,
    verify,
)
from gateway.policy.masks import Mask, fitting
from gateway.policy.policy import HIDDEN, WHOLE, Policy, Sight
from gateway.policy.reading.document import load_policy, parse_policy
from gateway.policy.redactor import Redactor
from tests.policies import NEW, TEXT

SHIPPED = Path(__file__).resolve().parents[2] / "policies.yaml"
ANNA = """\
version: 1
records:
  anna:
    id: 00000000-0000-4000-8000-000000000001
    firstName: Anna
    lastName: Martin
    phone: "06 12 34 56 78"
    address: 12 rue des Lilas, 75011 Paris
  bill:
    id: 00000000-0000-4000-8000-000000000002
    status: PAID
    total: 45.5
    lines:
      - {id: 00000000-0000-4000-8000-000000000003, total: "10.00"}
      - {id: 00000000-0000-4000-8000-000000000004, total: "35.50"}
cases:
"""
CASE = """\
  - name: Who it is
    key: BASIC
    operation: get_client
    record: anna
    sees: [id, firstName, lastName]
"""
SOUND = ANNA + CASE


def policy_of(text: str = TEXT) -> Policy:
    return parse_policy(text.encode(), "policies.yaml", lambda trouble: None)


def read(tmp_path: Path, text: str) -> Sequence[PolicyCase]:
    file = tmp_path / "policies.test.yaml"
    file.write_text(text, encoding="utf-8")
    return read_cases(file)


def problems(tmp_path: Path, text: str) -> list[str]:
    """What is said, after the file's name."""
    with pytest.raises(DocumentErrors) as raised:
        read(tmp_path, text)
    return [
        str(each).removeprefix(f"{tmp_path}/policies.test.yaml:") for each in raised.value.problems
    ]


def failures(tmp_path: Path, cases: str, policy: Policy | None = None) -> list[str]:
    outcomes = run(policy or policy_of(), read(tmp_path, ANNA + cases))
    return [
        str(each.problem()).removeprefix(f"{tmp_path}/") for each in outcomes if each.differences
    ]


def case(**changes: str) -> str:
    members = {
        "name": "A case",
        "key": "BASIC",
        "operation": "get_client",
        "record": "anna",
        "sees": "[id, firstName, lastName]",
    } | changes
    lines = [f"{name}: {value}" for name, value in members.items()]
    return "  - " + "\n    ".join(lines) + "\n"


def test_a_case_that_is_met_says_nothing(tmp_path: Path) -> None:
    assert failures(tmp_path, CASE) == []


LINE = ANNA.count("\n") + 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param(
            {"sees": "[id, firstName]"},
            "clients.lastName: shown 'Martin', expected hidden",
            id="a field too many",
        ),
        pytest.param(
            {"sees": "[id, firstName, lastName, phone]"},
            "clients.phone: hidden, expected '06 12 34 56 78'",
            id="a field too few",
        ),
        pytest.param(
            {"sees": "[id, firstName, {lastName: M.}]"},
            "clients.lastName: shown 'Martin', expected 'M.'",
            id="another value",
        ),
        pytest.param(
            {"sees": "[id, {firstName: null}, lastName]"},
            "clients.firstName: shown 'Anna', expected nothing",
            id="no value",
        ),
        pytest.param(
            {"sees": "not found"},
            "clients: shown with id, firstName, lastName, expected not found",
            id="a record that should not exist",
        ),
        pytest.param(
            {"operation": "list_clients", "sees": "not found"},
            "clients: shown with id, firstName, lastName, expected not found",
            id="a record that should not be listed",
        ),
        pytest.param(
            {"sees": "[]"},
            "clients.id: shown '00000000-0000-4000-8000-000000000001', expected hidden;"
            " clients.firstName: shown 'Anna', expected hidden;"
            " clients.lastName: shown 'Martin', expected hidden",
            id="all that differs stands in a line",
        ),
        pytest.param(
            {"key": "{level: BASIC, scopes: {clients: STANDARD}}"},
            "clients.phone: shown '06 12 34 56 78', expected hidden;"
            " clients.email: shown nothing, expected hidden;"
            " clients.createdAt: shown nothing, expected hidden;"
            " clients.updatedAt: shown nothing, expected hidden",
            id="a scope decides",
        ),
        pytest.param(
            {
                "operation": "get_invoice",
                "record": "bill",
                "sees": '[id, number, clientId, status, "lines[].id", "lines[].total"]',
            },
            'invoices.lines[].total: hidden, expected ["10.00", "35.50"]',
            id="a field inside a list",
        ),
        pytest.param(
            {
                "operation": "get_invoice",
                "record": "bill",
                "sees": "[id, number, clientId, status]",
            },
            "invoices.lines[].id: shown"
            ' ["00000000-0000-4000-8000-000000000003", "00000000-0000-4..., expected hidden',
            id="a list of objects too many",
        ),
        pytest.param(
            {
                "operation": "get_invoice",
                "record": "{id: 00000000-0000-4000-8000-000000000003, lines: []}",
                "sees": "[id, number, clientId, status]",
            },
            "invoices.lines: shown without items, expected hidden",
            id="an empty list too many",
        ),
    ],
)
def test_what_differs_is_said_at_the_line_of_the_case(
    tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    assert failures(tmp_path, case(**changes)) == [f"policies.test.yaml:{LINE}:5: A case: {said}"]


def test_of_many_differences_the_first_stand_in_the_line(tmp_path: Path) -> None:
    [line] = failures(tmp_path, case(operation="get_client", key="FULL", sees="not found"))
    assert line.endswith("address, expected not found")
    [line] = failures(tmp_path, case(operation="get_client", key="FULL", sees="[]"))
    assert line.endswith("; and 2 more")


@pytest.mark.parametrize(
    "sees",
    ['"lines[].total"', '{"lines[].total": ["10.00", 35.5]}'],
)
def test_a_value_inside_a_list_is_expected_item_by_item(tmp_path: Path, sees: str) -> None:
    policy = policy_of(TEXT.replace('    - "lines[].total"\n', "").replace(
        '"lines[].id"]', '"lines[].id", "lines[].total"]'
    ))  # fmt: skip
    met = case(
        operation="get_invoice",
        record="bill",
        sees=f'[id, number, clientId, status, "lines[].id", {sees}]',
    )
    assert failures(tmp_path, met, policy) == []
    other = met.replace(sees, '{"lines[].total": "10.00"}')
    assert failures(tmp_path, other, policy) == [
        f"policies.test.yaml:{LINE}:5: A case: invoices.lines[].total:"
        ' shown ["10.00", "35.50"], expected ["10.00", "10.00"]'
    ]


def test_an_empty_list_is_met_by_any_of_its_members(tmp_path: Path) -> None:
    met = case(
        operation="get_invoice",
        record="{id: 00000000-0000-4000-8000-000000000003, lines: []}",
        sees='[id, number, clientId, status, "lines[].id"]',
    )
    assert failures(tmp_path, met) == []


MASKED = TEXT.replace(
    "BASIC: [id, firstName, lastName]", "BASIC: [id, firstName, lastName, {phone: last(2)}]"
)
ROWS = TEXT.replace(
    "  FULL: [ownerSummary",
    "  only:\n    BASIC: {status: [VALIDATED]}\n  FULL: [ownerSummary",
)
REPORT = "{id: 00000000-0000-4000-8000-000000000005, status: %s}"
CONSULTED = "[id, appointmentId, patientId, vetId, status, importance]"


def test_a_mask_is_expected_by_the_value_that_it_shows(tmp_path: Path) -> None:
    policy = policy_of(MASKED)
    met = case(sees='[id, firstName, lastName, {phone: "***78"}]')
    assert failures(tmp_path, met, policy) == []
    assert failures(tmp_path, case(), policy) == [
        f"policies.test.yaml:{LINE}:5: A case: clients.phone: shown '***78', expected hidden"
    ]
    assert failures(tmp_path, case(sees="[id, firstName, lastName, phone]"), policy) == [
        f"policies.test.yaml:{LINE}:5: A case: clients.phone: shown '***78',"
        " expected '06 12 34 56 78'"
    ]


def test_row_conditions_decide_what_is_found(tmp_path: Path) -> None:
    policy = policy_of(ROWS)
    shared = {"operation": "get_consultation"}
    inside = case(**shared, record=REPORT % "VALIDATED", sees=CONSULTED)
    outside = case(**shared, record=REPORT % "IN_PROGRESS", sees="not found")
    assert failures(tmp_path, inside, policy) == []
    assert failures(tmp_path, outside, policy) == []
    assert failures(tmp_path, case(**shared, record=REPORT % "VALIDATED", sees="not found"), policy)
    assert failures(
        tmp_path, case(**shared, record=REPORT % "IN_PROGRESS", sees=CONSULTED), policy
    ) == [
        f"policies.test.yaml:{LINE}:5: A case: consultations: not found (BASIC sees only those"
        " whose status is VALIDATED), expected id, appointmentId, patientId, vetId, status,"
        " importance"
    ]


def test_who_books_sees_the_own_booking_whatever_the_conditions_say(tmp_path: Path) -> None:
    policy = policy_of(
        TEXT.replace("  FULL: [reason]", "  FULL: [reason]\n  only: {status: [COMPLETED]}")
    )
    shared = {
        "record": "{id: 00000000-0000-4000-8000-000000000005, status: SCHEDULED}",
        "sees": "[id, clientId, patientId, appointmentTypeId, vetId, status, displayStatus]",
    }
    assert failures(tmp_path, case(operation="create_appointment", **shared), policy) == []
    [line] = failures(tmp_path, case(operation="get_appointment", **shared), policy)
    assert "appointments: not found" in line


def test_what_no_level_governs_is_whole_in_a_case_too(tmp_path: Path) -> None:
    kind = case(
        operation="list_appointment_types",
        record="{id: 00000000-0000-4000-8000-000000000005, name: Check, durationMinutes: 30}",
        sees="[id, name, durationMinutes, color]",
    )
    assert failures(tmp_path, kind) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "get_client",
            "get_clent",
            f"{LINE + 2}:16: get_clent is not an operation (did you mean get_client?)",
        ),
        ("key: BASIC", "key: BASC", f"{LINE + 1}:10: BASC is not a level (did you mean BASIC?)"),
        (
            "key: BASIC",
            "key: 1",
            f"{LINE + 1}:10: 1 is not a level; it must be one of BASIC, STANDARD, FULL",
        ),
        (
            "key: BASIC",
            "key: {level: BASIC, scopes: {client: FULL}}",
            f"{LINE + 1}:34: client is not a resource (did you mean clients?)",
        ),
        (
            "key: BASIC",
            "key: {level: BASIC, scopes: {clients: FUL}}",
            f"{LINE + 1}:43: FUL is not a level (did you mean FULL?)",
        ),
        ("key: BASIC", "key: {scopes: {}}", f"{LINE + 1}:10: level is missing here"),
        (
            "key: BASIC",
            "key: {level: BASIC, scope: {}}",
            f"{LINE + 1}:25: scope has no meaning here (did you mean scopes?)",
        ),
        (
            "key: BASIC",
            "keys: BASIC",
            f"{LINE + 1}:5: keys has no meaning here (did you mean key?)",
        ),
        ("    key: BASIC\n", "", f"{LINE}:5: key is missing here"),
        (
            "record: anna",
            "record: ana",
            f"{LINE + 3}:13: no record is named ana (did you mean anna?); write it under records",
        ),
        (
            "record: anna",
            "record: 7",
            f"{LINE + 3}:13: record must be the name of a record, or a record in braces",
        ),
        (
            "record: anna",
            "record: {phone: '0'}",
            f"{LINE + 3}:13: every record has an id: write one, such as"
            " id: 00000000-0000-4000-8000-000000000001",
        ),
        (
            "firstName, lastName]",
            "firstName, lastNam]",
            f"{LINE + 4}:27: clients has no field 'lastNam' (did you mean lastName?)",
        ),
        (
            "firstName, lastName]",
            "firstName, id]",
            f"{LINE + 4}:27: clients.id stands here already; keep one of the two",
        ),
        (
            "firstName, lastName]",
            "firstName, 3]",
            f"{LINE + 4}:27: a field of clients must be named by text, such as id",
        ),
        (
            "firstName, lastName]",
            "firstName, {lastName: 3}]",
            f"{LINE + 4}:38: lastName is a text: put what stands here in quotes",
        ),
        (
            "[id, firstName, lastName]",
            "hidden",
            f"{LINE + 4}:11: sees must be a list of fields, such as [id], or not found",
        ),
        (
            "[id, firstName, lastName]",
            "[id, lines[].id]",
            f'{LINE + 4}:16: a path with [] stands in quotes: write "lines[].id"',
        ),
        (
            "name: Who it is",
            "name: ''",
            f"{LINE}:11: name must say in a line of text what the case is about",
        ),
        (
            'phone: "06 12 34 56 78"',
            "phone: 0612345678",
            "7:12: phone is a text: put what stands here in quotes",
        ),
        (
            "firstName: Anna",
            "fristName: Anna",
            "5:5: clients has no field 'fristName' (did you mean firstName?)",
        ),
        (
            "-000000000001\n",
            "-00000000000G\n",
            "4:9: id must be a UUID in lower case, such as 0b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b10",
        ),
        ("version: 1", "version: 2", "1:10: version must be 1"),
        (
            "version: 1",
            "recods: {}\nversion: 1",
            "1:1: recods has no meaning here (did you mean records?)",
        ),
        (CASE, "", f"{LINE - 1}:7: cases must be a list of cases, each begun by `- name:`"),
    ],
)
def test_what_is_wrong_is_said_once_at_its_place(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert SOUND.count(old) == 1
    assert problems(tmp_path, SOUND.replace(old, new)) == [said]


@pytest.mark.parametrize(
    ("operation", "record", "said"),
    [
        ("get_patient", "{id: ID, species: [Dog]}", "species is one plain value"),
        (
            "get_patient",
            "{id: ID, alerts: Bites}",
            "alerts is a list; write it in brackets, such as [one, two]",
        ),
        ("get_patient", "{id: ID, neutered: no}", "neutered must be true or false"),
        ("get_patient", "{id: ID, name: true}", "name is a text: put what stands here in quotes"),
        ("get_patient", "{id: ID, status: ACTIV}", "status is never ACTIV (did you mean ACTIVE?)"),
        (
            "get_patient",
            "{id: ID, birthDate: 18.06.2020}",
            "birthDate must be a date in the form YYYY-MM-DD",
        ),
        (
            "get_patient",
            "{id: ID, birthDate: 2020-02-30}",
            "birthDate must be a date in the form YYYY-MM-DD",
        ),
        ("get_patient", "{id: ID, weightKg: heavy}", "weightKg must be a number"),
        (
            "get_invoice",
            "{id: ID, total: 45.505}",
            "total is never 45.505: it has two places",
        ),
        (
            "get_invoice",
            "{id: ID, lines: {id: ID}}",
            "lines is a list of objects, such as [{...}, {...}]",
        ),
        (
            "get_invoice",
            "{id: ID, lines: [{id: ID, totl: 1}]}",
            "invoices has no field 'lines[].totl' (did you mean total?)",
        ),
        (
            "get_invoice",
            "{id: ID, lines: [{id: ID, total: x}]}",
            'lines[].total must be a decimal string with two places, such as "45.00"',
        ),
        (
            "list_low_stock",
            "{id: ID, isLow: false}",
            "list_low_stock lists only records with isLow: true",
        ),
        (
            "get_client",
            "bill",
            "bill is read as one of invoices (line 18), and get_client answers clients",
        ),
    ],
)
def test_a_record_has_the_fields_and_the_types_of_its_resource(
    tmp_path: Path, operation: str, record: str, said: str
) -> None:
    first = case(name="First", operation="get_invoice", record="bill", sees="[id]")
    record = record.replace("ID", "00000000-0000-4000-8000-000000000005")
    [found] = problems(
        tmp_path, ANNA + first + case(operation=operation, record=record, sees="[id]")
    )
    line, _, text = found.split(":", 2)
    assert (int(line), text.strip()) == (LINE + 8, said.replace("line 18", f"line {LINE + 3}"))


def test_a_record_that_is_wrong_is_said_once_however_many_cases_use_it(tmp_path: Path) -> None:
    text = ANNA.replace("firstName: Anna", "firstNam: Anna") + case() + case(name="Another")
    assert len(problems(tmp_path, text)) == 1


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    wrong = SOUND.replace("BASIC", "BASC").replace("lastName]", "lastNam]").replace("Anna", "[A]")
    assert len(problems(tmp_path, wrong + case(name="Who it is"))) == 4


def test_values_that_stand_for_no_number_of_items_are_refused(tmp_path: Path) -> None:
    text = ANNA + case(
        operation="get_invoice", record="bill", sees='[id, {"lines[].total": ["10.00"]}]'
    )
    [said] = problems(tmp_path, text)
    assert said.endswith("lines[].total has 2 items in the record, and 1 values stand here")


def test_a_time_with_an_offset_is_the_same_time(tmp_path: Path) -> None:
    met = case(
        key="STANDARD",
        record="{id: 00000000-0000-4000-8000-000000000005, createdAt: 2026-03-12T10:30:00+01:00}",
        sees="[id, firstName, lastName, phone, email, {createdAt: 2026-03-12T09:30:00Z},"
        " updatedAt]",
    )
    assert failures(tmp_path, met) == []


def test_the_cases_of_a_policy_stand_beside_it(tmp_path: Path) -> None:
    assert cases_beside(tmp_path / "mine.yaml") == tmp_path / "mine.test.yaml"
    policy, path = policy_of(), tmp_path / "mine.yaml"
    assert verify(policy, path) == ()
    (tmp_path / "mine.test.yaml").write_text(SOUND)
    assert list(verify(policy, path)) == []
    (tmp_path / "mine.test.yaml").write_text(SOUND.replace(", lastName]", "]"))
    [failed] = verify(policy, path)
    assert (failed.line, failed.text) == (
        LINE,
        "Who it is: clients.lastName: shown 'Martin', expected hidden",
    )
    (tmp_path / "mine.test.yaml").write_text("cases: 7\n")
    assert [each.text for each in verify(policy, path)] == [
        "version is missing here",
        "cases must be a list of cases, each begun by `- name:`",
    ]


def test_a_pipe_where_the_cases_should_be_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.test.yaml")
    [problem] = verify(policy_of(), tmp_path / "mine.yaml")
    assert problem.text == "cannot be read: it is no plain file"


def test_what_cannot_be_read_is_a_problem_and_no_pass(tmp_path: Path) -> None:
    (tmp_path / "mine.test.yaml").mkdir()
    [problem] = verify(policy_of(), tmp_path / "mine.yaml")
    assert "cannot be read" in problem.text
    (tmp_path / "other.test.yaml").symlink_to(tmp_path / "nowhere")
    [problem] = verify(policy_of(), tmp_path / "other.yaml")
    assert "cannot be read" in problem.text


def test_two_hundred_cases_are_read_and_tried_in_well_under_a_tenth_of_a_second(
    tmp_path: Path,
) -> None:
    """In seconds of the processor, the best of several, so that a busy machine does not count."""
    cases = "".join(case(name=f"The case of an insurer with the number {n}") for n in range(200))
    (tmp_path / "mine.test.yaml").write_text(ANNA + cases)
    policy = policy_of()

    def took() -> float:
        begun = time.thread_time()
        assert verify(policy, tmp_path / "mine.yaml") == []
        return time.thread_time() - begun

    assert min(took() for _ in range(5)) < 0.1


def test_the_shipped_cases_pass_and_cover_every_cell_of_the_shipped_policy() -> None:
    policy, cases = load_policy(SHIPPED, lambda trouble: None), read_cases(cases_beside(SHIPPED))
    assert [each.problem() for each in run(policy, cases) if each.differences] == []
    found = coverage(policy, cases)
    assert list(found.uncovered()) == []
    assert found.percent == 100
    assert len(found.cells) == len(LEVELS) * sum(len(each.paths) for each in GOVERNED)


def other_sights(resource: Resource, path: str, sight: Sight) -> Iterator[Sight]:
    """All that the cell could say else."""
    masks = [Mask(kind, 1 if kind.largest else 0) for kind in fitting(resource.at(path))]
    yield from (each for each in (HIDDEN, WHOLE, *masks) if each != sight)


def with_cell(
    policy: Policy, resource: Resource, level: AccessLevel, path: str, sight: Sight
) -> Policy:
    """The policy with one cell changed."""
    rules = policy.rules[resource.name]
    sights = {each: rules.sight(each, level) for each in rules.fields} | {path: sight}
    redactor = Redactor(
        resource,
        [each for each, seen in sights.items() if seen is WHOLE],
        lambda trouble: None,
        masks={each: seen for each, seen in sights.items() if isinstance(seen, Mask)},
        rows=rules.rows_of(level),
    )
    return replace(policy, redactors={**policy.redactors, (resource.name, level): redactor})


@pytest.mark.parametrize("resource", GOVERNED, ids=lambda each: each.name)
def test_whichever_cell_of_the_shipped_policy_is_changed_a_shipped_case_fails(
    resource: Resource,
) -> None:
    policy, cases = load_policy(SHIPPED, lambda trouble: None), read_cases(cases_beside(SHIPPED))
    unnoticed = [
        (level, path, sight)
        for level in LEVELS
        for path in resource.paths
        for sight in other_sights(resource, path, policy.rules[resource.name].sight(path, level))
        if not any(
            each.differences for each in run(with_cell(policy, resource, level, path, sight), cases)
        )
    ]
    assert unnoticed == []


def test_a_cell_is_covered_by_a_record_with_a_value_there(tmp_path: Path) -> None:
    found = coverage(policy_of(), read(tmp_path, SOUND))
    basic = {path for resource, level, path in found.covered if level == "BASIC"}
    assert basic == {"id", "firstName", "lastName", "phone", "address"}
    assert {resource for resource, _, _ in found.covered} == {"clients"}
    untried = {(name, level): names for name, level, names, _ in found.uncovered()}
    left = untried["clients", AccessLevel.BASIC]
    assert set(left) == {"email", "createdAt", "updatedAt", *NEW["clients"]}
    assert 0 < found.percent < 100


def test_rows_are_covered_by_a_record_inside_and_one_outside(tmp_path: Path) -> None:
    policy = policy_of(ROWS)

    def covered(*cases: str) -> set[str]:
        found = coverage(policy, read(tmp_path, ANNA + "".join(cases)))
        return {cell[2] for cell in found.covered}

    shared = {"operation": "get_consultation"}
    inside = case(**shared, record=REPORT % "VALIDATED", sees=CONSULTED)
    outside = case(**shared, name="Outside", record=REPORT % "IN_PROGRESS", sees="not found")
    assert covered(inside) == {"id", "status", INSIDE}
    assert covered(outside) == {OUTSIDE}
    assert covered(inside, outside) == {"id", "status", INSIDE, OUTSIDE}
    cells: list[Any] = [
        cell for cell in coverage(policy, read(tmp_path, SOUND)).cells if cell[2] == INSIDE
    ]
    assert cells == [("consultations", "BASIC", INSIDE)]


def test_a_booking_says_nothing_of_row_conditions(tmp_path: Path) -> None:
    policy = policy_of(
        TEXT.replace("  FULL: [reason]", "  FULL: [reason]\n  only: {status: [COMPLETED]}")
    )
    booked = case(
        operation="create_appointment",
        record="{id: 00000000-0000-4000-8000-000000000005, status: SCHEDULED}",
    ).replace("firstName, lastName", "status")
    found = coverage(policy, read(tmp_path, ANNA + booked))
    assert {cell[2] for cell in found.covered} == {"id", "status"}


def test_the_shipped_cases_are_no_secret_to_a_package() -> None:
    project = (SHIPPED.parent / "pyproject.toml").read_text()
    for name in (SHIPPED.name, cases_beside(SHIPPED).name):
        assert f'"{name}" = "gateway/{name}"' in project
        assert name in (SHIPPED.parent / "Dockerfile").read_text()
        assert f"!{name}\n" in (SHIPPED.parent / ".dockerignore").read_text()
    assert os.access(cases_beside(SHIPPED), os.R_OK)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    assert read(tmp_path, SOUND + "#" * 70_000)
    assert problems(tmp_path, SOUND + "#" * 256 * 1024) == [
        "1:1: the file is larger than 256 KiB; nothing was read"
    ]
