"""`backend draft` asks about what the data do not prove; the answers may come through a pipe."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adapters.documents.document import parse_document
from gateway.cli import main
from tests.adapters.draft.schemas.families import make


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{make('desk', tmp_path_factory.mktemp('desk'))}"


def draft(url: str, *arguments: str, answers: str = "") -> Result:
    line = ["backend", "draft", "--url", url, "--zone", "Europe/Berlin", *arguments]
    return CliRunner().invoke(main, line, input=answers)


def fields(result: Result, resource: str) -> dict[str, object]:
    assert result.exit_code == 0, result.output
    data = parse_document(result.stdout.encode(), "draft").data
    found: dict[str, object] = data["resources"].get(resource, {}).get("fields", {})
    return found


def place_of(result: Result) -> str:
    """The guess that was asked about last."""
    lines = [line for line in result.stderr.splitlines() if line and not line.startswith(" ")]
    return lines[-1].partition(":")[0]


def test_without_a_terminal_nothing_is_asked_and_what_is_likely_stays_a_comment(
    clinic: str,
) -> None:
    result = draft(clinic)
    assert "right?" not in result.stderr
    assert "unit" not in fields(result, "stock")
    assert "# TODO: unit: a.EINH  # likely: by its name" in result.stdout
    assert "name" in fields(result, "stock")


def test_yes_writes_what_is_likely_and_says_so(clinic: str) -> None:
    result = draft(clinic, "--yes")
    assert fields(result, "stock")["unit"] == "a.EINH"
    assert "unit: a.EINH  # likely: by its name" in result.stdout
    assert "booking:\n" in result.stdout


def test_hours_of_no_table_are_asked_as_todo_and_stay_so(tmp_path: Path) -> None:
    script = (Path(__file__).parents[2] / "docs/tour.sql").read_text("utf-8")
    with closing(sqlite3.connect(tmp_path / "tour.db")) as connection:
        connection.executescript(script)
    url = f"sqlite:///{tmp_path / 'tour.db'}"
    found = draft(url, "--ask", answers="y\n" * 200)
    assert "  likely: hours, and what blocks a vet\n" in found.stderr
    assert "    - from: opening o" in found.stdout
    with closing(sqlite3.connect(tmp_path / "tour.db")) as connection:
        connection.execute("DROP TABLE opening")
    asked = draft(url, "--ask", answers="y\n" * 200)
    todo = "# TODO: no table with working hours was found: write them here, or name the table.\n"
    question = asked.stderr.partition("  likely: what blocks a vet\n")[2].partition("right?")[0]
    assert todo in question
    assert f"{todo}  hours:\n" in asked.stdout


def test_three_rows_are_shown_and_a_yes_is_written_as_confirmed(clinic: str) -> None:
    result = draft(clinic, "--ask", answers="y\nq\n")
    place = place_of(draft(clinic, "--ask", answers="q\n"))
    resource, field = place.split(".")
    assert field in fields(result, resource)
    assert "  # confirmed\n" in result.stdout
    shown = result.stderr.partition(f"{place}:")[2].partition("right?")[0]
    assert 1 <= sum(line.startswith("    ") for line in shown.splitlines()) <= 3


def test_a_no_leaves_it_out_and_another_column_takes_its_place(clinic: str) -> None:
    first = draft(clinic, "--ask", answers="q\n")
    resource, field = place_of(first).split(".")
    others = first.stderr.partition("or one of ")[2].partition("\n")[0].split(", ")
    assert field not in fields(draft(clinic, "--ask", answers="n\nq\n"), resource)
    told = draft(clinic, "--ask", answers=f"no such column\n{others[0].lower()}\nq\n")
    assert "no such column is no answer" in told.stderr
    assert others[0] in str(fields(told, resource)[field])


def test_one_answer_confirms_the_rest_of_a_resource(clinic: str) -> None:
    resource = place_of(draft(clinic, "--ask", answers="q\n")).split(".")[0]
    result = draft(clinic, "--ask", answers="a\nq\n")
    assert result.stderr.count(f"\n{resource}.") == 1
    assert fields(result, resource).keys() > fields(draft(clinic), resource).keys()


def test_no_value_that_was_shown_is_in_the_mapping(clinic: str) -> None:
    result = draft(clinic, "--ask", answers="y\n" * 80)
    assert result.exit_code == 0, result.output
    shown = result.stderr.partition("appointments.reason:")[2].partition("right?")[0]
    reasons = [line.strip() for line in shown.splitlines() if line.startswith("    ")]
    assert reasons
    assert not any(value in result.stdout for value in reasons)


def test_answers_that_end_too_soon_end_the_command(clinic: str, tmp_path: Path) -> None:
    output = tmp_path / "clinic.yaml"
    result = draft(clinic, "--ask", "--output", str(output), answers="y\n")
    assert result.exit_code == 1
    assert not output.exists()
