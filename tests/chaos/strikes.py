"""What strikes the gateway's processes: they are killed, stopped for a while, ended, replaced.

A kill counts where a worker died of it, which the parent says.
"""

import asyncio
import json
import os
import random
import signal
from collections import Counter
from contextlib import suppress

from tests.processes.gateways import Several

FIRST = 0.2
PAUSES = (0.4, 1.6)
STOPPED_FOR = (0.2, 3.0)
KINDS = {"kill": 6, "stop": 2, "end": 2, "roll": 1}


class Strikes:
    """Strikes one process after the other, chosen by chance."""

    def __init__(self, several: Several, seed: int) -> None:
        self._several = several
        self._chance = random.Random(seed)
        self._killed: set[int] = set()
        self.made: Counter[str] = Counter()
        self.kills = 0

    async def go_on(self, over: asyncio.Event) -> None:
        """Until it is over; the first is the kill of a worker."""
        workers = [*(await asyncio.to_thread(self._several.workers)).values()]
        await asyncio.sleep(FIRST)
        self._kill(self._chance.choice(workers))
        while not over.is_set() and not self.kills:
            await asyncio.sleep(FIRST)
            self._count()
        while not over.is_set():
            await asyncio.sleep(self._chance.uniform(*PAUSES))
            await self._strike()
            self._count()

    async def _strike(self) -> None:
        pids = sorted(self._several.children())
        if not pids:
            return
        pid = self._chance.choice(pids)
        [kind] = self._chance.choices([*KINDS], [*KINDS.values()])
        with suppress(ProcessLookupError):
            if kind == "kill":
                self._kill(pid)
            elif kind == "end":
                os.kill(pid, signal.SIGTERM)
            elif kind == "roll":
                self._several.process.send_signal(signal.SIGUSR2)
            else:
                await self._stop(pid)
            self.made[kind] += 1

    def _kill(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self._killed.add(pid)

    async def _stop(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(self._chance.uniform(*STOPPED_FOR))
        os.kill(pid, signal.SIGCONT)

    def _count(self) -> None:
        with suppress(json.JSONDecodeError):  # a line that is just being written
            dead = {
                each["pid"]
                for each in self._several.said()
                if each.get("ended") == "by signal SIGKILL" and each["process"].startswith("worker")
            }
            self.kills = len(dead & self._killed)
