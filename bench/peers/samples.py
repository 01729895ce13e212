"""What one target did in one round, and what that is beside another in the same round."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One load on one target."""

    requests: int
    seconds: float
    bad: int  # of the requests, those with no answer, or with one that is an error
    p50: float  # ms
    p99: float
    cpu: float = 0.0  # µs of the target for each request

    @property
    def rate(self) -> float:
        """Requests in a second."""
        return self.requests / self.seconds


Round = Mapping[str, Sample]  # by the target's name
Figure = Callable[[Sample], float]


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the value that this share of them does not exceed; NaN where there is none."""
    if not values:
        return math.nan
    return sorted(values)[math.ceil(share * len(values)) - 1]


def each_round(rounds: Sequence[Round], name: str, figure: Figure) -> list[float]:
    """Returns a figure of one target, round by round."""
    return [figure(one[name]) for one in rounds if name in one]


def ratios(rounds: Sequence[Round], name: str, other: str, figure: Figure) -> list[float]:
    """Returns one target's figure as so many times another's, each within a round."""
    return [figure(mine) / figure(its) for mine, its in _pairs(rounds, name, other) if figure(its)]


def added(rounds: Sequence[Round], name: str, other: str, figure: Figure) -> list[float]:
    """Returns by how much one target's figure is above another's, each within a round."""
    return [figure(mine) - figure(its) for mine, its in _pairs(rounds, name, other)]


def _pairs(rounds: Sequence[Round], name: str, other: str) -> list[tuple[Sample, Sample]]:
    return [(one[name], one[other]) for one in rounds if name in one and other in one]


def bad(rounds: Sequence[Round], name: str) -> int:
    """Returns how many requests got no answer or an error, in all rounds."""
    return sum(one[name].bad for one in rounds if name in one)


def spread(values: Sequence[float], form: str, unit: str = "") -> str:
    """Returns the median, and in brackets the least and the most; a dash where there is nothing."""
    if not values:
        return "-"
    middle = statistics.median(values)
    return f"{middle:{form}}{unit} ({min(values):{form}} to {max(values):{form}})"
