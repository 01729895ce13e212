"""Values and rows of the practice system that could not be used: counted, and logged by id."""

from adapters.base import Trouble
from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics

MOST_REMEMBERED = 10_000


class Troubles:
    """Counts each, and logs the same one once, as a partner may read one record many times."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self._metrics = metrics
        self._events = events
        self._known: set[Trouble] = set()

    def report(self, trouble: Trouble) -> None:
        """May be called from any thread."""
        self._metrics.trouble(trouble)
        if trouble in self._known:
            return
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known.add(trouble)
        self._events.trouble(trouble)
