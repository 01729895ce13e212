"""What strikes the gateway's processes: they are killed, stopped for a while, ended, replaced.

A kill counts where a worker died of it, which the parent says.
"""

import asyncio
import math
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress

from tests.processes.gateways import Several

FIRST = 0.2
PAUSES = (0.4, 1.6)
STOPPED_FOR = (0.2, 3.0)
KINDS = {"kill": 6, "stop": 2, "end": 2, "roll": 1}
# Seconds in which a kill must have ended a worker: longer than the gateway takes to replace any.
KILLS_WITHIN = 150.0


class Strikes:
    """Strikes one process after the other, chosen by chance."""

    def __init__(self, several: Several, seed: int) -> None:
        self._several = several
        self._chance = random.Random(seed)
        self._killed: set[int] = set()
        self._last = math.inf
        self.made: Counter[str] = Counter()
        self.kills = 0

    async def go_on(self, over: asyncio.Event) -> None:
        """Until it is over; the first is the kill of a worker.

        AssertionError where none dies for so long: then the storm would have no end.
        """
        workers = [*(await asyncio.to_thread(self._several.workers)).values()]
        self._last = time.monotonic()
        await asyncio.sleep(FIRST)
        self.kill(self._chance.choice(workers))
        while not over.is_set() and not self.kills:
            await asyncio.sleep(FIRST)
            self.count()
        while not over.is_set():
            await asyncio.sleep(self._chance.uniform(*PAUSES))
            await self._strike()
            self.count()

    async def _strike(self) -> None:
        pids = sorted(self._several.children())
        if not pids:
            return
        pid = self._chance.choice(pids)
        [kind] = self._chance.choices([*KINDS], [*KINDS.values()])
        with suppress(ProcessLookupError):
            if kind == "kill":
                self.kill(pid)
            elif kind == "end":
                os.kill(pid, signal.SIGTERM)
            elif kind == "roll":
                self._several.process.send_signal(signal.SIGUSR2)
            else:
                await self._stop(pid)
            self.made[kind] += 1

    def kill(self, pid: int) -> None:
        """Kill a process, unless it has ended."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self._killed.add(pid)

    async def _stop(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(self._chance.uniform(*STOPPED_FOR))
        os.kill(pid, signal.SIGCONT)

    def count(self) -> None:
        """Those that died of it; AssertionError where that goes on for too long without any."""
        dead = {
            each["pid"]
            for each in self._several.said()
            if each.get("ended") == "by signal SIGKILL" and each["process"].startswith("worker")
        }
        if len(dead & self._killed) > self.kills:
            self.kills, self._last = len(dead & self._killed), time.monotonic()
        silent, code = time.monotonic() - self._last, self._several.process.poll()
        if silent > KILLS_WITHIN or code is not None:
            raise AssertionError(
                f"no worker has died of a kill for {silent:.0f} s: the gateway"
                f" {'lives' if code is None else f'has ended with {code}'}, its children are"
                f" {self._several.children()}, and it said {self._several.said()[-20:]}"
            )
