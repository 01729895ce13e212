"""Notes each call when it has ended: access log, audit, figures, usage, faults."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from adapters.base import LeftAlone
from gateway.audit import entries
from gateway.audit.buffer import Unwritten
from gateway.audit.entries import Entry
from gateway.audit.journal import Journal
from gateway.contract import errors
from gateway.contract.errors import GatewayError, KeyInvalid, KeyMissing
from gateway.events import Events
from gateway.observe.access_log import Access
from gateway.observe.metrics import OTHER, Metrics
from gateway.pipeline.call import Call
from gateway.usage import Usage
from gateway.web.documents import ASSET

# Seconds after which refused keys are counted, all together. To count one takes a time that depends
# on what is wrong with it: done at once, that would delay the connection's next answer, and tell.
COUNTED_AFTER = 0.02


@dataclass(eq=False)
class Observers:
    """Where each call is noted when it has ended."""

    journal: Journal
    metrics: Metrics
    usage: Usage
    events: Events
    now: Callable[[], datetime]
    owner_of: Callable[[Sequence[str]], str]

    def __post_init__(self) -> None:
        self._uncounted: list[tuple[Call, str, KeyMissing | KeyInvalid, float]] = []

    def note(
        self, call: Call, operation: str, status: int, error: GatewayError | None, began: float
    ) -> None:
        """Both log lines and the figures of one call, and its key's usage."""
        seconds = time.perf_counter() - began
        self.metrics.count(operation, status, seconds)
        if error is not None:
            self._refused(call, operation, error, seconds)
        elif call.level is not None:
            self.metrics.shown(operation, call.level, call.policy, len(call.records))
        if call.quota is not None:
            self.metrics.hits += 1
        asking = call.asking
        key_id = None if call.key is None else call.key.id
        if key_id is not None:
            self.usage.count(key_id, operation or OTHER, status, seconds)
        if asking.traced:
            asking.ended(status, key_id)
        access = Access(
            call.at,
            call.request_id,
            key_id,
            operation,
            call.method,
            status,
            # whole microseconds, so that the line stays short
            int(seconds * 1e6) / 1000,
            int(asking.seconds * 1e6) / 1000,
            int(asking.waited * 1e6) / 1000 if asking.waited else 0.0,
            asking.trace_id if asking.traceparent else None,
        )
        if call.entry is None:
            counted = call.quota is not None and call.quota.admitted
            told = operation != ASSET or error is not None
            entry = entry_of(call, operation, call.at, error) if told else None
            self.journal.note(access, entry, counted=counted)
        else:
            self.journal.note(access, None)
            if error is not None:
                self.journal.audit.amend(call.entry, outcome(error), type(error).__name__)

    def _count_all_refused(self) -> None:
        """For the keys whose secrets these were, as far as there are such."""
        uncounted, self._uncounted = self._uncounted, []
        for call, operation, error, seconds in uncounted:
            self.usage.count(self.owner_of(call.secrets), operation, error.status, seconds)
            reason = type(error).__name__
            if isinstance(error, KeyInvalid) and error.used_elsewhere:
                key = error.used_elsewhere
                self.events.report("key_used_elsewhere", key=key, address=call.address)
                reason = "KeyUsedElsewhere"
            self.metrics.add("gateway_authentication_failures_total", 1, reason)

    async def keep(self, call: Call, operation: str) -> None:
        """The entry of a booking that was made is on disk; BookingUnknown where it is not.

        The booking stands in the ledger: asked for again, it is told once its entry can be written.
        """
        call.entry = entry_of(call, operation, self.now(), None)
        self.journal.audit.note(call.entry)
        try:
            await self.journal.audit.commit()
        except Unwritten as error:
            if call.mark_untold is not None:
                await call.mark_untold()
            if call.upload.idempotency_keys():
                raise errors.BookingUnknown from error
            raise errors.BookingUnknownWithoutKey from error
        self.journal.recorder.soon()

    def _refused(self, call: Call, operation: str, error: GatewayError, seconds: float) -> None:
        if isinstance(error, KeyMissing | KeyInvalid):
            self.events.report("calls_without_key", address=call.address)
            if call.key is None:
                if not self._uncounted:
                    asyncio.get_running_loop().call_later(COUNTED_AFTER, self._count_all_refused)
                self._uncounted.append((call, operation or OTHER, error, seconds))
            else:  # it was good until its booking's body had come
                self.metrics.add("gateway_authentication_failures_total", 1, type(error).__name__)
        elif isinstance(error, errors.LimitExceeded):
            self.metrics.add("gateway_limit_denials_total")
        elif error.status >= 500 and not isinstance(error.__cause__, LeftAlone | None):
            self.events.report(
                "call_failed",
                error.__cause__,
                answered=error.status,
                operation=operation,
                request=call.request_id,
            )

    async def flush(self) -> None:
        """Count what is not counted yet, and write at once what waits in the logs."""
        self._count_all_refused()
        await self.journal.flush()


def entry_of(call: Call, operation: str, now: datetime, error: GatewayError | None) -> Entry:
    """What the audit holds of a call that has ended so."""
    if error is None:
        return call.told(now, operation, entries.ANSWERED)
    return call.told(now, operation, outcome(error), type(error).__name__)


def outcome(error: GatewayError) -> str:
    """How a call that was not answered ended, for the audit."""
    if isinstance(error, errors.BookingUnknown):
        return entries.UNKNOWN
    return entries.REFUSED if error.status < 500 else entries.FAILED
