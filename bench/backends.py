"""`python -m bench.backends`: what a call costs on a big practice against a small one, in one run.

Both practices stand on the same server and are asked in turn, call by call, so that a slow spell
of the machine meets both. What is measured is the time of a call as the gateway waits for it, with
its own work in it, and that own work's CPU beside it.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from bench.calls import Asked, Call
from bench.practices import EXAMPLES, Made, made_practices, opened
from bench.rows import Row, rows
from bench.rows import table as rows_table
from bench.served import new_event_loop

MOST = 2.0
SMALLER = 100
LEAST = 0.4  # a smaller practice has nothing in its past


class Cost(NamedTuple):
    """Seconds of one call: on the clock, and of this process's CPU."""

    wall: float
    cpu: float


class Figure(NamedTuple):
    """What a kind of call costs on both practices, round by round."""

    call: Call
    small: list[Cost]
    large: list[Cost]

    @property
    def ratio(self) -> float:
        """The median of the rounds' own ratios."""
        pairs = zip(self.small, self.large, strict=True)
        return statistics.median(large.wall / small.wall for small, large in pairs)

    @property
    def is_over(self) -> bool:
        """Whether it costs more than a big practice may."""
        return self.call.bound and self.ratio > MOST

    @property
    def verdict(self) -> str:
        if not self.call.bound:
            return "not bound"
        return "OVER" if self.is_over else "holds"


class Plan(NamedTuple):
    """What is compared: two scales, the small one first, under a prefix of the databases' names.

    `calls` is how many of a kind a round makes on each practice.
    """

    prefix: str
    scales: tuple[float, float]
    rounds: int
    calls: int = 8
    keep: bool = False


async def cost_of(call: Call) -> Cost:
    """One call."""
    if call.look is not None:
        await call.look()
    wall, cpu = time.perf_counter(), time.process_time()
    await call.ask()
    cpu = time.process_time() - cpu
    return Cost(time.perf_counter() - wall, cpu)


async def round_of(small: Call, large: Call, calls: int) -> tuple[Cost, Cost]:
    """The medians of some calls on each, one after the other, the first in turn."""
    costs: dict[bool, list[Cost]] = {False: [], True: []}
    for number in range(calls):
        for big in (False, True) if number % 2 else (True, False):
            costs[big].append(await cost_of(large if big else small))
    return _median(costs[False]), _median(costs[True])


def _median(costs: Iterable[Cost]) -> Cost:
    return Cost(*(statistics.median(each) for each in zip(*costs, strict=True)))


async def compare(small: Asked, large: Asked, plan: Plan) -> list[Figure]:
    """The figures of all kinds of calls."""
    for each in (small, large):
        await each.learn()
    pairs = list(zip(small.calls(), large.calls(), strict=True))
    figures = [Figure(call, [], []) for call, _ in pairs]
    for turn in range(plan.rounds + 1):
        for figure, pair in zip(figures, pairs, strict=True):
            found = await round_of(*pair, plan.calls)
            if turn:  # the first round warms up
                figure.small.append(found[0])
                figure.large.append(found[1])
    return figures


def table(server: str, scales: tuple[float, float], figures: Iterable[Figure]) -> Iterator[str]:
    """The lines to print."""
    yield "{}: scale {:g} against {:g}; ms per call, own CPU in brackets".format(server, *scales)
    yield f"{'':30} {'small':>15} {'large':>15} {'ratio':>7}"
    for each in figures:
        yield (
            f"{each.call.name:30} {_shown(each.small)} {_shown(each.large)}"
            f" {each.ratio:7.2f}  {each.verdict}"
        )


def _shown(costs: Iterable[Cost]) -> str:
    wall, cpu = (each * 1e3 for each in _median(costs))
    return f"{wall:7.2f} ({cpu:5.2f})"


def run(server: str, url: str, plan: Plan) -> tuple[list[Figure], bool]:
    """Make both practices of one kind, measure, print; whether a record costs too much, too."""
    sizes = {f"{plan.prefix}_{each:g}".replace(".", "_"): each for each in plan.scales}
    with (
        TemporaryDirectory() as folder,
        made_practices(EXAMPLES[server], url, sizes, Path(folder), keep=plan.keep) as made,
    ):
        figures = asyncio.run(_measured(made, plan))
        found: Sequence[Row] = ()
        if server == "postgres":
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                found = runner.run(rows(made[0]))
    for line in (*table(server, plan.scales, figures), *rows_table(found)):
        print(line)
    return figures, any(row.is_over for row in found)


async def _measured(made: Sequence[Made], plan: Plan) -> list[Figure]:
    now = datetime.now(UTC)
    async with opened(made[0]) as small, opened(made[1]) as large:
        return await compare(Asked(small, now), Asked(large, now), plan)


@click.command()
@click.option(
    "--server",
    "servers",
    type=click.Choice(list(EXAMPLES)),
    multiple=True,
    help="Only this one; both where it is left out.",
)
@click.option("--postgres", envvar="TEST_POSTGRES_URL", default=EXAMPLES["postgres"].server)
@click.option("--mariadb", envvar="TEST_MARIADB_URL", default=EXAMPLES["mariadb"].server)
@click.option(
    "--scale",
    type=click.FloatRange(LEAST * SMALLER),
    default=50.0,
    show_default=True,
    help="Of the big one; at 50 it has 15,000 clients and 1,000,000 invoice lines.",
)
@click.option("--rounds", type=click.IntRange(1), default=9, show_default=True)
@click.option(
    "--keep",
    is_flag=True,
    help="Leave the databases for another run today; one without --keep drops them.",
)
def main(
    servers: Sequence[str], postgres: str, mariadb: str, scale: float, rounds: int, keep: bool
) -> None:
    """Measure a practice of that scale against one a hundred times smaller.

    Both are made on the server by an account that may create databases, and dropped at the end.
    On PostgreSQL, a record's cost is also measured against the driver's alone, through the adapter
    and through the whole gateway. Ends with 1 where a
    call that is bound takes more than twice as long on the big one, or a record costs too much.
    """
    urls = {"postgres": postgres, "mariadb": mariadb}
    day = datetime.now(UTC).date()
    plan = Plan(f"bench_{day:%Y%m%d}", (scale / SMALLER, scale), rounds, keep=keep)
    ran = [run(name, urls[name], plan) for name in servers or EXAMPLES]
    is_over = any(over or any(each.is_over for each in figures) for figures, over in ran)
    sys.exit(1 if is_over else 0)


if __name__ == "__main__":
    main()
