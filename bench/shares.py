"""What all that runs beside answering costs: a gateway with all of it, without any, without each.

One process each, on the same practice system of ready records, and the same calls in turn for
2,000 clients. Rounds are short and go from one to the next; what a gateway does each second (lines
on disk) belongs to each round, and what it does each minute (heads, the audit's index, the usage)
comes after twelve of them: as often as at a load of 400 calls a second, a twentieth of what one
process bears.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple
from uuid import UUID

from bench.features import FEATURES
from bench.load import CONNECTIONS, Load
from bench.servers import Server
from bench.world import World

MOST, MOST_AUDIT = 1.25, 0.10
CLIENTS = [
    f"/api/v1/clients/{UUID(int=number << 64 | 8 << 76 | 2 << 62)}" for number in range(2000)
]
TURNS = 12  # rounds after which all is settled
WHOLE, PLAIN, INDEX = "(w) the same with all of it", "(p) a plain read", "the audit's index"
AUDIT = next(iter(FEATURES))
LACKING: Mapping[str, Sequence[str]] = {
    WHOLE: (),
    PLAIN: tuple(FEATURES),
    **{each: (each,) for each in FEATURES},
}


class Cost(NamedTuple):
    """Microseconds of CPU per request in a round, and in what comes after some."""

    calls: float
    settling: float

    @property
    def whole(self) -> float:
        """Both."""
        return self.calls + self.settling


def shares(world: World, rounds: int, requests: int, *, each: bool = True) -> None:
    """The table; each feature's share in it only where asked for."""
    names = list(LACKING) if each else [PLAIN, WHOLE, AUDIT]
    with ExitStack() as stack:
        servers, secrets = {}, {}
        for number, name in enumerate(names):
            config, port = world.config(f"lacking-{number}")
            started = Server("without", str(config), port, *LACKING[name])
            servers[name] = stack.enter_context(started)
            secrets[name] = world.secret(f"lacking-{number}")
        costs: dict[str, list[Cost]] = {name: [] for name in names}
        for turn in range(rounds + 1):
            for name, found in one_turn(servers, secrets, requests).items():
                if turn:  # the first warms up
                    costs[name] += found
    for line in table(costs):
        print(line)


def one_turn(
    servers: Mapping[str, Server], secrets: Mapping[str, str], requests: int
) -> dict[str, list[Cost]]:
    """Some rounds over all servers, and with each its part of what is left for later."""
    calls: dict[str, list[float]] = {name: [] for name in servers}
    for number in range(TURNS):
        names = list(servers)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            calls[name].append(measured(servers[name], secrets[name], requests))
    found = {}
    for name, server in servers.items():
        before = server.cpu()
        settling = (server.settle() - before) / (requests * TURNS) * 1e6
        found[name] = [Cost(each, settling) for each in calls[name]]
    return found


def measured(server: Server, secret: str, requests: int) -> float:
    """Microseconds of CPU per request, its lines on disk; on connections made for them."""
    load = Load(server.port, CLIENTS, secret)
    load.run(CONNECTIONS)
    before = server.flush()
    load.run(requests)
    after = server.flush()
    load.close()
    return (after - before) / requests * 1e6


def table(costs: Mapping[str, Sequence[Cost]]) -> Iterable[str]:
    """The lines to print."""
    whole, plain = costs[WHOLE], costs[PLAIN]
    for name in (PLAIN, WHOLE):
        yield f"{name:42} {statistics.median(each.whole for each in costs[name]):6.2f} µs"
    ratios = [a.whole / b.whole for a, b in zip(whole, plain, strict=True)]
    ratio = statistics.median(ratios)
    low, _, high = statistics.quantiles(ratios)
    verdict = "holds" if ratio <= MOST else "OVER"
    yield (
        f"{'all of it costs':42} {ratio - 1:6.1%} of a plain read (half of the rounds:"
        f" {low - 1:.1%} to {high - 1:.1%}); at most {MOST - 1:.0%}: {verdict}"
    )
    parts = {
        name: [a.calls - b.calls for a, b in zip(whole, costs[name], strict=True)]
        for name in FEATURES
        if name in costs
    }
    index = [a.settling - b.settling for a, b in zip(whole, costs[AUDIT], strict=True)]
    base = statistics.median(each.whole for each in plain)
    for name, figures in {**parts, INDEX: index}.items():
        part = statistics.median(figures)
        yield f"  {name:40} {part:6.2f} µs {part / base:6.1%}"
    audit = [a.whole / b.whole - 1 for a, b in zip(whole, costs[AUDIT], strict=True)]
    cost = statistics.median(audit)
    verdict = "holds" if cost <= MOST_AUDIT else "OVER"
    yield (
        f"{'the audit and its index cost':42} {cost:6.1%} of a call without them;"
        f" at most {MOST_AUDIT:.0%}: {verdict}"
    )
