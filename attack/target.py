"""A gateway in a process of its own, over a sample clinic, as an operator would start it."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

from adapters.base import Query
from adapters.sample import MAPPING, create
from gateway.app import build
from gateway.contract.access import AccessLevel, Permission
from gateway.keys.key import Key
from gateway.settings import load_settings

# Where those come from who are counted by no address, as if a proxy stood before them.
PROXY = "127.0.0.1"
NO_LIMIT = 1_000_000_000
START = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A running gateway. `secret` is an honest partner's, `stolen` that of an attacker.

    `path` is one client, which costs the practice system a query. `seconds` and `connections` say
    how long and how many an attack may be.
    """

    port: int
    operations_port: int
    pid: int
    secret: str
    stolen: str
    path: str
    log: Path
    seconds: float
    connections: int

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def memory(self) -> float:
        """MB that the process has resident."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise LookupError("the process has no memory: it has ended")

    def open_connections(self) -> int:
        """How many connections it holds on its public listener."""
        address = f"http://127.0.0.1:{self.operations_port}/metrics"
        with urlopen(address, timeout=10) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("gateway_connections "):
                    return int(float(line.split()[1]))
        raise LookupError("/metrics does not tell of connections")

    def logged(self) -> int:
        """Lines in its event log."""
        return self.log.read_bytes().count(b"\n")


@contextmanager
def started(seconds: float, connections: int) -> Iterator[Target]:
    """A gateway that serves until the end of the block; everything of it is gone then."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        ports = free_port(), free_port()
        create(folder / "clinic.db", today=datetime.now(UTC).date())
        (folder / "gateway.yaml").write_text(
            f"listen: 127.0.0.1:{ports[0]}\noperations_listen: 127.0.0.1:{ports[1]}\n"
            "admin_listen: 127.0.0.1:0\n"
            f"state: state\nshutdown_delay: 0\ntrusted_proxies: {PROXY}\n"
            f"backend:\n  url: sqlite:///clinic.db\n  mapping: {MAPPING}\n"
        )
        secret, stolen, client = asyncio.run(_begun(folder / "gateway.yaml"))
        with _serving(folder) as process:
            _await_port(ports[0], process)
            yield Target(
                port=ports[0],
                operations_port=ports[1],
                pid=process.pid,
                secret=secret,
                stolen=stolen,
                path=f"/api/v1/clients/{client}",
                log=folder / "events.jsonl",
                seconds=seconds,
                connections=connections,
            )


async def _begun(config: Path) -> tuple[str, str, str]:
    """Two secrets, and the id of a client."""
    gateway = await build(load_settings(config, {}))
    try:
        now = datetime.now(UTC)
        secrets = [
            await gateway.keys.add(
                Key(
                    name=name,
                    permissions=frozenset(Permission),
                    level=AccessLevel.FULL,
                    limit=NO_LIMIT,
                    created_at=now,
                )
            )
            for name in ("honest", "stolen")
        ]
        page = await gateway.adapter.read_many(Query(resource="clients", now=now, limit=1))
        return secrets[0], secrets[1], page.records[0]["id"]
    finally:
        await gateway.aclose()


@contextmanager
def _serving(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    with (folder / "events.jsonl").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "serve", "--config", str(folder / "gateway.yaml")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environ,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(START)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_port(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline or process.poll() is not None:
                raise
            time.sleep(0.02)
        else:
            return


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
