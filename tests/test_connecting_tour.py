"""The tour of docs/connecting.md, and docs/smallest-mapping.md, typed as they stand there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

DOCS = Path(__file__).resolve().parents[1] / "docs"
TOUR = (DOCS / "connecting.md").read_text("utf-8").partition("<!-- tour -->")[2]
BLOCK = re.compile(r"^```(sh|diff|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def typed(lines: str, folder: Path) -> str:
    """What a shell prints, with single blanks and without the breaks of a narrow table."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", lines],
        check=False,  # a check that finds something ends with 1
        cwd=folder,
        env={
            "PATH": path,
            "CLONE": str(DOCS.parent),
            "COLUMNS": "200",
            "LC_ALL": "C.UTF-8",
            "HOME": str(folder),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    return " ".join((done.stdout + done.stderr).split())


def edit(mapping: Path, change: str) -> None:
    lines = change.splitlines(keepends=True)
    old = "".join(each[1:] for each in lines if each.startswith("-"))
    new = "".join(each[1:] for each in lines if each.startswith("+"))
    text = mapping.read_text("utf-8")
    assert text.count(old) == 1, f"the draft has no such lines, or several: {old}"
    mapping.write_text(text.replace(old, new), "utf-8")


def followed(page: str, folder: Path) -> set[str]:
    """Types a page, edits as it says, and looks for what it shows; returns the kinds of blocks."""
    seen = ""
    kinds = set()
    for kind, content in BLOCK.findall(page):
        kinds.add(kind)
        if kind == "sh":
            seen = typed(content, folder)
        elif kind == "diff":
            edit(folder / "clinic.yaml", content)
        else:
            for line in content.splitlines():
                assert line in seen
    return kinds


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="install sqlite3 to follow the tour")
def test_the_tour_goes_from_an_empty_folder_to_green(tmp_path: Path) -> None:
    kinds = followed(TOUR.partition("<!-- /tour -->")[0], tmp_path)
    assert kinds == {"sh", "diff", "text"}


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="install sqlite3 to follow the page")
def test_the_smallest_mapping_is_checked_as_its_page_says(tmp_path: Path) -> None:
    page = (DOCS / "smallest-mapping.md").read_text("utf-8").partition("<!-- smallest -->")[2]
    assert followed(page.partition("<!-- /smallest -->")[0], tmp_path) == {"sh", "text"}


def test_the_tour_begins_in_an_empty_folder_that_knows_the_clone_and_the_command(
    tmp_path: Path,
) -> None:
    root = tmp_path / "clone"
    (root / ".venv").mkdir(parents=True)
    (root / ".venv/bin").symlink_to(Path(sys.executable).parent)
    page = (DOCS / "connecting.md").read_text("utf-8").partition("<!-- folder -->")[2]
    [(_, lines)] = BLOCK.findall(page.partition("<!-- /folder -->")[0])
    asked = 'ls -A; pwd; echo "$CLONE"; command -v clinic-gateway'
    told = typed(lines + asked, root).split()
    assert told == [f"{tmp_path}/tour", str(root), f"{root}/.venv/bin/clinic-gateway"]
