"""What goes wrong with the practice system: its values, its calls, and bookings in it."""

from collections.abc import Callable, Mapping

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


class BackendTroubles:
    """Counts the practice system's calls, and says when it is left alone and when it is back.

    `state` is its breaker's: `closed`, `open` or `half-open`.
    """

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self.state = "closed"
        self.called = metrics.backend_call
        self._events = events
        self._alone = False
        self._metrics = metrics
        metrics.breaker(lambda: self.state)

    def watch_pool(self, in_use: Callable[[], float], waiting: Callable[[], float]) -> None:
        """How many calls of it are under way, and how many wait."""
        self._metrics.ask("gateway_backend_pool_in_use", in_use)
        self._metrics.ask("gateway_backend_pool_waiting", waiting)

    def watch_cache(
        self,
        outcomes: Mapping[str, float],
        entries: Callable[[], float],
        size: Callable[[], float],
    ) -> None:
        """What became of reads that may be remembered, and how much is."""

        def reads() -> Mapping[tuple[str, ...], float]:
            return {(outcome,): times for outcome, times in outcomes.items()}

        self._metrics.ask_all("gateway_cache_reads_total", reads)
        self._metrics.ask("gateway_cache_entries", entries)
        self._metrics.ask("gateway_cache_bytes", size)

    def mapping_warning(self, place: str, said: str) -> None:
        """What a sample of its records says of the mapping."""
        event = "the mapping may be wrong: `clinic-gateway backend check` looks at more records"
        self._events.warn(event, place=place, said=said)

    def changed(self, state: str) -> None:
        """The breaker's new state; a try that fails is no news."""
        self.state = state
        if state == "open" and not self._alone:
            self._alone = True
            self._events.warn("the practice system failed too often in a row: it is left alone")
        elif state == "closed":
            self._alone = False
            self._events.info("the practice system answers again")


class BookingTroubles:
    """Says on stderr what becomes of bookings that the gateway cannot put right by itself."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def overwritten(self, appointment: str) -> None:
        event = "the practice's desk has written over a booking of a partner's"
        self._events.warn(event, appointment=appointment)

    def unreadable(self, appointment: str) -> None:
        event = "a booking of a partner's cannot be read, so that nobody knows what became of it"
        self._events.warn(event, appointment=appointment)

    def watch_failed(self, error: Exception) -> None:
        self._events.fault("the bookings cannot be watched", error, said=str(error))

    def outcome_waits(self, error: Exception) -> None:
        event = "a booking's outcome cannot be written yet; it is kept"
        self._events.fault(event, error, said=str(error))

    def found(self, appointment: str) -> None:
        event = "a booking whose outcome was not known was made"
        self._events.info(event, appointment=appointment)

    def released(self, reference: str) -> None:
        event = "a booking whose outcome was not known was not made: its time is free again"
        self._events.info(event, reference=reference)

    def illegible(self, reference: str) -> None:
        event = "a booking whose outcome is not known cannot be looked up: its row is not readable"
        remedy = "look in the diary; its time stays taken until it is over, for a week at least"
        self._events.warn(event, reference=reference, remedy=remedy)

    def made_twice(self, appointment: str) -> None:
        event = "a process that had been taken for dead made an appointment beside another one"
        remedy = "look the appointment up, and cancel it where it is one too many"
        self._events.warn(event, appointment=appointment, remedy=remedy)
