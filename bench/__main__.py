"""`python -m bench`: CPU per request of the gateway against a bare aiohttp handler, in one run.

Every server runs the whole time; the rounds go from one to the next, so that a slow spell of the
machine meets all of them. CPU seconds are the servers' own, the client's do not count.
"""

import os
import socket
import statistics
import subprocess
import sys
import time
import timeit
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from bench.load import Load
from bench.ready import CLIENT
from bench.reloads import reloads
from bench.world import CONFIGS, World
from gateway.contract.access import LEVELS

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "7"))
# Seconds in which all that a call leaves behind is written: the audit, its head and its index.
SETTLED = 3.0
REQUESTS = int(os.environ.get("BENCH_REQUESTS", "6000"))


class Server:
    """One server process and the CPU seconds that it has used."""

    def __init__(self, kind: str, argument: str, port: int) -> None:
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.served", kind, argument],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.port = port

    def __enter__(self) -> "Server":
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.005)
            else:
                return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(30)

    def cpu(self) -> float:
        """CPU seconds so far."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the server was started without pipes")
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def measure(server: Server, load: Load, requests: int) -> float:
    """Microseconds of the server's CPU per request."""
    before = server.cpu()
    load.run(requests)
    return (server.cpu() - before) / requests * 1e6


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
            name: Load(servers[server].port, path, world.secret(server))
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
    show(found)


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


def audit(world: World) -> None:
    """What the audit costs a call, its writing, its heads and its index among it."""
    with ExitStack() as stack:
        servers = {}
        for kind in ("audited", "unaudited"):
            config, port = world.config(kind)
            servers[kind] = stack.enter_context(Server(kind, str(config), port))
        found: dict[str, list[float]] = {kind: [] for kind in servers}
        for turn in range(ROUNDS + 1):
            for kind, server in servers.items():
                # connections of its own: they would be closed while the other server is measured
                load = Load(server.port, world.client_path(kind), world.secret(kind))
                figure = measure_settled(server, load, 5 * REQUESTS)
                load.close()
                if turn:
                    found[kind].append(figure)
    shares = [a / b - 1 for a, b in zip(found["audited"], found["unaudited"], strict=True)]
    medians = [statistics.median(each) for each in found.values()]
    print(
        f"(b) with the audit {medians[0]:.1f} µs, without {medians[1]:.1f} µs: it costs"
        f" {statistics.median(shares):.1%} ({min(shares):.1%} to {max(shares):.1%})"
    )


def measure_settled(server: Server, load: Load, requests: int) -> float:
    """Microseconds of CPU per request, with what is done later, without what an idle one does."""
    before = server.cpu()
    time.sleep(SETTLED)
    idle = server.cpu() - before
    before = server.cpu()
    load.run(requests)
    time.sleep(SETTLED)
    return (server.cpu() - before - idle) / requests * 1e6


def start_up(world: World) -> None:
    """Seconds from the start of the process to the first answered request."""
    seconds = []
    for _ in range(5):
        config, port = world.config("sample")
        with Server("gateway", str(config), port) as server:
            Load(port, world.client_path("sample"), world.secret("sample")).run(1)
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
    """Everything, in an empty folder."""
    with TemporaryDirectory() as folder:
        world = World(Path(folder))
        road(world)
        audit(world)
        start_up(world)
        redaction(world)
        reloads(Path(folder))


if __name__ == "__main__":
    main()
