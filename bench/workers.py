"""Whether two workers serve twice what one does: what a call costs in either, and how fast it goes.

A machine with cores to spare would simply show it. Where the load and the gateway share two, the
CPU of a call decides: as long as it costs the same in either, two cores serve twice as many. The
load sleeps while it waits, else it would keep one of two workers from its core. One worker is a
gateway of one process; beside two stand a parent and the operations process.
"""

import statistics
import time
from contextlib import ExitStack
from typing import NamedTuple

from bench.load import CONNECTIONS, Load
from bench.processes import cpu_of_all, memory
from bench.servers import Server
from bench.shares import CLIENTS
from bench.world import World

LEAST = 1.8
KINDS = {1: "(1) one worker", 2: "(2) two workers"}


class Done(NamedTuple):
    """What a round took: CPU of the gateway per request in µs, seconds, seconds less the load's."""

    cpu: float
    wall: float
    waited: float


def workers(world: World, rounds: int, requests: int) -> None:
    """The table."""
    with ExitStack() as stack:
        servers, loads = {}, {}
        for number in KINDS:
            config, port = world.config(f"workers-{number}")
            with config.open("a") as file:
                file.write(f"workers: {number}\n")
            servers[number] = stack.enter_context(Server("gateway", str(config), port))
            time.sleep(1)  # until all its processes answer
            # as many for each worker: what comes at once is read at once, and costs less
            secret = world.secret(f"workers-{number}")
            loads[number] = Load(port, CLIENTS, secret, number * CONNECTIONS, waits=True)
        found: dict[int, list[Done]] = {number: [] for number in KINDS}
        for turn in range(rounds + 1):
            for number, server in servers.items():
                done = one_round(server, loads[number], requests)
                if turn:  # the first warms up
                    found[number].append(done)
        shown = {number: list(memory(server.process.pid)) for number, server in servers.items()}
    for number, name in KINDS.items():
        cpu, wall, waited = (statistics.median(each) for each in zip(*found[number], strict=True))
        print(
            f"{name:20} {cpu:6.1f} µs of CPU per request, {requests / wall:6.0f} requests a second"
            f" ({requests / waited:6.0f} without the load's own CPU)"
        )
    pairs = zip(found[1], found[2], strict=True)
    ratio = statistics.median(two.cpu / one.cpu for one, two in pairs)
    verdict = "holds" if 2 / ratio >= LEAST else "OVER"
    print(
        f"a call of two workers costs {ratio:.2f} of one's: two cores serve {2 / ratio:.2f} times"
        f" as much as one; at least {LEAST}: {verdict}"
    )
    for number, processes in shown.items():
        for each in processes:
            print(f"  {KINDS[number]}: a process of {each.whole} MB, {each.alone} MB of it its own")


def one_round(server: Server, load: Load, requests: int) -> Done:
    """So many requests; what all processes of the gateway did meanwhile counts."""
    before, own, began = cpu_of_all(server.process.pid), time.process_time(), time.perf_counter()
    load.run(requests)
    wall, own = time.perf_counter() - began, time.process_time() - own
    cpu = cpu_of_all(server.process.pid) - before
    return Done(cpu / requests * 1e6, wall, wall - own)
