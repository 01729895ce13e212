"""What goes wrong with who may call, and how often: the stored keys and the limiter."""

from datetime import datetime

from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics


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

    def behind(self, now: datetime, latest: datetime) -> None:
        self._events.warn(
            "the clock is behind the latest time that the store has seen: keys end by that",
            clock=now.isoformat(timespec="seconds"),
            latest=latest.isoformat(timespec="seconds"),
            remedy="set the clock; if it is right: clinic-gateway state clock --accept",
        )

    def odd(self, key_id: str) -> None:
        self._events.warn("a key makes no sense and counts as revoked", key=key_id)


class LimiterTroubles:
    """Counts the calls that this process counted by itself, and says why, and until when."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self._events = events
        self.counted_here = metrics.counted_here

    def degraded(self, why: str) -> None:
        event = "the limiter is down: each process counts its share of every limit"
        self._events.warn(event, reason=why)

    def restored(self) -> None:
        self._events.info("the limiter counts for all processes again")

    def full(self, why: str) -> None:
        event = "the limiter has no room for a key: this process counts its share of its limit"
        self._events.warn(event, reason=why)
