"""A gateway whose log nobody reads: it goes on, and what is lost of the log is said later."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from gateway.events import event_table
from tests.conftest import Template
from tests.processes.gateways import copy_of, eventually, get

# So few lines wait that some are lost long before a test's patience is at its end.
FEW_WAIT = "from gateway.observe import event_log; event_log.MOST_WAITING = 50"
MAIN = "from gateway.cli import main; main()"
TIMES = 300
"""How often each process says of every task where it waits, some kilobytes; a pipe holds 64."""
LOST = event_table().event["event_lines_lost"].text


class Log:
    """The events of a gateway, read on demand."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.events: list[dict[str, Any]] = []

    def until(self, event: str) -> dict[str, Any]:
        """Read on until it comes."""
        while line := self._stream.readline():
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == event:
                return self.events[-1]
        raise AssertionError("it has ended")

    def to_the_end(self) -> None:
        """From now on whatever comes is read."""
        threading.Thread(target=lambda: self.events.extend(map(json.loads, self._stream))).start()

    def said(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.events if each["event"] == event]


@contextmanager
def serving(state: Path, workers: int) -> Iterator[tuple[subprocess.Popen[bytes], Log]]:
    """A gateway whose stderr is a pipe."""
    config = state / "gateway.yaml"
    config.write_text(config.read_text() + f"workers: {workers}\n")
    command = [sys.executable, "-c", f"{FEW_WAIT}\n{MAIN}", "serve", "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            yield process, Log(process.stderr)
        finally:
            process.kill()


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.long), 2])
def test_a_gateway_whose_log_nobody_reads_goes_on(
    template: Template, tmp_path: Path, workers: int
) -> None:
    with serving(copy_of(template.folder, tmp_path / "state"), workers) as (process, log):
        began = log.until("serving")
        for _ in range(TIMES):
            process.send_signal(signal.SIGQUIT)
            time.sleep(0.01)
        for _ in range(20):
            assert get(began["port"], "/api/v1/clients")[0] == 401
        status, report = get(began["operations_port"], "/readyz")
        assert status == 200, report
        each = report["parts"].get("workers", {"each": ()})["each"]
        assert [told["ready"] for told in each] == [True] * (len(each) and workers)
        log.to_the_end()
        assert eventually(lambda: log.said(LOST))[0]["lines"] > 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
