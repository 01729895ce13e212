"""Backups of a state that runs, and what is put back of them."""

import asyncio
import json
import os
import pwd
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.cli.command import Run
from gateway.keys.store import KeyStore
from gateway.settings import shipped_policy
from tests.command import clinic_gateway, serving
from tests.conftest import Template
from tests.small_disk import fill, mounted
from tests.state.served import Place, placed

pytestmark = pytest.mark.long


@pytest.fixture
def place(template: Template, tmp_path: Path) -> Place:
    return placed(tmp_path, template.folder / "clinic.db")


def contents(folder: Path) -> Mapping[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def backed_up(place: Place, name: str = "backup") -> Path:
    place.command("state", "backup", str(place.folder / name))
    return place.folder / name


def test_all_is_lost_and_a_retry_is_told_its_first_answer(place: Place) -> None:
    with place.served() as gateway:
        secret = place.key()["key"]
        gateway.wait_for(secret)
        vet = place.command("vets")[0]["id"]
        draft = gateway.draft(secret, vet)
        status, _, booked = gateway.send(
            secret, "POST", "/appointments", draft, Idempotency_Key="the-drill"
        )
        assert status == 201
        backup = backed_up(place)
    shutil.rmtree(place.state)
    shutil.rmtree(place.config.parent)

    told = place.command("state", "restore", str(backup))
    assert str(place.config) in told["restored"]
    assert place.state.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in place.state.rglob("*.*") if path.is_file()} == {
        0o600
    }
    with place.served() as gateway:
        status, headers, again = gateway.send(
            secret, "POST", "/appointments", draft, Idempotency_Key="the-drill"
        )
        assert (status, again) == (201, booked)
        assert headers["Idempotent-Replayed"] == "true"
        assert place.command("state", "check")["audit"]["broken"] == []
    assert place.command("audit", "verify")["sound"]


def test_backups_beside_calls_know_every_line_that_their_store_knows(place: Place) -> None:
    ends = threading.Event()
    with place.served() as gateway, ThreadPoolExecutor(2) as pool:
        secret = place.key("--limit", "1000000")["key"]
        gateway.wait_for(secret)

        def call() -> int:
            calls = 0
            while not ends.is_set():
                assert gateway.send(secret, "GET", "/clients?limit=1")[0] == 200
                calls += 1
            return calls

        callers = [pool.submit(call) for _ in range(2)]
        told: list[Any] = []
        try:
            while len(told) < 6 or (len(told) < 40 and _lines(told[0]) == _lines(told[-1])):
                folder = place.folder / f"backup-{len(told)}"
                told.append(place.command("state", "backup", str(folder)))
        finally:
            ends.set()
        assert all(each.result() for each in callers)
    assert all(each["audit"]["broken"] == [] for each in told)
    lines = [_lines(each) for each in told]
    assert lines == sorted(lines)
    assert lines[0] < lines[-1]


def _lines(backup: Any) -> int:
    return int(backup["audit"]["lines"])


def test_a_backup_is_its_owners_alone_and_overwrites_nothing(place: Place) -> None:
    place.key()
    backup = backed_up(place)
    modes = {path.stat().st_mode & 0o777 for path in [backup, *backup.rglob("*")]}
    assert modes == {0o600, 0o700}
    before = contents(backup)
    assert "is not empty" in place.command("state", "backup", str(backup), code=1)
    assert contents(backup) == before
    assert "there is a state in" in place.command("state", "restore", str(backup), code=1)


@pytest.mark.parametrize(
    ("setting", "missing"),
    [
        ("policy", "policies.yaml"),
        ("backend.mapping", "clinic.yaml"),
        ("backend.secret_file", "secret"),
        ("audit.key_file", "key"),
    ],
)
def test_a_backup_that_would_not_be_whole_is_refused(
    template: Template,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    missing: str,
) -> None:
    """As on a morning on which the folder with the secrets is not mounted."""
    gone, folder = tmp_path / missing, tmp_path / "backup"
    monkeypatch.setenv(f"GATEWAY_{setting.replace('.', '_').upper()}", str(gone))
    config = str(template.folder / "gateway.yaml")
    done = CliRunner().invoke(main, ["state", "backup", str(folder), "--config", config])
    assert done.exit_code == 1
    assert done.stderr == (
        f"{gone} is missing or is not a file, and a backup without it is not whole: put it back,"
        " then back up again\n"
    )
    assert not folder.exists()


def test_a_name_that_a_manifest_cannot_hold_is_refused_before_anything_is_copied(
    template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd, folder = tmp_path / "caf\udce9.yaml", tmp_path / "backup"
    odd.write_text("cases: []\n")
    monkeypatch.setenv("GATEWAY_BACKEND_MAPPING", str(odd))
    config = str(template.folder / "gateway.yaml")
    done = CliRunner().invoke(main, ["state", "backup", str(folder), "--config", config])
    assert done.exit_code == 1
    assert "caf\\udce9.yaml' is not UTF-8" in done.stderr
    assert not folder.exists()


def test_what_was_changed_in_a_backup_is_named_and_none_of_it_is_put_back(place: Place) -> None:
    with place.served():
        place.key()
    backup = backed_up(place)
    shutil.rmtree(place.state)
    for name in contents(backup).keys() - {"manifest.json"}:
        file = backup / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        done = clinic_gateway("state", "check", str(backup))
        assert str(file) in done.stderr
        assert done.stdout.startswith("NOT USABLE: 1 problem\n")
        assert "  audit: not checked\n" in done.stdout
        assert str(file) in place.command("state", "restore", str(backup), code=1)
        file.write_bytes(whole)
        file.rename(backup.parent / "moved")
        assert str(file) in place.command("state", "restore", str(backup), code=1)
        (backup.parent / "moved").rename(file)
    assert not place.state.exists()
    done = clinic_gateway("state", "check", str(backup))
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "in order")


@pytest.mark.parametrize("elsewhere", ["{folder}/elsewhere/evil", "{folder}/etc/../elsewhere/evil"])
def test_a_restore_writes_nowhere_but_into_the_state_and_its_configuration(
    place: Place, elsewhere: str
) -> None:
    with place.served():
        place.key()
    backup = backed_up(place)
    manifest = json.loads((backup / "manifest.json").read_text())
    [own] = [each for each in manifest["files"] if each["original"] == str(place.config)]
    manifest["files"].append(own | {"original": elsewhere.format(folder=place.folder)})
    (backup / "manifest.json").write_text(json.dumps(manifest))
    shutil.rmtree(place.state)
    clinic_gateway("state", "restore", str(backup), "--config", str(place.config))
    assert not (place.folder / "elsewhere").exists()


def test_a_restore_that_is_refused_changes_no_file(place: Place) -> None:
    policy = place.config.parent / "policies.yaml"
    shutil.copy(shipped_policy(), policy)
    place.config.write_text(place.config.read_text() + "policy: policies.yaml\n")
    with place.served():
        backup = backed_up(place)
        policy.rename(place.folder / "policies.yaml")
        before = contents(place.config.parent)
        said = place.command("state", "restore", str(backup), code=1)
        assert "another gateway serves" in said or "stop it first" in said
        assert contents(place.config.parent) == before


def test_a_link_is_no_file_of_a_backup(place: Place, tmp_path: Path) -> None:
    with place.served():
        place.key()
    backup = backed_up(place)
    shutil.rmtree(place.state)
    (backup / "audit.key").rename(tmp_path / "audit.key")
    (backup / "audit.key").symlink_to(tmp_path / "audit.key")
    assert "is a link" in place.command("state", "restore", str(backup), code=1)
    (backup / "audit.key").unlink()
    (backup / "audit.key").symlink_to("audit.key")
    said = place.command("state", "restore", str(backup), code=1)
    assert said == f"{backup}/audit.key cannot be read: too many levels of symbolic links\n"
    assert not place.state.exists()


def test_a_gateway_that_runs_is_left_alone(place: Place) -> None:
    with place.served():
        backup = backed_up(place)
        for file in place.state.glob("gateway.db*"):
            file.unlink()
        said = place.command("state", "restore", str(backup), code=1)
        assert f"a gateway serves from the state folder {place.state}: stop it first" in said
        assert not (place.state / "gateway.db").exists()


def test_the_store_alone_is_put_back_and_newer_files_stay(place: Place) -> None:
    with place.served():
        place.key()
        backup = backed_up(place)
    with place.served():
        place.key()
    audit = contents(place.state / "audit")
    for file in place.state.glob("gateway.db*"):
        file.unlink()
    told = place.command("state", "restore", str(backup))
    assert told["restored"] == [str(place.state / "gateway.db")]
    # beside them is a line that says so
    assert contents(place.state / "audit").items() > audit.items()
    assert len(place.command("keys", "list")) == 1
    [newest, *_] = place.command("audit", "deeds")
    assert (newest["deed"], newest["details"]["files"]) == ("state restored", 1)


def without_store(place: Place) -> None:
    for file in place.state.glob("gateway.db*"):
        file.unlink()


def test_an_audit_that_is_newer_than_a_store_put_back_is_green_and_told(place: Place) -> None:
    with place.served():
        place.key()
        backup = backed_up(place)
        newer = place.key()["id"]
    with place.served():
        newest = place.key()["id"]
    without_store(place)
    place.command("state", "restore", str(backup))
    assert place.command("state", "check")["audit"]["broken"] == []
    assert place.command("audit", "verify")["sound"]
    assert place.command("state", "backup", str(place.folder / "again"))["audit"]["broken"] == []
    deeds = place.command("audit", "deeds")
    told = [(each["deed"], each["subject"]) for each in deeds]
    assert told[0][0] == "state restored"
    assert told[1:3] == [("key made", newest), ("key made", newer)]
    assert len(told) == len(set(told)) == 4
    named = set(deeds[0]["details"]["chains"])
    assert len(named) == 3
    assert named <= {path.name.split(".")[1] for path in (place.state / "audit").glob("*.jsonl")}
    # and nothing is left to be done
    assert "there is a state in" in place.command("state", "restore", str(backup), code=1)


def test_a_newer_chain_that_was_changed_stays_broken(place: Place) -> None:
    with place.served():
        backup = backed_up(place)
    before = set((place.state / "audit").iterdir())
    place.key()
    [added] = set((place.state / "audit").iterdir()) - before
    added.write_text(added.read_text().replace("key made", "key mode"))
    without_store(place)
    notes = place.command("state", "restore", str(backup))["notes"]
    assert any(f"this is not entered into the store: {added}:2: " in note for note in notes)
    done = clinic_gateway("state", "check", "--config", str(place.config))
    assert done.returncode == 1
    assert f"BROKEN: {added}: the store knows no chain of that name" in done.stderr
    assert not [each for each in place.command("audit", "deeds") if each["deed"] == "key made"]


@pytest.mark.parametrize("part", ["sealing.secret", "audit.key", "audit/folder.id"])
def test_a_single_part_is_put_back_and_the_newer_store_is_kept(place: Place, part: str) -> None:
    with place.served():
        place.key()
        backup = backed_up(place)
    place.key()
    (place.state / part).unlink()
    told = place.command("state", "restore", str(backup))
    assert told["restored"] == [str(place.state / part)]
    assert told["storeKept"]
    assert not any("work again" in note for note in told["notes"])
    assert len(place.command("keys", "list")) == 2
    assert place.command("state", "check")["audit"]["broken"] == []
    with place.served():
        pass


def test_a_state_is_restored_to_another_path(place: Place, tmp_path: Path) -> None:
    text = place.config.read_text().replace(f"state: {place.state}", "state: ../state")
    place.config.write_text(text + "policy: policy.yaml\n")
    shutil.copy(shipped_policy(), place.config.parent / "policy.yaml")
    with place.served():
        place.key()
        backup = backed_up(place)
    other = Place(tmp_path / "other")
    other.folder.mkdir()
    told = other.command("state", "restore", str(backup))
    restored = {Path(each).resolve() for each in told["restored"]}
    assert restored < set(other.folder.rglob("*"))
    assert {other.config, other.config.parent / "policy.yaml"} < restored
    assert other.state / "gateway.db" in restored
    shutil.rmtree(place.state)
    shutil.rmtree(place.config.parent)
    with other.served():
        assert len(other.command("keys", "list")) == 1
    assert other.command("state", "check")["audit"]["broken"] == []


def test_what_was_done_to_keys_since_is_told_by_the_audit_that_is_left(place: Place) -> None:
    with place.served():
        made = place.key()
        backup = backed_up(place)

    async def revoke() -> None:
        run = Run(place.config, as_json=False)
        async with run.store() as store, run.deed(store, "key revoked", made["id"]):
            await KeyStore(store).revoke(made["id"], datetime.now(UTC))

    asyncio.run(revoke())
    for file in place.state.glob("gateway.db*"):
        file.unlink()
    notes = place.command("state", "restore", str(backup))["notes"]
    said = f"key revoked after the backup: Partner ({made['id']}), by shell: "
    [note] = [note for note in notes if note.startswith(said)]
    assert note.endswith("Z")
    assert [each["revokedAt"] for each in place.command("keys", "list")] == [None]


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives files away")
def test_what_root_makes_and_puts_back_is_the_gateways_own(place: Place) -> None:
    nobody = pwd.getpwnam("nobody")
    place.state.mkdir(mode=0o700)
    os.chown(place.state, nobody.pw_uid, nobody.pw_gid)
    place.key()
    backup = backed_up(place)
    for _ in range(2):
        found = [place.state, *place.state.rglob("*")]
        assert {path.stat().st_uid for path in found} == {nobody.pw_uid}, found
        shutil.rmtree(place.state)
        place.command("state", "restore", str(backup))


@pytest.mark.parametrize("part", ["sealing.secret", "audit/folder.id", "audit.key"])
def test_a_part_of_another_state_keeps_a_backup_out(
    place: Place, template: Template, part: str
) -> None:
    with place.served():
        backup = backed_up(place)
    shutil.rmtree(place.state)
    (place.state / part).parent.mkdir(parents=True)
    shutil.copy(template.folder / part, place.state / part)
    before = contents(place.state)
    said = place.command("state", "restore", str(backup), code=1)
    assert "other parts are here: " in said
    assert f"{place.state / part} (state " in said
    assert contents(place.state) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", 4) as disk:
        yield disk


def leave_room(disk: Path, size: int) -> None:
    filler = fill(disk)
    os.truncate(filler, filler.stat().st_size - size)


def test_a_full_disk_is_named_by_the_file_that_it_has_no_room_for(
    template: Template, tmp_path: Path, small_disk: Path
) -> None:
    own, other = Place(tmp_path / "own"), placed(tmp_path / "other", template.folder / "clinic.db")
    shutil.copytree(template.folder, own.config.parent)
    backup = backed_up(own)
    leave_room(small_disk, 64 << 10)
    said = own.command("state", "backup", str(small_disk / "backup"), code=1)
    file = small_disk / "backup" / "gateway.db"
    full = f"cannot be made: the disk is full ({file}); remove it"
    assert said == f"the backup in {file.parent} {full}\n"
    shutil.rmtree(file.parent)

    other.config.write_text(other.config.read_text().replace(str(other.state), f"{small_disk}/s"))
    (small_disk / "filler").unlink()
    leave_room(small_disk, 64 << 10)
    said = other.command("state", "restore", str(backup), code=1)
    file, again = small_disk / "s" / "gateway.db", "mend that and restore again"
    assert said == f"{file} cannot be put back: the disk is full; {again}\n"
    (small_disk / "filler").unlink()
    assert str(file) in other.command("state", "restore", str(backup))["restored"]


# A process that ends as by `kill -9` with its n-th copy.
KILLED = """
import os, signal
from gateway.state import backup, restore
whole, copied = backup.copy_file, []
def copy(*given, **named):
    copied.append(given)
    if len(copied) == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
    whole(*given, **named)
backup.copy_file = restore.copy_file = copy
"""


def killed(number: int, *words: str) -> bool:
    """Whether the command came to its n-th copy, and was killed there."""
    command = serving(*words, spoilt=KILLED.format(number=number))
    command.communicate()
    return command.returncode == -signal.SIGKILL


def test_half_a_backup_is_none(place: Place) -> None:
    with place.served():
        for number in range(1, 20):
            folder = str(place.folder / f"half-{number}")
            if not killed(number, "state", "backup", folder, "--config", str(place.config)):
                break
            for command in ("check", "restore"):
                assert "is no whole backup" in place.command("state", command, folder, code=1)
    assert number > 4
    assert place.command("state", "check", folder)["problems"] == []
    manifest = Path(folder) / "manifest.json"
    whole = json.loads(manifest.read_text())
    for changed in ({"migration": 15}, {"files": [whole["files"][0] | {"size": "1"}]}):
        manifest.write_text(json.dumps(whole | changed))
        said = place.command("state", "check", folder, code=1)
        assert said == f"{manifest} is not as it was written: use another backup\n"


def test_half_a_restored_state_is_refused_and_completed(place: Place) -> None:
    with place.served():
        place.key()
        backup = backed_up(place)
    before = contents(place.state)
    shutil.rmtree(place.state)
    number = 2
    while killed(number, "state", "restore", str(backup), "--config", str(place.config)):
        for words in (("serve",), ("keys", "list"), ("state", "check")):
            done = clinic_gateway(*words, "--config", str(place.config))
            assert done.returncode == 1, (number, words, done)
        assert not (place.state / "gateway.db").exists()
        place.command("state", "restore", str(backup))
        restored = contents(place.state)
        assert restored["sealing.secret"] == before["sealing.secret"]
        assert not [name for name in restored if "under-way" in name]
        shutil.rmtree(place.state)
        number += 1
    assert number > 4
