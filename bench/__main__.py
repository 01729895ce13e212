"""`python -m bench`: CPU per request of the gateway against a bare aiohttp handler, in one run.

`python -m bench shares` prints what each thing costs that runs beside answering, and `python -m
bench workers` what several processes do, `python -m bench panel` what the panel's pages take;
without a word there is all but those shares.

Every server runs the whole time; the rounds go from one to the next, so that a slow spell of the
machine meets all of them. CPU seconds are the servers' own, the client's do not count.
"""

import os
import statistics
import sys
import time
import timeit
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.load import Load
from bench.panel import panel
from bench.processes import memory
from bench.ready import CLIENT
from bench.reloads import reloads
from bench.servers import Server, measure
from bench.shares import shares
from bench.workers import workers
from bench.world import CONFIGS, World
from gateway.contract.access import LEVELS

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
REQUESTS = int(os.environ.get("BENCH_REQUESTS", "6000"))


def road(world: World) -> None:
    """The table of CPU per request."""
    with ExitStack() as stack:
        bare_port = world.free_port()
        servers = {"bare": stack.enter_context(Server("bare", str(bare_port), bare_port))}
        for name in CONFIGS:
            config, port = world.config(name)
            servers[name] = stack.enter_context(Server("gateway", str(config), port))
        cases = {
            "(a) a bare aiohttp handler": ("bare", world.client_path("ready"), REQUESTS),
            "(b) the whole road, a ready record": ("ready", world.client_path("ready"), REQUESTS),
            "(b) the same with 100,000 keys": ("many", world.client_path("ready"), REQUESTS),
            "(b) with 4 masks, a row condition": ("masked", world.client_path("ready"), REQUESTS),
            "(c) the whole road, the sample clinic": (
                "sample",
                world.client_path("sample"),
                REQUESTS // 3,
            ),
            "(c) a list of 50 from it": (
                "sample",
                "/api/v1/clients?limit=50",
                REQUESTS // 10,
            ),
            "(d) a list of 50 records as in (b)": (
                "ready",
                "/api/v1/clients?limit=50",
                REQUESTS // 3,
            ),
            "(d) with 4 masks, a row condition": (
                "masked",
                "/api/v1/clients?limit=50",
                REQUESTS // 3,
            ),
        }
        loads = {
            name: Load(servers[server].port, [path], world.secret(server))
            for name, (server, path, _) in cases.items()
        }
        found: dict[str, list[float]] = {name: [] for name in cases}
        for turn in range(ROUNDS + 1):
            for name, (server, _, requests) in cases.items():
                figure = measure(servers[server], loads[name], requests)
                if turn:  # the first round warms up
                    found[name].append(figure)
        for load in loads.values():
            load.close()
        held = {name: next(memory(each.process.pid)).whole for name, each in servers.items()}
    show(found)
    print("memory after that:", ", ".join(f"{name} {size} MB" for name, size in held.items()))


def show(found: dict[str, list[float]]) -> None:
    """Medians, and the ratio to (a) as the median of the rounds' own ratios."""
    reference = next(iter(found.values()))
    print(f"{'CPU per request':38} {'median':>9} {'least':>9} {'most':>9} {'against (a)':>12}")
    for name, figures in found.items():
        ratio = statistics.median(a / b for a, b in zip(figures, reference, strict=True))
        print(
            f"{name:38} {statistics.median(figures):6.1f} µs {min(figures):6.1f} µs"
            f" {max(figures):6.1f} µs {ratio:12.2f}"
        )
    print("against (a): the median of each round's own ratio, not the quotient of the medians")


def start_up(world: World) -> None:
    """Seconds from the start of the process to the first answered request."""
    seconds = []
    for _ in range(5):
        config, port = world.config("sample")
        with Server("gateway", str(config), port) as server:
            Load(port, [world.client_path("sample")], world.secret("sample")).run(1)
            seconds.append(time.perf_counter() - server.began)
    print(f"start-up to the first answer: median {statistics.median(seconds):.2f} s")


def redaction(world: World) -> None:
    """Microseconds to redact and encode a record of one kilobyte."""
    for name, level in (*(("ready", level) for level in LEVELS), ("masked", LEVELS[-1])):
        redact = world.policy(name).redactor("clients", level).one
        turns = 20_000
        best = statistics.median(timeit.repeat(partial(redact, CLIENT), number=turns, repeat=7))
        how = "with 4 masks" if name == "masked" else f"at {level}"
        print(f"redact a record of 1 KB {how:12}: {best / turns * 1e6:.2f} µs")


def main() -> None:
    """Everything, or one part, in an empty folder."""
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        match sys.argv[1:]:
            case ["shares"]:
                shares(world, ROUNDS, REQUESTS // 3)
            case ["workers"]:
                workers(world, ROUNDS * 6, REQUESTS // 4)
            case ["panel"]:
                panel(world, Path(folder))
            case []:
                road(world)
                shares(world, ROUNDS, REQUESTS // 3, each=False)
                workers(world, ROUNDS * 6, REQUESTS // 4)
                start_up(world)
                redaction(world)
                reloads(Path(folder))
                panel(world, Path(folder))
            case _:
                sys.exit("python -m bench [shares | workers | panel]")


if __name__ == "__main__":
    main()
