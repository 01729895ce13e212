"""`clinic-gateway backend draft`, as an integrator runs it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from tests.adapters.clinic import copy_to


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    copy_to(tmp_path)
    return tmp_path


def draft(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["backend", "draft", *arguments])


def test_a_mapping_is_printed_that_names_the_zone_asked_for() -> None:
    result = draft("--url", "sqlite:///clinic.db", "--zone", "Europe/Paris")
    assert result.exit_code == 0, result.stderr
    assert "zone: Europe/Paris" in result.stdout
    assert "from: PERSONNES" in result.stdout


def test_without_a_zone_this_machine_s_is_taken_and_asked_about() -> None:
    result = draft("--url", "sqlite:///clinic.db")
    assert "  # TODO: this machine's; is it the clock on the clinic's wall?" in result.stdout


def test_the_configured_database_is_meant_where_none_is_named(folder: Path) -> None:
    (folder / "gateway.yaml").write_text("backend:\n  url: sqlite:///clinic.db\n")
    assert "from: RDV r" in draft().stdout


def test_without_any_database_the_remedy_is_said() -> None:
    result = draft()
    assert result.exit_code == 1
    assert "name it with --url, or as backend.url in gateway.yaml" in result.stderr


def test_a_file_is_written_once_and_never_overwritten(folder: Path) -> None:
    arguments = ("--url", "sqlite:///clinic.db", "--output", "new.yaml")
    assert draft(*arguments).exit_code == 0
    text = (folder / "new.yaml").read_text()
    assert "from: RDV r" in text
    result = draft(*arguments)
    assert result.exit_code == 1
    assert "new.yaml exists already" in result.stderr
    assert (folder / "new.yaml").read_text() == text


def test_json_has_what_was_guessed_with_scores() -> None:
    found = json.loads(draft("--url", "sqlite:///clinic.db", "--json").stdout)
    phone = found["clients"]["fields"]["phone"]
    assert phone["column"] == "COORDONNEES.VALEUR:T"
    assert 0 < phone["score"] <= 1
    assert found["invoices"]["lists"]["lines"]["table"] == "LIGNES_FACT"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--zone", "Europe/Pariss"), 2, "no time zone is called Europe/Pariss"),
        (
            ("--url", "oracle://a/b"),
            1,
            "oracle, which is not known: use one of",
        ),
        (("--url", "sqlite:///none.db"), 1, "none.db does not exist; "),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: tuple[str, ...], code: int, said: str) -> None:
    result = draft(*arguments)
    assert result.exit_code == code
    assert said in result.stderr
    assert "Traceback" not in result.output
