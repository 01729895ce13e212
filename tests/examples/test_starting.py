"""How an example starts where something is in its way: one sentence, exit 1, no traceback."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from socket import create_server

import pytest

from tests.command import module
from tests.examples.clinic import server_of

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"mariadb_eav": "mysql", "postgres_slots": "postgresql"}
FREE = ("--port", "0", "--operations-port", "0")


def started(name: str, *options: str) -> str:
    """What a start that fails says; it is one line."""
    done = module(name, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture
def taken() -> Iterator[str]:
    """A port on which another program listens."""
    with create_server(("127.0.0.1", 0)) as other:
        yield str(other.getsockname()[1])


@pytest.mark.parametrize("example", MODULES)
def test_a_server_that_is_down_is_said_with_the_option(example: str, tmp_path: Path) -> None:
    server = f"{MODULES[example]}://root:hidden@127.0.0.1:1/"
    said = started(f"examples.{example}", "--server", server, "--state", str(tmp_path))
    assert said == (
        "the server can't be reached: nothing listens there (ECONNREFUSED); see --server\n"
    )


@pytest.mark.parametrize("example", MODULES)
def test_a_wrong_account_is_said_with_the_option(example: str, tmp_path: Path) -> None:
    own = server_of(MODULES[example])
    server = re.sub("//.*@", "//nobody_here:hidden@", own)
    said = started(f"examples.{example}", "--server", server, "--state", str(tmp_path))
    assert said.startswith("the server can't be reached: it refuses the account or its password (")
    assert said.endswith("; see --server\n")
    assert "hidden" not in said


def test_a_port_of_the_cloud_that_is_taken_is_not_moved_from(taken: str, tmp_path: Path) -> None:
    options = ("--cloud-port", taken, "--state", str(tmp_path), *FREE)
    assert started("examples.json_cloud", *options) == (
        f"the cloud cannot listen on 127.0.0.1 port {taken}: address already in use;"
        " choose with --cloud-port\n"
    )


@pytest.mark.parametrize("option", ["--port", "--operations-port"])
def test_a_port_of_the_gateway_that_is_taken_is_said_with_the_option(
    option: str, taken: str, tmp_path: Path
) -> None:
    free = {"--port": "0", "--operations-port": "0"} | {option: taken}
    options = [each for pair in free.items() for each in pair]
    cloud = ("--cloud-port", "0", "--state", str(tmp_path))
    said = started("examples.json_cloud", *cloud, *options)
    assert f"127.0.0.1 port {taken}: address already in use" in said
    assert said.endswith(f"choose another address, with {option} NUMBER\n")
    assert "make demo" not in said
    demo = started("gateway", "demo", "--state", str(tmp_path / "demo"), *options)
    assert demo.endswith(f', with {option} NUMBER (make demo ARGS="{option} NUMBER")\n')


@pytest.mark.long
def test_an_example_prints_lines_that_work_from_anywhere(tmp_path: Path) -> None:
    state = tmp_path / "a state"
    command = [sys.executable, "-m", "examples.json_cloud", "--cloud-port", "0", *FREE]
    with subprocess.Popen(
        [*command, "--state", str(state)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "")
            line = next(each for each in lines if each.startswith("Its keys"))
            checked = f"{line.partition('keys: ')[2].partition(' keys list')[0]} backend check"
            keys = line.partition("keys: ")[2]
            assert keys.startswith(str(Path(sys.executable).with_name("clinic-gateway")))
            for typed, said in ((keys, "Demo FULL"), (checked, "nothing here would fail")):
                done = subprocess.run(
                    ["sh", "-c", typed], cwd=tmp_path, capture_output=True, text=True, check=True,
                    env={**os.environ, "COLUMNS": "200"},
                )  # fmt: skip
                assert said in done.stdout
            second = started("gateway", "demo", "--state", str(state), *FREE)
            assert second.startswith(f"another gateway serves from the state folder {state}: ")
            assert second.endswith(', with --state DIR (make demo ARGS="--state DIR")\n')
        finally:
            process.terminate()
            process.communicate(timeout=20)
    assert {"gateway.yaml", "gateway.db"} <= {each.name for each in state.iterdir()}
