"""`clinic-gateway backend compare`, as an integrator runs it."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from adapters.sample import MAPPING
from gateway.cli import main
from tests.conftest import Template


@pytest.fixture
def folder(template: Template, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template.folder, tmp_path / "state"))


def compare(folder: Path, *words: str) -> Result:
    config = ("--config", str(folder / "gateway.yaml"))
    return CliRunner().invoke(main, ["backend", "compare", *words, *config])


def told(folder: Path, *words: str) -> Any:
    result = compare(folder, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def one(folder: Path, statement: str) -> str:
    with closing(sqlite3.connect(folder / "clinic.db")) as connection:
        return str(connection.execute(statement).fetchone()[0])


def test_a_record_its_row_and_the_lines_of_the_mapping_are_a_table(folder: Path) -> None:
    result = compare(folder, "clients", "1")
    assert (result.exit_code, result.stderr) == (0, "")
    first = result.stdout.splitlines()[0]
    assert re.fullmatch(r"clients [0-9a-f-]{36}, key 1: .+", first)
    line = MAPPING.read_text().split("firstName: p.PRENOM")[0].count("\n") + 1
    text = " ".join(result.stdout.split())
    assert f"p.PRENOM, as text ({MAPPING.name}:{line}:18)" in text
    assert "the whole row" in text
    assert "GENRE_PERS C" in text
    public_id = first.split()[1].rstrip(",")
    assert compare(folder, "clients", public_id).stdout == result.stdout


def test_what_a_level_does_not_see_is_hidden_by_a_line_of_the_policy(folder: Path) -> None:
    shown = {
        field["field"]: field["level"]
        for field in told(folder, "clients", "1", "--level", "BASIC")["fields"]
    }
    assert shown["lastName"]["hidden"] is False
    assert shown["address"] | {"why": ""} == {"hidden": True, "value": None, "why": ""}
    assert re.match(
        r"hidden at BASIC: FULL opens it \(policies\.yaml:\d+:\d+\)", shown["address"]["why"]
    )
    text = " ".join(compare(folder, "clients", "1", "--level", "BASIC").stdout.split())
    assert "at BASIC" in text
    assert "hidden at BASIC: FULL opens it" in text


def test_a_list_shows_a_level_the_values_of_its_own_items(folder: Path) -> None:
    many = one(folder, "SELECT ID_FACT FROM LIGNES_FACT GROUP BY 1 HAVING COUNT(*) > 2 LIMIT 1")
    fields = told(folder, "invoices", many, "--level", "STANDARD")["fields"]
    totals = [each for each in fields if each["path"] == "lines[].total"]
    assert len(totals) > 2
    assert all(each["level"]["value"] == each["value"] for each in totals)
    secret = [each for each in fields if each["path"] == "lines[].description"]
    assert all(each["level"]["hidden"] for each in secret)


def test_what_no_policy_is_about_is_said_to_be_whole(folder: Path) -> None:
    key = one(folder, "SELECT MIN(ID_PERS) FROM PERSONNES WHERE GENRE_PERS = 'V' AND ACTIF = 'O'")
    assert "no policy is about vets" in compare(folder, "vets", key, "--level", "BASIC").stdout


def test_the_statements_are_printed_where_they_are_asked_for(folder: Path) -> None:
    assert "SELECT" not in compare(folder, "vets", one(folder, VET)).stdout.replace("SELECT c", "")
    printed = compare(folder, "invoices", "2", "--open").stdout
    assert "\nFROM LIGNES_FACT l" in printed
    assert "-- parameters: 2, 1, 0" in printed
    assert told(folder, "invoices", "2", "--open")["asked"][0].startswith("SELECT")
    assert "asked" not in told(folder, "invoices", "2")


VET = "SELECT MIN(ID_PERS) FROM PERSONNES WHERE GENRE_PERS = 'V' AND ACTIF = 'O'"


def test_a_record_that_is_not_served_says_why_and_is_exit_1(folder: Path) -> None:
    key = one(folder, "SELECT ID_PERS FROM PERSONNES WHERE ACTIF <> 'O' AND GENRE_PERS = 'C'")
    result = compare(folder, "clients", key)
    assert result.exit_code == 1
    assert "not served: `where` hides it (" in result.stdout
    assert "p.ACTIF = 'O' does not hold" in result.stdout
    unserved = json.loads(compare(folder, "clients", key, "--json").stdout)
    assert unserved["record"] is None
    assert unserved["fields"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("client", "1"), 2, "client is no resource (did you mean clients?)"),
        (("slots", "1"), 2, "slots is no resource"),
        (("clients",), 2, "Missing argument 'ID'"),
        (("clients", "987654"), 1, "no record of clients has the key 987654"),
        (("clients", "1", "--level", "LOW"), 2, "LOW is no level"),
    ],
)
def test_bad_input_is_a_sentence(
    folder: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    result = compare(folder, *words)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stdout == ""


def test_an_id_of_another_resource_is_named_as_such(folder: Path) -> None:
    public_id = told(folder, "vets", one(folder, VET))["id"]
    result = compare(folder, "clients", public_id)
    assert result.exit_code == 1
    assert result.stderr == f"{public_id} is an id of vets, not of clients\n"


def test_several_matches_are_listed_by_id_and_name(folder: Path) -> None:
    result = compare(folder, "clients", "martin")
    assert result.exit_code == 1
    head, *lines = result.stderr.splitlines()
    assert head == "martin fits several of clients; choose one by its id:"
    assert all(re.fullmatch(r"  [0-9a-f-]{36}  .*martin.*", each.lower()) for each in lines)
    listed = json.loads(compare(folder, "clients", "martin", "--json").stdout)
    assert len(listed["matches"]) == len(lines) > 1
    name = listed["matches"][0]["name"]
    assert told(folder, "clients", *name.split())["name"] == name


def test_without_a_state_it_says_that_the_ids_are_of_this_run_alone(folder: Path) -> None:
    bare = folder / "bare"
    bare.mkdir()
    text = (folder / "gateway.yaml").read_text()
    (bare / "gateway.yaml").write_text(text.replace(f"state: {folder}", "state: ."))
    shutil.copy(folder / "clinic.db", bare)
    result = compare(bare, "clients", "1")
    assert result.exit_code == 0, result.output
    assert "of this run alone" in result.stderr
    assert not (bare / "gateway.db").exists()


def test_a_resource_that_the_mapping_leaves_out_is_said_as_such(folder: Path) -> None:
    text = MAPPING.read_text()
    stock = text[text.index("  stock:") : text.index("  appointmentTypes:")]
    (folder / "mapping.yaml").write_text(text.replace(stock, ""))
    configuration = folder / "gateway.yaml"
    configuration.write_text(configuration.read_text().replace(str(MAPPING), "mapping.yaml"))
    result = compare(folder, "stock", "1")
    assert result.exit_code == 1
    assert result.stderr == "stock is not in the mapping, so nothing of it is served\n"
