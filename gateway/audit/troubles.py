"""Says on stderr, and counts, what goes wrong with the audit; each once until it is over."""

from pathlib import Path

from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics
from gateway.store import StoreError


class AuditTroubles:
    """The watcher of the buffer, of the recorder and of the upkeep."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self._metrics = metrics
        self._events = events

    def failed(self, error: OSError, place: Path, reason: str) -> None:
        event = "the audit cannot be written: bookings are refused, and reads soon"
        self._events.outage(event, error, said=f"{place}: {reason}")

    def back(self) -> None:
        self._events.info("the audit can be written again")

    def dropped(self, lines: int) -> None:
        self._metrics.add("gateway_log_lines_lost_total", lines)

    def lost(self, lines: int) -> None:
        self._events.warn("entries of the audit are lost", lines=lines)

    def unrecorded(self, error: Exception) -> None:
        event = "the audit's head cannot be recorded in the store; it is tried again"
        self._events.fault(event, error, said=_sayable(error))

    def recorded(self) -> None:
        self._events.info("the audit's head is recorded again")

    def neglected(self, error: Exception) -> None:
        event = "the audit's index and retention cannot go on; they are tried again"
        self._events.fault(event, error, said=_sayable(error))

    def kept_again(self) -> None:
        self._events.info("the audit's index and retention go on again")

    def expired(self, files: int) -> None:
        self._events.info("old days of the audit were dropped", files=files)

    def kept(self, why: str) -> None:
        event = "old days of the audit stay: their files are not as they were written"
        self._events.warn(event, said=why)


def _sayable(error: Exception) -> str:
    if isinstance(error, StoreError):
        return str(error)
    return (error.strerror or "").lower() if isinstance(error, OSError) else ""
