"""The stack of compose.yaml as plain processes: made by the same code, from the same files."""

import csv
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from examples.cluster import databases, files
from tests.adapters.servers import execute, server
from tests.processes.gateways import Several, eventually, is_running
from tests.redis_server import redis_server
from tests.wire.proxies import changed, command, free_port

ROOT = Path(__file__).resolve().parent.parent.parent
STATS = "haproxy.sock"
PROXY = ROOT / "examples" / "cluster" / "haproxy.cfg"
# On a busy machine nothing may be late that would only be late; and who is silent is dead sooner.
BOOKING_TIMEOUT = 6
ENVIRONMENT = {
    "GATEWAY_LIMITER_TIMEOUT": "1",
    "GATEWAY_IN_FLIGHT_PER_KEY": "100",
    "GATEWAY_BACKEND_BOOKING_TIMEOUT": str(BOOKING_TIMEOUT),
}
SPOILT = "import gateway.booking.takeover as o\no.SILENCE, o.BEAT = 5.0, 1.0"


class Node:
    """One machine: a gateway with a state folder and ports of its own."""

    def __init__(self, folder: Path, config: Path) -> None:
        self.port, self.operations_port = free_port(), free_port()
        self._folder, self._config = folder, config
        self._begun = 0
        self.gateway = self.start()

    def start(self) -> Several:
        """A gateway on what the one before it left."""
        if self._begun:
            self.gateway.__exit__()
        self._begun += 1
        folder = self._folder / f"begun-{self._begun}"
        folder.mkdir(parents=True)
        self.gateway = Several(
            folder,
            config=self._config,
            spoilt=SPOILT,
            environ={
                **ENVIRONMENT,
                "GATEWAY_STATE": str(self._folder / "state"),
                "GATEWAY_LISTEN": f"127.0.0.1:{self.port}",
                "GATEWAY_OPERATIONS_LISTEN": f"127.0.0.1:{self.operations_port}",
                "GATEWAY_ADMIN_LISTEN": "127.0.0.1:0",
            },
        )
        return self.gateway

    def pids(self) -> list[int]:
        """Of all its processes."""
        return [self.gateway.process.pid, *self.gateway.children()]

    def freeze(self) -> None:
        """All stand still, until they go on or are killed."""
        for pid in self.pids():
            os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        for pid in self.pids():
            os.kill(pid, signal.SIGCONT)

    def kill(self) -> None:
        """All at once, as when the power fails: none sees another end."""
        self.freeze()
        pids = self.pids()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.gateway.process.wait(5)
        eventually(lambda: not any(map(is_running, pids)))

    def leave(self) -> None:
        """The tests are over: nobody waits until it has told everybody."""
        if self.gateway.process.poll() is None:
            self.kill()
        self.gateway.__exit__()

    def answered(self) -> float:
        """How many calls it has answered."""
        text = self.gateway.get("/metrics")[1]
        lines = (each for each in text.splitlines() if each.startswith("gateway_requests_total"))
        return sum(float(line.rpartition(" ")[2]) for line in lines)


@dataclass(frozen=True)
class Stack:
    """Two nodes, the port of the proxy before them, and the addresses of what they share."""

    nodes: tuple[Node, Node]
    port: int
    practice: str
    store: str
    policies: Path

    def children(self) -> set[int]:
        """None that a storm may strike."""
        return set()


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """One that serves; skips the test where a part of it is missing."""
    address, name = server("postgresql"), f"clinic_test_{uuid4().hex[:12]}"
    superuser = address.render_as_string(hide_password=False)
    practice = folder / "practice"
    practice.mkdir()
    for each in ("mapping.yaml", "policies.yaml"):
        shutil.copy(ROOT / "examples" / "postgres_slots" / each, practice)
    with ExitStack() as ends:
        redis = ends.enter_context(redis_server(folder, start=False))
        places = files.Places(
            postgres=f"postgresql://{address.host}:{address.port or 5432}",
            redis=f"127.0.0.1:{redis.port}",
            proxy="127.0.0.1",
            practice=str(practice),
            store=f"{name}_store",
            clinic=name,
        )
        secrets = folder / "secrets"
        files.make(secrets, places)
        redis.start("--include", str(secrets / files.REDIS))
        ends.callback(_drop, superuser, places)
        databases.make(secrets / files.CONFIGURATION, superuser, scale=0.1)
        nodes = _nodes(ends, folder, secrets / files.CONFIGURATION)
        port = free_port()
        ends.enter_context(
            proxy(folder, port, [(node.port, node.operations_port) for node in nodes])
        )
        yield Stack(
            nodes,
            port,
            address.set(database=name).render_as_string(hide_password=False),
            address.set(database=places.store).render_as_string(hide_password=False),
            practice / "policies.yaml",
        )


def _nodes(ends: ExitStack, folder: Path, config: Path) -> tuple[Node, Node]:
    made = []
    for number in (1, 2):
        node = Node(folder / f"node-{number}", config)
        ends.callback(node.leave)
        made.append(node)
    return made[0], made[1]


def fitted(folder: Path, port: int, nodes: Sequence[tuple[int, int]], looks: str) -> Path:
    """The shipped file with this machine's ports, another time between looks, and a look inside."""
    first = "global\n    log stderr"
    changes = {
        first: f"global\n    stats socket {folder}/{STATS}\n    log stderr",
        "bind :8080": f"bind 127.0.0.1:{port}",
        "inter 1s": f"inter {looks}",
    }
    for number, (public, operations) in enumerate(nodes, 1):
        address = f"172.31.254.1{number}:8080"
        # the longer one first: it holds the shorter one
        changes |= {
            f"{address} check port 8081": f"127.0.0.1:{public} check port {operations}",
            address: f"127.0.0.1:{public}",
        }
    return changed(PROXY, folder, changes)


@contextmanager
def proxy(
    folder: Path, port: int, nodes: Sequence[tuple[int, int]], looks: str = "1s"
) -> Iterator[None]:
    """HAProxy before nodes with these ports, public and of operations, once it listens."""
    words = command("haproxy", fitted(folder, port, nodes, looks))
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _listens(port), alive=process)
        yield
    finally:
        process.terminate()
        process.wait(5)


def checks(folder: Path) -> dict[str, tuple[str, str]]:
    """`backend/node` -> whether HAProxy takes it to be up, and what came of its last look."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(folder / STATS))
        asking.sendall(b"show stat\n")
        with asking.makefile() as told:
            rows = [*csv.DictReader(line for line in told if line.strip())]
    return {
        f"{row['# pxname']}/{row['svname']}": (row["status"], row["check_status"])
        for row in rows
        if row["check_status"]
    }


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        time.sleep(0.02)
        return False
    return True


def _drop(superuser: str, places: files.Places) -> None:
    for name in (places.store, places.clinic):
        execute(superuser, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        execute(superuser, f'DROP ROLE IF EXISTS "{name}_gateway"')
