"""The example of docs/own-adapter.md, written out and run as its reader would; and `cannot`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.conformance import AdapterConformance

PAGE = Path(__file__).parents[2] / "docs" / "own-adapter.md"
FILES = re.compile(r"<!-- ([a-z_]+\.[a-z]+) -->\n```[a-z]+\n(.*?)```\n", re.DOTALL)


def run(folder: Path, *arguments: str) -> str:
    """What pytest says of a folder; its reader has no plugin that takes long to import."""
    quickly = ["-p", "no:cacheprovider", "-p", "no:schemathesis"]
    told = subprocess.run(
        [sys.executable, "-m", "pytest", *quickly, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return told.stdout + told.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.findall(PAGE.read_text("utf-8")):
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


@pytest.mark.long
def test_the_example_passes_all_that_it_can(folder: Path) -> None:
    said = run(folder, "-q")
    promises = [each for each in dir(AdapterConformance) if each.startswith("test_")]
    left_out = 7  # down, slow, nonsense, an odd code, day and zero date, what a page costs
    assert f"{len(promises) - left_out} passed in" in said, said


@pytest.mark.long
def test_a_mistake_in_it_is_found_and_shown(folder: Path) -> None:
    change(folder / "clinic_x.py", "if each > begin]", "if each >= begin]")
    said = run(folder, "-q", "-k", "pages_of_any_size")
    assert "1 failed" in said
    assert "E           AssertionError: after a page of" in said, said


@pytest.mark.long
def test_a_verb_that_is_neither_written_nor_named_fails_with_what_to_do(folder: Path) -> None:
    change(folder / "test_clinic_x.py", '*("asked", ', "*(")
    said = run(folder, "-q", "-k", "costs_the_same")
    assert "write asked() of this practice, or name it in the suite's cannot" in said, said


def test_what_cannot_be_must_be_a_verb() -> None:
    with pytest.raises(TypeError, match=r"names stopp, .*did you mean stop"):
        type("TestIt", (AdapterConformance,), {"cannot": {"stopp"}})
