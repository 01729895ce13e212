"""What one process counts as plain data, the sum of several, and the text that Prometheus reads.

A snapshot can be written as JSON, so that a process can hand it to another. A process that has
ended stays in the sums through `lasting`: no counter ever goes down.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from msgspec import Struct, json
from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from gateway.observe.figures import BY_NAME, FIGURES, Figure, Kind, Merge

Labels = tuple[str, ...]
# What is taken of two processes' values.
_TAKEN: Mapping[Merge, Callable[[float, float], float]] = {
    Merge.SUM: lambda one, other: one + other,
    Merge.MAX: max,
    Merge.MIN: min,
    Merge.EACH: lambda one, other: other,
}
# Of a process that has ended only these still count.
_LASTING = (Kind.COUNTER, Kind.HISTOGRAM)


class Sample(Struct, frozen=True):
    """One series: a value, or of a histogram its buckets (each by itself) and the sum."""

    labels: Labels
    value: float = 0.0
    buckets: tuple[int, ...] = ()


# Figure name -> its series. A name that no figure has is passed over: another version wrote it.
Snapshot = Mapping[str, tuple[Sample, ...]]


def to_json(snapshot: Snapshot) -> bytes:
    """For another process."""
    return json.encode(snapshot)


def from_json(data: bytes) -> Snapshot:
    """What another process wrote; msgspec.DecodeError for what is cut off or none."""
    return json.decode(data, type=dict[str, tuple[Sample, ...]])


def merged(snapshots: Iterable[Snapshot]) -> Snapshot:
    """The figures of a whole node, from those of its processes."""
    found: dict[str, dict[Labels, Sample]] = {}
    for snapshot in snapshots:
        for name, samples in snapshot.items():
            figure = BY_NAME.get(name)
            if figure is not None:
                _take_in(figure, found.setdefault(name, {}), samples)
    return {name: tuple(series.values()) for name, series in found.items()}


def lasting(last: Snapshot) -> Snapshot:
    """What still counts of a process that has ended: merge it with those that live."""
    return {
        name: samples
        for name, samples in last.items()
        if name in BY_NAME and BY_NAME[name].kind in _LASTING
    }


def _take_in(figure: Figure, series: dict[Labels, Sample], samples: Iterable[Sample]) -> None:
    for each in samples:
        before = series.get(each.labels)
        series[each.labels] = each if before is None else _both(figure, before, each)


def _both(figure: Figure, one: Sample, other: Sample) -> Sample:
    if figure.kind is Kind.HISTOGRAM:
        buckets = tuple(a + b for a, b in zip(one.buckets, other.buckets, strict=True))
        return Sample(one.labels, one.value + other.value, buckets)
    return Sample(one.labels, _TAKEN[figure.merge](one.value, other.value))


def exposition(snapshot: Snapshot) -> bytes:
    """The figures in Prometheus' text form."""
    return generate_latest(_Told(snapshot))


class _Told(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        for figure in FIGURES:
            yield _family(figure, self._snapshot.get(figure.name, ()))


def _family(figure: Figure, samples: Iterable[Sample]) -> Metric:
    ordered = sorted(samples, key=lambda each: each.labels)
    labels = figure.labels
    if figure.kind is Kind.HISTOGRAM:
        return _histogram(figure, ordered)
    if figure.kind is Kind.INFO:
        info = InfoMetricFamily(figure.name.removesuffix("_info"), figure.help)
        for each in ordered:
            info.add_metric([], dict(zip(labels, each.labels, strict=True)))
        return info
    family: Any = CounterMetricFamily if figure.kind is Kind.COUNTER else GaugeMetricFamily
    made: CounterMetricFamily | GaugeMetricFamily = family(figure.name, figure.help, labels=labels)
    for each in ordered:
        made.add_metric(each.labels, each.value)
    return made


def _histogram(figure: Figure, samples: Iterable[Sample]) -> Metric:
    family = HistogramMetricFamily(figure.name, figure.help, labels=figure.labels)
    limits = [*map(floatToGoString, figure.buckets), "+Inf"]
    for each in samples:
        buckets = list(zip(limits, accumulate(each.buckets), strict=True))
        family.add_metric(each.labels, buckets, sum_value=each.value)
    return family
