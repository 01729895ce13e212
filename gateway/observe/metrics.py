"""Counts calls and other figures, adds up those of processes, and writes them for Prometheus.

Prometheus' own counters and histograms lock for each call what only the event loop's thread ever
touches. These are plain numbers, which are made into series when they are read.
"""

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import add
from pathlib import Path
from typing import Literal

from msgspec import Struct, toml
from prometheus_client import generate_latest
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
# Views that are remembered: a policy that changes makes new ones.
MOST_VIEWS = 500

Labels = tuple[str, ...]
# How the values of two processes with the same labels become one, by the name in `metrics.toml`.
Merge = Callable[[float, float], float]
MERGES: Mapping[str, Merge] = {"sum": add, "largest": max, "smallest": min}
# The resource that an operation answers with, and how many of its fields a level does not see.
Hidden = Callable[[str, str], tuple[str, int]]


class Figure(Struct, frozen=True, forbid_unknown_fields=True):
    """One metric, as the head of `metrics.toml` describes it."""

    kind: Literal["counter", "gauge", "histogram", "info"]
    help: str
    labels: tuple[str, ...] = ()
    merge: Literal["sum", "largest", "smallest"] = "sum"
    buckets: tuple[float, ...] = ()


FIGURES = toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=dict[str, Figure])
CALLS, LAGS = (
    FIGURES[name].buckets for name in ("gateway_request_seconds", "gateway_loop_lag_seconds")
)


class Series(Struct, frozen=True):
    """A value and its labels; of a histogram the sum, and the count of each bucket by itself."""

    labels: Labels
    value: float = 0.0
    buckets: tuple[int, ...] = ()


# Figure name -> its series, as one process can hand it to another in JSON. An unknown name is left
# out, as another version wrote it.
Snapshot = Mapping[str, tuple[Series, ...]]


class Timings:
    """Numbers and durations of calls by labels, durations without the last: how a call ended."""

    def __init__(self, limits: Sequence[float] = CALLS) -> None:
        self._limits = limits
        # labels -> [calls, seconds], calls by bucket
        self._of: dict[tuple[str | int, ...], tuple[list[float], list[int]]] = {}

    def note(self, labels: tuple[str | int, ...], seconds: float | None) -> None:
        """Counts one call; without seconds it was never begun."""
        timing = self._of.get(labels)
        if timing is None:
            timing = self._of[labels] = [0, 0.0], [0] * (len(self._limits) + 1)
        sums, buckets = timing
        sums[0] += 1
        if seconds is not None:
            sums[1] += seconds
            buckets[bisect_left(self._limits, seconds)] += 1

    def counts(self) -> dict[Labels, float]:
        return {tuple(map(str, labels)): sums[0] for labels, (sums, _) in self._of.items()}

    def durations(self) -> Iterable[Series]:
        series: dict[Labels, Series] = {}
        for (*labels, _), (sums, buckets) in self._of.items():
            _merge(series, Series(tuple(map(str, labels)), sums[1], tuple(buckets)))
        return series.values()


class Metrics:
    """The figures of one process; `operations` are the names that may stand in a label.

    `process` is its name among the processes of its node. `hits` counts the calls that the limiter
    was asked about. The name of a figure is one of FIGURES, else KeyError is raised.
    """

    def __init__(self, operations: Iterable[str], process: str = "gateway") -> None:
        self.process = process
        self.hits = 0
        self.hidden: Hidden = lambda operation, level: (operation, 0)
        self._operations = frozenset(operations)
        self._added: dict[str, dict[Labels, float]] = {
            name: defaultdict(float, {} if figure.labels else {(): 0.0})
            for name, figure in FIGURES.items()
            if figure.kind == "counter"
        }
        self._asked: dict[str, Callable[[], Iterable[Series]]] = {}
        self._lock = threading.Lock()
        self._calls, self._backend_calls = Timings(), Timings()
        # how many fields a view hides is looked up once for each view, not for each answer
        self._view = lru_cache(MOST_VIEWS)(self._look_at)
        # (labels, hidden fields of a record) -> [records shown]
        self._shown: dict[tuple[Labels, int], list[int]] = {}
        self.ask("gateway_limit_hits_total", lambda: self.hits)
        self.ask_all("gateway_requests_total", self._calls.counts)
        self.ask_series("gateway_request_seconds", self._calls.durations)
        self.ask_all("gateway_backend_calls_total", self._backend_calls.counts)
        self.ask_series("gateway_backend_seconds", self._backend_calls.durations)
        self.ask_all("gateway_records_shown_total", lambda: self._all_shown(lambda _: 1))
        self.ask_all("gateway_fields_hidden_total", lambda: self._all_shown(lambda hidden: hidden))

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Counts one answered call; a name that is no operation is counted as `other`."""
        name = operation if operation in self._operations else OTHER
        self._calls.note((name, status), seconds)

    def backend_call(self, verb: str, resource: str, outcome: str, seconds: float | None) -> None:
        """Counts one question to the practice system; `outcome` is `answered` or what else came."""
        self._backend_calls.note((verb, resource, outcome), seconds)

    def shown(self, operation: str, level: str, policy: str | None, records: int) -> None:
        """Counts the records that one answer showed by that policy, and the fields that it hid."""
        self._view(operation, level, policy)[0] += records

    def _look_at(self, operation: str, level: str, _: str | None) -> list[int]:
        resource, hidden = self.hidden(operation, level)
        return self._shown.setdefault(((resource, str(level)), hidden), [0])

    def _all_shown(self, weight: Callable[[int], int]) -> Mapping[Labels, float]:
        """Returns the records shown, each times the `weight` of how many fields it hides."""
        sums = Counter[Labels]()
        for (labels, hidden), [records] in self._shown.items():
            sums[labels] += records * weight(hidden)
        return sums

    def ask(self, name: str, value: Callable[[], float], *labels: str) -> None:
        """Registers a figure that is looked up when the figures are read."""
        self.ask_all(name, lambda: {labels: value()})

    def ask_all(self, name: str, values: Callable[[], Mapping[Labels, float]]) -> None:
        """Registers all series of one figure in the same way, by their labels."""
        self.ask_series(name, lambda: _series(values()))

    def ask_series(self, name: str, series: Callable[[], Iterable[Series]]) -> None:
        """Registers all series of one figure as they are, those of a histogram too."""
        if name not in FIGURES:
            raise KeyError(name)
        self._asked[name] = series

    def add(self, name: str, times: float = 1, *labels: str) -> None:
        """Adds to a counter, from any thread; it takes a lock, so it is not for every call."""
        with self._lock:
            self._added[name][labels] += times

    def snapshot(self) -> Snapshot:
        """Returns all figures as they are now, as plain data."""
        with self._lock:
            added = {name: tuple(_series(values)) for name, values in self._added.items() if values}
        return added | {name: tuple(series()) for name, series in self._asked.items()}


def _series(values: Mapping[Labels, float]) -> Iterator[Series]:
    return (Series(labels, float(value)) for labels, value in values.items())


def merged(snapshots: Iterable[Snapshot]) -> Snapshot:
    """Returns the figures of a whole node, from those of its processes."""
    figures: dict[str, dict[Labels, Series]] = {}
    for snapshot in snapshots:
        for name in snapshot.keys() & FIGURES.keys():
            of_figure, merge = figures.setdefault(name, {}), MERGES[FIGURES[name].merge]
            for series in snapshot[name]:
                _merge(of_figure, series, merge)
    return {name: tuple(of_figure.values()) for name, of_figure in figures.items()}


def lasting(last: Snapshot) -> Snapshot:
    """Returns what still counts of a process that has ended, so that no counter goes down."""
    counting = {name for name, figure in FIGURES.items() if figure.kind in {"counter", "histogram"}}
    return {name: series for name, series in last.items() if name in counting}


def _merge(into: dict[Labels, Series], other: Series, merge: Merge = add) -> None:
    if one := into.get(other.labels):
        buckets = tuple(a + b for a, b in zip(one.buckets, other.buckets, strict=True))
        other = Series(one.labels, merge(one.value, other.value), buckets)
    into[other.labels] = other


def exposition(snapshot: Snapshot) -> bytes:
    """Returns the figures in Prometheus' text form."""
    return generate_latest(_Snapshot(snapshot))


@dataclass
class _Snapshot(Collector):
    snapshot: Snapshot

    def collect(self) -> Iterator[Metric]:
        for name, figure in FIGURES.items():
            family = name.removesuffix("_total").removesuffix("_info")
            metric = Metric(family, figure.help, figure.kind)
            histogram = HistogramMetricFamily(family, figure.help, labels=figure.labels)
            limits = [*map(floatToGoString, figure.buckets), "+Inf"]
            for series in sorted(self.snapshot.get(name, ()), key=lambda one: one.labels):
                if figure.buckets:
                    counts = zip(limits, accumulate(series.buckets), strict=True)
                    histogram.add_metric(series.labels, list(counts), series.value)
                else:
                    labels = dict(zip(figure.labels, series.labels, strict=True))
                    metric.add_sample(name, labels, series.value)
            yield histogram if figure.buckets else metric
