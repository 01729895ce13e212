"""`python -m bench.peers`: check the gateway and its peers, measure them, print the tables.

Names of scenarios choose these alone. What is missing on this machine is told, with how to get it,
and the rest is measured. Exits with 1 where a target does not do its work: that one is left out.
"""

import argparse
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.peers.check import faults_of
from bench.peers.farm import CORES, LOAD_CORE, Farm, on_core
from bench.peers.installed import missing
from bench.peers.rounds import one_round
from bench.peers.samples import Round
from bench.peers.scenarios import SCENARIOS
from bench.peers.tables import details, summary
from bench.peers.targets import Target, start_all, start_backend
from bench.processes import memory

MOST_BUSY = 0.08  # of all cores, while nothing is measured
LOOK = 2.0  # seconds


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("scenario", nargs="*", help=f"some of {', '.join(SCENARIOS)}; else all")
    parser.add_argument("--check", action="store_true", help="only look whether each does its work")
    parser.add_argument("--runs", type=int, default=1, help="each with processes of its own")
    parser.add_argument("--rounds", type=int, default=5, help="of each run")
    parser.add_argument("--seconds", type=int, default=3, help="of each sample")
    parser.add_argument("--force", action="store_true", help="measure on a busy machine too")
    parsed = parser.parse_args()
    if unknown := set(parsed.scenario) - set(SCENARIOS):
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    return parsed


def busy() -> float:
    """Returns which share of all cores is busy, seen over some seconds."""
    before = _jiffies()
    time.sleep(LOOK)
    work, idle = (later - first for later, first in zip(_jiffies(), before, strict=True))
    return work / (work + idle)


def _jiffies() -> tuple[int, int]:
    first = Path("/proc/stat").read_text("ascii").partition("\n")[0]
    values = [int(each) for each in first.split()[1:9]]
    idle = values[3] + values[4]
    return sum(values) - idle, idle


def measure(
    names: Sequence[str], targets: Sequence[Target], wanted: argparse.Namespace, folder: Path
) -> Iterator[tuple[str, Round]]:
    """Yields the rounds of each scenario, of which it tells the rates as they come."""
    for name in names:
        for number in range(wanted.rounds):
            found = one_round(SCENARIOS[name], targets, wanted.seconds, folder)
            rates = "; ".join(f"{each} {one.rate:,.0f}" for each, one in found.items())
            tell(f"{name} {number + 1} of {wanted.rounds}: {rates}")
            yield name, found


def print_tables(results: Mapping[str, Sequence[Round]], held: Mapping[str, str]) -> None:
    """The spread of each scenario, then what goes into the README."""
    for name, rounds in results.items():
        print(f"\n### {name}\n", *details(rounds), sep="\n")
    print("\n### For the README\n", *summary(results, held), sep="\n")


def megabytes(target: Target) -> list[str]:
    """Returns what each of its processes holds, with all that came from it."""
    pids = dict.fromkeys(each.pid for each in target.addresses.values())
    return [f"{sum(each.whole for each in memory(pid))} MB" for pid in pids]


def main() -> int:
    """Everything; returns the exit status."""
    wanted, without = options(), missing()
    tell(*(f"{name} is missing: {how}" for name, how in without.items()))
    if "uvloop" in without or len(CORES) < 2:
        tell("nothing to compare: the bare handler needs uvloop, a target a core of its own")
        return 2
    if not (wanted.check or wanted.force) and (share := busy()) > MOST_BUSY:
        tell(f"the machine is {share:.0%} busy, which would mislead: wait, or say --force")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    results: defaultdict[str, list[Round]] = defaultdict(list)
    held: dict[str, str] = {}
    faults: list[str] = []
    for _ in range(wanted.runs):
        faults += one_run(wanted, without, results, held)
    if not wanted.check:
        print_tables(results, held)
    return 1 if faults else 0


def one_run(
    wanted: argparse.Namespace,
    without: Collection[str],
    results: defaultdict[str, list[Round]],
    held: dict[str, str],
) -> list[str]:
    """Adds rounds and memory of targets that it starts; returns what some of these do not do."""
    with TemporaryDirectory() as folder, ExitStack() as stack, on_core(LOAD_CORE):
        farm = Farm(Path(folder), stack)
        backend = start_backend(farm)
        targets, faults = start_all(farm, backend.addresses["uncached"].port, without)
        found = {each.name: faults_of(each) for each in targets}
        targets = [each for each in targets if not found[each.name]]
        faults += [fault for each in found.values() for fault in each]
        tell(*(f"{each.name}: does its work" for each in targets), *faults)
        if not wanted.check:
            able = [name for name, each in SCENARIOS.items() if each.rate or "wrk" not in without]
            chosen = [name for name in able if name in (wanted.scenario or able)]
            for name, one in measure(chosen, [backend, *targets], wanted, farm.folder):
                results[name].append(one)
            held |= {each.name: " and ".join(megabytes(each)) for each in targets}
    return faults


def tell(*lines: str) -> None:
    """What is no result, beside the tables."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
