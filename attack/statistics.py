"""Whether two series of times come from one source: Welch's t, with and without the slowest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import fmean, variance

KEPT = 0.9
"""The share of all times that counts where the slowest do not, since these are the machine's."""


@dataclass(frozen=True)
class Compared:
    """What tells two states apart: the larger of two values of t, and the difference in means."""

    one: str
    other: str
    t: float
    microseconds: float
    pairs: int


def welch(one: Sequence[float], other: Sequence[float]) -> float:
    """Welch's t; 0 where both are constant and equal."""
    difference = fmean(one) - fmean(other)
    error = sqrt(variance(one) / len(one) + variance(other) / len(other))
    return difference / error if error else float("inf") if difference else 0.0


def compared(times: Mapping[str, Sequence[float]], *states: str) -> Iterator[Compared]:
    """Every two of these states, or of all; times are in seconds, as many of each."""
    for one, other in combinations(states or times, 2):
        left, right = times[one], times[other]
        slowest = sorted([*left, *right])[int(KEPT * 2 * len(left)) - 1]
        kept = [[each for each in side if each <= slowest] for side in (left, right)]
        t = max(welch(left, right), welch(kept[0], kept[1]), key=abs)
        yield Compared(one, other, t, (fmean(kept[0]) - fmean(kept[1])) * 1e6, len(left))
