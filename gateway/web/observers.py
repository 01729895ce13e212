"""Notes each ended call: in the access log, the audit, the figures, the usage and the events."""

import asyncio
import time
from collections.abc import Callable
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
from gateway.observe.lines import Access
from gateway.observe.metrics import OTHER, Metrics
from gateway.pipeline.call import Call
from gateway.usage import Usage
from gateway.web.documents import ASSET

# Seconds after which refused keys are counted, all together. To count one takes a time that depends
# on what is wrong with it. Done at once, the delay of the next answer would reveal that.
COUNTED_AFTER = 0.02


@dataclass(eq=False)
class Observers:
    """The places where each ended call is noted."""

    journal: Journal
    metrics: Metrics
    usage: Usage
    events: Events
    now: Callable[[], datetime]
    owner_of: Callable[[bytes], str]

    def __post_init__(self) -> None:
        self._uncounted: list[tuple[Call, str, KeyMissing | KeyInvalid, float]] = []

    def note(
        self, call: Call, operation: str, status: int, error: GatewayError | None, began: float
    ) -> None:
        """Notes a call in the access log, the audit, the figures, and the usage of its key."""
        seconds = time.perf_counter() - began
        metrics, asking, key, quota = self.metrics, call.asking, call.key, call.quota
        metrics.count(operation, status, seconds)
        if error is not None:
            self._refused(call, operation, error, seconds)
        elif call.level is not None:
            metrics.shown(operation, call.level, call.policy, len(call.records))
        if quota is not None:
            metrics.hits += 1
        key_id = None if key is None else key.id
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
            int(asking.seconds * 1e6) / 1000 if asking.seconds else 0.0,
            int(asking.waited * 1e6) / 1000 if asking.waited else 0.0,
            asking.trace_id if asking.traceparent else None,
        )
        if call.entry is None:
            counted = quota is not None and quota.admitted
            is_audited = operation != ASSET or error is not None
            entry = entry_of(call, operation, call.at, error) if is_audited else None
            self.journal.note(access, entry, counted=counted)
        else:
            self.journal.note(access, None)
            if error is not None:
                self.journal.audit.amend(call.entry, outcome(error), type(error).__name__)

    def _count_all_refused(self) -> None:
        """Counts the refused calls, for the keys whose secrets they named where there are such."""
        uncounted, self._uncounted = self._uncounted, []
        for call, operation, error, seconds in uncounted:
            owner = "" if call.digest is None else self.owner_of(call.digest)
            self.usage.count(owner, operation, error.status, seconds)
            reason = type(error).__name__
            if isinstance(error, KeyInvalid) and error.used_elsewhere:
                key = error.used_elsewhere
                self.events.report("key_used_elsewhere", key=key, address=call.address)
                reason = "KeyUsedElsewhere"
            self.metrics.add("gateway_authentication_failures_total", 1, reason)

    async def keep(self, call: Call, operation: str) -> None:
        """Writes the audit entry of a booking to disk; raises BookingUnknown where that fails.

        The ledger keeps the booking: a repeated call is answered once its entry can be written.
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
            else:  # it was valid until the body of its booking had come
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
        """Counts what is not counted yet, and writes at once what waits in the logs."""
        self._count_all_refused()
        await self.journal.flush()


def entry_of(call: Call, operation: str, now: datetime, error: GatewayError | None) -> Entry:
    """Returns the audit entry of a call that ended with that error, or with none."""
    if error is None:
        return call.audit_entry(now, operation, entries.ANSWERED)
    return call.audit_entry(now, operation, outcome(error), type(error).__name__)


def outcome(error: GatewayError) -> str:
    """Returns the outcome of a call with that error, as the audit has it."""
    if isinstance(error, errors.BookingUnknown):
        return entries.UNKNOWN
    return entries.REFUSED if error.status < 500 else entries.FAILED
