"""What is counted: one snapshot of it all, the sum of several, and the text that Prometheus reads.

Prometheus' own counters and histograms lock for each call what only the event loop's thread ever
touches; these are plain numbers, and are made into series when they are read.
"""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from math import inf

from msgspec import Struct
from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from gateway.observe.figures import BY_NAME, CALLS, FIGURES, Merge, MetricKind

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
# So many views are remembered: a policy that changes makes new ones.
MOST_VIEWS = 500

Labels = tuple[str, ...]
# The resource that an operation answers with, and how many of its fields a level does not see.
Hidden = Callable[[str, str], tuple[str, int]]
# What is taken of two processes' values.
_TAKEN: Mapping[Merge, Callable[[float, float], float]] = {
    Merge.SUM: lambda one, other: one + other,
    Merge.MAX: max,
    Merge.MIN: min,
    Merge.EACH: lambda one, other: other,
}


class Series(Struct, frozen=True):
    """A value; or of a histogram its buckets (each by itself) and the sum."""

    labels: Labels
    value: float = 0.0
    buckets: tuple[int, ...] = ()


# Figure name -> its series, as one process can hand it to another in JSON. A name that no figure
# has is passed over: another version wrote it.
Snapshot = Mapping[str, tuple[Series, ...]]


class Timings:
    """How many calls there were by their labels, and how long they took.

    The last label says what became of a call: durations are told without it.
    """

    def __init__(self) -> None:
        # labels -> [calls, seconds, calls by bucket]
        self._of: dict[tuple[str | int, ...], tuple[list[float], list[int]]] = {}

    def note(self, labels: tuple[str | int, ...], seconds: float | None) -> None:
        """One call; without seconds it was never begun."""
        found = self._of.get(labels)
        if found is None:
            found = self._of[labels] = [0, 0.0], [0] * (len(CALLS) + 1)
        sums, buckets = found
        sums[0] += 1
        if seconds is not None:
            sums[1] += seconds
            buckets[bisect_left(CALLS, seconds)] += 1

    def counts(self) -> dict[Labels, float]:
        return {tuple(map(str, labels)): sums[0] for labels, (sums, _) in self._of.items()}

    def durations(self) -> list[Series]:
        found: dict[Labels, Series] = {}
        for (*labels, _), (sums, buckets) in self._of.items():
            _merge(found, Series(tuple(map(str, labels)), sums[1], tuple(buckets)))
        return list(found.values())


class ShownRecords:
    """Counts the records in answers, and from these what was withheld.

    How many fields a view hides is asked once for each view, not for each answer.
    """

    def __init__(self) -> None:
        self.hidden: Hidden = lambda operation, level: (operation, 0)
        # (operation, level, policy) -> resource and level, and how many fields are hidden
        self._views: dict[tuple[str, str, str | None], tuple[Labels, int]] = {}
        self.records: Counter[Labels] = Counter()
        self.fields: Counter[Labels] = Counter()

    def count(self, operation: str, level: str, policy: str | None, records: int) -> None:
        """Records that one answer showed."""
        view = self._views.get((operation, level, policy))
        if view is None:
            if len(self._views) >= MOST_VIEWS:
                self._views.clear()
            resource, hidden = self.hidden(operation, level)
            view = self._views[operation, level, policy] = (resource, str(level)), hidden
        labels, hidden = view
        self.records[labels] += records
        self.fields[labels] += records * hidden


class Metrics:
    """The gateway's figures; `operations` are the names that may stand in a label.

    `process` is what this process is called beside others of the same node. A figure's name is one
    of FIGURES, else KeyError.
    """

    def __init__(self, operations: Iterable[str], process: str = "gateway") -> None:
        self._process = process
        self._operations = frozenset(operations)
        self._numbers: dict[str, dict[Labels, float]] = {
            figure.name: {(): 0.0}
            for figure in FIGURES
            if figure.kind is MetricKind.COUNTER and not figure.labels
        }
        self._asked: dict[str, Callable[[], Mapping[Labels, float]]] = {}
        self._histograms: dict[str, Callable[[], Iterable[Series]]] = {}
        self._lock = threading.Lock()
        self.hits = 0
        self._calls, self._backend_calls = Timings(), Timings()
        self.shown_records = ShownRecords()
        self.shown = self.shown_records.count
        self.ask("gateway_limit_hits_total", lambda: self.hits)
        self.ask_all("gateway_requests_total", self._calls.counts)
        self.ask_histogram("gateway_request_seconds", self._calls.durations)
        self.ask_all("gateway_backend_calls_total", self._backend_calls.counts)
        self.ask_histogram("gateway_backend_seconds", self._backend_calls.durations)
        self.ask_all("gateway_records_shown_total", lambda: self.shown_records.records)
        self.ask_all("gateway_fields_hidden_total", lambda: self.shown_records.fields)

    def count(self, operation: str, status: int, seconds: float) -> None:
        """One answered call; a name that is no operation is counted as `other`."""
        name = operation if operation in self._operations else OTHER
        self._calls.note((name, status), seconds)

    def backend_call(self, verb: str, resource: str, outcome: str, seconds: float | None) -> None:
        """What the practice system was asked: `outcome` is `answered`, or what it was instead."""
        self._backend_calls.note((verb, resource, outcome), seconds)

    def ask(self, name: str, value: Callable[[], float], *labels: str) -> None:
        """A figure that is looked up when the figures are read."""
        self.ask_all(name, lambda: {labels: value()})

    def ask_all(self, name: str, values: Callable[[], Mapping[Labels, float]]) -> None:
        """The same of all series of one figure."""
        self._asked[BY_NAME[name].name] = values

    def ask_histogram(self, name: str, series: Callable[[], Iterable[Series]]) -> None:
        """The same of a histogram."""
        self._histograms[BY_NAME[name].name] = series

    def add(self, name: str, times: float = 1, *labels: str) -> None:
        """So much more of a counter; from any thread, so it is nothing for every call."""
        series = self._numbers.setdefault(BY_NAME[name].name, {})
        with self._lock:
            series[labels] = series.get(labels, 0.0) + times

    def snapshot(self) -> Snapshot:
        """All figures as they are now, as plain data."""
        with self._lock:
            numbers = {name: dict(series) for name, series in self._numbers.items()}
        numbers |= {name: dict(values()) for name, values in self._asked.items()}
        found = {name: tuple(series()) for name, series in self._histograms.items()}
        for name, values in numbers.items():
            own = (self._process,) if BY_NAME[name].merge is Merge.EACH else ()
            found[name] = tuple(
                Series((*labels, *own), float(value)) for labels, value in values.items()
            )
        return found

    def text(self) -> bytes:
        """All figures of this process, in Prometheus' text form."""
        return exposition(self.snapshot())


def merged(snapshots: Iterable[Snapshot]) -> Snapshot:
    """The figures of a whole node, from those of its processes."""
    found: dict[str, dict[Labels, Series]] = {}
    for snapshot in snapshots:
        for name, several in snapshot.items():
            figure = BY_NAME.get(name)
            if figure is None:
                continue
            of_figure = found.setdefault(name, {})
            for series in several:
                _merge(of_figure, series, figure.merge)
    return {name: tuple(of_figure.values()) for name, of_figure in found.items()}


def lasting(last: Snapshot) -> Snapshot:
    """What still counts of a process that has ended: merge it, and no counter ever goes down."""
    kinds = {MetricKind.COUNTER, MetricKind.HISTOGRAM}
    return {
        name: series
        for name, series in last.items()
        if name in BY_NAME and BY_NAME[name].kind in kinds
    }


def _merge(into: dict[Labels, Series], other: Series, merge: Merge = Merge.SUM) -> None:
    """With what has the same labels; a histogram's buckets are added up."""
    if one := into.get(other.labels):
        buckets = tuple(a + b for a, b in zip(one.buckets, other.buckets, strict=True))
        other = Series(one.labels, _TAKEN[merge](one.value, other.value), buckets)
    into[other.labels] = other


def exposition(snapshot: Snapshot) -> bytes:
    """The figures in Prometheus' text form."""
    return generate_latest(_Snapshot(snapshot))


class _Snapshot(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        for figure in FIGURES:
            metric = Metric(
                figure.name.removesuffix("_total").removesuffix("_info"), figure.help, figure.kind
            )
            for series in sorted(self._snapshot.get(figure.name, ()), key=lambda one: one.labels):
                labels = dict(zip(figure.labels, series.labels, strict=True))
                if figure.kind is not MetricKind.HISTOGRAM:
                    metric.add_sample(figure.name, labels, series.value)
                    continue
                counts = list(accumulate(series.buckets))
                limits = map(floatToGoString, (*figure.buckets, inf))
                for limit, count in zip(limits, counts, strict=True):
                    metric.add_sample(f"{figure.name}_bucket", labels | {"le": limit}, count)
                metric.add_sample(f"{figure.name}_count", labels, counts[-1])
                metric.add_sample(f"{figure.name}_sum", labels, series.value)
            yield metric
