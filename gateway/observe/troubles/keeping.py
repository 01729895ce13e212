"""What is not kept as it should be: lines of the logs, spans, the sums of each key's calls."""

from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics


class LogTroubles:
    """Says on stderr, and counts, what the access log and the audit do not hold."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self._metrics = metrics
        self._events = events

    def failed(self, error: OSError) -> None:
        self._events.fault("the access log or the audit cannot be written", error)

    def dropped(self, lines: int) -> None:
        self._metrics.lines_lost(lines)

    def lost(self, file: str, lines: int) -> None:
        self._events.warn("lines of a log are lost", file=file, lines=lines)


class TraceTroubles:
    """Says on stderr, and counts, what the collector of traces does not take; from any thread."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self._metrics = metrics
        self._events = events

    def lost(self, spans: int) -> None:
        self._metrics.add("gateway_spans_lost_total", spans)

    def failed(self) -> None:
        self._events.warn("the collector of traces takes no spans: these are lost")


class UsageTroubles:
    """Says on stderr, and counts, what the sums of each key's calls do not hold."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self._metrics = metrics
        self._events = events

    def failed(self, error: Exception, said: str) -> None:
        event = "how often keys call cannot be written yet; it is kept"
        self._events.fault(event, error, said=said)

    def dropped(self, calls: int) -> None:
        self._metrics.usage_lost(calls)

    def lost(self, calls: int) -> None:
        self._events.warn("calls are missing in the usage of their keys", calls=calls)
