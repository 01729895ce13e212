"""The last hour of a gateway, from its figures as they were read again and again.

A figure that counts says how many there ever were; how many there were in a minute, or how long
the last calls took, is the difference of two of them. Times are seconds of a steady clock.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gateway.observe.figures import CALLS
from gateway.observe.metrics import Labels, Snapshot

HOUR = 3600.0
MINUTE = 60.0
# How a call ended, as it is told: the worst ones last.
KINDS = ("answered", "unauthorized", "forbidden", "missing", "limited", "refused", "failed")
_OWN = {"401": "unauthorized", "403": "forbidden", "404": "missing", "429": "limited"}

Buckets = tuple[int, ...]
Name = TypeVar("Name", str, Labels)
Counts = Mapping[str, float]


def kind_of(status: str) -> str:
    """How a call of that status ended."""
    if status[:1] in "123":
        return "answered"
    return _OWN.get(status, "failed" if status.startswith("5") else "refused")


@dataclass(frozen=True, slots=True)
class Latency:
    """A time that some share of the calls did not exceed, as far as their buckets tell.

    `side` is -1 where it is below `seconds`, the first limit, and 1 where it is above the last.
    """

    seconds: float
    side: int = 0


def latency(buckets: Buckets, share: float, limits: Sequence[float] = CALLS) -> Latency | None:
    """The time within which that share of the calls was answered; None where there were none."""
    total = sum(buckets)
    if not total:
        return None
    wanted, before = share * total, 0
    at = 0
    while at < len(limits) and before + buckets[at] < wanted:
        before += buckets[at]
        at += 1
    if at == 0:
        return Latency(limits[0], -1)
    if at == len(limits):
        return Latency(limits[-1], 1)
    low, high = limits[at - 1], limits[at]
    return Latency(low + (high - low) * (wanted - before) / buckets[at])


@dataclass(frozen=True, slots=True)
class Sample:
    """What had been counted in all since the first sample, at that time."""

    at: float
    kinds: Counts
    operations: Mapping[str, Buckets]
    backend: Mapping[Labels, Buckets]
    outcomes: Counts


class Samples:
    """The samples of an hour, the oldest first.

    What was counted before the first is left out: nobody knows when that was. A count that falls
    has begun anew.
    """

    def __init__(self, kept: float = HOUR + 2 * MINUTE) -> None:
        self._kept = kept
        self._raw: dict[str, Mapping[Labels, Buckets]] = {}
        self._sums: dict[str, dict[Labels, Buckets]] = {}
        self._samples: deque[Sample] = deque()

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, at: float, snapshot: Snapshot) -> None:
        """One more; `at` is later than all before."""
        calls = self._summed("gateway_requests_total", snapshot)
        kinds: dict[str, float] = dict.fromkeys(KINDS, 0)
        for (_, status), (count,) in calls.items():
            kinds[kind_of(status)] += count
        outcomes: dict[str, float] = {}
        for (*_, outcome), (count,) in self._summed(
            "gateway_backend_calls_total", snapshot
        ).items():
            outcomes[outcome] = outcomes.get(outcome, 0) + count
        by_operation = self._summed("gateway_request_seconds", snapshot)
        operations = {operation: buckets for (operation,), buckets in by_operation.items()}
        backend = dict(self._summed("gateway_backend_seconds", snapshot))
        self._samples.append(Sample(at, kinds, operations, backend, outcomes))
        while self._samples[0].at < at - self._kept:
            self._samples.popleft()

    def minutes(self, starts: Iterable[float]) -> list[Mapping[str, int] | None]:
        """How the calls of each minute ended; None where nobody watched.

        Of one that is not over: its calls so far; of the first: those since it is watched.
        """
        return [self._between(start, start + MINUTE) for start in starts]

    def last(self, seconds: float) -> Sample | None:
        """What was counted in the last so many seconds, or since the first sample."""
        if not self._samples:
            return None
        newest = self._samples[-1]
        at = newest.at - seconds
        oldest = next(each for each in self._samples if each.at >= at)
        return Sample(
            newest.at - oldest.at,
            {name: newest.kinds[name] - oldest.kinds[name] for name in newest.kinds},
            _risen(newest.operations, oldest.operations),
            _risen(newest.backend, oldest.backend),
            {name: count - oldest.outcomes.get(name, 0) for name, count in newest.outcomes.items()},
        )

    def _between(self, start: float, end: float) -> Mapping[str, int] | None:
        if not self._samples or end <= self._samples[0].at or start >= self._samples[-1].at:
            return None
        first, last = self._at(max(start, self._samples[0].at)), self._at(end)
        return {kind: round(last[kind]) - round(first[kind]) for kind in KINDS}

    def _at(self, moment: float) -> Counts:
        """What had been counted then: between two samples as if at an even pace."""
        samples = self._samples
        number = bisect_right(samples, moment, key=lambda sample: sample.at)
        if number == len(samples):
            return samples[-1].kinds
        before, after = samples[number - 1], samples[number]
        share = (moment - before.at) / (after.at - before.at)
        return {
            kind: before.kinds[kind] + share * (after.kinds[kind] - before.kinds[kind])
            for kind in KINDS
        }

    def _summed(self, name: str, snapshot: Snapshot) -> Mapping[Labels, Buckets]:
        """What each series has risen since the first sample; one that is not told stays."""
        told = {
            each.labels: each.buckets or (round(each.value),) for each in snapshot.get(name, ())
        }
        before = self._raw.get(name)
        sums = self._sums.setdefault(name, {})
        for labels, now in told.items():
            known = now if before is None else before.get(labels, (0,) * len(now))
            rise = now if _has_fallen(known, now) else _less(now, known)
            sums[labels] = _more(sums[labels], rise) if labels in sums else rise
        self._raw[name] = {**(before or {}), **told}
        return dict(sums)


def total(buckets: Iterable[Buckets]) -> Buckets:
    """All of them together."""
    return tuple(map(sum, zip(*buckets, strict=True)))


def slowest_first(series: Mapping[Name, Buckets], share: float) -> list[Name]:
    """Those with calls, by the time within which that share of them was answered."""
    found = ((name, latency(buckets, share)) for name, buckets in series.items())
    told = [(each.seconds, each.side, name) for name, each in found if each is not None]
    return [name for *_, name in sorted(told, reverse=True)]


def gauge(snapshot: Snapshot, name: str, *labels: str) -> float:
    """The present value of one series; 0.0 where it is not told."""
    found = (each.value for each in snapshot.get(name, ()) if each.labels == labels)
    return next(found, 0.0)


def _risen(newer: Mapping[Name, Buckets], older: Mapping[Name, Buckets]) -> Mapping[Name, Buckets]:
    return {name: _less(now, older[name]) if name in older else now for name, now in newer.items()}


def _has_fallen(before: Buckets, now: Buckets) -> bool:
    return any(a > b for a, b in zip(before, now, strict=True))


def _less(one: Buckets, other: Buckets) -> Buckets:
    return tuple(a - b for a, b in zip(one, other, strict=True))


def _more(one: Buckets, other: Buckets) -> Buckets:
    return tuple(a + b for a, b in zip(one, other, strict=True))
