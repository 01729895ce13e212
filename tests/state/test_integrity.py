"""Parts of a state that are lost, or of another state: all refuse them, and nothing is made."""

import asyncio
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.audit.chains import Chains
from gateway.audit.entries import ChainHead
from gateway.audit.upkeep import Upkeep
from gateway.settings import Settings
from gateway.state.integrity import is_named
from gateway.store import open_store
from tests.command import clinic_gateway
from tests.conftest import CONFIGURATION, Template
from tests.heard import Heard

# Each part: what of the folder it is, and what a refusal calls it where it is lost.
PARTS = {
    "store": (("gateway.db", "gateway.db-wal", "gateway.db-shm"), "gateway.db is gone"),
    "secret": (("sealing.secret",), "sealing.secret is gone"),
    "audit": (("audit",), "audit/folder.id is gone"),
    "name": (("audit/folder.id",), "audit/folder.id is gone"),
    "key": (("audit.key",), "audit.key is gone"),
}
COMMANDS = {
    "serve": ("serve",),
    "keys create": (
        *("keys", "create", "--name", "X", "--permission", "STOCK_READ", "--level", "BASIC"),
    ),
    "keys list": ("keys", "list"),
    "admin list": ("admin", "list"),
    "vets": ("vets",),
    "policy status": ("policy", "status"),
    "audit verify": ("audit", "verify"),
    "backend check": ("backend", "check"),
    "state check": ("state", "check"),
    "state backup": ("state", "backup", "{folder}/backup"),
    "state clock": ("state", "clock"),
}


def typed(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    words = [word.format(folder=folder) for word in COMMANDS[command]]
    return clinic_gateway(*words, "--config", str(folder / "gateway.yaml"))


def files(folder: Path) -> Mapping[str, bytes | None]:
    """All that lies there; what only a start touches aside."""
    found = sorted(folder.rglob("*"))
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in found
        if path.name not in {"gateway.lock", "gateway.db-shm", "gateway.db-wal"}
    }


def take_away(folder: Path, part: str) -> None:
    for name in PARTS[part][0]:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def states(template: Template, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two states that have been served, each with a gateway's end behind it."""
    folder = tmp_path_factory.mktemp("states")
    own, other = shutil.copytree(template.folder, folder / "own"), folder / "state"
    other.mkdir()
    shutil.copy(own / "clinic.db", other)
    (other / "gateway.yaml").write_text(CONFIGURATION)
    assert typed(other, "keys create").returncode == 0
    words = ("admin", "password", "Ada", "--one-time", "--config", str(other / "gateway.yaml"))
    assert clinic_gateway(*words).returncode == 0
    for state in (own, other):  # else the first command to open a copy changes its file
        with closing(sqlite3.connect(state / "gateway.db")) as store:
            assert store.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    return own, other


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_lost_is_named_and_nothing_is_made(
    states: tuple[Path, Path], tmp_path: Path, part: str, command: str
) -> None:
    folder = shutil.copytree(states[0], tmp_path / "state")
    take_away(folder, part)
    before = files(folder)
    done = typed(folder, command)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done
    assert f"{folder}/{PARTS[part][1]}" in done.stderr
    assert "backup" in done.stderr
    assert files(folder) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_another_state_is_named_and_nothing_is_made(
    states: tuple[Path, Path], tmp_path: Path, part: str, command: str
) -> None:
    own, other = (shutil.copytree(each, tmp_path / each.name) for each in states)
    take_away(own, part)
    for name in PARTS[part][0]:
        path = other / name
        if path.exists():
            (shutil.copytree if path.is_dir() else shutil.copy)(path, own / name)
    before = files(own)
    done = typed(own, command)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done
    assert "these are parts of different states: " in done.stderr
    foreign = "audit/folder.id" if part in {"audit", "name"} else PARTS[part][0][0]
    theirs = identity(other)
    assert f"{own}/{foreign} of state {theirs}" in done.stderr
    assert "clinic-gateway state restore DIR" in done.stderr
    assert files(own) == before


def test_day_files_that_are_all_gone_are_named_and_put_back(
    states: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(states[0], tmp_path / "state")
    assert typed(folder, "state backup").returncode == 0
    for path in (folder / "audit").glob("*.jsonl"):
        path.unlink()
    before = files(folder)
    for command in ("serve", "keys list", "audit verify", "state check"):
        done = typed(folder, command)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done
        said = f"all day files of the audit in {folder}/audit are gone, of which the store knows"
        assert f"{said} 2 lines: put them back" in done.stderr
        assert "clinic-gateway state restore DIR" in done.stderr
    assert files(folder) == before
    where = ("--config", str(folder / "gateway.yaml"))
    assert clinic_gateway("state", "restore", str(folder / "backup"), *where).returncode == 0
    assert typed(folder, "state check").returncode == 0


async def test_day_files_that_were_old_or_lie_elsewhere_are_not_missed(
    states: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, now = shutil.copytree(states[0], tmp_path / "state"), datetime.now(UTC)
    store = open_store(folder / "gateway.db")
    chains, heard = Chains(store), Heard()
    # the gateway was off for longer than days are kept, and another folder's goes on
    upkeep = Upkeep(Settings(state=folder), store, heard, lambda: now)
    assert await upkeep.expire(now.date() + timedelta(days=1)) > 0
    await chains.begin("another", "another-folder", "host", 1, now)
    await chains.record("another", ChainHead(3, bytes(32)), now, ended=True)
    await store.aclose()
    assert (heard.said, list((folder / "audit").glob("*.jsonl"))) == ([], [])
    assert (await asyncio.to_thread(typed, folder, "keys list")).returncode == 0


@pytest.mark.parametrize("kept", [b"", b"\xff\xfe", b"# only a remark\n"])
def test_an_audit_folder_without_its_name_is_refused(
    template: Template, tmp_path: Path, kept: bytes
) -> None:
    folder = shutil.copytree(template.folder, tmp_path / "state")
    (folder / "audit" / "folder.id").write_bytes(kept)
    before = files(folder)
    for command in ("serve", "keys create", "state check"):
        done = typed(folder, command)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done
        assert f"{folder}/audit/folder.id holds no name of the folder: move it" in done.stderr
        assert "backup" in done.stderr
    assert files(folder) == before


def test_a_name_that_cannot_be_read_is_not_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "folder.id").mkdir()
    assert is_named(tmp_path / "folder.id")


@pytest.mark.parametrize("former", ["audit", "elsewhere"])
def test_an_audit_whose_setting_was_changed_is_told_where_it_is(
    states: tuple[Path, Path], tmp_path: Path, former: str
) -> None:
    folder = shutil.copytree(states[0], tmp_path / "state")
    (folder / "audit").rename(folder / former)
    with (folder / "gateway.yaml").open("a") as file:
        file.write("audit: {folder: other}\n")
    said = typed(folder, "keys list").stderr
    assert f"{folder}/other/folder.id is gone" in said
    if former == "audit":
        assert f"it is in {folder}/audit; name that folder as audit.folder" in said
    else:
        assert "if audit.folder was changed, name its former folder there again" in said
        assert f"`# state {identity(folder)}`" in said


def identity(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "gateway.db")) as store:
        [[found]] = store.execute("SELECT value FROM meta WHERE name = 'state identity'")
    return str(found)


def test_all_parts_of_a_state_say_the_same(states: tuple[Path, Path]) -> None:
    for folder in states:
        line = f"# state {identity(folder)}"
        for name in ("sealing.secret", "audit.key", "audit/folder.id"):
            assert line in (folder / name).read_text().splitlines(), name
    assert identity(states[0]) != identity(states[1])


@pytest.mark.parametrize(
    "command", sorted(COMMANDS.keys() - {"serve", "keys create", "backend check"})
)
def test_no_other_command_begins_a_state(template: Template, tmp_path: Path, command: str) -> None:
    shutil.copy(template.folder / "clinic.db", tmp_path)
    (tmp_path / "gateway.yaml").write_text(CONFIGURATION.replace("state: .", "state: own"))
    before = files(tmp_path)
    done = typed(tmp_path, command)
    assert done.returncode in ({1, 2} if command == "audit verify" else {1}), done
    assert files(tmp_path) == before


def test_a_practice_system_is_checked_before_there_is_a_state(
    template: Template, tmp_path: Path
) -> None:
    shutil.copy(template.folder / "clinic.db", tmp_path)
    (tmp_path / "gateway.yaml").write_text(CONFIGURATION.replace("state: .", "state: own"))
    before = files(tmp_path)
    done = typed(tmp_path, "backend check")
    assert done.returncode == 0, done.stdout
    assert files(tmp_path) == before


def test_a_state_without_identities_gets_one(template: Template, tmp_path: Path) -> None:
    folder = shutil.copytree(template.folder, tmp_path / "state")
    forget(folder)
    before = files(folder)
    assert typed(folder, "keys list").returncode == 0
    assert files(folder) == before
    assert typed(folder, "keys create").returncode == 0
    line = f"# state {identity(folder)}"
    for name in ("sealing.secret", "audit.key", "audit/folder.id"):
        assert line in (folder / name).read_text().splitlines(), name
    assert typed(folder, "audit verify").returncode == 0


def forget(folder: Path) -> None:
    """As states were that an earlier version began."""
    with closing(sqlite3.connect(folder / "gateway.db")) as store, store:
        store.execute("DELETE FROM meta WHERE name = 'state identity'")
    for name in ("sealing.secret", "audit.key", "audit/folder.id"):
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(each for each in lines if not each.startswith("#")))


def test_a_secret_of_no_state_may_begin_one(template: Template, tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(CONFIGURATION)
    secret = tmp_path / "sealing.secret"
    secret.touch(mode=0o600)
    secret.write_text("ab" * 32)
    assert typed(tmp_path, "keys create").returncode == 0
    assert "ab" * 32 in secret.read_text().splitlines()


def test_a_first_start_that_was_cut_off_is_no_loss(template: Template, tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(CONFIGURATION)
    for name in ("gateway.db", "gateway.db-wal", "gateway.db-shm"):
        (tmp_path / name).touch(mode=0o600)
    assert "there is no store" in typed(tmp_path, "keys list").stderr
    assert typed(tmp_path, "keys create").returncode == 0


@pytest.mark.parametrize("left", ["gateway.db-wal", "access.jsonl"])
def test_what_a_gateway_left_shows_that_there_was_a_state(tmp_path: Path, left: str) -> None:
    (tmp_path / "gateway.yaml").write_text(CONFIGURATION)
    (tmp_path / left).touch(mode=0o600)
    for command in ("serve", "keys create", "keys list"):
        done = typed(tmp_path, command)
        assert (done.returncode, done.stdout) == (1, "")
        assert "all keys, bookings and public ids are then lost for good" in done.stderr
        assert f"{tmp_path}/gateway.db is gone: {tmp_path}/{left} shows" in done.stderr
    assert not (tmp_path / "gateway.db").exists()
    assert files(tmp_path).keys() <= {"gateway.yaml", left}
