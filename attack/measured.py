"""Measures a gateway while an attack goes on, and until nothing is left of it."""

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attack.base import GROWTH, LOGGED, SLOWEST, Row
from attack.target import Target
from gateway.web.connection import KEEP_ALIVE

RECOVERY = KEEP_ALIVE + 1.0
# Seconds of honest calls before an attack: what they use is no growth.
WARM = 1.0
EVERY = 0.1
# Connections of the honest partner, which remain.
HONEST = 2
# Fewer honest calls in an attack's time say nothing, and show that they hung.
FEWEST = 20

# What an attack did that the row should tell.
Strike = Callable[[Target], Iterator[str]]


class Honest:
    """The honest partner in a process of its own, and what it said so far."""

    def __init__(self, target: Target) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "attack.honest", str(target.port), target.path, target.secret],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                self.lines.append(line.strip())

    def end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(30)
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()


class Memory:
    """The most that the process had resident, looked at often."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.before = self.most = target.memory()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._ended.wait(EVERY):
            self.most = max(self.most, self._target.memory())

    def end(self) -> float:
        """MB that it grew by at most."""
        self._ended.set()
        self._thread.join()
        return self.most - self.before


def struck(name: str, target: Target, strike: Strike) -> Row:
    """The row of an attack that holds connections.

    `strike` yields once its pressure has ended, with a note; what it still holds it lets go of
    afterwards. Recovery is counted from that moment until only honest connections are left.
    """
    honest = Honest(target)
    time.sleep(WARM)
    memory, logged = Memory(target), target.logged()
    before = len(honest.lines)
    try:
        with contextmanager(strike)(target) as note:
            recovery = _recovery(target)
    finally:
        grown = memory.end()
        honest.end()
    calls = honest.lines[before:]
    times = sorted(float(each) for each in calls if not each.startswith("failed"))
    failures = [*_bounds(calls, times, grown, recovery)]
    if target.logged() - logged > LOGGED:
        failures.append(f"{target.logged() - logged} lines in the log")
    return Row(
        attack=name,
        p50=statistics.median(times) if times else None,
        p99=percentile(times, 0.99) if times else None,
        grown=grown,
        recovery=recovery,
        failures=tuple(failures),
        note=f"{note}, {len(calls)} honest calls",
    )


def _bounds(
    calls: list[str], times: list[float], grown: float, recovery: float | None
) -> Iterator[str]:
    failed = [each for each in calls if each.startswith("failed")]
    if failed:
        yield f"{len(failed)} honest calls failed, first: {failed[0]}"
    if len(times) < FEWEST:
        yield f"only {len(times)} honest calls were answered"
    elif percentile(times, 0.99) >= SLOWEST:
        yield f"p99 not below {SLOWEST:.0f} ms"
    if grown >= GROWTH:
        yield f"grew by {GROWTH:.0f} MB or more"
    if recovery is None:
        yield f"no recovery within {RECOVERY:.0f} s"


def _recovery(target: Target) -> float | None:
    began = time.monotonic()
    while (took := time.monotonic() - began) <= RECOVERY:
        if target.open_connections() <= HONEST:
            return took
        time.sleep(EVERY)
    return None


def percentile(times: list[float], part: float) -> float:
    """Of sorted times, the least that so many are not above."""
    return times[min(len(times) - 1, int(len(times) * part))]
