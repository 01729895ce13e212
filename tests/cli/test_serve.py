"""`clinic-gateway serve`: what refuses a start says why in a sentence; a signal ends it well."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from adapters.documents.problems import Problem
from adapters.sample import MAPPING
from gateway.cli.serve import serve_until_stopped
from gateway.events import event_table
from gateway.settings import load_settings
from tests.command import Forked, clinic_gateway, serving
from tests.conftest import Template
from tests.world import WORLDS, World, WorldAdapter

SERVE = [sys.executable, "-m", "gateway", "serve"]


@pytest.fixture
def folder(template: Template, tmp_path: Path) -> Path:
    """A state folder with which a gateway starts."""
    return Path(shutil.copytree(template.folder, tmp_path / "state"))


def refused(folder: Path) -> str:
    """What a start says before it exits with 1."""
    return the_refusal(clinic_gateway("serve", "--config", str(folder / "gateway.yaml")), folder)


def the_refusal(done: subprocess.CompletedProcess[str], folder: Path) -> str:
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr.replace(str(folder), "STATE").strip()


def change(folder: Path, old: str, new: str) -> None:
    file = folder / "gateway.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def test_every_problem_of_policy_and_mapping_is_said_at_once(folder: Path) -> None:
    (folder / "mapping.yaml").write_text(MAPPING.read_text().replace("key: a.", "kee: a."))
    (folder / "policies.yaml").write_text("version: 1\nclients:\n  BASIC: [id, id]\n")
    change(folder, str(MAPPING), "mapping.yaml\npolicy: policies.yaml")
    said = refused(folder).splitlines()
    assert any(line.startswith("STATE/policies.yaml:3:") for line in said)
    assert any(line.startswith("STATE/mapping.yaml:") for line in said)
    assert all(": " in line for line in said)


def test_every_problem_of_the_configuration_is_said_at_once(folder: Path) -> None:
    change(folder, "state: .", "state: .\nlisten_: 1\nworkers: 0\nstate: x\nlimiter: mysql://x")
    said = refused(folder).splitlines()
    assert [line.split(": ")[0] for line in said] == [
        f"STATE/gateway.yaml:{place}" for place in ("4:1", "5:10", "6:1", "7:10")
    ]


def test_every_problem_of_all_three_files_is_said_at_once(folder: Path) -> None:
    (folder / "mapping.yaml").write_text(MAPPING.read_text().replace("key: a.", "kee: a."))
    (folder / "policies.yaml").write_text("version: 1\nclients:\n  BASIC: [id, id]\n")
    change(folder, str(MAPPING), "mapping.yaml\n  timeout: soon\npolicy: policies.yaml\ndran: 1")
    change(folder, "sqlite:///clinic.db", "oracle://x/y")
    said = refused(folder).splitlines()
    files = {line.split(":")[0] for line in said}
    assert files == {
        "STATE/gateway.yaml",
        "STATE/policies.yaml",
        "STATE/mapping.yaml",
        "backend.url",
    }
    assert sum(line.startswith("STATE/gateway.yaml:") for line in said) == 2


@pytest.mark.parametrize("url", ["sqlite:///clinic.db?mode=ro", "[sqlite]"])
def test_a_wrong_address_is_said_once_with_its_line(folder: Path, url: str) -> None:
    change(folder, "sqlite:///clinic.db", url)
    [line] = refused(folder).splitlines()
    assert re.match(r"STATE/gateway.yaml:\d+:\d+: url: must ", line)


def test_a_start_without_any_practice_system_says_so_and_makes_nothing(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text("drain: 1\n")
    said = refused(tmp_path)
    assert said.startswith("backend.url and backend.mapping must say where the practice system is")
    assert [file.name for file in tmp_path.iterdir()] == ["gateway.yaml"]


def test_a_wrong_address_and_a_wrong_mapping_are_said_together(folder: Path) -> None:
    change(folder, str(MAPPING), "none.yaml")
    change(folder, "sqlite:///clinic.db", "oracle://x/y")
    said = refused(folder).splitlines()
    assert [line.split(": ")[0] for line in said] == ["STATE/none.yaml", "backend.url"]


def test_what_the_database_lacks_is_said_with_what_is_wrong_with_the_policy(folder: Path) -> None:
    text = MAPPING.read_text().replace("from: LIGNES_FACT l", "from: LIGNES l")
    (folder / "mapping.yaml").write_text(text)
    line = text[: text.index("from: LIGNES l")].count("\n") + 1
    (folder / "policies.yaml").write_text("version: 1\nclients:\n  BASIC: [id, id]\n")
    change(folder, str(MAPPING), "mapping.yaml\npolicy: policies.yaml")
    said = refused(folder).splitlines()
    lacking = "the database says: no such table: LIGNES"
    assert f"STATE/mapping.yaml:{line}:15: {lacking}" in said
    assert any(each.startswith("STATE/policies.yaml:3:") for each in said)


def test_a_missing_configuration_is_named(folder: Path) -> None:
    (folder / "gateway.yaml").unlink()
    assert refused(folder) == "STATE/gateway.yaml: cannot be read: no such file or directory"


def test_a_taken_port_is_named(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        change(folder, "listen: 127.0.0.1:0\n", f"listen: 127.0.0.1:{port}\n")
        assert refused(folder) == (
            f"listen: cannot listen on 127.0.0.1 port {port}: address already in use; free it or"
            " choose another address"
        )


@pytest.mark.parametrize("setting", ["listen", "operations_listen"])
@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("no.such.host.invalid", "name or service not known"),
        ("192.0.2.1", "cannot assign requested address"),
        ("é..b", "that is no host's name"),
    ],
)
def test_an_address_that_cannot_be_had_is_named_with_its_setting(
    folder: Path, setting: str, host: str, reason: str
) -> None:
    change(folder, f"{setting}: 127.0.0.1:0\n", f"{setting}: {host}:0\n")
    told = refused(folder)
    assert told == f"{setting}: cannot listen on {host} port 0: {reason}; choose another address"


def spoil_store(content: bytes) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        for file in folder.glob("gateway.db*"):
            file.unlink()
        (folder / "gateway.db").write_bytes(content)

    return spoil


def damage_store(folder: Path) -> None:
    file = folder / "gateway.db"
    whole = file.read_bytes()
    file.write_bytes(whole[:100] + bytes(len(whole) - 100))


def file_as_state(folder: Path) -> None:
    (folder / "taken").write_text("")
    change(folder, "state: .", "state: taken")


def folder_as_log(folder: Path) -> None:
    (folder / "access.jsonl").unlink(missing_ok=True)
    (folder / "access.jsonl").mkdir()


def file_as_audit(folder: Path) -> None:
    shutil.rmtree(folder / "audit")
    (folder / "audit").write_text("")


def lost_audit_key(folder: Path) -> None:
    (folder / "audit.key").unlink()


def open_audit_key(folder: Path) -> None:
    (folder / "audit.key").chmod(0o644)


def other_secret(folder: Path) -> None:
    (folder / "sealing.secret").write_text("ab" * 32)


def lost_secret(folder: Path) -> None:
    (folder / "sealing.secret").unlink()


def later_version(folder: Path) -> None:
    with sqlite3.connect(folder / "gateway.db") as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_store(b"no database" * 100), "STATE/gateway.db is no SQLite database: restore"),
        (damage_store, "STATE/gateway.db is damaged: restore a backup"),
        (later_version, "STATE/gateway.db belongs to a later version of the gateway"),
        (file_as_state, "the state folder STATE/taken cannot be made: file exists; choose"),
        (folder_as_log, "the logs in the state folder STATE cannot be written: is a directory"),
        (file_as_audit, "STATE/audit/folder.id is gone, though this state has an audit"),
        (lost_audit_key, "the audit's key STATE/audit.key is gone: put it back from a backup"),
        (open_audit_key, "STATE/audit.key is open to others: chmod 600 STATE/audit.key"),
        (other_secret, "every public id would change"),
        (lost_secret, "put the file back"),
    ],
)
def test_what_lies_wrong_in_the_state_is_one_sentence(
    folder: Path, spoil: Callable[[Path], None], said: str
) -> None:
    spoil(folder)
    told = refused(folder)
    assert said in told
    assert len(told.splitlines()) == 1


def test_a_locked_store_is_one_sentence(folder: Path) -> None:
    held = sqlite3.connect(folder / "gateway.db", isolation_level=None)
    held.execute("PRAGMA locking_mode = EXCLUSIVE")
    held.execute("BEGIN EXCLUSIVE")
    try:
        assert refused(folder).startswith("STATE/gateway.db is locked by another process: end")
    finally:
        held.close()


@pytest.mark.parametrize("name", ["PYTHONASYNCIODEBUG", "PYTHONDEVMODE"])
def test_a_python_that_puts_tracebacks_into_answers_is_refused(folder: Path, name: str) -> None:
    done = subprocess.run(
        [*SERVE, "--config", str(folder / "gateway.yaml")],
        capture_output=True, text=True, check=False, timeout=30, env={name: "1"},
    )  # fmt: skip
    assert f"{name} is set" in the_refusal(done, folder)


def typed(folder: Path) -> subprocess.Popen[str]:
    """`serve` as an operator starts it."""
    return subprocess.Popen(
        [*SERVE, "--config", str(folder / "gateway.yaml")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def forked(folder: Path) -> Forked:
    return serving("serve", "--config", str(folder / "gateway.yaml"))


class Served:
    """A gateway in a process of its own."""

    def __init__(
        self, folder: Path, start: Callable[[Path], subprocess.Popen[str] | Forked] = forked
    ) -> None:
        self.process = start(folder)
        line = self.process.stderr.readline()  # type: ignore[union-attr]
        serving = json.loads(line)
        assert serving["event"] == "serving", line
        self.port, self.operations_port = serving["port"], serving["operations_port"]

    def end(self) -> tuple[int, str]:
        """The exit code, and what was said on stderr since the start."""
        with self.process as ending:
            code = ending.wait(timeout=30)
            # what the stream has read ahead counts too, which communicate() would lose
            said: str = ending.stderr.read()  # type: ignore[union-attr]
        return code, said


@pytest.fixture(params=[forked], ids=["forked"])
def served(folder: Path, request: pytest.FixtureRequest) -> Iterator[Served]:
    running = Served(folder, request.param)
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.communicate()


def only_the_end(said: str) -> str:
    """By which signal a gateway ended that had nothing else to say."""
    told, ended = map(json.loads, said.splitlines())
    assert (told["event"], ended["event"]) == (
        "the gateway was told to end",
        "the gateway has ended",
    )
    signal_name: str = told["signal"]
    return signal_name


def minted(folder: Path) -> str:
    made = clinic_gateway(
        "keys", "create", "--name", "x", "--level", "FULL", "--permission", "APPOINTMENT_CREATE",
        "--permission", "CLIENT_READ", "--json", "--config", str(folder / "gateway.yaml"),
    )  # fmt: skip
    assert made.returncode == 0, made
    secret: str = json.loads(made.stdout)["key"]
    return secret


def spoil_clinic(folder: Path) -> None:
    (folder / "clinic.db").write_bytes(b"no database" * 100)


def remove_clinic(folder: Path) -> None:
    (folder / "clinic.db").unlink()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (spoil_clinic, "is no SQLite database (SQLITE_NOTADB)"),
        (remove_clinic, "does not exist; is backend.url the right file?"),
    ],
)
def test_a_practice_system_that_is_down_does_not_keep_the_gateway_from_starting(
    folder: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    secret = minted(folder)
    spoil(folder)
    running = Served(folder)
    try:
        warned = json.loads(running.process.stderr.readline())  # type: ignore[union-attr]
        assert warned["event"] == "the practice system does not answer"
        reason = f"{folder}/clinic.db {reason}"
        assert warned["said"] == reason
        status, ready = get(running.operations_port, "/readyz")
        assert status == 503
        told = ready["parts"]["backend"]
        assert (told["ready"], told["reason"]) == (False, reason)
        assert ready["parts"]["store"] == {"ready": True, "for": ["bookings"]}
        status, answer = get(running.port, "/api/v1/clients", secret)
        assert (status, answer) == (503, {"message": "Service temporarily unavailable"})
    finally:
        running.process.terminate()
        assert running.end()[0] == 0


@pytest.mark.parametrize("served", [typed], indirect=True, ids=["typed"])
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_call_that_runs(
    folder: Path, served: Served, ending: signal.Signals
) -> None:
    secret = minted(folder)
    clients(served.port, secret)
    connection = HTTPConnection("127.0.0.1", served.port, timeout=20)
    connection.putrequest("POST", "/api/v1/appointments")
    for name, value in {
        "X-API-Key": secret, "Content-Type": "application/json", "Content-Length": "2",
        "Expect": "100-continue",
    }.items():  # fmt: skip
        connection.putheader(name, value)
    connection.endheaders()
    # The gateway asks for the body: the call has begun, and now it waits in the middle of it.
    assert connection.sock.recv(100).startswith(b"HTTP/1.1 100 Continue")
    served.process.send_signal(ending)
    not_listening(served.port)
    connection.send(b"{}")
    answer = connection.getresponse()
    assert answer.status == 400
    assert json.loads(answer.read())["message"] == "Invalid request: clientId is required"
    connection.close()
    code, said = served.end()
    assert code == 0
    assert "Traceback" not in said


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_writes_how_often_keys_called(
    folder: Path, served: Served, ending: signal.Signals
) -> None:
    secret = minted(folder)
    for _ in range(3):
        clients(served.port, secret)
    served.process.send_signal(ending)
    code, said = served.end()
    assert (code, only_the_end(said)) == (0, ending.name)
    with closing(sqlite3.connect(folder / "gateway.db")) as store:
        wanted = "SELECT operation, sum(answered), sum(failed) FROM {} GROUP BY operation"
        for table in ("usage", "usage_days"):
            rows = store.execute(wanted.format(table)).fetchall()
            assert rows == [("list_clients", 3, 0)], table


@pytest.mark.parametrize("served", [typed], indirect=True, ids=["typed"])
def test_a_hangup_ends_nothing_and_has_the_policy_looked_at(folder: Path, served: Served) -> None:
    served.process.send_signal(signal.SIGHUP)
    said = json.loads(served.process.stderr.readline())  # type: ignore[union-attr]
    looked = "policy unchanged: the file is the one that runs"
    assert (said["level"], said["event"]) == ("info", looked)
    assert clients(served.port, minted(folder))
    served.process.terminate()
    code, said = served.end()
    assert (code, only_the_end(said)) == (0, "SIGTERM")


@pytest.mark.parametrize("served", [typed], indirect=True, ids=["typed"])
def test_a_roll_of_one_process_is_told_to_be_none_and_ends_nothing(
    folder: Path, served: Served
) -> None:
    served.process.send_signal(signal.SIGUSR2)
    said = json.loads(served.process.stderr.readline())  # type: ignore[union-attr]
    assert (said["level"], said["event"]) == (
        "warning",
        event_table().event["roll_impossible"].text,
    )
    assert clients(served.port, minted(folder))
    served.process.terminate()
    code, said = served.end()
    assert (code, only_the_end(said)) == (0, "SIGTERM")


def not_listening(port: int) -> None:
    """Returns once nobody listens there; the test's own limit ends it if that never comes."""
    refusal = threading.Event()
    for _ in range(2_000):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            return
        refusal.wait(0.005)
    raise AssertionError("it still listens")


@pytest.mark.parametrize("rights", [0o755, 0o750, 0o701])
def test_a_state_folder_that_is_open_to_others_is_warned_of_once(folder: Path, rights: int) -> None:
    folder.chmod(rights)
    running = Served(folder)
    clients(running.port, minted(folder))
    running.process.terminate()
    code, said = running.end()
    [warned] = [json.loads(line) for line in said.splitlines() if "open to others" in line]
    assert (code, warned["level"], warned["folder"]) == (0, "warning", str(folder))
    assert warned["remedy"] == f"chmod 700 {folder}"


def test_a_second_gateway_on_one_state_folder_is_refused_and_the_first_goes_on(
    folder: Path, served: Served
) -> None:
    assert refused(folder) == (
        "another gateway serves from the state folder STATE: end it, or give this one a state of"
        " its own"
    )
    assert clients(served.port, minted(folder))
    served.process.terminate()
    code, said = served.end()
    assert (code, only_the_end(said)) == (0, "SIGTERM")
    assert (folder / "gateway.lock").stat().st_mode & 0o777 == 0o600


def test_a_lock_that_cannot_be_had_keeps_nobody_from_serving(folder: Path) -> None:
    (folder / "gateway.lock").unlink(missing_ok=True)
    (folder / "gateway.lock").mkdir()
    running = Served(folder)
    running.process.terminate()
    code, said = running.end()
    assert (code, only_the_end(said)) == (0, "SIGTERM")


@pytest.mark.parametrize(
    ("listen", "warned"),
    [
        ("0.0.0.0:0", True),
        ("0.0.0.0:0\npublic_url: https://gateway.example.org", False),
        ("localhost:0", False),
    ],
)
def test_an_address_for_others_without_a_public_one_is_warned_of(
    folder: Path, listen: str, warned: bool
) -> None:
    change(folder, "listen: 127.0.0.1:0\noper", f"listen: {listen}\noper")
    running = Served(folder)
    running.process.terminate()
    code, said = running.end()
    events = [json.loads(line)["event"] for line in said.splitlines()]
    sentence = "without public_url, Link and Location lead partners to their own machine"
    assert (code, sorted(events[:-1])) == (
        0,
        sorted(["the gateway was told to end", *([sentence] if warned else [])]),
    )
    assert events[-1] == "the gateway has ended"


def test_nothing_is_warned_of_where_the_state_folder_is_the_owners(served: Served) -> None:
    served.process.terminate()
    code, said = served.end()
    assert (code, only_the_end(said)) == (0, "SIGTERM")


def test_a_second_start_finds_everything_as_it_was(folder: Path, served: Served) -> None:
    secret = minted(folder)
    first = clients(served.port, secret)
    served.process.terminate()
    assert served.end()[0] == 0
    again = Served(folder)
    try:
        assert clients(again.port, secret) == first
    finally:
        again.process.terminate()
        assert again.end()[0] == 0


def get(port: int, path: str, secret: str = "") -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", path, headers={"X-API-Key": secret})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def clients(port: int, secret: str) -> Any:
    """The first clients, asked until the key is known: it was made in another process."""
    for _ in range(100):
        status, found = get(port, "/api/v1/clients?limit=3", secret)
        if status == 200:
            return found
        threading.Event().wait(0.02)
    raise AssertionError(found)


class Far(WorldAdapter):
    """A practice system at the end of a slow line: while it is looked at, a signal comes."""

    async def check(self) -> Sequence[Problem]:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)
        return ()


async def test_a_signal_while_it_starts_ends_it(folder: Path) -> None:
    WORLDS["far"] = World()
    change(folder, "sqlite:///clinic.db", "far\n  adapter: tests.cli.test_serve:Far")
    settings = load_settings(folder / "gateway.yaml", {})
    async with asyncio.timeout(10):
        await serve_until_stopped(settings)
    assert [each.get_coro() for each in asyncio.all_tasks()] == [asyncio.current_task().get_coro()]  # type: ignore[union-attr]
