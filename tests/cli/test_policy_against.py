"""`policy check --against-backend`: what of the practice system never gets out, or never comes."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adapters.documents.problems import Severity
from adapters.sample import MAPPING
from gateway.cli import main
from gateway.policy.reading import CHECKS
from tests.adapters.clinic import copy_to
from tests.policies import TEXT, moved

CONFIGURATION = "state: .\nbackend: {url: sqlite:///clinic.db, mapping: mine.yaml}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    copy_to(tmp_path, datetime.now(UTC).date())
    (tmp_path / "gateway.yaml").write_text(CONFIGURATION)
    text = MAPPING.read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("      reason: ", "      # reason: "))
    (tmp_path / "policies.yaml").write_text(TEXT)
    return tmp_path


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["policy", "check", "policies.yaml", *arguments])


def test_notes_stand_at_their_places_and_fail_nothing() -> None:
    result = check("--against-backend", "--strict")
    assert result.exit_code == 0, result.output
    assert (
        "policies.yaml:9:10: note[never-filled]: appointments.reason is open, and nothing in the"
        " mapping fills it\n    9 |   FULL: [reason]\n      |          ^^^^^^\n"
    ) in result.stderr
    assert "mine.yaml:" in result.stderr
    assert "note[never-gets-out]: the table CONSULTATIONS has what no field is" in result.stderr
    assert "NOTES_INTERNES" in result.stderr
    assert result.stderr.splitlines()[-1].endswith(" notes")
    assert "in order" in result.stdout


def test_without_being_asked_nothing_is_looked_at(folder: Path) -> None:
    (folder / "clinic.db").unlink()
    assert check().stderr == ""


def test_a_field_that_nobody_sees_may_stay_empty(folder: Path) -> None:
    (folder / "policies.yaml").write_text(moved("appointments.reason", "never"))
    assert "never-filled" not in check("--against-backend").stderr


def test_programs_are_told_in_their_formats() -> None:
    found = json.loads(check("--against-backend", "--json").stdout)
    assert {each["code"] for each in found["notes"]} == {"never-gets-out", "never-filled"}
    assert "notes" not in json.loads(check("--json").stdout)
    log = json.loads(check("--against-backend", "--format", "sarif").stdout)
    assert {each["level"] for each in log["runs"][0]["results"]} == {"note"}


def test_a_backend_that_cannot_be_read_is_said_in_a_sentence(folder: Path) -> None:
    (folder / "gateway.yaml").write_text("state: .\n")
    result = check("--against-backend")
    assert result.exit_code == 1
    assert "must say where the practice system is" in result.stderr


def test_a_policy_that_cannot_be_used_is_told_alone(folder: Path) -> None:
    (folder / "policies.yaml").write_text("version: 2\n")
    result = check("--against-backend")
    assert result.exit_code == 1
    assert "note[" not in result.stderr


def test_every_kind_of_note_is_produced_here() -> None:
    notes = {code for code, kind in CHECKS.items() if kind.severity is Severity.NOTE}
    assert notes == {"never-gets-out", "never-filled"}


def test_a_condition_that_the_practice_system_cannot_serve_is_an_error_in_the_mapping(
    folder: Path,
) -> None:
    only = '\nappointments:\n  only: {reason: {not: ["Vaccin"]}}\n'
    text = moved("appointments.reason", "BASIC").replace("\nappointments:\n", only)
    (folder / "policies.yaml").write_text(text)
    result = check("--against-backend")
    assert result.exit_code == 1
    assert "error[unserved-condition]: " in result.stderr
    assert "mine.yaml:" in result.stderr
    assert "appointments.reason" in result.stderr
    assert "in order" not in result.stdout
    assert check().exit_code == 0
