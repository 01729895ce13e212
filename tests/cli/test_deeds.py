"""Every command that changes something leaves a deed in the audit, under the system account."""

import json
import os
import pty
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from getpass import getuser
from pathlib import Path
from typing import Any

import click
import pytest

from gateway.cli import command as runs
from gateway.cli import main
from gateway.store import open_store
from tests.command import clinic_gateway
from tests.conftest import Template
from tests.small_disk import fill, mounted

# Each command, and the deeds that it leaves; none where it changes nothing of the gateway's or of
# the practice system's. `audit index` has one with --anew, since what a machine that is gone took
# in is lost then, `backend check` with --booking, `admin sessions` with --end. `policy reload` has
# gateways look at a file at which they look by themselves; `backend draft` writes a new file, and
# `backend upgrade` a mapping.
CHANGES: dict[str, tuple[str, ...]] = {
    "admin list": (),
    "admin password": ("administrator added", "password reset"),
    "admin remove": ("administrator removed",),
    "admin sessions": ("sessions ended",),
    "audit deeds": (),
    "audit index": ("audit index made anew",),
    "audit key": (),
    "audit rotate-key": ("audit key rotated",),
    "audit verify": (),
    "audit who-read": (),
    "backend check": ("test booking made",),
    "backend compare": (),
    "backend draft": (),
    "backend explain": (),
    "backend learn booking": (),
    "backend schema": (),
    "backend upgrade": (),
    "backend verify": (),
    "demo": ("key made", "key rotated", "administrator added", "password reset"),
    "init": ("test booking made", "key made", "administrator added"),
    "keys create": ("key made",),
    "keys list": (),
    "keys revoke": ("key revoked",),
    "keys rotate": ("key rotated",),
    "keys show": (),
    "keys update": ("key changed",),
    "keys verify": (),
    "openapi": (),
    "policy approve": ("policy approved",),
    "policy check": (),
    "policy decline": ("policy declined",),
    "policy diff": (),
    "policy explain": (),
    "policy preview": (),
    "policy reload": (),
    "policy schema": (),
    "policy show": (),
    "policy status": (),
    "policy test": (),
    "proxy": (),
    "sample": (),
    "serve": (),
    "settings": (),
    "state backup": (),
    "state check": (),
    "state clock": ("clock accepted",),
    "state restore": ("state restored",),
    "vets": (),
}
CREATE = ("keys", "create", "--name", "X", "--permission", "STOCK_READ", "--level", "BASIC")
# What is typed here, in this order, and the deed that it leaves. The policy's commands need a
# gateway that runs, and the demo is one: tests/policy/test_reload.py and tests/test_demo.py have
# theirs. To restore there must be no state: tests/state/test_restore.py has that.
TYPED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("key made", CREATE),
    ("key changed", ("keys", "update", "X", "--limit", "5", "--name", "Y")),
    ("key rotated", ("keys", "rotate", "Y", "--overlap", "90m")),
    ("key revoked", ("keys", "revoke", "Y", "--yes")),
    ("administrator added", ("admin", "password", "Claire", "--one-time")),
    ("password reset", ("admin", "password", "Claire", "--one-time")),
    ("administrator added", ("admin", "password", "Denis", "--one-time", "--role", "auditor")),
    ("administrator removed", ("admin", "remove", "Denis")),
    ("sessions ended", ("admin", "sessions", "--end")),
    ("audit index made anew", ("audit", "index", "--anew")),
    ("audit key rotated", ("audit", "rotate-key")),
    ("clock accepted", ("state", "clock", "--accept")),
    ("test booking made", ("backend", "check", "--booking")),
)
ELSEWHERE = {"policy approved", "policy declined", "state restored"}


def commands(group: click.Group, *before: str) -> Iterator[str]:
    """All that can be typed, as words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, *before, name)
        else:
            yield " ".join([*before, name])


@pytest.fixture
def folder(template: Template, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template.folder, tmp_path / "state"))


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return clinic_gateway("--config", str(folder / "gateway.yaml"), *words)


def told(folder: Path, *words: str) -> Any:
    done = run(folder, "audit", "deeds", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sealed(folder: Path) -> list[dict[str, Any]]:
    """The deeds in the audit's files, those of one command in their order."""
    files = (folder / "audit").glob("*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [each for each in lines if each.get("kind") == "deed"]


def test_of_every_command_it_is_said_whether_it_changes_something() -> None:
    """A new command belongs into the table above, and with a deed among what is typed below."""
    assert sorted(commands(main)) == sorted(CHANGES)
    named = {deed for leaves in CHANGES.values() for deed in leaves}
    assert named == {deed for deed, _ in TYPED} | ELSEWHERE
    for deed, words in TYPED:
        assert deed in CHANGES[" ".join(words[:2])], words


def test_each_deed_is_sealed_and_listed_under_the_account_that_ran_the_command(
    folder: Path,
) -> None:
    before = len(told(folder, "--limit", "999"))
    for deed, words in TYPED:
        done = run(folder, *words)
        assert done.returncode == 0, (words, done.stderr)
        newest = told(folder, "--limit", "1")[0]
        assert (newest["deed"], newest["outcome"]) == (deed, "done"), words
    who = f"shell: {getuser()}"
    found = told(folder, "--who", who, "--limit", str(len(TYPED)))[::-1]
    assert [each["deed"] for each in found] == [deed for deed, _ in TYPED]
    assert len(told(folder, "--limit", "999")) == before + len(TYPED)
    details = {each["deed"]: each["details"] for each in found}
    assert details["key made"]["permissions"] == ["STOCK_READ"]
    assert details["key changed"] == {"name": "Y", "limit": 5}
    assert details["key rotated"] == {"name": "Y", "overlap": "90m"}
    lines = [each for each in sealed(folder) if each["who"] == who]
    for deed, _ in TYPED:
        results = [each["result"] for each in lines if each["deed"] == deed]
        assert set(results) == {"begun", "done"}, deed
        assert results.count("begun") == results.count("done")
    plain = run(folder, "audit", "deeds", "--who", who).stdout.splitlines()
    assert [line.split("  ")[1] for line in plain] == [who] * len(TYPED)
    assert plain[-1].endswith(
        "name X, permissions STOCK_READ, level BASIC, scopes none, limit 1000,"
        " bookingsPerDay none, networks none, expiresAt none"
    )
    assert run(folder, "audit", "deeds", "--who", "X").stdout == "no deeds of X so far\n"
    assert run(folder, "audit", "verify").returncode == 0


KEPT = ("keys", "secrets", "administrators", "admin_sessions", "policy_history", "audit_reads")


def kept(folder: Path) -> dict[str, Any]:
    """What the commands change: rows of the store, the audit's key, the practice system."""
    with closing(sqlite3.connect(folder / "gateway.db")) as store:
        rows = {name: store.execute(f"SELECT * FROM {name}").fetchall() for name in KEPT}
    files = {name: (folder / name).read_bytes() for name in ("audit.key", "clinic.db")}
    return rows | files


def test_where_the_audit_cannot_be_written_no_command_does_anything(folder: Path) -> None:
    for words in (CREATE, ("admin", "password", "Claire", "--one-time")):
        assert run(folder, *words).returncode == 0
    for name in ("Claire", "Denis"):
        assert run(folder, "admin", "password", name, "--one-time").returncode == 0
    audit = folder / "audit"
    audit.rename(folder / "elsewhere")
    audit.touch()
    before = kept(folder)
    names = {"Y": "X"}
    for deed, words in TYPED:
        done = run(folder, *(names.get(word, word) for word in words))
        assert (done.returncode, done.stdout) in {(1, ""), (2, "")}, (deed, done)
        assert str(audit) in done.stderr, deed
        assert kept(folder) == before, deed


def test_on_a_full_disk_no_command_does_anything(folder: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", 2) as disk:
        with (folder / "gateway.yaml").open("a") as file:
            file.write(f"audit: {{folder: {disk}}}\n")
        shutil.copytree(folder / "audit", disk, dirs_exist_ok=True)
        assert run(folder, *CREATE).returncode == 0
        before, filler = kept(folder), fill(disk)
        done = run(folder, "keys", "revoke", "X", "--yes")
        assert (done.returncode, done.stdout, kept(folder)) == (1, "", before)
        assert str(disk) in done.stderr
        filler.unlink()
        assert run(folder, "keys", "revoke", "X", "--yes").returncode == 0


def test_what_a_command_could_not_do_stands_there_as_failed(folder: Path) -> None:
    assert run(folder, "admin", "password", "Claire", "--one-time").returncode == 0
    assert run(folder, "admin", "remove", "Claire").returncode == 1
    [newest] = told(folder, "--limit", "1")
    assert (newest["deed"], newest["outcome"]) == ("administrator removed", "failed")
    assert "  failed: administrator removed  " in run(folder, "audit", "deeds").stdout
    assert "  administrator added  " in run(folder, "audit", "deeds").stdout


def test_a_bound_that_was_taken_away_is_told(folder: Path) -> None:
    bounds = ("--network", "192.0.2.0/24", "--bookings-per-day", "4", "--scope", "clients=FULL")
    end = ("--expires", "2036-01-31T00:00:00+01:00")
    assert run(folder, *CREATE, *bounds, *end).returncode == 0
    made = run(folder, "audit", "deeds", "--limit", "1").stdout
    assert made.rstrip().endswith(
        "scopes clients=FULL, limit 1000, bookingsPerDay 4, networks 192.0.2.0/24,"
        " expiresAt 2036-01-30T23:00:00Z"
    )
    freed = ("--no-networks", "--no-bookings-per-day", "--no-scopes", "--expires", "never")
    assert run(folder, "keys", "update", "X", *freed).returncode == 0
    told = run(folder, "audit", "deeds", "--limit", "1").stdout
    assert told.rstrip().endswith(
        "name X, scopes none, bookingsPerDay none, networks none, expiresAt none"
    )


def test_a_key_that_sealed_the_audit_and_is_gone_can_be_replaced(folder: Path) -> None:
    assert run(folder, *CREATE).returncode == 0
    (folder / "audit.key").unlink()
    refused = run(folder, *CREATE)
    assert refused.returncode == 1
    assert "clinic-gateway audit rotate-key" in refused.stderr
    assert run(folder, "audit", "rotate-key").returncode == 0
    [newest] = told(folder, "--limit", "1")
    assert (newest["deed"], newest["details"]["lost"]) == ("audit key rotated", True)


def test_the_login_behind_another_account_is_told_with_the_deed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login, store = tmp_path / "loginuid", open_store(tmp_path / "gateway.db")
    monkeypatch.setattr(runs, "_LOGIN", login)
    other = os.getuid() + 54_321
    for text, told in (
        (str(other), {"login": str(other)}),
        (str(os.getuid()), {}),
        (str(2**32 - 1), {}),
        ("", {}),
    ):
        login.write_text(text)
        assert runs._origin(store) == told
    login.unlink()
    assert runs._origin(store) == {}


def answered(folder: Path, answer: str) -> tuple[int, str]:
    """What `keys revoke X` writes into a terminal where somebody answers so, and its exit code."""
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "gateway", "--config", str(folder / "gateway.yaml")]
    command += ["keys", "revoke", "X"]
    with subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner) as process:
        os.close(inner)
        said, until = b"", time.monotonic() + 30
        while b"[y/N]" not in said and time.monotonic() < until:
            said += os.read(outer, 4096)
        os.write(outer, f"{answer}\n".encode())
        try:
            while read := os.read(outer, 4096):
                said += read
        except OSError:  # EIO is how a terminal ends
            pass
    os.close(outer)
    return process.returncode, said.decode().replace("\r\n", "\n")


def test_on_a_terminal_a_revocation_names_the_key_and_asks(folder: Path) -> None:
    made = json.loads(run(folder, *CREATE, "--contact", "it@example.org", "--json").stdout)
    code, said = answered(folder, "n")
    assert f"Revoke X (it@example.org), {made['id']}, never used? It never works again." in said
    assert (code, said.splitlines()[-1]) == (1, "nothing was revoked")
    shown = json.loads(run(folder, "keys", "show", "X", "--json").stdout)
    assert shown["revokedAt"] is None
    code, said = answered(folder, "y")
    assert code == 0
    assert said.splitlines()[-1] == (
        "X is revoked: within a second every call with it is refused, for good"
    )
    shown = json.loads(run(folder, "keys", "show", "X", "--json").stdout)
    assert shown["revokedAt"] is not None
