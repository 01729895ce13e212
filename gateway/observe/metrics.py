"""What is counted, in a registry of its own, in the text form that Prometheus reads."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import accumulate

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Info,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from adapters.base import Trouble

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
OTHER = "other"
BREAKER = ("closed", "half-open", "open")


class _Tally:
    """The calls of one operation with one status."""

    __slots__ = ("buckets", "count", "seconds")

    def __init__(self) -> None:
        self.count, self.seconds = 0, 0.0
        self.buckets = [0] * (len(_SECONDS) + 1)


class Calls(Collector):
    """Counts the answered calls.

    Plain numbers, made into Prometheus' families when they are read: its own counters and
    histograms lock for each call what only the event loop's thread ever touches.
    """

    def __init__(self, operations: Iterable[str]) -> None:
        self._operations = frozenset(operations)
        self._tallies: dict[tuple[str, int], _Tally] = {}

    def count(self, operation: str, status: int, seconds: float) -> None:
        """One answered call; a name that is no operation is counted as `other`."""
        tally = self._tallies.get((operation, status))
        if tally is None:
            name = operation if operation in self._operations else OTHER
            tally = self._tallies.setdefault((name, status), _Tally())
            self._tallies[operation, status] = tally
        tally.count += 1
        tally.seconds += seconds
        tally.buckets[bisect_left(_SECONDS, seconds)] += 1

    def collect(self) -> Iterator[Metric]:
        """The counter by operation and status, and the histogram by operation."""
        requests = CounterMetricFamily(
            "gateway_requests", "Calls by operation and status.", labels=["operation", "status"]
        )
        latency = HistogramMetricFamily(
            "gateway_request_seconds",
            "Seconds from the head of a call to its answer, by operation.",
            labels=["operation"],
        )
        whole: dict[str, _Tally] = {}
        for (name, status), tally in sorted(self._tallies.items()):
            if name not in self._operations and name != OTHER:
                continue
            requests.add_metric([name, str(status)], tally.count)
            total = whole.setdefault(name, _Tally())
            total.seconds += tally.seconds
            total.buckets = [a + b for a, b in zip(total.buckets, tally.buckets, strict=True)]
        limits = [*map(floatToGoString, _SECONDS), "+Inf"]
        for name, total in whole.items():
            buckets = list(zip(limits, accumulate(total.buckets), strict=True))
            latency.add_metric([name], buckets, sum_value=total.seconds)
        yield requests
        yield latency


class BackendCalls(Collector):
    """Counts what the practice system was asked, in plain numbers too."""

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, str, str], int] = {}

    def count(self, verb: str, resource: str, outcome: str) -> None:
        """One call; `outcome` is `answered`, or what it was instead."""
        call = (verb, resource, outcome)
        self._tallies[call] = self._tallies.get(call, 0) + 1

    def collect(self) -> Iterator[Metric]:
        """The counter by verb, resource and outcome."""
        calls = CounterMetricFamily(
            "gateway_backend_calls",
            "Calls of the practice system: what was asked of which resource, and what became of"
            " it.",
            labels=["verb", "resource", "outcome"],
        )
        for call, times in sorted(self._tallies.items()):
            calls.add_metric(list(call), times)
        yield calls


class Metrics:
    """The gateway's figures; `operations` are the names that may stand in a label."""

    def __init__(self, operations: Iterable[str]) -> None:
        # else each counter comes with a series that says when it was made
        disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no types
        self.registry = CollectorRegistry()
        self._calls = Calls(operations)
        self.registry.register(self._calls)
        self.count = self._calls.count
        backend = BackendCalls()
        self.registry.register(backend)
        self.backend_call = backend.count
        self._failed_keys = Counter(
            "gateway_authentication_failures",
            "Calls without a usable key.",
            ["reason"],
            registry=self.registry,
        )
        self._turned_away = Counter(
            "gateway_connections_turned_away",
            "Connections refused since their address or the process held too many (address,"
            " process) or no file was left (files), closed to make room (idle) or for a reader that"
            " took too long (reader), and handshakes that failed (tls).",
            ["reason"],
            registry=self.registry,
        )
        self._denied = Counter(
            "gateway_limit_denials", "Calls beyond a key's hour.", registry=self.registry
        )
        self._troubles = Counter(
            "gateway_unusable_values",
            "Values and rows of the practice system that could not be used.",
            ["kind", "resource", "field"],
            registry=self.registry,
        )
        self._lines_lost = Counter(
            "gateway_log_lines_lost",
            "Lines of the access log and the audit that could not be kept.",
            registry=self.registry,
        )
        self._usage_lost = Counter(
            "gateway_usage_lost",
            "Calls that are missing in the usage of their keys.",
            registry=self.registry,
        )
        self._policy = Info(
            "gateway_policy",
            "The policy in force, and what lies in its file.",
            registry=self.registry,
        )
        self._policy_loaded = Gauge(
            "gateway_policy_loaded_timestamp_seconds",
            "When the policy in force began to be so, in seconds since 1970.",
            registry=self.registry,
        )
        self._policy_stale = Gauge(
            "gateway_policy_stale",
            "Whether the policy's file is another one than what runs, since it was refused or is"
            " held back: 0 no, 1 yes.",
            registry=self.registry,
        )
        self._policy_reloads = Counter(
            "gateway_policy_reloads",
            "Changes of the policy's file: loaded, refused, held back.",
            ["outcome"],
            registry=self.registry,
        )

    def refused_key(self, reason: str) -> None:
        """A call whose key is missing or invalid."""
        self._failed_keys.labels(reason).inc()

    def denied(self) -> None:
        """A call that the limiter turned down."""
        self._denied.inc()

    def trouble(self, trouble: Trouble) -> None:
        """A value or row that could not be used."""
        self._troubles.labels(trouble.kind, trouble.resource, trouble.field).inc()

    def lines_lost(self, lines: int) -> None:
        """Lines of a log that will not be written any more."""
        self._lines_lost.inc(lines)

    def usage_lost(self, calls: int) -> None:
        """Calls that will not be written into the usage any more."""
        self._usage_lost.inc(calls)

    def policy(self, short_hash: str, file_hash: str) -> None:
        """The policy in force, and what lies in its file: "" where that cannot be read."""
        self._policy.info({"hash": short_hash, "file_hash": file_hash})

    def policy_loaded(self, at: datetime) -> None:
        """Since when it is in force."""
        self._policy_loaded.set(at.timestamp())

    def policy_stale(self, *, is_stale: bool) -> None:
        """Whether the file is another one."""
        self._policy_stale.set(is_stale)

    def policy_reload(self, outcome: str) -> None:
        """The file has changed, and what came of it."""
        self._policy_reloads.labels(outcome).inc()

    def keys_loaded(self, count: Callable[[], float]) -> None:
        """How many keys are known, asked when the figures are read."""
        gauge = Gauge(
            "gateway_keys_loaded", "Keys that are known and not revoked.", registry=self.registry
        )
        gauge.set_function(count)

    def connections(self, count: Callable[[], float]) -> None:
        """How many connections partners hold, asked when the figures are read."""
        gauge = Gauge(
            "gateway_connections", "Connections that are open now.", registry=self.registry
        )
        gauge.set_function(count)

    def turned_away(self, reason: str) -> None:
        """A connection that was refused or closed since there were too many or it was too slow."""
        self._turned_away.labels(reason).inc()

    def overwritten(self, count: Callable[[], float]) -> None:
        """How many bookings something else is written over, asked when the figures are read."""
        gauge = Gauge(
            "gateway_bookings_overwritten",
            "Coming bookings over which the practice's desk has written something else.",
            registry=self.registry,
        )
        gauge.set_function(count)

    def breaker(self, state: Callable[[], str]) -> None:
        """Whether the practice system is asked, looked at when the figures are read."""
        gauge = Gauge(
            "gateway_backend_breaker",
            "Whether the practice system is asked: 0 yes, 1 by one call that tries it, 2 no.",
            registry=self.registry,
        )
        gauge.set_function(lambda: BREAKER.index(state()))

    def text(self) -> bytes:
        """All figures, in Prometheus' text form."""
        return generate_latest(self.registry)
