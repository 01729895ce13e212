"""`clinic-gateway policy test`, as an operator runs it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli.policy import policy
from gateway.contract.access import LEVELS
from gateway.contract.resources import CLIENT, GOVERNED
from tests.policies import TEXT

SHIPPED = Path(__file__).resolve().parents[2] / "policies.yaml"
CASES = SHIPPED.with_name("policies.test.yaml")
CELLS = len(LEVELS) * sum(len(each.paths) for each in GOVERNED)
FIRST = """\
version: 1
cases:
  - name: Whose animal it is
    key: BASIC
    operation: get_client
    record: {id: 00000000-0000-4000-8000-000000000001, firstName: Anna, lastName: Martin}
    sees: [id, firstName, lastName]
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a policy and a case beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(TEXT)
    (tmp_path / "mine.test.yaml").write_text(FIRST)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(policy, ["test", *arguments])


def test_the_shipped_policy_passes_its_cases() -> None:
    result = run(str(SHIPPED), "--min-coverage", "100")
    assert result.exit_code == 0, result.output
    [line] = result.stdout.splitlines()
    assert line.startswith(f"{CASES}: ")
    assert line.endswith(f", 100 % covered ({CELLS} of {CELLS} cells)")


def test_without_a_file_the_configured_policy_is_tried(own_folder: Path) -> None:
    (own_folder / "gateway.yaml").write_text("policy: mine.yaml\n")
    assert run().stdout.startswith(f"{own_folder / 'mine.test.yaml'}: 1 of 1 cases passed")
    assert run("--config", "none.yaml").exit_code == 1


def test_what_no_case_looks_at_is_listed_by_resource_and_level() -> None:
    result = run("mine.yaml")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    covered = f"{3000 // CELLS / 10:g}"
    assert lines[0] == (
        f"mine.test.yaml: 1 of 1 cases passed, {covered} % covered (3 of {CELLS} cells)"
    )
    [basic] = [line for line in lines if line.startswith("  not covered: clients BASIC: ")]
    assert "phone" in basic
    assert f"  not covered: clients STANDARD: all {len(CLIENT.paths)}" in lines
    assert max(map(len, lines)) <= 80


def test_too_little_coverage_ends_badly() -> None:
    assert run("mine.yaml", "--min-coverage", "0.5").exit_code == 0
    result = run("mine.yaml", "--min-coverage", "1.5")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "too little: at least 1.5 % must be covered"
    assert run("mine.yaml", "--min-coverage", "101").exit_code == 2


def test_a_failing_case_has_a_line_with_its_place_and_what_differs(own_folder: Path) -> None:
    (own_folder / "mine.test.yaml").write_text(FIRST.replace(", lastName]", ", phone]"))
    result = run("mine.yaml")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == (
        "mine.test.yaml:3:5: Whose animal it is: clients.lastName: shown 'Martin', expected hidden;"
        " clients.phone: hidden, expected nothing"
    )
    assert "mine.test.yaml: 0 of 1 cases passed" in result.stdout


def test_the_same_is_told_in_json(own_folder: Path) -> None:
    (own_folder / "mine.test.yaml").write_text(FIRST.replace(", lastName]", "]"))
    result = run("mine.yaml", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["ok"], found["passed"], found["failed"]) == (False, 0, 1)
    assert found["failures"] == [
        {
            "line": 3,
            "column": 5,
            "name": "Whose animal it is",
            "differences": ["clients.lastName: shown 'Martin', expected hidden"],
        }
    ]
    assert found["coverage"]["covered"] == 3
    assert "phone" in found["coverage"]["uncovered"]["clients"]["BASIC"]
    assert json.loads(run(str(SHIPPED), "--json").stdout)["ok"] is True


def test_other_cases_can_be_named(own_folder: Path) -> None:
    (own_folder / "more.yaml").write_text(
        FIRST + FIRST.partition("cases:\n")[2].replace("Wh", "Th")
    )
    assert "more.yaml: 2 of 2 cases" in run("mine.yaml", "--cases", "more.yaml").stdout


def test_cases_that_are_not_there_are_no_pass() -> None:
    for arguments in (["mine.yaml", "--cases", "none.yaml"], [str(SHIPPED.with_name("x.yaml"))]):
        assert run(*arguments).exit_code == 1
    result = run("mine.yaml", "--cases", "none.yaml")
    assert result.stderr == (
        "none.yaml: there are no cases here: write them into this file, or name another with"
        " --cases\n"
    )
    found = json.loads(run("mine.yaml", "--cases", "none.yaml", "--json").stdout)
    assert found["ok"] is False


def test_cases_that_cannot_be_read_are_said_with_every_problem(own_folder: Path) -> None:
    wrong = FIRST.replace("BASIC", "BASC").replace("get_client", "get_clent")
    (own_folder / "mine.test.yaml").write_text(wrong)
    result = run("mine.yaml")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "mine.test.yaml:4:10: BASC is not a level (did you mean BASIC?)",
        "mine.test.yaml:5:16: get_clent is not an operation (did you mean get_client?)",
    ]
    found = json.loads(run("mine.yaml", "--json").stdout)
    assert [each["line"] for each in found["problems"]] == [4, 5]


def test_no_value_of_a_case_commands_the_terminal(own_folder: Path) -> None:
    text = FIRST.replace("lastName: Martin", 'lastName: "a\\x1b[2Jb\\u202e"')
    (own_folder / "mine.test.yaml").write_text(text.replace(", lastName]", "]"))
    result = run("mine.yaml")
    assert "clients.lastName: shown 'a" in result.stdout
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout + run("mine.yaml", "--json").stdout
