"""Several nodes on one PostgreSQL store: each has a state folder, all are of one state."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.store.base import HEAD
from tests.adapters.servers import postgres_database
from tests.command import clinic_gateway
from tests.conftest import Template
from tests.redis_server import shared_redis
from tests.state.served import Place, placed


@pytest.fixture
def database() -> Iterator[str]:
    with postgres_database() as url:
        yield url


@pytest.fixture
def nodes(template: Template, tmp_path: Path, database: str) -> list[Place]:
    clinic = template.folder / "clinic.db"
    shared = f"store: {database}", f"limiter: {shared_redis()}", "nodes: 2"
    return [placed(tmp_path / name, clinic, *shared) for name in ("one", "two")]


def copy_secret(one: Place, two: Place) -> None:
    two.state.mkdir(mode=0o700)
    shutil.copy(one.state / "sealing.secret", two.state / "sealing.secret")


def test_a_new_node_works_and_one_of_another_state_is_refused(
    nodes: list[Place], template: Template
) -> None:
    one, two = nodes
    with one.served():
        made = one.key()
        assert "sealing.secret is gone" in two.command("vets", code=1)
        assert not two.state.exists()
        copy_secret(one, two)
        with two.served() as gateway:
            gateway.wait_for(made["key"])
            assert gateway.send(made["key"], "GET", "/clients")[0] == 200
            assert two.command("state", "check")["audit"]["broken"] == []
        lines = [(each.state / "audit" / "folder.id").read_text().splitlines() for each in nodes]
        assert lines[0][1] == lines[1][1]
        assert lines[0][0] != lines[1][0]

        for path in (two.state / "audit").glob("*.jsonl"):
            path.unlink()
        said = f"all day files of the audit in {two.state}/audit are gone"
        assert said in two.command("keys", "list", code=1)
        assert len(one.command("keys", "list")) == 1

        shutil.rmtree(two.state / "audit")
        assert "audit/folder.id is gone" in two.command("keys", "list", code=1)
        shutil.copytree(template.folder / "audit", two.state / "audit")
        said = two.command("keys", "list", code=1)
        assert "parts of different states" in said
        assert f"{two.state}/audit/folder.id of state" in said


def test_a_node_is_put_back_beside_the_dump_of_its_store(
    nodes: list[Place], database: str, tmp_path: Path
) -> None:
    one = nodes[0]
    with one.served():
        one.key()
    dumped = subprocess.run(
        ["pg_dump", "--format=custom", f"--file={tmp_path}/dump", database],
        capture_output=True, check=False,
    )  # fmt: skip
    if dumped.returncode:
        pytest.skip("there is no pg_dump for this server")
    told = one.command("state", "backup", str(tmp_path / "backup"))
    assert not told["storeInBackup"]
    assert "gateway.db" not in {path.name for path in (tmp_path / "backup").iterdir()}
    said = clinic_gateway("state", "check", str(tmp_path / "backup")).stdout
    assert f"must have the identity {told['identity']} and the migration {HEAD}" in said
    shutil.rmtree(one.state)

    with postgres_database() as empty:
        text = one.config.read_text().replace(database, empty)
        one.config.write_text(text)
        said = one.command("state", "restore", str(tmp_path / "backup"), code=1)
        assert "first restore the dump" in said
        assert told["identity"] in said
        assert not one.state.exists()
        subprocess.run(
            [
                "pg_restore",
                "--no-owner",
                "--exit-on-error",
                f"--dbname={empty}",
                f"{tmp_path}/dump",
            ],
            check=True,
        )
        one.command("state", "restore", str(tmp_path / "backup"))
        with one.served():
            assert one.command("state", "check")["audit"]["broken"] == []
            assert len(one.command("keys", "list")) == 1


def test_where_there_is_one_node_its_whole_audit_is_missed(
    template: Template, tmp_path: Path, database: str
) -> None:
    one = placed(tmp_path / "one", template.folder / "clinic.db", f"store: {database}")
    with one.served():
        one.key()
    one.command("state", "backup", str(tmp_path / "backup"))
    shutil.rmtree(one.state / "audit")
    (one.state / "audit.key").unlink()
    for words in (("vets",), ("keys", "list", "--json"), ("audit", "verify"), ("serve",)):
        done = clinic_gateway(*words, "--config", str(one.config))
        said = done.stderr
        assert done.returncode == 1, words
        assert f"{one.state}/audit/folder.id is gone, though this state has an audit" in said
        assert "if another node keeps it, say in `nodes` how many there are" in said
    assert not (one.state / "audit").exists()
    one.command("state", "restore", str(tmp_path / "backup"))
    with one.served():
        assert one.command("state", "check")["audit"]["broken"] == []
