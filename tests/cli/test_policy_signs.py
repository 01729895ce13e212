"""No policy command passes on what a terminal or a page obeys, be it in a name or in a value."""

from pathlib import Path

import pytest

from gateway.settings import shipped_policy
from tests.command import clinic_gateway
from tests.policies import TEXT

# A control that click does not take out by itself, and one that turns the direction of writing.
SIGNS = "\x9b31m\u202e"
NAME = f"odd{SIGNS}<b>.yaml"
WHOLE = ["preview", "--level", "BASIC", "--resource", "clients"]
COMMANDS = [
    ["show"],
    *(["show", "--format", each] for each in ("html", "csv", "json")),
    *(["check", "--format", each] for each in ("text", "sarif", "json")),
    ["diff", str(shipped_policy())],
    ["test"],
    WHOLE,
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(command: list[str]) -> str:
    done = clinic_gateway("policy", *command, NAME)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_of_a_sound_policy_and_of_a_wrong_one_no_signs_are_passed_on(
    folder: Path, command: list[str]
) -> None:
    only = '  only: {lastName: {not: ["<i>\\x9b\\u202e"]}}\n'
    for written in (TEXT.replace("\nclients:\n", f"\nclients:\n{only}"),
                    TEXT.replace("lastName]", '"last\\x9b\\u202e<i>"]')):  # fmt: skip
        (folder / NAME).write_text(written)
        found = said(command)
        assert not [each for each in SIGNS if not each.isprintable() and each in found]
        if "html" in command and "<html" in found:
            assert "<i>" not in found
            assert "<b>" not in found


def test_of_a_file_that_is_not_there_no_signs_are_passed_on(folder: Path) -> None:
    for command in COMMANDS:
        assert not [each for each in said(command) if not each.isprintable() and each != "\n"]
