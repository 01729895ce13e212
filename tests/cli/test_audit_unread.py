"""Commands where the audit's folder or what was typed cannot be read: a sentence.

The exit of those of `clinic-gateway audit` is never 1.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from tests.states import begin_state

ONE = "0b9f6c1e-7a52-8d3b-9c41-5e2f8a6d7b10"
COMMANDS = [
    ("verify",),
    ("who-read", "clients", ONE),
    ("key", ONE),
    ("index",),
    ("index", "--anew"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder with a store in it."""
    (tmp_path / "gateway.yaml").write_text("state: .\n")
    begin_state(tmp_path / "gateway.yaml")
    return tmp_path


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--config", str(folder / "gateway.yaml")])


@pytest.mark.parametrize("words", COMMANDS)
def test_a_folder_of_somebody_else_is_told_with_whom_to_run_the_command_as(
    folder: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path) -> None:
        raise PermissionError(13, os.strerror(13), str(path))

    monkeypatch.setattr(Path, "iterdir", denied)
    done = run(folder, "audit", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"the audit in {folder}/audit cannot be read: permission denied; run this as the gateway's"
        " own user\n"
    )


def test_a_check_of_the_state_says_why_it_cannot_read_the_audit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: Path) -> None:
        raise OSError(5, os.strerror(5), str(path))

    monkeypatch.setattr(Path, "iterdir", failing)
    done = run(folder, "state", "check")
    said = f"the audit in {folder}/audit cannot be read: input/output error; look at its disk\n"
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", said)


@pytest.mark.parametrize(
    "words",
    [
        ("admin", "remove", "A\udcff"),
        ("audit", "deeds", "--who", "A\udcff"),
        ("audit", "key", "A\udcff"),
        ("audit", "who-read", "clients", "A\udcff"),
        ("policy", "explain", "--request", "A\udcff"),
    ],
)
def test_bytes_that_are_no_text_are_wrong_use(folder: Path, words: tuple[str, ...]) -> None:
    done = run(folder, *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "write it without control characters, in one line" in done.stderr


@pytest.mark.parametrize("words", COMMANDS)
def test_a_store_that_may_not_even_be_looked_for_is_named(
    folder: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = Path.stat

    def denied(path: Path, **named: Any) -> os.stat_result:
        if path.name == "gateway.db":
            raise PermissionError(13, os.strerror(13), str(path))
        return stat(path, **named)

    monkeypatch.setattr(Path, "stat", denied)
    done = run(folder, "audit", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"permission denied ({folder}/gateway.db); run this as the gateway's" in done.stderr


@pytest.mark.parametrize("words", COMMANDS)
def test_what_is_no_folder_is_told_with_the_setting_that_says_where_it_is(
    folder: Path, words: tuple[str, ...]
) -> None:
    (folder / "audit").write_text("")
    done = run(folder, "audit", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"the audit in {folder}/audit cannot be read: not a directory; the configuration's"
        " audit.folder says where it is\n"
    )


def test_an_answer_that_cannot_be_looked_up_is_told_so_too(folder: Path) -> None:
    (folder / "audit").write_text("")
    done = run(folder, "policy", "explain", "--request", "0123456789abcdef")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"the audit in {folder}/audit cannot be read: not a directory;")
