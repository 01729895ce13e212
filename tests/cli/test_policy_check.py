"""What `clinic-gateway policy check` prints: for people, programs, code hosts and workflows."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from gateway.cli.policy import policy, reports
from gateway.cli.policy.reports import end_of
from gateway.policy.reading import CHECKS
from tests.policies import TEXT, moved

SHIPPED = Path(__file__).resolve().parents[2] / "policies.yaml"
WRONG = TEXT.replace("[phone, email,", "[phnoe, emial,")
RISKY = moved("clients.address", "BASIC")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.yaml").write_text(WRONG)
    (tmp_path / "risky.yaml").write_text(RISKY)
    return tmp_path


def check(*arguments: str) -> Result:
    return CliRunner().invoke(policy, ["check", *arguments])


def test_a_problem_is_its_place_its_line_a_caret_and_help_once_for_its_kind() -> None:
    result = check("wrong.yaml")
    assert (result.exit_code, result.stdout) == (1, "")
    assert (
        result.stderr
        == f"""\
wrong.yaml:14:14: error[unknown-field]: clients has no field 'phnoe' (did you mean phone?)
   14 |   STANDARD: [phnoe, emial, createdAt, updatedAt]
      |              ^^^^^
      = help: {CHECKS["unknown-field"].help}
wrong.yaml:14:21: error[unknown-field]: clients has no field 'emial' (did you mean email?)
   14 |   STANDARD: [phnoe, emial, createdAt, updatedAt]
      |                     ^^^^^
2 errors
"""
    )


def test_warnings_alone_are_in_order_unless_it_is_strict() -> None:
    result = check("risky.yaml")
    assert result.exit_code == 0
    assert "risky.yaml:13:36: warning[personal-at-basic]: clients.address is" in result.stderr
    assert result.stderr.endswith("\n1 warning\n")
    assert result.stdout.startswith("risky.yaml: in order; 6 resources")
    assert check("risky.yaml", "--strict").exit_code == 1
    assert check(str(SHIPPED), "--strict").exit_code == 0


def test_errors_and_warnings_are_told_together_in_the_order_of_the_file(folder: Path) -> None:
    (folder / "both.yaml").write_text(RISKY.replace("[phone, email,", "[phnoe, email,"))
    lines = [each for each in check("both.yaml").stderr.splitlines() if each[0] == "b"]
    assert [re.findall(r"(\d+):\d+: (\w+)\[", each) for each in lines] == [
        [("13", "warning")],
        [("14", "error")],
    ]
    assert check("both.yaml").stderr.endswith("1 error, 1 warning\n")


def test_a_file_that_is_not_there_is_said_without_a_line() -> None:
    result = check("none.yaml")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0] == (
        "none.yaml: error[unreadable]: cannot be read: no such file or directory"
    )
    assert "|" not in result.stderr


def test_colours_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in check("wrong.yaml").stderr
    made = reports.Console

    def terminal(**options: Any) -> Console:
        return made(**options, force_terminal=True, color_system="standard", _environ={})

    monkeypatch.setattr(reports, "Console", terminal)
    assert "\x1b[1;31m^^^^^" in check("wrong.yaml").stderr


def test_signs_that_a_terminal_obeys_are_not_passed_on(folder: Path) -> None:
    (folder / "odd.yaml").write_text(WRONG.replace("phnoe", '"ph\\e[31mnoe"').replace("#", "#"))
    assert "\x1b" not in check("odd.yaml").stderr


@pytest.mark.parametrize(
    ("line", "column", "word"),
    [
        ("  STANDARD: [phnoe, email]", 14, "phnoe"),
        ("  STANDARD: [phnoe, email]", 3, "STANDARD"),
        ("  STANDARD: [phnoe, email]", 13, "[phnoe, email]"),
        ("  A: [phone: {last: 2}, b]", 14, "{last: 2}"),
        ("  A: [{phone: last (2)}]", 15, "last (2)"),
        ("    - lines[].id  # here", 7, "lines[].id"),
        ('  A: ["lines[].id", b]', 7, '"lines[].id"'),
        ("  A: ['it''s', b]", 7, "'it''s'"),
        ("  A: [b, 'open", 10, "'open"),
        ("  A: [b, [c", 10, "[c"),
        ("  A: [a,, b]", 9, ","),
        ("\tA: []", 1, "\tA"),
    ],
)
def test_the_whole_word_is_underlined(line: str, column: int, word: str) -> None:
    assert line[column - 1 : end_of(line, column) - 1] == word


def test_the_caret_stands_under_the_word_behind_wide_letters_and_in_long_lines(
    folder: Path,
) -> None:
    wide = TEXT.replace("[reference, unit,", '["\u72ac", unti, unit,')
    long = TEXT.replace("[reference, unit,", f"[{'reference, ' * 40}unit, unti,")
    for text in (wide, long):
        (folder / "odd.yaml").write_text(text)
        lines = check("odd.yaml").stderr.splitlines()
        at = next(n for n, line in enumerate(lines) if "'unti'" in line)
        before = lines[at + 2].index("^") + (-1 if text is wide else 0)
        assert lines[at + 1][before : before + 4] == "unti"
        assert len(lines[at + 1]) < 120


def test_json_has_all_members_of_each_problem_and_warning() -> None:
    found = json.loads(check("wrong.yaml", "--format", "json").stdout)
    assert list(found) == ["ok", "file", "problems", "warnings"]
    assert found["problems"][0] == {
        "file": "wrong.yaml",
        "line": 14,
        "column": 14,
        "endColumn": 19,
        "text": "clients has no field 'phnoe' (did you mean phone?)",
        "code": "unknown-field",
        "severity": "error",
        "help": CHECKS["unknown-field"].help,
    }
    risky = json.loads(check("risky.yaml", "--json").stdout)
    assert (risky["ok"], risky["problems"]) == (True, [])
    assert list(risky) == ["ok", "file", "hash", "problems", "warnings"]
    assert [each["code"] for each in risky["warnings"]] == ["personal-at-basic"]


def test_a_wrong_configuration_is_json_too(folder: Path) -> None:
    (folder / "gateway.yaml").write_text("polycy: x\n")
    result = check("--json")
    assert result.exit_code == 1
    [problem] = json.loads(result.stdout)["problems"]
    assert "polycy" in problem["text"]
    assert check("--format", "sarif").exit_code == 1


def test_sarif_has_what_version_2_1_0_requires(folder: Path) -> None:
    (folder / "a b.yaml").write_text(WRONG)
    result = check("a b.yaml", "--format", "sarif")
    assert result.exit_code == 1
    log = json.loads(result.stdout)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("/sarif-schema-2.1.0.json")
    [run] = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    rules = driver["rules"]
    assert [each["id"] for each in rules] == list(CHECKS)
    for rule in rules:
        assert rule["help"]["text"] == CHECKS[rule["id"]].help
        assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note"}
    assert len(run["results"]) == 2
    for each in run["results"]:
        assert rules[each["ruleIndex"]]["id"] == each["ruleId"]
        assert each["message"]["text"]
        [location] = each["locations"]
        place = location["physicalLocation"]
        assert unquote(place["artifactLocation"]["uri"]) == "a b.yaml"
        assert " " not in place["artifactLocation"]["uri"]
        region = place["region"]
        assert region["startLine"] == region["endLine"] == 14
        assert region["endColumn"] - region["startColumn"] == 5
    assert run["columnKind"] == "unicodeCodePoints"


def test_sarif_of_a_sound_file_has_no_results_and_of_a_missing_one_no_region() -> None:
    sound = json.loads(check(str(SHIPPED), "--format", "sarif").stdout)
    assert sound["runs"][0]["results"] == []
    lost = json.loads(check("none.yaml", "--format", "sarif").stdout)
    [result] = lost["runs"][0]["results"]
    assert "region" not in result["locations"][0]["physicalLocation"]


def test_a_file_elsewhere_has_an_address_of_its_own(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    other = tmp_path_factory.mktemp("other") / "p.yaml"
    other.write_text(WRONG)
    log = json.loads(check(str(other), "--format", "sarif").stdout)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == other.as_uri()


def test_the_page_on_policies_shows_what_is_printed(folder: Path) -> None:
    page = (SHIPPED.parent / "docs" / "policies.md").read_text(encoding="utf-8")
    start = page.index("policies.yaml:9:14: error")
    shown = page[start : page.index("```", start)]
    head, clients = TEXT.index("version: 1"), TEXT.index("\nclients:") + 1
    rest = TEXT[head:].removeprefix("version: 1\n").replace(TEXT[clients:].split("\n\n")[0], "")
    part = TEXT[clients:].split("\n\n")[0].replace("[phone,", "[phnoe,")
    (folder / "policies.yaml").write_text(f"version: 1\n{'#' + chr(10)}" + "#\n" * 4 + part + rest)
    assert check("policies.yaml").stderr == shown


CASE = """\
  - name: {name}
    key: {level}
    operation: get_client
    record: {{id: 00000000-0000-4000-8000-000000000001, firstName: Anna, phone: "06 12 34 56 78"}}
    sees: {sees}
"""
BASIC = CASE.format(name="BASIC cannot call", level="BASIC", sees="[id, firstName, lastName]")
SCOPED = BASIC.replace("BASIC cannot", "A scope can hide").replace(
    "key: BASIC", "key: {level: FULL, scopes: {clients: BASIC}}"
)
LISTED = BASIC.replace("cannot call", "lists no numbers").replace("get_client", "list_clients")
STANDARD = CASE.format(
    name="STANDARD can call",
    level="STANDARD",
    sees="[id, firstName, lastName, phone, email, createdAt, updatedAt]",
)
CASES = f"version: 1\ncases:\n{BASIC}{SCOPED}{LISTED}{STANDARD}"
OPENED = TEXT.replace("firstName, lastName]", "firstName, lastName, {phone: last(2)}]")


@pytest.fixture
def configured(folder: Path) -> Path:
    """A configuration whose policy is sound, and fails three of the four cases beside it."""
    (folder / "own.yaml").write_text(OPENED)
    (folder / "own.test.yaml").write_text(CASES)
    (folder / "gateway.yaml").write_text("policy: own.yaml\n")
    return folder / "own.yaml"


@pytest.mark.usefixtures("configured")
def test_of_a_configured_policy_whose_cases_fail_it_is_said_what_waits(folder: Path) -> None:
    result = check()
    assert result.exit_code == 1
    assert result.stdout == (
        f"{folder}/own.yaml: in order, but 3 of its cases fail;"
        " `clinic-gateway policy test` lists them\n"
        "What it shows less than the policy that runs takes effect at once; what it shows more"
        " waits until its cases pass.\n"
        "A gateway on which no policy has run so far does not start with it.\n"
    )
    assert result.stderr.count(f"{folder}/own.test.yaml:") == 3
    assert "error[failed-case]: BASIC" in result.stderr
    assert "^^^^" in result.stderr
    assert "; `clinic-gateway policy test own.yaml` lists them\n" in check("own.yaml").stdout
    (folder / "own.yaml").write_text(TEXT)
    assert (check().exit_code, check().stderr) == (0, "")


@pytest.mark.usefixtures("configured")
def test_cases_that_fail_are_told_in_every_format(folder: Path) -> None:
    results = {form: check("--format", form) for form in ("json", "sarif")}
    assert {each.exit_code for each in results.values()} == {1}
    found = json.loads(results["json"].stdout)
    assert found["ok"] is False
    assert [each["code"] for each in found["problems"]] == ["failed-case"] * 3
    [run] = json.loads(results["sarif"].stdout)["runs"]
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert {each["artifactLocation"]["uri"] for each in places} == {"own.test.yaml"}


def test_what_a_policy_shows_more_waits_for_cases_that_cannot_be_read_too(
    configured: Path, folder: Path
) -> None:
    (folder / "own.test.yaml").write_text(CASES.replace("key: BASIC", "key: BASC", 1))
    result = check()
    assert result.exit_code == 1
    assert "error[bad-cases]: BASC is not a level" in result.stderr
    said = f"{configured}: in order, but its cases cannot be read;"
    assert f"{said} `clinic-gateway policy test` says why" in result.stdout
    assert check("--format", "sarif").exit_code == 1
