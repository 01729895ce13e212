"""What was found, as Markdown: each scenario with its spread, and the README's table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from bench.peers.samples import Round, added, bad, each_round, ratios, spread
from bench.peers.targets import BARE, DIRECT, LACKS, NGINX, NGINX_WHOLE

Rounds = Sequence[Round]
RATE, CPU, P50, P99 = (attrgetter(name) for name in ("rate", "cpu", "p50", "p99"))
DETAILS = (
    "| | req/s | / bare | / nginx | CPU µs | CPU / bare | p50 ms | p99 ms | p99 / nginx"
    " | added p50 ms | added p99 ms | bad |"
)
HEAD = (
    "| | one record | cached | 50 records | cached | 20 ms backend: req/s | p99 | added | memory"
    " | lacks |"
)
AGAINST_BARE = ("record", "record-cached", "list", "list-cached")


def table(head: str, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yields the lines of a table."""
    yield head
    yield f"|{'---|' * (head.count('|') - 1)}"
    for each in rows:
        yield f"| {' | '.join(each)} |"


def details(rounds: Rounds) -> Iterator[str]:
    """Yields the table of one scenario, each figure as median (least to most)."""
    names = dict.fromkeys(name for one in rounds for name in one)
    yield from table(DETAILS, ([name, *_spreads(rounds, name)] for name in names))


def _spreads(rounds: Rounds, name: str) -> Iterator[str]:
    nginx = NGINX if any(NGINX in one for one in rounds) else NGINX_WHOLE
    yield spread(each_round(rounds, name, RATE), ",.0f")
    yield spread(ratios(rounds, name, BARE, RATE), ".3f")
    yield spread(ratios(rounds, name, nginx, RATE), ".3f")
    yield spread(each_round(rounds, name, CPU), ".1f")
    yield spread(ratios(rounds, name, BARE, CPU), ".2f")
    yield spread(each_round(rounds, name, P50), ".2f")
    yield spread(each_round(rounds, name, P99), ".2f")
    yield spread(ratios(rounds, name, nginx, P99), ".2f")
    yield spread(added(rounds, name, DIRECT, P50), ".2f")
    yield spread(added(rounds, name, DIRECT, P99), ".2f")
    yield f"{errors}: no result" if (errors := bad(rounds, name)) else "0"


def summary(results: Mapping[str, Rounds], memory: Mapping[str, str]) -> Iterator[str]:
    """Yields the README's table, of the targets whose memory is told."""
    rows = ([name, *_figures(results, name), held, LACKS[name]] for name, held in memory.items())
    yield from table(HEAD, rows)


def _figures(results: Mapping[str, Rounds], name: str) -> Iterator[str]:
    """Yields each figure as median (least to most)."""
    for scenario in AGAINST_BARE:
        rounds = results.get(scenario, ())
        figures = ratios(rounds, name, BARE, RATE)
        text = "1" if figures and name == BARE else spread(figures, ".2f")
        yield _sound(text, rounds, name, BARE)
    slow, low = results.get("slow", ()), results.get("latency", ())
    yield _sound(spread(each_round(slow, name, RATE), ",.0f"), slow, name)
    yield _sound(spread(each_round(slow, name, P99), ".0f", " ms"), slow, name)
    yield _sound(spread(added(low, name, DIRECT, P50), ".2f", " ms"), low, name, DIRECT)


def _sound(text: str, rounds: Rounds, *names: str) -> str:
    return "no result" if any(bad(rounds, each) for each in names) else text
