"""How long a reload of the policy holds the event loop, beside a loop that has nothing else to do.

The policy has 300 lines and 200 cases; each reload reads, checks and compiles a changed file and
tries all its cases, as a running gateway does.
"""

import asyncio
import gc
import re
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

from gateway.policy.cases import cases_beside
from gateway.policy.running.keeper import Examiner, Keeper, find
from gateway.settings import shipped_policy

RELOADS = 30
LINES, CASES = 300, 200
STEP = 0.001  # seconds that the probe sleeps


class _Silent:
    """Nobody is told; a policy that is refused ends it."""

    def report(self, event: str, error: BaseException | None = None, /, **details: object) -> None:
        if error is not None or event == "policy_refused":
            raise RuntimeError(details) from error


def write(file: Path, turn: int) -> None:
    """A policy of 300 lines, another one each turn, and 200 cases beside it."""
    text = shipped_policy().read_text(encoding="utf-8")
    if turn % 2:
        text = re.sub(r"(?m)^(clients:\n  BASIC: \[.*)\]$", r"\1, {phone: last(2)}]", text)
    filler = [f"# {turn}: line {number}" for number in range(LINES - text.count("\n"))]
    file.write_text("\n".join([*filler, text]), encoding="utf-8")


def write_cases(file: Path) -> None:
    """The shipped cases of what does not change, again and again."""
    shipped = cases_beside(shipped_policy()).read_text(encoding="utf-8")
    head, _, cases = shipped.partition("\ncases:\n")
    blocks = [each.split("\n\n")[0].rstrip() for each in cases.split("  - name: ")[1:]]
    steady = [each for each in blocks if "get_patient" in each]
    many = [f"  - name: Case {number}, {steady[number % len(steady)]}" for number in range(CASES)]
    cases_beside(file).write_text(f"{head}\ncases:\n" + "\n".join(many) + "\n", encoding="utf-8")


async def probe(lags: list[float], stop: asyncio.Event) -> None:
    """How much later than it should each step comes."""
    while not stop.is_set():
        before = time.perf_counter()
        await asyncio.sleep(STEP)
        lags.append(time.perf_counter() - before - STEP)


async def lag(folder: Path) -> tuple[list[float], list[float], list[float]]:
    """The lags of an idle loop and of one that reloads, and the seconds of each reload."""
    file = folder / "policies.yaml"
    write(file, 0)
    write_cases(file)
    examiner = Examiner(path=file, report=lambda trouble: None)

    async def approved(digest: str) -> bool:
        return True

    keeper = Keeper(
        examiner, _Silent(), lambda: datetime.now(UTC), approve=False, approved=approved, steady=0.0
    )
    found = find(file)
    await keeper.begin(found, examiner.examined(found), None)
    idle: list[float] = []
    busy: list[float] = []
    took = []
    for lags, reloads in ((idle, False), (busy, True)):
        stop = asyncio.Event()
        task = asyncio.create_task(probe(lags, stop))
        for turn in range(1, RELOADS + 1):
            if not reloads:
                await asyncio.sleep(0.05)
                continue
            write(file, turn)
            before, hash_before = time.perf_counter(), keeper.policy().hash
            await keeper.look()
            took.append(time.perf_counter() - before)
            if keeper.policy().hash == hash_before:
                raise RuntimeError("the policy was not reloaded")
        stop.set()
        await task
    return idle, busy, took


def reloads(folder: Path) -> None:
    """Print the figures."""
    gc.freeze()  # as a gateway does before it serves
    idle, busy, took = asyncio.run(lag(folder))
    print(f"reload {LINES} lines with {CASES} cases: median {statistics.median(took) * 1e3:.0f} ms")
    for name, lags in (("idle", idle), ("reloading", busy)):
        ordered = sorted(lags)
        print(
            f"the loop is held, {name:9}: 99 % of steps by less than"
            f" {ordered[int(len(ordered) * 0.99)] * 1e3:.1f} ms, at most {ordered[-1] * 1e3:.1f} ms"
        )
