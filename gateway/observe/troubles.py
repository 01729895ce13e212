"""What goes wrong with values, bookings, the logs, the store and the policy, and who says it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from adapters.base import Trouble
from gateway.observe.lines import printable
from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics

BREAKER = ("closed", "half-open", "open")
MOST_REMEMBERED = 10_000


class Troubles:
    """Counts each, and logs the same one once, as a partner may read one record many times."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self._metrics = metrics
        self._events = events
        self._known: set[Trouble] = set()

    def report(self, trouble: Trouble) -> None:
        """May be called from any thread."""
        self._metrics.add(
            "gateway_unusable_values_total", 1, trouble.kind, trouble.resource, trouble.field
        )
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
        metrics.ask("gateway_backend_breaker", lambda: BREAKER.index(self.state))

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


@dataclass(frozen=True, slots=True)
class BookingTroubles:
    """Says on stderr what becomes of bookings that the gateway cannot put right by itself."""

    events: Events

    def overwritten(self, appointment: str) -> None:
        event = "the practice's desk has written over a booking of a partner's"
        self.events.warn(event, appointment=appointment)

    def unreadable(self, appointment: str) -> None:
        event = "a booking of a partner's cannot be read, so that nobody knows what became of it"
        self.events.warn(event, appointment=appointment)

    def watch_failed(self, error: Exception) -> None:
        self.events.fault("the bookings cannot be watched", error, said=str(error))

    def outcome_waits(self, error: Exception) -> None:
        event = "a booking's outcome cannot be written yet; it is kept"
        self.events.fault(event, error, said=str(error))

    def found(self, appointment: str) -> None:
        event = "a booking whose outcome was not known was made"
        self.events.info(event, appointment=appointment)

    def released(self, reference: str) -> None:
        event = "a booking whose outcome was not known was not made: its time is free again"
        self.events.info(event, reference=reference)

    def illegible(self, reference: str) -> None:
        event = "a booking whose outcome is not known cannot be looked up: its row is not readable"
        remedy = "look in the diary; its time stays taken until it is over, for a week at least"
        self.events.warn(event, reference=reference, remedy=remedy)

    def made_twice(self, appointment: str) -> None:
        event = "a process that had been taken for dead made an appointment beside another one"
        remedy = "look the appointment up, and cancel it where it is one too many"
        self.events.warn(event, appointment=appointment, remedy=remedy)


@dataclass(frozen=True, slots=True)
class KeyTroubles:
    """Says on stderr how the following of the key store fares."""

    events: Events

    def failed(self, error: Exception, said: str) -> None:
        event = "the store cannot be read; the known keys go on for a minute"
        self.events.fault(event, error, said=said)

    def unsaved(self, error: Exception, said: str) -> None:
        self.events.fault("when keys were used last cannot be written", error, said=said)

    def back(self) -> None:
        self.events.info("the store can be read again")

    def behind(self, now: datetime, latest: datetime) -> None:
        self.events.warn(
            "the clock is behind the latest time that the store has seen: keys end by that",
            clock=now.isoformat(timespec="seconds"),
            latest=latest.isoformat(timespec="seconds"),
            remedy="set the clock; if it is right: clinic-gateway state clock --accept",
        )

    def odd(self, key_id: str) -> None:
        self.events.warn("a key makes no sense and counts as revoked", key=key_id)


@dataclass(frozen=True, slots=True)
class LimiterTroubles:
    """Counts the calls that this process counted by itself, and says why, and until when."""

    metrics: Metrics
    events: Events

    def counted_here(self) -> None:
        self.metrics.add("gateway_limiter_local_total")

    def degraded(self, why: str) -> None:
        event = "the limiter is down: each process counts its share of every limit"
        self.events.warn(event, reason=why)

    def restored(self) -> None:
        self.events.info("the limiter counts for all processes again")

    def full(self, why: str) -> None:
        event = "the limiter has no room for a key: this process counts its share of its limit"
        self.events.warn(event, reason=why)


@dataclass(frozen=True, slots=True)
class LogTroubles:
    """Says on stderr, and counts, what the access log and the audit do not hold."""

    metrics: Metrics
    events: Events

    def failed(self, error: OSError) -> None:
        self.events.fault("the access log or the audit cannot be written", error)

    def dropped(self, lines: int) -> None:
        self.metrics.add("gateway_log_lines_lost_total", lines)

    def lost(self, file: str, lines: int) -> None:
        self.events.warn("lines of a log are lost", file=file, lines=lines)


@dataclass(frozen=True, slots=True)
class TraceTroubles:
    """Says on stderr, and counts, what the collector of traces does not take; from any thread."""

    metrics: Metrics
    events: Events

    def lost(self, spans: int) -> None:
        self.metrics.add("gateway_spans_lost_total", spans)

    def failed(self) -> None:
        self.events.warn("the collector of traces takes no spans: these are lost")


@dataclass(frozen=True, slots=True)
class UsageTroubles:
    """Says on stderr, and counts, what the sums of each key's calls do not hold."""

    metrics: Metrics
    events: Events

    def failed(self, error: Exception, said: str) -> None:
        event = "how often keys call cannot be written yet; it is kept"
        self.events.fault(event, error, said=said)

    def dropped(self, calls: int) -> None:
        self.metrics.add("gateway_usage_lost_total", calls)

    def lost(self, calls: int) -> None:
        self.events.warn("calls are missing in the usage of their keys", calls=calls)


# Cases that a line names, and characters of what it says of each.
_MOST, _LONGEST = 20, 300
# By what a policy that is held back waits for.
_REMEDIES = {
    "cases": "clinic-gateway policy test names the cases that fail",
    "approval": "clinic-gateway policy approve {waiting} --reason TEXT",
}


@dataclass(frozen=True, slots=True)
class PolicyNews:
    """Says on stderr, and in the figures, what becomes of the policy and of its file."""

    metrics: Metrics
    events: Events

    def _tell(self, running: str, file: str, *, is_stale: bool = False) -> None:
        """The policy in force, and what lies in its file: "" where that cannot be read."""
        self.metrics.put("gateway_policy_info", 1, running[:12], file[:12])
        self.metrics.put("gateway_policy_stale", is_stale)

    def loaded(self, old: str, new: str, at: datetime) -> None:
        self._tell(new, new)
        self.metrics.put("gateway_policy_loaded_timestamp_seconds", at.timestamp())
        if old != new:
            self.metrics.add("gateway_policy_reloads_total", 1, "loaded")
            self.events.info("policy loaded", old=old[:12], new=new[:12])

    def refused(self, problems: Sequence[str], running: str, file: str) -> None:
        self._tell(running, file, is_stale=True)
        self.metrics.add("gateway_policy_reloads_total", 1, "refused")
        self.metrics.put("gateway_policy_cases_failing", 0)
        self.events.warn(
            "policy refused; the last good one goes on",
            problem=problems[0][:500],
            problems=len(problems),
            running=running[:12],
            file=file[:12] or None,
        )

    def held(self, waiting: str, running: str, waits_for: str) -> None:
        self._tell(running, waiting, is_stale=True)
        self.metrics.add("gateway_policy_reloads_total", 1, "held back")
        self.events.warn(
            "policy held back: it shows more than the one that runs",
            waiting=waiting[:12],
            running=running[:12],
            waits_for=waits_for,
            remedy=_REMEDIES[waits_for].format(waiting=waiting),
        )

    def cases(self, failing: Sequence[str], running: str) -> None:
        self.metrics.put("gateway_policy_cases_failing", len(failing))
        if not failing:
            self.events.info("the policy's cases pass again", running=running[:12])
            return
        self.events.warn(
            "the policy's cases fail: what its file shows more waits until they pass",
            failing=len(failing),
            cases=[printable(each[:_LONGEST]) for each in failing[:_MOST]],
            running=running[:12],
            remedy="change the cases where the change of the policy is meant, or the policy",
        )

    def unchanged(self, running: str) -> None:
        self._tell(running, running)
        self.events.info("policy unchanged: the file is the one that runs", running=running[:12])

    def failed(self, error: Exception, said: str) -> None:
        event = "the policy cannot be followed; the last good one goes on"
        self.events.fault(event, error, said=said)

    def untold(self, error: Exception, said: str) -> None:
        event = "the policy's file is followed, but the store can be neither told of it nor asked"
        remedy = "free its disk, or get it to run: approvals wait until then"
        self.events.fault(event, error, said=said, remedy=remedy)

    def untaken(self, error: Exception) -> None:
        event = "the policy that was handed on cannot be taken; the last one goes on"
        self.events.fault(event, error, said=str(error)[:_LONGEST])

    def unsaid(self, error: Exception) -> None:
        event = "the store cannot be told which policy runs here"
        remedy = "free its disk, or get it to run: calls are served by the right policy meanwhile"
        self.events.fault(event, error, said=str(error)[:_LONGEST], remedy=remedy)
