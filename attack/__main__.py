"""`python -m attack [NAME...]`: attacks a gateway that it starts, and prints a table.

Exit 0 where all held; 1 where one did not, or a program is missing; 2 for wrong use.
"""

import argparse
import sys
from collections.abc import Sequence

from attack import crowds, heads, injection, junk, slowhttptest, timing
from attack.base import GROWTH, SLOWEST, Attack, Missing, Row
from attack.measured import RECOVERY
from attack.target import started

ATTACKS = (
    Attack("nothing", "honest calls alone, to compare with", crowds.nobody),
    Attack("slowhttptest-H", "heads that never end, through a proxy", slowhttptest.headers),
    Attack("slowhttptest-B", "bodies that never end, with a key", slowhttptest.body),
    Attack("slowhttptest-X", "answers taken byte by byte", slowhttptest.reading),
    Attack("idle", "connections that say nothing", crowds.idle),
    Attack("slow-heads", "heads that never end, from many addresses", crowds.drops),
    Attack("slow-bodies", "bodies that never end, from many addresses, with a key", crowds.bodies),
    Attack("slow-readers", "pages that nobody takes, with a key", crowds.readers),
    Attack("junk-keys", "keys that nobody has, as fast as they are answered", junk.flood),
    Attack("strangers", "the same, and none at all, from one address", junk.strangers),
    Attack("large-heads", "heads beyond 16 KiB, in one write and in pieces", heads.large_heads),
    Attack("refusals", "more connections of one address than it may hold", heads.beyond),
    Attack("timing", "whether time tells what is wrong with a key", timing.run),
    Attack("injection", "sqlmap on every place of every operation", injection.run),
)

HEAD = (
    f"honest calls must stay below {SLOWEST:.0f} ms at p99, memory must grow by less than"
    f" {GROWTH:.0f} MB, and nothing may be left after {RECOVERY:.0f} s\n"
    f"{'attack':18}{'p50 ms':>12}{'p99 ms':>12}{'memory MB':>12}{'recovery s':>12}  verdict"
)


def main(words: Sequence[str] | None = None) -> int:
    names = [each.name for each in ATTACKS]
    parser = argparse.ArgumentParser(prog="python -m attack", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; all")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each presses (20)")
    parser.add_argument("--connections", type=int, default=10_000, help="how many (10000)")
    given = parser.parse_args(words)
    if strangers := set(given.names) - set(names):
        parser.error(f"no attack is called {', '.join(sorted(strangers))}")
    chosen = [each for each in ATTACKS if not given.names or each.name in given.names]
    print(HEAD, flush=True)
    try:
        rows = [_run(each, given.seconds, given.connections) for each in chosen]
    except Missing as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if any(each.failures for each in rows) else 0


def _run(attack: Attack, seconds: float, connections: int) -> Row:
    """Each against a gateway of its own; the rows are printed as they come."""
    with started(seconds, connections) as target:
        row = attack.run(target)
    print(line(row), flush=True)
    return row


def line(row: Row) -> str:
    figures = (row.p50, row.p99, row.grown, row.recovery)
    shown = "".join(f"{'' if each is None else f'{each:.1f}':>12}" for each in figures)
    return f"{row.attack:18}{shown}  {row.verdict} ({row.note})"


if __name__ == "__main__":
    sys.exit(main())
