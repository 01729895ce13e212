"""Several workers, and a policy whose cases fail: all of them hide what it hides."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.command import clinic_gateway
from tests.conftest import Template
from tests.policies import TEXT
from tests.policy.test_failing_cases import CASES, MIXED
from tests.processes.gateways import Several, copy_of, eventually, get

CLIENTS = "/api/v1/clients?limit=1"
LINES = ("workers: 2", "policy: policies.yaml")


@pytest.fixture
def folder(template: Template, tmp_path: Path) -> Path:
    """A state folder with a policy of the test's own, and its cases beside it."""
    state = copy_of(template.folder, tmp_path / "state")
    (state / "policies.yaml").write_text(TEXT)
    (state / "policies.test.yaml").write_text(CASES)
    return state


def fields(several: Several, secret: str) -> set[str]:
    """The fields of a client in many answers, each on a connection of its own."""
    seen: set[str] = set()
    for _ in range(12):
        seen |= eventually(lambda: client(several, secret)).keys()
    return seen


def client(several: Several, secret: str) -> dict[str, Any] | None:
    """One client; None where the worker that is asked does not know the new key so far."""
    status, body = get(several.port, CLIENTS, secret)
    return body[0] if status == 200 else None


def told(several: Several) -> dict[str, dict[str, Any]]:
    """What each process says of its policy, by its role."""
    config = str(several.config)
    done = clinic_gateway("policy", "status", "--json", "--config", config)
    return {each["role"]: each for each in json.loads(done.stdout)["processes"]}


def all_wait(several: Several) -> str | None:
    """The hash of what all processes run while the file waits for its cases; else None."""
    each = told(several)
    hashes = {one["hash"] for one in each.values()}
    waits = {one["waitsFor"] for one in each.values()}
    names = {"operations", "worker 1", "worker 2"}
    return hashes.pop() if (set(each), waits, len(hashes)) == (names, {"cases"}, 1) else None


@pytest.mark.long
def test_all_workers_hide_at_once_and_go_on_so_after_a_roll_a_kill_and_a_restart(
    folder: Path,
) -> None:
    with Several(folder, lines=LINES) as several:
        _, secret = several.mint("--scope", "clients=STANDARD")
        assert "email" in fields(several, secret)
        (folder / "policies.yaml").write_text(MIXED)
        runs = eventually(lambda: all_wait(several), within=30)
        assert not {"email", "address"} & fields(several, secret)

        before = several.workers()
        several.process.send_signal(signal.SIGUSR2)
        several.event("all processes of the gateway were replaced", within=60)
        assert not set(several.workers().values()) & set(before.values())
        assert eventually(lambda: all_wait(several), within=30) == runs

        before = several.workers()
        for pid in (*before.values(), several.operations()):
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: len(several.workers()) == 2, within=60)
        assert eventually(lambda: all_wait(several), within=30) == runs
        assert not {"email", "address"} & fields(several, secret)
        assert several.end() == 0
    with Several(folder, config=folder / "gateway.yaml") as several:
        assert eventually(lambda: all_wait(several), within=30) == runs
        assert not {"email", "address"} & fields(several, secret)
        several.event("the policy's cases fail: what its file shows more waits until they pass")
