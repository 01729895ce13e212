"""Computes a gateway's last hour from samples of its metrics.

A counter tells how many there ever were. How many there were in a minute, or how long the last
calls took, is the difference of two samples. Times are seconds of a monotonic clock.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import add, sub
from typing import TypeVar

from gateway.observe.metrics import CALLS, Labels, Snapshot

HOUR = 3600.0
MINUTE = 60.0
# How calls end, the worst last.
KINDS = ("answered", "unauthorized", "forbidden", "missing", "limited", "refused", "failed")
_OWN = {"401": "unauthorized", "403": "forbidden", "404": "missing", "429": "limited"}
_FIGURES = (
    "gateway_requests_total",
    "gateway_backend_calls_total",
    "gateway_request_seconds",
    "gateway_backend_seconds",
)

Buckets = tuple[int, ...]
Name = TypeVar("Name", str, Labels)


def kind_of(status: str) -> str:
    if status[:1] in "123":
        return "answered"
    return _OWN.get(status, "failed" if status.startswith("5") else "refused")


@dataclass(frozen=True, slots=True)
class Latency:
    """A time that a share of calls did not exceed. `side` is -1 below all limits, 1 above all."""

    seconds: float
    side: int = 0


def latency(buckets: Buckets, share: float, limits: Sequence[float] = CALLS) -> Latency | None:
    """Returns the time within which a share of the calls was answered; None without calls."""
    if not any(buckets):
        return None
    target, before, at = share * sum(buckets), 0, 0
    while at < len(limits) and before + buckets[at] < target:
        before += buckets[at]
        at += 1
    if at == 0:
        return Latency(limits[0], -1)
    if at == len(limits):
        return Latency(limits[-1], 1)
    low, high = limits[at - 1], limits[at]
    return Latency(low + (high - low) * (target - before) / buckets[at])


@dataclass(frozen=True, slots=True)
class Totals:
    """What had been counted since the first sample, at the time `at`."""

    at: float
    kinds: dict[str, float]
    operations: dict[str, Buckets]
    backend: dict[Labels, Buckets]
    outcomes: dict[str, float]


class Samples:
    """The totals of an hour, the oldest first. A count that falls has begun anew."""

    def __init__(self, kept: float = HOUR + 2 * MINUTE) -> None:
        self._kept = kept
        self._raw: dict[tuple[str, Labels], Buckets] = {}
        self._risen: dict[tuple[str, Labels], Buckets] = {}
        self._samples: deque[Totals] = deque()

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, at: float, snapshot: Snapshot) -> None:
        """Adds a sample; `at` must be later than that of all before."""
        for name in _FIGURES:
            for series in snapshot.get(name, ()):
                now = series.buckets or (round(series.value),)
                key, none = (name, series.labels), (0,) * len(now)
                known = self._raw.get(key, none if self._samples else now)
                has_fallen = any(old > new for old, new in zip(known, now, strict=True))
                rise = now if has_fallen else tuple(map(sub, now, known))
                self._risen[key] = tuple(map(add, self._risen.get(key, none), rise))
                self._raw[key] = now
        totals = Totals(at, dict.fromkeys(KINDS, 0.0), {}, {}, {})
        for (name, labels), buckets in self._risen.items():
            if name == "gateway_requests_total":
                totals.kinds[kind_of(labels[1])] += buckets[0]
            elif name == "gateway_backend_calls_total":
                outcome = labels[-1]
                totals.outcomes[outcome] = totals.outcomes.get(outcome, 0) + buckets[0]
            elif name == "gateway_request_seconds":
                totals.operations[labels[0]] = buckets
            else:
                totals.backend[labels] = buckets
        self._samples.append(totals)
        while self._samples[0].at < at - self._kept:
            self._samples.popleft()

    def minute(self, start: float) -> Mapping[str, int] | None:
        """Returns how many calls of the minute from `start` ended how; None where no sample tells.

        Of the first and the present minute only the calls between samples are counted.
        """
        if not self._samples or not self._samples[0].at - MINUTE < start < self._samples[-1].at:
            return None
        first, last = self._at(max(start, self._samples[0].at)), self._at(start + MINUTE)
        return {kind: round(last[kind]) - round(first[kind]) for kind in KINDS}

    def last(self, seconds: float) -> Totals | None:
        """Returns what was counted in the last `seconds`, or since the first sample."""
        if not self._samples:
            return None
        newest = self._samples[-1]
        oldest = next(it for it in self._samples if it.at >= newest.at - seconds)
        return Totals(
            newest.at - oldest.at,
            {name: count - oldest.kinds[name] for name, count in newest.kinds.items()},
            _less(newest.operations, oldest.operations),
            _less(newest.backend, oldest.backend),
            {name: count - oldest.outcomes.get(name, 0) for name, count in newest.outcomes.items()},
        )

    def _at(self, moment: float) -> Mapping[str, float]:
        """Returns what had been counted at a moment, interpolated between two samples."""
        samples = self._samples
        number = bisect_right(samples, moment, key=lambda sample: sample.at)
        if number == len(samples):
            return samples[-1].kinds
        before, after = samples[number - 1], samples[number]
        share = (moment - before.at) / (after.at - before.at)
        return {
            kind: count + share * (after.kinds[kind] - count)
            for kind, count in before.kinds.items()
        }


def total(buckets: Iterable[Buckets]) -> Buckets:
    return tuple(map(sum, zip(*buckets, strict=True)))


def slowest_first(series: Mapping[Name, Buckets], share: float) -> list[Name]:
    """Returns the series with calls, the slowest first, by `latency` at that share."""
    times = ((name, latency(buckets, share)) for name, buckets in series.items())
    known = [(time.seconds, time.side, name) for name, time in times if time is not None]
    return [name for *_, name in sorted(known, reverse=True)]


def gauge(snapshot: Snapshot, name: str, *labels: str) -> float:
    """Returns the present value of one series; 0.0 where there is none."""
    series = snapshot.get(name, ())
    return next((it.value for it in series if it.labels == labels), 0.0)


def _less(newer: Mapping[Name, Buckets], older: Mapping[Name, Buckets]) -> dict[Name, Buckets]:
    return {
        name: tuple(map(sub, now, older[name])) if name in older else now
        for name, now in newer.items()
    }
