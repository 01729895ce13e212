"""The lines of the examples' pages, typed from the clone's root as they stand there."""

import asyncio
import os
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples.dropping import drop
from tests.examples.clinic import SCALE, server_of

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
WALK = (ROOT / "docs/connecting-json.md").read_text("utf-8").partition("<!-- walk -->")[2]
BLOCK = re.compile(r"^```(sh|text|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {"json_cloud": "", "mariadb_eav": "mysql", "postgres_slots": "postgresql"}
FREE = "--port 0 --operations-port 0"


def shell(line: str, exports: dict[str, str] | None = None) -> str:
    """What a line prints, without the breaks of a table."""
    environment = {**os.environ, "COLUMNS": "200", **(exports or {})}
    done = subprocess.run(
        ["sh", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(done.stdout.split())


def from_here(line: str) -> str:
    assert line.startswith(".venv/bin/")
    return f"{Path(sys.executable).parent}/{line.removeprefix('.venv/bin/')}"


@contextmanager
def running(line: str) -> Iterator[dict[str, str]]:
    """The line's program until it ends by our hand; what it says to export."""
    process = subprocess.Popen(
        ["sh", "-c", f"exec {line}"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        text = ""
        while "Ctrl-C ends" not in text:
            read = process.stdout.readline()  # type: ignore[union-attr]
            assert read, text
            text += read
        yield dict(re.findall(r"^export (\w+)=(\S+)$", text, re.MULTILINE))
    finally:
        process.terminate()
        process.communicate(timeout=20)


# The second server's example is checked in test_check.py too.
@pytest.mark.parametrize(
    "example",
    ["json_cloud", "mariadb_eav", "postgres_slots"],
)
def test_the_lines_of_an_examples_page_start_it_and_check_it(example: str, tmp_path: Path) -> None:
    page = (ROOT / "examples" / example / "README.md").read_text("utf-8")
    assert "typed from the clone's root" in page
    begin, check = (each.strip() for kind, each in BLOCK.findall(page) if kind == "sh")
    begin = f"{from_here(begin)} {FREE} --state {tmp_path}"
    name = f"example_{secrets.token_hex(5)}"
    folder = "examples/json_cloud" if example == "json_cloud" else ".demo/practice_"
    assert f"--config {folder}" in check
    check = re.sub(r"--config \S+", f"--config {tmp_path}/gateway.yaml", from_here(check))
    if not (kind := PAGES[example]):
        with running(f"{begin} --cloud-port 0"):
            assert "nothing here would fail a partner" in shell(check)
        return
    server = server_of(kind)
    more = f"--server '{server}' --database {name} --scale {SCALE}"
    try:
        with running(f"{begin} {more}") as exports:
            assert "SLOT" in exports
        assert "nothing here would fail a partner" in shell(check)
    finally:
        asyncio.run(drop(server, name))


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl, to type the page's lines")
def test_the_walk_through_the_cloud_does_what_it_says(tmp_path: Path) -> None:
    mapping = (ROOT / "examples/json_cloud/mapping.yaml").read_text("utf-8")
    blocks = BLOCK.findall(WALK.partition("<!-- /walk -->")[0])
    [begin, *lines] = [each.strip() for kind, each in blocks if kind == "sh"]
    said = [each.splitlines() for kind, each in blocks if kind == "text"]
    own = {"examples/json_cloud/gateway.yaml": f"{tmp_path}/gateway.yaml"}
    start = f"{from_here(begin)} {FREE} --cloud-port 0 --state {tmp_path}"
    with running(start) as exports:
        for line, expected in zip(lines, said, strict=True):
            typed = line
            for shipped, path in own.items():
                typed = typed.replace(shipped, path)
            typed = from_here(typed) if typed.startswith(".venv") else typed
            answer = shell(typed, exports)
            assert all(each in answer for each in expected), answer
    shown = [each for kind, block in blocks if kind == "yaml" for each in block.splitlines()]
    assert shown
    assert [each for each in shown if f"{each}\n" not in mapping] == []
