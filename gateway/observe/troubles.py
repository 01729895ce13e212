"""What goes wrong with values of the practice system, with the logs, with the key store."""

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


class KeyTroubles:
    """Says on stderr how the following of the key store fares."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def failed(self, error: Exception, said: str) -> None:
        event = "the store cannot be read; the known keys go on for a minute"
        self._events.fault(event, error, said=said)

    def unsaved(self, error: Exception, said: str) -> None:
        self._events.fault("when keys were used last cannot be written", error, said=said)

    def back(self) -> None:
        self._events.info("the store can be read again")

    def odd(self, key_id: str) -> None:
        self._events.warn("a key makes no sense and counts as revoked", key=key_id)
