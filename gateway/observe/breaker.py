"""What the breaker in front of the practice system does, in events and figures."""

from gateway.events import Events
from gateway.observe.metrics import Metrics

BREAKER = ("closed", "half-open", "open")


class BackendTroubles:
    """Says when the practice system is left alone, and when it is back.

    `state` is its breaker's: `closed`, `open` or `half-open`.
    """

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self.state = "closed"
        self.metrics = metrics
        self._events = events
        self._alone = False
        metrics.ask("gateway_backend_breaker", lambda: BREAKER.index(self.state))

    def changed(self, state: str) -> None:
        """The breaker's new state; a try that fails is no news."""
        self.state = state
        if state == "open" and not self._alone:
            self._alone = True
            self._events.report("practice_left_alone")
        elif state == "closed":
            self._alone = False
            self._events.report("practice_answers")
