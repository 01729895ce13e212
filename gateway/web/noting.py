"""Notes each call when it has ended: access log, audit, figures, usage, faults."""

import time
from collections.abc import Callable
from datetime import datetime

from gateway.contract.errors import (
    BookingUnknown,
    GatewayError,
    KeyInvalid,
    KeyMissing,
    LimitExceeded,
)
from gateway.observe import audit
from gateway.observe.audit import Access, Audit, Journal
from gateway.observe.logs import Events
from gateway.observe.metrics import OTHER, Metrics
from gateway.observe.troubles import KeyGuesses
from gateway.pipeline.call import Call
from gateway.usage.counting import Usage


class Observers:
    """Where each call is noted when it has ended."""

    def __init__(
        self,
        journal: Journal,
        metrics: Metrics,
        usage: Usage,
        events: Events,
        now: Callable[[], datetime],
    ) -> None:
        self.journal = journal
        self.metrics = metrics
        self.usage = usage
        self.events = events
        self.key_guesses = KeyGuesses(events)
        self._now = now

    def note(
        self, call: Call, operation: str, status: int, error: GatewayError | None, began: float
    ) -> None:
        """Both log lines and the figures of one call, and its key's usage."""
        seconds = time.perf_counter() - began
        self.metrics.count(operation, status, seconds)
        if error is not None:
            self._refused(call, operation, error)
        now = self._now()
        # whole microseconds, so that the line stays short
        milliseconds = int(seconds * 1e6) / 1000
        key_id = None if call.key is None else call.key.id
        if key_id is not None:
            self.usage.count(key_id, operation or OTHER, status)
        self.journal.note(
            Access(now, call.request_id, key_id, operation, call.method, status, milliseconds),
            Audit(
                now,
                call.request_id,
                key_id,
                operation,
                call.records,
                call.level,
                call.policy,
                audit.ANSWERED if error is None else outcome(error),
                None if error is None else type(error).__name__,
            ),
        )

    def _refused(self, call: Call, operation: str, error: GatewayError) -> None:
        if isinstance(error, KeyMissing | KeyInvalid):
            self.metrics.refused_key(type(error).__name__)
            self.key_guesses.note(call.address)
        elif isinstance(error, LimitExceeded):
            self.metrics.denied()
        elif error.status >= 500 and error.__cause__ is not None:
            self.events.fault(
                "call failed",
                error.__cause__,
                answered=error.status,
                operation=operation,
                request=call.request_id,
            )

    def unparsed(self, status: int, kind: str) -> None:
        """What could not be parsed; its bytes stay out of every log."""
        self.metrics.count("", status, 0.0)
        self.events.info("not a request", error=kind, answered=status)

    def flush(self) -> None:
        """Write at once what waits in the logs."""
        self.journal.flush()


def outcome(error: GatewayError) -> str:
    """How a call that was not answered ended, for the audit."""
    if isinstance(error, BookingUnknown):
        return audit.UNKNOWN
    return audit.REFUSED if error.status < 500 else audit.FAILED
