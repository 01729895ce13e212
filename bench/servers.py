"""A server process under measurement, and the CPU that it uses."""

import socket
import subprocess
import sys
import time
from types import TracebackType

from bench.load import Load

PATIENCE = 30.0  # seconds


class Server:
    """One server process and the CPU seconds that it has used."""

    def __init__(self, kind: str, argument: str, port: int, *more: str) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.served", kind, argument, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.port = port

    def __enter__(self) -> "Server":
        try:
            self._wait_until_it_listens()
        except OSError:
            self._end()
            raise
        return self

    def _wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.005)
            else:
                return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def cpu(self) -> float:
        """CPU seconds so far."""
        return self._ask("")

    def flush(self) -> float:
        """The same, once the lines of all calls are on disk: as each second does it."""
        return self._ask("flush")

    def settle(self) -> float:
        """The same, once all is done that is done now and then: heads, the index, the usage."""
        return self._ask("settle")

    def _ask(self, wish: str) -> float:
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("the server was started without pipes")
        self.process.stdin.write(f"{wish}\n")
        self.process.stdin.flush()
        if not (said := self.process.stdout.readline()):
            raise RuntimeError(f"the server ended when it was asked to {wish or 'answer'}")
        return float(said)


def measure(server: Server, load: Load, requests: int) -> float:
    """Microseconds of the server's CPU per request."""
    before = server.cpu()
    load.run(requests)
    return (server.cpu() - before) / requests * 1e6
