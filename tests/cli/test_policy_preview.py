"""`clinic-gateway policy preview`: what a key sees of a record, beside the whole one."""

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.cli.policy import policy
from gateway.contract.access import AccessLevel
from gateway.contract.resources import CLIENT, GOVERNED
from gateway.policy.reading.document import load_policy
from gateway.policy.telling.preview import specimen
from tests.conftest import RunningGateway, Template
from tests.partner import Partner
from tests.policies import NEW, TEXT

SHIPPED = Path(__file__).resolve().parents[2] / "policies.yaml"
RICH = TEXT.replace("firstName, lastName]", "firstName, lastName, {phone: last(2)}]").replace(
    "  FULL: [owner", "  only: {BASIC: {status: [IN_PROGRESS]}}\n  FULL: [owner"
)
KEY = ["keys", "create", "--name", "Insurer X", "--permission", "CLIENT_READ", "--level", "BASIC"]


@pytest.fixture
def folder(template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A gateway's folder with a policy of its own beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(RICH)
    return Path(shutil.copytree(template.folder, tmp_path / "state"))


def ran(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--config", str(folder / "gateway.yaml")])


def preview(folder: Path, *words: str) -> Result:
    return ran(folder, "policy", "preview", *words)


def told(folder: Path, *words: str) -> Any:
    result = preview(folder, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def made(folder: Path, *words: str) -> str:
    result = ran(folder, *KEY, *words, "--json")
    assert result.exit_code == 0, result.output
    key_id: str = json.loads(result.stdout)["id"]
    return key_id


def test_a_made_up_record_stands_beside_what_the_level_sees(folder: Path) -> None:
    lines = preview(folder, "--level", "BASIC", "--resource", "clients", "mine.yaml").stdout
    rows = [line.split() for line in lines.splitlines()]
    assert rows[0][:4] == ["clients,", "a", "made-up", "record,"]
    assert ["firstName", "Anna", "the", "same"] in rows
    assert ["phone", "06", "12", "34", "56", "78", "***78", "(masked:", "last(2))"] in rows
    assert ["email", "anna.martin@example.org", "(hidden)"] in rows
    assert "decides" in lines
    assert max(map(len, lines.splitlines())) <= 80


@pytest.mark.parametrize("resource", [each.name for each in GOVERNED])
@pytest.mark.parametrize("level", list(AccessLevel))
def test_every_resource_can_be_previewed_at_every_level(resource: str, level: str) -> None:
    arguments = ["preview", "--level", level, "--resource", resource, str(SHIPPED)]
    result = CliRunner().invoke(policy, arguments)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    found = json.loads(CliRunner().invoke(policy, [*arguments, "--json"]).stdout)
    sights = [each["sight"] for each in found["fields"].values()]
    visible = (
        load_policy(SHIPPED, lambda trouble: None).redactor(resource, AccessLevel(level)).visible
    )
    assert sights.count("whole") == len(visible)


def test_json_has_the_answer_beside_the_whole_record(folder: Path) -> None:
    found = told(folder, "--level", "BASIC", "--resource", "clients", "mine.yaml")
    assert found["whole"] == specimen(CLIENT)
    assert found["answer"] == {
        name: found["whole"][name] for name in ("id", "firstName", "lastName")
    } | {"phone": "***78"}
    assert found["fields"]["phone"] == {
        "sight": "masked",
        "mask": "last(2)",
        "whole": "06 12 34 56 78",
        "shown": "***78",
    }
    assert found["fields"]["address"]["sight"] == "hidden"
    assert (found["exists"], found["condition"], found["key"]) == (True, None, None)


def test_a_scope_decides_before_the_level(folder: Path) -> None:
    asked = ["--level", "BASIC", "--scope", "clients=FULL"]
    found = told(folder, *asked, "--resource", "clients")
    assert (found["level"], found["decided"]) == ("FULL", "its scope clients=FULL decides")
    found = told(folder, *asked, "--resource", "patients")
    assert (found["level"], found["decided"]) == ("BASIC", "its level BASIC decides")


def test_a_record_outside_the_conditions_does_not_exist(folder: Path) -> None:
    asked = ["--level", "BASIC", "--resource", "consultations", "mine.yaml"]
    text = " ".join(preview(folder, *asked).stdout.split())
    assert (
        "this record does not exist for that key: BASIC sees only records whose status is"
        " IN_PROGRESS of one that does exist, the key would see:"
    ) in text
    found = told(folder, *asked)
    assert (found["exists"], found["answer"]) == (False, None)
    assert found["condition"] == "status is IN_PROGRESS"
    above = told(folder, "--level", "FULL", "--resource", "consultations", "mine.yaml")
    assert (above["exists"], above["condition"]) == (True, None)
    assert above["whole"].keys() - above["answer"].keys() == set(NEW["consultations"])


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_key_of_the_store_is_named_by_its_id_or_its_name(folder: Path, by: str) -> None:
    key_id = made(folder, "--scope", "clients=STANDARD")
    named = key_id if by == "id" else "Insurer X"
    found = told(folder, "--key", named, "--resource", "clients", "mine.yaml")
    assert found["key"] == {"id": key_id, "name": "Insurer X"}
    assert (found["level"], found["notes"]) == ("STANDARD", [])
    assert found["decided"] == "its scope clients=STANDARD decides"
    text = preview(folder, "--key", named, "--resource", "patients").stdout
    assert f"the key Insurer X ({key_id})" in " ".join(text.split())
    assert "this key lacks PATIENT_READ: no call shows it patients" in text


def test_a_key_that_is_revoked_is_said_to_see_nothing(folder: Path) -> None:
    key_id = made(folder)
    ran(folder, "keys", "revoke", "--yes", key_id)
    found = told(folder, "--key", key_id, "--resource", "clients")
    assert found["notes"] == ["this key is revoked or expired: it is shown nothing any more"]


def test_a_name_that_no_key_or_more_than_one_has_is_refused(folder: Path) -> None:
    result = preview(folder, "--key", "Insurer Y", "--resource", "clients")
    assert result.exit_code == 1
    assert "no key has the id or the name Insurer Y" in result.stderr
    ids = [made(folder), made(folder)]
    result = preview(folder, "--key", "Insurer X", "--resource", "clients")
    assert result.exit_code == 1
    assert "2 keys have the name Insurer X" in result.stderr
    assert all(each in result.stderr for each in ids)


def test_a_question_about_a_key_makes_no_store(folder: Path) -> None:
    (folder / "gateway.db").unlink()
    assert preview(folder, "--key", "Insurer X", "--resource", "clients").exit_code == 1
    assert not (folder / "gateway.db").exists()


async def test_a_real_record_is_shown_as_the_running_gateway_answers_it(
    running_gateway: RunningGateway, partner: Partner, template: Template
) -> None:
    record_id = template.ids["clients"]
    for level in AccessLevel:
        asked = ["--level", level, "--resource", "clients", "--id", record_id]
        found = await asyncio.to_thread(told, running_gateway.folder, *asked)
        caller = await partner.with_key(level=level)
        answer = await caller.get(f"/clients/{record_id}")
        assert answer.status == 200
        assert (found["id"], found["answer"]) == (record_id, answer.data)
        assert (found["answer"] == found["whole"]) is (level == "FULL")


def test_an_id_that_names_nothing_is_refused(folder: Path) -> None:
    asked = ["--level", "FULL", "--resource", "clients", "--id"]
    result = preview(folder, *asked, "00000000-0000-4000-8000-000000000001")
    assert result.exit_code == 1
    assert "clients has no record 00000000" in result.stderr
    assert preview(folder, *asked, "17").exit_code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a key with --key, or a level with --level"),
        (["--key", "x", "--level", "FULL"], "name a key with --key, or a level with --level"),
        (["--key", "x", "--scope", "clients=FULL"], "--scope goes with --level"),
        (
            ["--level", "FULL", "--scope", "clients=FULL", "--scope", "clients=BASIC"],
            "Invalid value for '--scope': clients is named twice",
        ),
        (["--level", "FUL"], "did you mean FULL?"),
        (["--level", "FULL", "--scope", "client=FULL"], "did you mean clients?"),
    ],
)
def test_wrong_use_is_told(folder: Path, words: list[str], said: str) -> None:
    result = preview(folder, "--resource", "clients", *words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_what_is_no_governed_resource_is_refused(folder: Path) -> None:
    result = preview(folder, "--level", "FULL", "--resource", "client")
    assert result.exit_code == 2
    assert "did you mean clients?" in result.stderr


def written(folder: Path, statement: str) -> None:
    """What the practice's desk does."""
    with closing(sqlite3.connect(folder / "clinic.db")) as clinic, clinic:
        clinic.execute(statement)


def test_nothing_that_the_desk_wrote_commands_the_terminal(
    folder: Path, template: Template
) -> None:
    written(folder, "UPDATE PERSONNES SET PRENOM = 'A' || char(27) || '[2J' || char(8238)")
    asked = ["--level", "FULL", "--resource", "clients", "--id", template.ids["clients"]]
    result = preview(folder, *asked)
    assert result.exit_code == 0, result.output
    assert ["firstName", "A", "[2J", "the", "same"] in [
        line.split() for line in result.stdout.splitlines()
    ]
    assert "\x1b" not in result.stdout + preview(folder, *asked, "--json").stdout


def test_a_value_that_partners_are_not_shown_is_noted(folder: Path, template: Template) -> None:
    written(folder, "UPDATE COORDONNEES SET VALEUR = 'nobody' WHERE TYPE = 'M'")
    asked = ["--level", "FULL", "--resource", "clients", "--id", template.ids["clients"]]
    found = told(folder, *asked)
    assert found["answer"]["email"] is None
    assert found["notes"] == ["clients.email is unreadable: partners are shown no value"]
