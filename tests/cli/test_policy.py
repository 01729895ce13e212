"""`clinic-gateway policy` and `clinic-gateway openapi`, as an operator runs them."""

import asyncio
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from openapi_spec_validator import validate

from gateway.cli.description import openapi
from gateway.cli.policy import policy
from gateway.contract.access import LEVELS
from gateway.contract.resources import GOVERNED
from gateway.policy.running.versions import Presence, Versions
from gateway.store import open_store
from tests.policies import TEXT
from tests.states import begin_state

SHIPPED = Path(__file__).resolve().parents[2] / "policies.yaml"
README = SHIPPED.with_name("README.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(policy, arguments)


def test_a_sound_file_is_said_to_be_in_order() -> None:
    result = run("check", str(SHIPPED))
    assert result.exit_code == 0, result.stderr
    assert "in order; 6 resources" in result.stdout
    assert json.loads(run("check", str(SHIPPED), "--json").stdout)["ok"] is True


def test_the_status_is_told_where_the_policy_is_a_link_to_itself(empty_folder: Path) -> None:
    (empty_folder / "gateway.yaml").write_text("state: .\npolicy: policies.yaml\n")
    begin_state(empty_folder / "gateway.yaml")
    link = empty_folder / "policies.yaml"
    link.symlink_to(link)
    asyncio.run(_says_that_it_runs(empty_folder, link))
    result = run("status", "--json")
    assert (result.exit_code, result.stderr) == (1, "")
    [told] = json.loads(result.stdout)["processes"]
    assert told["state"] == "stale"


async def _says_that_it_runs(state: Path, policy_file: Path) -> None:
    store = open_store(state / "gateway.db")
    told = {"state": "stale", "file": str(policy_file), "waiting": None}
    try:
        await Presence(Versions(store), lambda: datetime.now(UTC)).say(told, 0)
    finally:
        await store.aclose()


@pytest.mark.parametrize("command", ["check", "show"])
def test_every_problem_stands_on_stderr_in_a_line_of_its_own(
    empty_folder: Path, command: str
) -> None:
    file = empty_folder / "mine.yaml"
    file.write_text(TEXT.replace("address", "adress").replace("[reference, unit,", "[unit, unit,"))
    result = run(command, str(file))
    assert result.exit_code == 1
    assert result.stdout == ""
    lines = [each for each in result.stderr.splitlines() if each.startswith(f"{file}:")]
    assert len(lines) == 3
    assert command == "check" or len(result.stderr.splitlines()) == 3
    assert "did you mean address?" in lines[0]
    found = json.loads(run("check", "mine.yaml", "--json").stdout)
    assert found["ok"] is False
    assert len(found["problems"]) == 3


def test_without_a_file_the_configured_policy_is_meant(empty_folder: Path) -> None:
    (empty_folder / "own.yaml").write_text(TEXT)
    (empty_folder / "gateway.yaml").write_text("policy: own.yaml\n")
    assert json.loads(run("check", "--json").stdout)["file"] == str(empty_folder / "own.yaml")
    (empty_folder / "other.yaml").write_text("policy: none.yaml\n")
    result = run("check", "--config", "other.yaml")
    assert result.exit_code == 1
    assert "none.yaml: error[unreadable]: cannot be read" in result.stderr


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_policy_in_the_folder_that_is_not_in_use_is_named(
    empty_folder: Path, command: str
) -> None:
    own = empty_folder / "policies.yaml"
    own.write_text("none\n")
    result = run(command)
    assert result.exit_code == 0
    assert result.stderr == (
        f"note: this is about {SHIPPED}, which is in use; policies.yaml in this folder is another"
        " file\n"
    )
    own.write_text(TEXT)
    (empty_folder / "gateway.yaml").write_text("policy: policies.yaml\n")
    assert run(command).stderr == ""
    assert run(command, str(SHIPPED)).stderr == ""


def test_what_is_wrong_is_json_in_both_commands(empty_folder: Path) -> None:
    (empty_folder / "mine.yaml").write_text(TEXT.replace("address", "adress"))
    found = [json.loads(run(each, "mine.yaml", "--json").stdout) for each in ("check", "show")]
    assert found[0] == found[1]
    assert found[0]["ok"] is False


def test_the_matrix_has_each_field_of_each_resource_at_each_level() -> None:
    shown = json.loads(run("show", str(SHIPPED), "--json").stdout)["resources"]
    assert {name: list(fields) for name, fields in shown.items()} == {
        resource.name: list(resource.paths) for resource in GOVERNED
    }
    assert shown["clients"]["phone"] == {"BASIC": False, "STANDARD": True, "FULL": True}


def test_the_table_is_read_by_people() -> None:
    lines = run("show", str(SHIPPED)).stdout.splitlines()
    rows = [line.split() for line in lines]
    assert ["field", *LEVELS] in rows
    assert ["phone", "-", "yes", "yes"] in rows
    assert ["lines[].description", "-", "-", "yes"] in rows
    assert max(map(len, lines[1:])) <= 80


def test_the_document_is_printed_whole_or_as_a_key_would_see_it(empty_folder: Path) -> None:
    (empty_folder / "own.yaml").write_text(TEXT)
    (empty_folder / "gateway.yaml").write_text("policy: own.yaml\n")
    whole = json.loads(CliRunner().invoke(openapi, []).stdout)
    validate(whole)
    arguments = ["--level", "BASIC", "--permission", "CLIENT_READ"]
    narrow = json.loads(CliRunner().invoke(openapi, arguments).stdout)
    validate(narrow)
    assert list(narrow["paths"]) == ["/clients", "/clients/{id}"]
    members = narrow["components"]["schemas"]["Client"]["properties"]
    assert list(members) == ["id", "firstName", "lastName"]
    assert set(members) < set(whole["components"]["schemas"]["Client"]["properties"])


@pytest.mark.parametrize(
    ("configuration", "url"),
    [
        ("listen: 127.0.0.1:9000\n", "http://127.0.0.1:9000/api/v1"),
        ("public_url: https://clinic.example\n", "https://clinic.example/api/v1"),
    ],
)
def test_the_document_names_the_configured_address(
    empty_folder: Path, configuration: str, url: str
) -> None:
    (empty_folder / "gateway.yaml").write_text(configuration)
    assert json.loads(CliRunner().invoke(openapi, []).stdout)["servers"] == [{"url": url}]


def test_the_filters_in_the_readme_are_those_that_the_document_describes() -> None:
    paths = json.loads(CliRunner().invoke(openapi, []).stdout)["paths"]
    taken = {
        path: [each["name"] for each in calls["get"].get("parameters", []) if each["in"] == "query"]
        for path, calls in paths.items()
        if "get" in calls
    }
    rows = [
        f"| {path} | {' '.join(f'`{each}`' for each in sorted({*names} - {'limit', 'cursor'}))} |"
        for path, names in sorted(taken.items())
        if "cursor" in names
    ]
    found = re.search(r"<!-- filters -->\n(.*?)<!-- /filters -->", README, re.DOTALL)
    assert found is not None
    assert found[1].splitlines()[2:] == rows, "\n".join(rows)
