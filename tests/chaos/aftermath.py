"""What a storm leaves: in the diary, in the ledger, in the audit, on stderr, and in memory."""

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from tests.chaos.history import Row
from tests.command import clinic_gateway
from tests.processes.gateways import Several

# Seconds after which nothing may be under way or unknown any more.
QUIET_IN = 60.0
# Seconds by which what the figures say of the ledger may be old.
FIGURES_AGE = 5.5
# What stands on stderr as an error, and may.
EXPECTED = {"call failed, 503", "call failed, 504"}
TWICE = "a process that had been taken for dead made an appointment beside another one"
UNDER_WAY = ("intended", "sent", "unknown", "unwritten")
# Megabytes by which the parent may have grown, and files that it may have open beside those before.
GROWTH, FILES = 10.0, 4


@dataclass(frozen=True, slots=True)
class Held:
    """What the parent holds: megabytes, and open files; and the largest child's megabytes."""

    parent: float
    files: int
    child: float


@dataclass(frozen=True, kw_only=True)
class Aftermath:
    """All that there is to see once it is calm; `quiet_after` seconds in the calm, or never."""

    rows: Collection[Row]
    strays: int
    said: Mapping[str, int]
    errors: Mapping[str, int]
    ledger: Mapping[str, float]
    quiet_after: float | None
    longest_unknown: float
    before: Held
    after: Held
    audit: str
    sound: bool

    def faults(self) -> list[str]:
        """What must not be, as sentences."""
        return [
            *(f"{n} x {each} on stderr" for each, n in self.errors.items() if each not in EXPECTED),
            *([f"said: {TWICE}"] if TWICE in self.said else []),
            *self._of_ledger(),
            *([] if self.sound else [f"the audit is broken: {self.audit}"]),
            *self._of_parent(),
        ]

    def _of_ledger(self) -> list[str]:
        if not self.ledger:  # nobody waited for it
            return []
        if self.quiet_after is None:
            return [f"the ledger does not come to rest: {dict(self.ledger)}"]
        if self.ledger["done"] != len(self.rows):
            return [f"{len(self.rows)} appointments, of which the ledger has {self.ledger['done']}"]
        return []

    def _of_parent(self) -> list[str]:
        found = []
        if self.after.parent - self.before.parent > GROWTH:
            found.append(f"the parent grew from {self.before.parent} to {self.after.parent} MB")
        if self.after.files - self.before.files > FILES:
            found.append(f"the parent had {self.before.files} files open, now {self.after.files}")
        return found

    def __str__(self) -> str:
        quiet = "never" if self.quiet_after is None else f"after {self.quiet_after:.0f} s"
        held = (
            f"parent {self.before.parent:.0f} -> {self.after.parent:.0f} MB,"
            f" {self.before.files} -> {self.after.files} files;"
            f" largest child {self.before.child:.0f} -> {self.after.child:.0f} MB"
        )
        ledger = ", ".join(f"{count:.0f} {state}" for state, count in self.ledger.items() if count)
        said = "\n".join(f"    {n} x {each}" for each, n in sorted(self.said.items()))
        return (
            f"  at rest {quiet}: {ledger}\n"
            f"  unknown for {self.longest_unknown:.0f} s at the most\n  {held}\n"
            f"  audit: {self.audit}\n{said}"
        )


def held(several: Several) -> Held:
    """As it is now."""
    children = [_megabytes(each) for each in several.children()]
    files = len([*Path(f"/proc/{several.process.pid}/fd").iterdir()])
    return Held(_megabytes(several.process.pid), files, max(children, default=0.0))


def _megabytes(pid: int) -> float:
    """What is its own: the rest of what a child has is shared with its parent."""
    with suppress(OSError):
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return sum(map(int, re.findall(r"Private_\w+:\s+(\d+)", rollup))) / 1024
    return 0.0


async def at_rest(several: Several, workers: int) -> tuple[Mapping[str, float], float | None]:
    """The ledger once all workers are there and nothing is under way, and after how long."""
    began = time.monotonic()
    ledger: Mapping[str, float] = dict.fromkeys(UNDER_WAY, math.nan)
    while (passed := time.monotonic() - began) < QUIET_IN:
        with suppress(OSError, HTTPException, KeyError):  # the operations process may just be anew
            ledger = await asyncio.to_thread(_ledger, several)
            there = len(await asyncio.to_thread(several.workers))
            is_quiet = there >= workers and not any(ledger[each] for each in UNDER_WAY)
            if is_quiet and passed >= FIGURES_AGE:
                return ledger, passed
        await asyncio.sleep(0.5)
    return ledger, None


async def longest_unknown(several: Several, over: asyncio.Event) -> float:
    """For how many seconds a booking's outcome was not known at the most, until it is over."""
    longest = 0.0
    while not over.is_set():
        with suppress(OSError, HTTPException):
            text = (await asyncio.to_thread(several.get, "/metrics"))[1]
            name = r"^gateway_ledger_oldest_unknown_seconds (\S+)$"
            found = map(float, re.findall(name, str(text), re.MULTILINE))
            longest = max([longest, *found])
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), 2.0)
    return longest


def _ledger(several: Several) -> Mapping[str, float]:
    """The figures' own, which are up to FIGURES_AGE old."""
    text = several.get("/metrics")[1]
    found = re.findall(r'^gateway_ledger_bookings\{state="(\w+)"\} (\S+)$', text, re.MULTILINE)
    waiting = re.findall(r"^gateway_ledger_unwritten (\S+)$", text, re.MULTILINE)
    if not waiting:
        raise KeyError("no worker has said anything yet")
    return {state: float(count) for state, count in found} | {"unwritten": float(waiting[0])}


def errors(several: Several) -> Mapping[str, int]:
    """What was said as an error, but for what waits for the store.

    A process that is stopped in the middle of a transaction keeps all others from an SQLite file.
    """
    return Counter(
        f"{each['event']}, {each['answered']}" if "answered" in each else each["event"]
        for each in several.said()
        if each["level"] == "error" and ("answered" in each or each.get("error") != "StoreError")
    )


def audited(several: Several) -> tuple[str, bool]:
    """What the command says of all chains, and whether that is good."""
    done = clinic_gateway("audit", "verify", "--config", str(several.config))
    return (done.stdout + done.stderr).strip().splitlines()[-1], done.returncode == 0
