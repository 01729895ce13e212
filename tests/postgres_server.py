"""A PostgreSQL of a test's own, which may be stopped and go on again."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.wire.proxies import free_port

ACCOUNT = "postgres"
# No test pulls the plug, and few connections take little memory.
OPTIONS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=60"


class PostgresServer:
    """A cluster in a folder of its own, on a free port of this machine."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._data = folder / "data"
        self._programs = programs
        self.port = free_port()
        self.url = f"postgresql://{ACCOUNT}@127.0.0.1:{self.port}/postgres"
        words = ["--username", ACCOUNT, "--auth", "trust", "--encoding", "UTF8", "--no-sync"]
        self._run("initdb", "--pgdata", str(self._data), "--no-locale", *words)
        listening = f"-h 127.0.0.1 -p {self.port} -k {folder}"
        self._control(
            "start", "--wait", "--log", str(folder / "log"), "-o", listening, "-o", OPTIONS
        )

    def hang(self) -> None:
        """Every process stands still: connections are taken, and nothing is answered."""
        for pid in self._pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """They run again."""
        for pid in self._pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        """They are gone."""
        self.go_on()
        self._control("stop", "--mode", "immediate")

    def _pids(self) -> list[int]:
        """The postmaster, which must not start others meanwhile, and all that it has started."""
        first = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]

    def _control(self, *words: str) -> None:
        self._run("pg_ctl", "--pgdata", str(self._data), "--silent", *words)

    def _run(self, program: str, *words: str) -> None:
        account: dict[str, Any] = {"user": ACCOUNT} if os.getuid() == 0 else {}
        command = [str(self._programs / program), *words]
        done = subprocess.run(
            command, cwd=self._data.parent, capture_output=True, text=True, check=False, **account
        )
        assert done.returncode == 0, done.stderr


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """One that runs; skips the test where PostgreSQL's programs are not installed."""
    found = shutil.which("initdb") or max(
        map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), default=None
    )
    if found is None:
        pytest.skip("install postgresql")
    # not in pytest's own folder, into which the server's account may not look
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.getuid() == 0:
            shutil.chown(folder, ACCOUNT)
        server = PostgresServer(folder, Path(found).parent)
        try:
            yield server
        finally:
            server.end()
