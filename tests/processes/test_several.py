"""Several workers on one machine: one gateway to partners, whatever happens to its processes."""

import asyncio
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from gateway.policy.policy import Version
from gateway.policy.running.follower import Handover, take
from gateway.settings import StartRefused
from gateway.state import make_run, sole_use
from tests.command import clinic_gateway, serving
from tests.conftest import Template
from tests.policies import TEXT, moved
from tests.processes.gateways import (
    Load,
    Several,
    copy_of,
    eventually,
    get,
    is_running,
    request,
    stopped,
    until_known,
)

pytestmark = pytest.mark.long

CLIENTS = "/api/v1/clients?limit=2"


@pytest.fixture
def folder(template: Template, tmp_path: Path) -> Path:
    return copy_of(template.folder, tmp_path / "state")


@pytest.fixture(scope="module")
def lasting(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Several]:
    with Several(copy_of(template.folder, tmp_path_factory.mktemp("several") / "state")) as running:
        yield running


@pytest.fixture
def several(lasting: Several) -> Several:
    """One gateway for all tests that leave it well, each with keys of its own."""
    eventually(lambda: len(lasting.workers()) == 2)
    lasting.forget()
    return lasting


@pytest.fixture
def mortal(folder: Path) -> Iterator[Several]:
    """One that the test may end."""
    with Several(folder) as running:
        yield running


def test_one_gateway_of_several_processes(several: Several) -> None:
    _, secret = several.mint()
    status, ready = several.get("/readyz")
    assert (status, ready["ready"]) == (200, True)
    assert {"backend", "policy", "store", "workers"} == set(ready["parts"])
    assert set(several.workers()) == {1, 2}
    assert len(several.children()) == 3
    assert eventually(lambda: get(several.port, CLIENTS, secret)[0] == 200, within=1)
    told = several.command("policy", "status")["processes"]
    assert sorted(each["role"] for each in told) == ["operations", "worker 1", "worker 2"]


def test_the_figures_are_those_of_all_processes_and_of_the_dead(several: Several) -> None:
    _, secret = several.mint()
    time.sleep(1)
    before = counted(several)
    for _ in range(30):
        assert get(several.port, CLIENTS, secret)[0] == 200
    assert counted(several) == before + 30
    time.sleep(1.2)  # what a worker has told until it dies stays
    os.kill(several.worker(1), signal.SIGKILL)
    several.event("a process of the gateway has ended: it is started again")
    assert counted(several) == before + 30
    text = several.get("/metrics")[1]
    assert 'process_open_fds{process="operations"}' in text
    assert 'process_open_fds{process="worker 2"}' in text


def test_no_sum_falls_or_grows_by_itself_whichever_processes_are_replaced(
    several: Several,
) -> None:
    _, secret = several.mint()
    time.sleep(1)
    before = counted(several)
    for _ in range(30):
        assert get(several.port, CLIENTS, secret)[0] == 200
    time.sleep(1.2)
    os.kill(several.worker(1), signal.SIGKILL)
    several.event("a process of the gateway has ended: it is started again")
    assert counted(several) == before + 30
    used = cpu(several)
    eventually(lambda: len(several.workers()) == 2)
    pid = several.operations()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: pid not in several.children())
    assert eventually(lambda: answered(several)) == before + 30
    several.process.send_signal(signal.SIGUSR2)
    several.event("all processes of the gateway were replaced", within=30)
    assert eventually(lambda: answered(several)) == before + 30
    assert cpu(several) >= used


def answered(several: Several) -> float | None:
    """What is counted, once operations answers."""
    with suppress(OSError):
        return counted(several)
    return None


def cpu(several: Several) -> float:
    """Seconds of CPU that all processes have used."""
    lines = several.get("/metrics")[1].splitlines()
    [line] = [each for each in lines if each.startswith("process_cpu_seconds_total ")]
    return float(line.rpartition(" ")[2])


def counted(several: Several) -> float:
    """The calls of lists of clients that were answered, as the figures have it."""
    text = several.get("/metrics")[1]
    start = 'gateway_requests_total{operation="list_clients",status="200"} '
    return sum(
        float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(start)
    )


def test_a_key_and_its_end_are_known_in_every_worker_within_a_second(several: Several) -> None:
    key_id, secret = several.mint()
    time.sleep(1)
    # each connection may come to another worker
    assert {get(several.port, CLIENTS, secret)[0] for _ in range(20)} == {200}
    several.command("keys", "revoke", "--yes", key_id)
    time.sleep(1)
    assert {get(several.port, CLIENTS, secret)[0] for _ in range(20)} == {401}


def test_a_worker_that_dies_is_replaced_and_meanwhile_the_other_serves(several: Several) -> None:
    _, secret = several.mint()
    before = several.workers()
    os.kill(before[1], signal.SIGKILL)
    for _ in range(20):
        assert get(several.port, CLIENTS, secret)[0] in {200, 401}
    said = several.event("a process of the gateway has ended: it is started again")
    assert (said["process"], said["ended"]) == ("worker 1", "by signal SIGKILL")
    eventually(lambda: several.workers().get(1, before[1]) != before[1])
    assert several.worker(2) == before[2]


def test_operations_that_die_are_replaced_and_partners_do_not_notice(several: Several) -> None:
    _, secret = several.mint()
    time.sleep(1)
    os.kill(several.operations(), signal.SIGKILL)
    assert {get(several.port, CLIENTS, secret)[0] for _ in range(20)} == {200}
    several.event("a process of the gateway has ended: it is started again")
    assert eventually(lambda: len(several.workers()) == 2)


def test_a_worker_that_hangs_takes_no_calls_from_the_others(several: Several) -> None:
    _, secret = several.mint()
    time.sleep(1)
    pid = several.worker(1)
    with stopped(pid):
        assert {get(several.port, CLIENTS, secret)[0] for _ in range(20)} == {200}
        eventually(lambda: told(several, 1).get("reason") == "it does not answer")
        assert told(several, 2)["ready"]
        assert several.get("/readyz")[0] == 200


def told(several: Several, worker: int) -> dict[str, Any]:
    """What readiness says of one worker."""
    each = several.ready()["parts"]["workers"]["each"]
    return {told["worker"]: told for told in each}[worker]


async def test_no_call_is_lost_while_all_processes_are_replaced_under_load(
    several: Several,
) -> None:
    _, secret = several.mint("--limit", "100000")
    until_known(secret, several.port)
    load, stop = Load(several.port, request(CLIENTS, secret)), asyncio.Event()
    calling = asyncio.create_task(load.run(8, stop))
    before = several.children()
    for times in (1, 2):
        several.process.send_signal(signal.SIGUSR2)
        await asyncio.to_thread(
            several.event, "all processes of the gateway were replaced", times=times, within=30
        )
    stop.set()
    await calling
    assert not load.lost
    assert set(load.statuses) == {200}
    assert load.answered > 100
    eventually(lambda: not before & several.children(), within=5)


def test_a_roll_takes_the_configuration_as_it_is_now(several: Several) -> None:
    before = several.workers()
    good = several.config.read_text()
    several.config.write_text(good + "drane: 3\n")
    several.process.send_signal(signal.SIGUSR2)
    said = several.event("the configuration is wrong: nothing is replaced")
    assert "drane" in said["problem"]
    assert several.workers() == before
    several.config.write_text(good.replace("workers: 2", "workers: 3"))
    several.process.send_signal(signal.SIGUSR2)
    said = several.event("these settings take a restart; the others hold from now on")
    assert said["settings"] == ["workers"]
    several.event("all processes of the gateway were replaced", within=30)
    several.config.write_text(good)
    eventually(lambda: {**several.workers(), 0: 0}.keys() == {0, 1, 2})
    assert not set(several.workers().values()) & set(before.values())


def test_a_roll_whose_first_worker_cannot_begin_leaves_all_as_it_was(several: Several) -> None:
    before = several.workers()
    text = several.config.read_text()
    broken = several.folder / "broken.yaml"
    broken.write_text("version: 1\n")
    mapping = next(line for line in text.splitlines() if "mapping:" in line)
    several.config.write_text(text.replace(mapping, "  mapping: broken.yaml"))
    several.process.send_signal(signal.SIGUSR2)
    eventually(lambda: "the roll is given up" in (several.folder / "stderr.txt").read_text())
    several.config.write_text(text)
    assert several.workers() == before
    os.kill(before[2], signal.SIGKILL)  # and what is started later is as before, too
    eventually(lambda: several.workers().get(2, before[2]) != before[2])


def test_a_roll_to_a_mapping_of_tables_that_are_not_there_is_given_up(several: Several) -> None:
    before, text = several.workers(), several.config.read_text()
    mapping = next(line for line in text.splitlines() if "mapping:" in line)
    file = several.folder / mapping.partition(":")[2].strip()
    wrong = several.folder / "wrong.yaml"
    wrong.write_text(file.read_text().replace("from: CONSULTATIONS c", "from: NOWHERE c"))
    several.config.write_text(text.replace(mapping, "  mapping: wrong.yaml"))
    several.process.send_signal(signal.SIGUSR2)
    said = several.event("a process of the gateway cannot begin")
    assert "wrong.yaml:" in said["problem"]
    assert "NOWHERE" in said["problem"]
    assert "roll again" in several.event("the roll is given up: the old processes go on")["remedy"]
    several.config.write_text(text)
    assert several.workers() == before


def test_a_roll_to_a_mapping_that_cannot_serve_the_policys_rows_is_given_up(folder: Path) -> None:
    flag = folder / "cannot"
    spoilt = f"""
from pathlib import Path
from adapters.documents.problems import Problem
from gateway import backend
wrong = [Problem("clinic.yaml", 3, 1, "it cannot leave these out")]
backend.unserved_rows = lambda adapter, policy: wrong if Path({str(flag)!r}).exists() else []
"""
    with Several(folder, spoilt=spoilt) as several:
        eventually(lambda: len(several.workers()) == 2)
        before = several.workers()
        flag.touch()
        several.process.send_signal(signal.SIGUSR2)
        said = several.event("a process of the gateway cannot begin")
        assert said["problem"] == "clinic.yaml:3:1: it cannot leave these out"
        several.event("the roll is given up: the old processes go on")
        assert several.workers() == before
        os.kill(before[2], signal.SIGKILL)  # what is started again looks no closer than before
        eventually(lambda: several.workers().get(2, before[2]) != before[2])


def test_a_practice_system_that_is_down_stops_no_roll(folder: Path) -> None:
    with Several(folder) as several:
        eventually(lambda: len(several.workers()) == 2)
        before, text = several.workers(), several.config.read_text()
        url = next(line for line in text.splitlines() if line.strip().startswith("url:"))
        several.config.write_text(text.replace(url, "  url: sqlite:////nowhere/at/all.db"))
        several.process.send_signal(signal.SIGUSR2)
        several.event("all processes of the gateway were replaced", within=30)
        assert not set(several.workers().values()) & set(before.values())
        eventually(lambda: not several.ready()["parts"]["backend"]["ready"])


def test_a_worker_that_starts_later_takes_the_policy_that_runs_not_the_files(
    folder: Path, template: Template
) -> None:
    policy = folder / "policies.yaml"
    policy.write_text(TEXT)
    with Several(folder, lines=("workers: 2", "policy: policies.yaml")) as several:
        _, secret = several.mint()
        runs = several.ready()["parts"]["policy"]["hash"]
        policy.write_text("version: 1\n")
        said = several.event("policy refused; the last good one goes on")
        assert said["running"] == runs
        before = several.workers()
        for pid in (*before.values(), several.operations()):
            os.kill(pid, signal.SIGKILL)
        after = eventually(
            lambda: several.workers() if len(several.workers()) == 2 else None, within=20
        )
        assert not set(after.values()) & set(before.values())
        assert eventually(lambda: get(several.port, CLIENTS, secret)[0] == 200)
        assert several.ready()["parts"]["policy"]["hash"] == runs
        eventually(lambda: several.ready()["parts"]["policy"]["state"] == "stale")
        # a policy that is good again reaches the new workers
        policy.write_text(moved("clients.lastName", "STANDARD"))
        done = clinic_gateway("policy", "reload", "--config", str(several.config))
        assert done.returncode == 0, done
        assert len({line for line in done.stdout.splitlines() if "runs" in line}) == 1
        eventually(lambda: several.ready()["parts"]["policy"]["hash"] != runs)


def test_a_worker_that_does_not_take_the_policy_in_force_is_told(folder: Path) -> None:
    policy = folder / "policies.yaml"
    policy.write_text(TEXT)
    with Several(folder, lines=("workers: 2", "policy: policies.yaml")) as several:
        before, pid = several.ready()["parts"]["policy"]["hash"], several.worker(1)
        with stopped(pid):
            policy.write_text(moved("clients.lastName", "STANDARD"))
            several.event("policy loaded")
            eventually(lambda: several.ready()["parts"]["policy"]["hash"] != before)
            assert "behind" not in several.ready()["parts"]["policy"], "it has a moment"
            found = eventually(lambda: several.ready()["parts"]["policy"].get("behind"))
            assert found == [{"worker": 1, "pid": pid, "hash": before}]
            assert "\ngateway_policy_behind 1.0" in several.get("/metrics")[1]
            eventually(lambda: several.get("/readyz")[0] == 200)  # a busy machine has its moments
        eventually(lambda: "behind" not in several.ready()["parts"]["policy"])
        assert "\ngateway_policy_behind 0.0" in several.get("/metrics")[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_end_finishes_the_calls_that_run(mortal: Several, number: signal.Signals) -> None:
    _, secret = mortal.mint()
    until_known(secret, mortal.port)
    pids = mortal.children()
    mortal.forget()
    assert mortal.end(number) == 0
    first, *_, last = mortal.said()
    assert (first["event"], first["signal"]) == ("the gateway was told to end", number.name)
    assert last["event"] == "the gateway has ended"
    assert not any(map(is_running, pids))
    assert not (mortal.folder / "run" / "policy.json").exists()
    assert not [each for each in mortal.said() if each["level"] == "error"]


def test_children_end_where_their_parent_is_gone(mortal: Several) -> None:
    pids = mortal.children()
    assert len(pids) == 3
    mortal.process.kill()
    assert eventually(lambda: not any(map(is_running, pids)))


def test_a_gateway_that_is_killed_leaves_nothing_outside_its_folder(
    template: Template, tmp_path: Path
) -> None:
    long, elsewhere = tmp_path / ("x" * 120), tmp_path / "elsewhere"
    elsewhere.mkdir()
    long.mkdir()
    folder = copy_of(template.folder, long / "state")
    with Several(folder, environ={"TMPDIR": str(elsewhere)}) as several:
        children = several.children()
        assert eventually(lambda: set(several.workers()) == {1, 2})
        several.process.kill()
        eventually(lambda: not any(map(is_running, children)))
    assert list(elsewhere.iterdir()) == []
    with Several(folder, lines=(), environ={"TMPDIR": str(elsewhere)}) as several:
        assert eventually(lambda: set(several.workers()) == {1, 2})
        os.kill(several.operations(), signal.SIGKILL)
        several.event("a process of the gateway has ended: it is started again")
        assert eventually(lambda: set(several.workers()) == {1, 2})
        assert several.end() == 0
    assert not (folder / "run" / "reports.sock").exists()


def test_a_start_that_is_refused_says_why_once(folder: Path) -> None:
    config = folder / "gateway.yaml"
    config.write_text(config.read_text() + "workers: 2\npolicy: nothing.yaml\n")
    done = clinic_gateway("serve", "--config", str(config))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "nothing.yaml" in done.stderr


@pytest.mark.parametrize("line", ["tls_certificate: tls.pem", "tls_certificate: x\ntls_key: none"])
def test_a_start_with_wrong_tls_is_refused_once_before_anybody_is_started(
    folder: Path, line: str
) -> None:
    config = folder / "gateway.yaml"
    config.write_text(config.read_text() + f"workers: 2\n{line}\n")
    none_is_forked = "import os\ndel os.fork"
    with serving("serve", "--config", str(config), spoilt=none_is_forked) as process:
        said = process.communicate(timeout=30)[1]
        assert process.returncode == 1
    [sentence] = said.splitlines()
    assert sentence.startswith("tls_")


def test_a_roll_to_wrong_tls_replaces_nothing(several: Several) -> None:
    before, text = several.workers(), several.config.read_text()
    several.config.write_text(f"{text}tls_certificate: tls.pem\n")
    several.process.send_signal(signal.SIGUSR2)
    said = several.event("the configuration is wrong: nothing is replaced")
    several.config.write_text(text)
    assert said["problem"].startswith("tls_key is not set")
    assert several.workers() == before


def test_a_state_folder_that_can_hold_no_socket_is_refused_with_the_remedy(folder: Path) -> None:
    config = folder / "gateway.yaml"
    config.write_text(config.read_text() + "workers: 2\n")
    (folder / "run").mkdir(mode=0o700, exist_ok=True)
    unable = """
import asyncio, errno, os
from unittest.mock import AsyncMock
error = OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
asyncio.start_unix_server = AsyncMock(side_effect=error)
"""
    with serving("serve", "--config", str(config), spoilt=unable) as process:
        said = process.communicate()[1]
        assert process.returncode == 1
    [line] = said.splitlines()
    assert f"{folder / 'run'}: operation not supported; put state on a filesystem that has" in line


def test_a_place_of_the_processes_where_others_can_write_is_refused(folder: Path) -> None:
    config = folder / "gateway.yaml"
    config.write_text(config.read_text() + "workers: 2\n")
    shutil.rmtree(folder / "run", ignore_errors=True)
    (folder / "run").mkdir()
    (folder / "run").chmod(0o777)
    done = clinic_gateway("serve", "--config", str(config))
    assert done.returncode == 1
    assert "others can write there: remove it" in done.stderr


def test_a_place_of_the_processes_is_a_folder_and_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path)
    assert run.stat().st_mode & 0o777 == 0o700
    assert make_run(tmp_path) == run
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: run.stat().st_uid + 1)
        with pytest.raises(StartRefused, match="is another user's"):
            make_run(tmp_path)
    run.rename(tmp_path / "moved")
    run.symlink_to(tmp_path / "moved")
    with pytest.raises(StartRefused, match="remove it"):
        make_run(tmp_path)
    run.unlink()
    run.write_text("")
    with pytest.raises(StartRefused, match="remove it"):
        make_run(tmp_path)
    with pytest.raises(StartRefused, match="cannot be made: no such file or directory"):
        make_run(tmp_path / "gone")


def test_a_lock_that_this_user_may_not_open_is_not_taken_for_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after root has served once from the state of another user."""
    state = tmp_path / "state"
    state.mkdir()
    tmp_path.chmod(0o711)
    state.chmod(0o777)
    (state / "gateway.lock").touch(0o000)
    monkeypatch.chdir(tmp_path)
    root = os.geteuid() == 0
    if root:
        os.seteuid(12345)
    try:
        with (
            pytest.raises(StartRefused, match=r"state/gateway\.lock is not this user's"),
            sole_use(Path("state")),
        ):
            pass
    finally:
        if root:
            os.seteuid(0)


def test_a_policy_that_another_user_has_put_there_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = Handover(
        version=Version(hash="0", content=b"", file="policies.yaml"),
        loaded_at=datetime.now(UTC), status={}, revision=1,
    )  # fmt: skip
    path = tmp_path / "policy.json"
    path.write_bytes(json.encode(what))
    assert take(path) == what
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
        assert take(path) is None
    link = tmp_path / "link.json"
    link.symlink_to(path)
    assert take(link) is None
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    taking = threading.Thread(target=take, args=(pipe,), daemon=True)
    taking.start()
    taking.join(5.0)
    assert not taking.is_alive()


def test_a_second_gateway_on_the_state_folder_is_refused(several: Several) -> None:
    done = clinic_gateway("serve", "--config", str(several.config))
    assert done.returncode == 1
    assert "another gateway serves from the state folder" in done.stderr


async def test_a_limit_is_exact_over_the_workers(several: Several) -> None:
    _, secret = several.mint("--limit", "300")
    await asyncio.sleep(1)
    load, stop = Load(several.port, request(CLIENTS, secret), most=450), asyncio.Event()
    await load.run(20, stop)
    assert load.statuses[200] == 300
    assert set(load.statuses) == {200, 429}


def test_every_process_says_what_it_is_doing_when_it_is_asked(several: Several) -> None:
    several.process.send_signal(signal.SIGQUIT)
    named = {"follow keys", "reconcile the ledger", "report to operations"}
    eventually(lambda: named <= {each.get("task") for each in several.said()})
    assert len(several.workers()) == 2
