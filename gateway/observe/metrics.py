"""What is counted: one method per kind of event, and one snapshot of it all."""

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from adapters.base import Trouble
from gateway.observe.figures import BY_NAME, Kind, Merge
from gateway.observe.merged import Labels, Sample, Snapshot, exposition
from gateway.observe.tallies import OTHER, BackendCalls, Calls, Hidden, Shown

__all__ = ["CONTENT_TYPE", "OTHER", "Metrics"]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BREAKER = ("closed", "half-open", "open")


class Metrics:
    """The gateway's figures; `operations` are the names that may stand in a label.

    `process` is what this process is called beside others of the same node.
    """

    def __init__(self, operations: Iterable[str], process: str = "gateway") -> None:
        self._process = process
        self._numbers: dict[str, dict[Labels, float]] = {
            each.name: {(): 0.0}
            for each in BY_NAME.values()
            if each.kind is Kind.COUNTER and not each.labels
        }
        self._asked: dict[str, Callable[[], Mapping[Labels, float]]] = {}
        self._told: dict[str, Callable[[], Iterable[Sample]]] = {}
        self._lock = threading.Lock()
        self.hits = 0
        self.ask("gateway_limit_hits_total", lambda: self.hits)
        self._count_calls(operations)

    def _count_calls(self, operations: Iterable[str]) -> None:
        calls, backend, self._shown = Calls(operations), BackendCalls(), Shown()
        self.count = calls.count
        self.backend_call = backend.count
        self.shown = self._shown.count
        self.ask_all("gateway_requests_total", calls.requests)
        self.tell("gateway_request_seconds", calls.latency)
        self.ask_all("gateway_backend_calls_total", backend.calls)
        self.tell("gateway_backend_seconds", backend.latency)
        self.ask_all("gateway_records_shown_total", self._shown.records)
        self.ask_all("gateway_fields_hidden_total", self._shown.fields)

    def hides(self, hidden: Hidden) -> None:
        """Who knows how many fields a level does not see."""
        self._shown.hidden = hidden

    def ask(self, name: str, value: Callable[[], float], *labels: str) -> None:
        """A figure that is looked up when the figures are read."""
        self.ask_all(name, lambda: {labels: value()})

    def ask_all(self, name: str, values: Callable[[], Mapping[Labels, float]]) -> None:
        """The same of all series of one figure; KeyError for a name that is none's."""
        self._asked[BY_NAME[name].name] = values

    def tell(self, name: str, samples: Callable[[], Iterable[Sample]]) -> None:
        """The same of a histogram."""
        self._told[BY_NAME[name].name] = samples

    def add(self, name: str, times: float = 1, *labels: str) -> None:
        """So much more of a counter; from any thread, so it is nothing for every call."""
        series = self._numbers.setdefault(BY_NAME[name].name, {})
        with self._lock:
            series[labels] = series.get(labels, 0.0) + times

    def put(self, name: str, value: float, *labels: str) -> None:
        """A gauge's value from now on."""
        self._numbers.setdefault(BY_NAME[name].name, {})[labels] = value

    def refused_key(self, reason: str) -> None:
        """A call whose key is missing or invalid."""
        self.add("gateway_authentication_failures_total", 1, reason)

    def denied(self) -> None:
        """A call that the limiter turned down."""
        self.add("gateway_limit_denials_total")

    def counted_here(self) -> None:
        """A call that is counted against this process's share of a limit."""
        self.add("gateway_limiter_local_total")

    def limiter(self, is_degraded: Callable[[], bool]) -> None:
        """Whether the limiter is down, looked at when the figures are read."""
        self.ask("gateway_limiter_degraded", is_degraded)

    def trouble(self, trouble: Trouble) -> None:
        """A value or row that could not be used; from any thread."""
        labels = (trouble.kind, trouble.resource, trouble.field)
        self.add("gateway_unusable_values_total", 1, *labels)

    def lines_lost(self, lines: int) -> None:
        """Lines of a log that will not be written any more."""
        self.add("gateway_log_lines_lost_total", lines)

    def usage_lost(self, calls: int) -> None:
        """Calls that will not be written into the usage any more."""
        self.add("gateway_usage_lost_total", calls)

    def policy(self, short_hash: str, file_hash: str) -> None:
        """The policy in force, and what lies in its file: "" where that cannot be read."""
        self._numbers["gateway_policy_info"] = {(short_hash, file_hash): 1}

    def policy_loaded(self, at: datetime) -> None:
        """Since when it is in force."""
        self.put("gateway_policy_loaded_timestamp_seconds", at.timestamp())

    def policy_stale(self, *, is_stale: bool) -> None:
        """Whether the file is another one."""
        self.put("gateway_policy_stale", is_stale)

    def policy_cases(self, failing: int) -> None:
        """How many of the cases beside the policy fail."""
        self.put("gateway_policy_cases_failing", failing)

    def policy_reload(self, outcome: str) -> None:
        """The file has changed, and what came of it."""
        self.add("gateway_policy_reloads_total", 1, outcome)

    def keys_loaded(self, count: Callable[[], float]) -> None:
        """How many keys are known."""
        self.ask("gateway_keys_loaded", count)

    def turned_away(self, reason: str) -> None:
        """A connection that was refused or closed since there were too many or it was too slow."""
        self.add("gateway_connections_turned_away_total", 1, reason)

    def call_turned_away(self, reason: str) -> None:
        """A call for which there was no room in time."""
        self.add("gateway_calls_turned_away_total", 1, reason)

    def overwritten(self, count: Callable[[], float]) -> None:
        """How many bookings something else is written over."""
        self.ask("gateway_bookings_overwritten", count)

    def breaker(self, state: Callable[[], str]) -> None:
        """Whether the practice system is asked."""
        self.ask("gateway_backend_breaker", lambda: BREAKER.index(state()))

    def snapshot(self) -> Snapshot:
        """All figures as they are now, as plain data."""
        with self._lock:
            numbers = {name: dict(series) for name, series in self._numbers.items()}
        numbers |= {name: dict(values()) for name, values in self._asked.items()}
        found = {name: self._samples(name, series) for name, series in numbers.items()}
        return found | {name: tuple(samples()) for name, samples in self._told.items()}

    def _samples(self, name: str, series: Mapping[Labels, float]) -> tuple[Sample, ...]:
        own = (self._process,) if BY_NAME[name].merge is Merge.EACH else ()
        return tuple(Sample((*labels, *own), float(value)) for labels, value in series.items())

    def text(self) -> bytes:
        """All figures of this process, in Prometheus' text form."""
        return exposition(self.snapshot())
