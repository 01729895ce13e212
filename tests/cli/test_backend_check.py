"""`clinic-gateway backend check`, as an integrator runs it."""

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adapters.examination import DRY, UNREHEARSED, Finding, Verdict
from adapters.sample import MAPPING
from gateway.cli import main
from gateway.inquiries import practice
from gateway.settings import CHECKS
from tests.adapters.clinic import copy_to

CONFIGURATION = """\
state: .
backend:
  url: sqlite:///clinic.db
  mapping: mine.yaml
  timeout: 60
"""
DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "connecting.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    copy_to(tmp_path, datetime.now(UTC).date())
    (tmp_path / "gateway.yaml").write_text(CONFIGURATION)
    (tmp_path / "mine.yaml").write_text(MAPPING.read_text())
    return tmp_path


def check(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["backend", "check", *arguments])


def change(folder: Path, right: str, wrong: str) -> int:
    """Change the mapping; the line that was changed."""
    text = (folder / "mine.yaml").read_text()
    assert right in text
    (folder / "mine.yaml").write_text(text.replace(right, wrong, 1))
    return text[: text.index(right)].count("\n") + 1


def test_a_sound_practice_is_a_table_of_verdicts_a_sentence_and_exit_0() -> None:
    result = check("--booking")
    assert result.exit_code == 0, result.stdout
    assert re.search(r"^ ok +list_clients +50 records", result.stdout, re.MULTILINE)
    assert re.search(r"hours +1 vet: \w\w\w-?.* \d\d:\d\d-\d\d:\d\d", result.stdout)
    assert re.search(r"^ ok +rehearsal +a computed time, no type", result.stdout, re.MULTILINE)
    assert re.search(
        r"^0 failed, \d+ warnings?, (\d+ notes?, )?\d+ ok: nothing", result.stdout, re.MULTILINE
    )
    assert result.stderr == ""


def test_what_would_fail_a_partner_is_red_has_its_line_and_is_exit_1(folder: Path) -> None:
    line = change(folder, "firstName: p.PRENOM", "firstName: p.PRENOMM")
    result = check()
    assert result.exit_code == 1
    assert f"mine.yaml:{line}:18: the database says: no such" in result.stdout
    assert "-> near: p.PRENOM" in result.stdout
    assert "a partner would be failed" in result.stdout


def test_mistakes_of_all_kinds_are_told_in_one_round(folder: Path) -> None:
    lines = [
        change(folder, "      breed: a.RACE\n", "      breed: 'a.RACE\n"),
        change(folder, "  step: 15 ", "  step: 1 "),
        change(folder, "lastName: COALESCE", "lastname: COALESCE"),
        change(folder, "firstName: p.PRENOM", "firstName: p.PRENOMM"),
        change(folder, "    - insert: RDV_JOURNAL\n", "    - insert: RDV_JOURNALE\n"),
    ]
    result = check()
    assert result.exit_code == 1
    told = re.findall(r"mine\.yaml:(\d+):\d+", result.stdout)
    assert sorted(map(int, told)) == sorted(lines)
    for said in ("never closed", "greater than or equal to 5", "lastname is no field", "PRENOMM"):
        assert said in result.stdout
    assert "-> near: p.PRENOM" in result.stdout
    assert "-> near: RDV_JOURNAL" in result.stdout


def test_where_nobody_answers_the_file_is_checked_all_the_same(folder: Path) -> None:
    change(folder, "lastName: COALESCE", "lastname: COALESCE")
    (folder / "clinic.db").unlink()
    result = check()
    assert result.exit_code == 1
    assert "lastname is no field" in result.stdout
    assert "could not be looked at: " in result.stdout


def test_a_field_that_an_operation_needs_is_missed_at_its_line(folder: Path) -> None:
    change(folder, "      isLow: COALESCE(a.QUANTITE <= a.SEUIL, 0)\n", "")
    text = (folder / "mine.yaml").read_text()
    stock = text[: text.index("\n  stock:")].count("\n") + 2
    line = text[: text.index("    fields:", text.index("\n  stock:"))].count("\n") + 1
    result = check()
    assert result.exit_code == 1
    assert line > stock
    assert f"mine.yaml:{line}:5: the adapter cannot filter stock by isLow" in result.stdout
    assert "write resources.stock.fields.isLow" in " ".join(result.stdout.split())


@pytest.mark.long
def test_the_hours_that_were_read_are_told_to_programs() -> None:
    told = [each["text"] for each in json.loads(check("--json").stdout)]
    assert any(re.match(r"1 vet: \w\w\w.* \d\d:\d\d-\d\d:\d\d", each) for each in told)


@pytest.mark.long
def test_json_has_every_finding_as_an_object(folder: Path) -> None:
    line = change(folder, "firstName: p.PRENOM", "firstName: p.PRENOMM")
    result = check("--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert {each["verdict"] for each in found} >= {"ok", "failed"}
    [lost] = [each for each in found if each["check"] == "mapping"]
    assert lost == {
        "check": "mapping",
        "subject": "clients.firstName",
        "verdict": "failed",
        "text": "the database says: no such column: p.PRENOMM",
        "code": "not-in-database",
        "remedy": "near: p.PRENOM, p.NOM",
        "place": f"{folder / 'mine.yaml'}:{line}:18",
        "ids": [],
        "examples": [],
        "codes": {},
        "seconds": None,
    }


def test_a_mapping_that_cannot_be_read_is_told_in_the_same_way(folder: Path) -> None:
    line = change(folder, "firstName: p.PRENOM", "firstname: p.PRENOM")
    result = check("--json")
    assert result.exit_code == 1
    [only] = json.loads(result.stdout)
    assert only["place"] == f"{folder / 'mine.yaml'}:{line}:7"
    assert "did you mean firstName?" in only["text"]
    assert only["code"] == "no-such-field"


def test_what_is_wrong_with_the_settings_is_told_to_programs_with_its_kind(folder: Path) -> None:
    (folder / "gateway.yaml").write_text("listn: x\n")
    for command in (["backend", "check"], ["settings"]):
        result = CliRunner().invoke(main, [*command, "--json"])
        assert result.exit_code == 1
        assert json.loads(result.stdout) == {
            "ok": False,
            "problems": [
                {
                    "file": "gateway.yaml",
                    "line": 1,
                    "column": 1,
                    "text": "listn is not known here (did you mean listen?)",
                    "code": "unknown-name",
                    "severity": "error",
                    "help": CHECKS["unknown-name"].help,
                }
            ],
        }
        assert "gateway.yaml:1:1: listn is not known here" in result.stderr


def test_without_a_practice_system_the_remedy_is_said(folder: Path) -> None:
    (folder / "gateway.yaml").write_text("state: .\n")
    result = check()
    assert result.exit_code == 1
    assert "must say where the practice system is" in result.stderr


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ((), "nothing here would fail a partner"),
        (("no-such-row",), "nothing here would fail a partner"),
        ((DRY,), "nothing is red, but the rehearsal was dry, and made no booking"),
        ((UNREHEARSED,), "nothing is red, but 1 kind of bookings was not rehearsed"),
        (
            (DRY, UNREHEARSED, UNREHEARSED),
            "nothing is red, but the rehearsal was dry, and made no booking,"
            " and 2 kinds of bookings were not rehearsed",
        ),
    ],
)
def test_what_was_not_rehearsed_stands_in_the_last_sentence(
    codes: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(*_: object) -> AsyncIterator[Finding]:
        for code in codes:
            yield Finding(
                check="booking", subject="rehearsal", verdict=Verdict.WARNING, text="", code=code
            )

    monkeypatch.setattr(practice, "examine", found)
    result = check("--booking")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].endswith(f" ok: {said}")


@pytest.mark.parametrize(
    "tenant",
    [
        "http://cloud.example.com/v2",
        "http://user:word@CLOUD.example.com.:80/v2/",
        "https://cloud.example.com/v2",
    ],
)
def test_the_live_practice_system_is_no_test_tenant(folder: Path, tenant: str) -> None:
    live = CONFIGURATION.replace("sqlite:///clinic.db", "http://cloud.example.com/v2/")
    (folder / "gateway.yaml").write_text(live)
    result = check("--booking", "--tenant", tenant)
    assert result.exit_code == 1
    assert "--tenant: that is backend.url itself" in result.stderr


@pytest.mark.parametrize(
    "tenant", ["http://127.0.0.1:9/v2", "http://127.0.0.1/v3", "http://127.0.0.2/v2", "://"]
)
def test_another_address_may_be_a_test_tenant(folder: Path, tenant: str) -> None:
    live = CONFIGURATION.replace("sqlite:///clinic.db", "http://127.0.0.1/v2")
    (folder / "gateway.yaml").write_text(live)
    assert "backend.url itself" not in check("--booking", "--tenant", tenant).stderr


def test_the_page_on_connecting_shows_what_is_printed(folder: Path) -> None:
    change(folder, "firstName: p.PRENOM", "firstName: p.PRENOMM")
    shown = re.search(r"<!-- check -->\n```text\n(.*?)```", DOCUMENT, re.DOTALL)
    assert shown is not None
    # the sample's mapping has more lines with each field
    line_of = re.compile(r"(?<=mine\.yaml:)\d+(?=:)")
    printed = line_of.sub("N", " ".join(check().stdout.split()))
    varies = re.compile(r"\(\d+ ms\)|^\d+ failed, \d+ warnings?, \d+ ok|^\.\.\.$")
    for line in shown[1].splitlines():
        assert line_of.sub("N", " ".join(varies.sub("", line).split())) in printed


def test_a_field_that_an_operation_needs_is_named_with_its_place(folder: Path) -> None:
    change(folder, "      isLow:", "      # isLow:")
    result = check()
    assert result.exit_code != 0
    assert "write resources.stock.fields.isLow" in result.output
