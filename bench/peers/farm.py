"""Processes that are started for a measurement, each on its core, and ended after it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

PATIENCE = 30.0  # seconds until it listens
CORES = sorted(os.sched_getaffinity(0))
TARGET_CORE, LOAD_CORE = CORES[0], CORES[-1]


class Address(NamedTuple):
    """Where something answers, and the process that does."""

    port: int
    prefix: str
    pid: int


class Farm:
    """Starts processes that answer, and leaves their end to the stack."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack

    def start(self, name: str, port: int, words: Sequence[str], core: int = TARGET_CORE) -> Address:
        """Returns where it answers once it listens; RuntimeError with its last words if not."""
        log = self.folder / f"{name}.log"
        return Address(port, "", self._stack.enter_context(_started(words, port, log, core)))

    def module(self, name: str, core: int = TARGET_CORE) -> Address:
        """Starts a module of this package that takes its port as an argument."""
        port = free_port()
        return self.start(
            name, port, [sys.executable, "-m", f"bench.peers.{name}", f"{port}"], core
        )


@contextmanager
def _started(words: Sequence[str], port: int, log: Path, core: int) -> Iterator[int]:
    with log.open("wb") as out, on_core(core):
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    try:
        _wait_until_it_listens(process, port, log)
        yield process.pid
    finally:
        _end(process)


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Meanwhile this thread, and what it starts, runs on that core."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    said = log.read_text(errors="replace")[-500:].strip()
    raise RuntimeError(f"{log.stem} does not answer on port {port}: {said}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it in its own way, and after ten seconds with all that it started."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    """Returns a port that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
