"""A Redis of a test's own, which may be stopped, killed and begun again with nothing in it."""

import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen

import pytest


class RedisServer:
    """Listens on a port of its own, keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: Popen[bytes] | None = None
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"

    def start(self, *options: str) -> None:
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--save", "", "--appendonly", "no", "--dir", str(self._folder), *options]
        self._process = Popen(command, stdout=DEVNULL, stderr=DEVNULL)
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            else:
                return

    def hang(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _signal(self, number: int) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)


@contextmanager
def redis_server(folder: Path, *options: str, start: bool = True) -> Iterator[RedisServer]:
    """One that runs, or that the test starts; skips the test where no Redis is installed."""
    if shutil.which("redis-server") is None:
        pytest.skip("install redis-server")
    server = RedisServer(folder)
    if start:
        server.start(*options)
    try:
        yield server
    finally:
        server.kill()


def shared_redis() -> str:
    """The address of the Redis that the environment names; skips the test where it names none."""
    url = os.environ.get("TEST_REDIS_URL")
    if not url:
        pytest.skip("set TEST_REDIS_URL=redis://127.0.0.1:6379 (tests use names of their own)")
    return url
