"""`python -m tests.chaos [KIND...]`: a long storm over each kind of practice system, and a summary.

Exit 0 where nothing was found; 1 where something was, or a server is missing; 2 for wrong use.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.adapters.servers import NEEDS
from tests.chaos.grounds import GROUNDS
from tests.chaos.storm import Plan
from tests.chaos.weather import weather
from tests.races.practice import working_days

# So many attempts crowd into one day of the diary.
CROWD = 150
# A cloud takes its time: it is stormed for so much shorter.
SHORTER = {"json": 5}
MISSING = (
    "the storm over postgresql needs a server: set {variable}={example},\n"
    'or let eval "$(scripts/test-servers)" install and start one (Debian, as root)'
)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(GROUNDS)}; all")
    parser.add_argument("--attempts", type=int, default=10_000, help="bookings tried (10000)")
    parser.add_argument("--kills", type=int, default=50, help="workers killed (50)")
    parser.add_argument("--partners", type=int, default=50, help="who book at once (50)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is left to chance (1)")
    given = parser.parse_args(words)
    if strangers := set(given.kinds) - set(GROUNDS):
        parser.error(f"no kind is called {', '.join(sorted(strangers))}")
    kinds = given.kinds or [*GROUNDS]
    variable, example = NEEDS["postgresql"]
    if "postgresql" in kinds and not os.environ.get(variable):
        print(MISSING.format(variable=variable, example=example), file=sys.stderr)
        return 1
    found = [_stormed(kind, given) for kind in kinds]
    return 1 if any(found) else 0


def _stormed(kind: str, given: argparse.Namespace) -> list[str]:
    """What was found; told as soon as it is known."""
    less = SHORTER.get(kind, 1)
    attempts, kills = -(-given.attempts // less), -(-given.kills // less)
    plan = Plan(attempts=attempts, kills=kills, partners=given.partners, seed=given.seed)
    days = working_days(max(2, attempts // CROWD), datetime.now(UTC).date())
    print(f"{kind}, seed {plan.seed}:", flush=True)
    with tempfile.TemporaryDirectory() as folder, GROUNDS[kind](Path(folder)) as ground:
        ended = asyncio.run(weather(ground, Path(folder, "state"), plan, days, rests=True))
    faults = ended.faults()
    print(ended)
    print("".join(f"  FAULT: {each}\n" for each in faults) or "  no fault\n", flush=True)
    return faults


if __name__ == "__main__":
    sys.exit(main())
