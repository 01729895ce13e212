"""What goes wrong with values, bookings, the logs, the store and the policy, and who says it."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from adapters.base import Trouble
from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics

MOST_REMEMBERED = 10_000
# Seconds between two lines of the same kind, where a line for each would fill the disk.
SILENCE = 60.0


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

    def changed(self, state: str) -> None:
        """The breaker's new state; a try that fails is no news."""
        self.state = state
        if state == "open" and not self._alone:
            self._alone = True
            self._events.warn("the practice system failed too often in a row: it is left alone")
        elif state == "closed":
            self._alone = False
            self._events.info("the practice system answers again")


class ConnectionTroubles:
    """Counts the connections that are refused or cut off; says so at most once a minute."""

    def __init__(
        self, metrics: Metrics, events: Events, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._metrics = metrics
        self._events = events
        self._clock = clock
        self._said = float("-inf")
        self._times: Counter[str] = Counter()

    def turned_away(self, reason: str) -> None:
        """For a reason as the figures name it."""
        self._metrics.turned_away(reason)
        self._times[reason] += 1
        if self._clock() - self._said >= SILENCE:
            self._said = self._clock()
            self._events.warn("connections turned away", **self._times)
            self._times.clear()


class KeyGuesses:
    """Says at most once a minute from where calls come that have no usable key."""

    def __init__(self, events: Events, clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._clock = clock
        self._since = clock()
        self._of: Counter[str] = Counter()

    def note(self, address: str) -> None:
        """One call; addresses beyond so many are counted together."""
        self._of[address if len(self._of) < MOST_REMEMBERED else "others"] += 1
        if self._clock() - self._since >= SILENCE:
            first, times = self._of.most_common(1)[0]
            self._events.warn(
                "calls without a usable key",
                times=self._of.total(),
                addresses=len(self._of),
                most_from=first,
                of_these=times,
            )
            self._since = self._clock()
            self._of.clear()


class Unreadable:
    """Says at most once a minute what came that is no request: none of it needs a key."""

    def __init__(self, events: Events, clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._clock = clock
        self._said = float("-inf")
        self._times: Counter[str] = Counter()

    def note(self, kind: str) -> None:
        """One more, by the name of what is wrong with it."""
        self._times[kind] += 1
        if self._clock() - self._said >= SILENCE:
            self._said = self._clock()
            self._events.info("not a request", **self._times)
            self._times.clear()


class CertificateTroubles:
    """Says when a renewed certificate is taken, and why one is not."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def renewed(self) -> None:
        self._events.info("the certificate was renewed")

    def refused(self, said: str) -> None:
        self._events.warn("the renewed certificate is not taken: the last one stays", said=said)


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

    def made_twice(self, appointment: str) -> None:
        event = "a process that had been taken for dead made an appointment beside another one"
        remedy = "look the appointment up, and cancel it where it is one too many"
        self._events.warn(event, appointment=appointment, remedy=remedy)


class TraceTroubles:
    """Says on stderr, and counts, what the collector of traces does not take; from any thread."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self._metrics = metrics
        self._events = events

    def lost(self, spans: int) -> None:
        self._metrics.add("gateway_spans_lost_total", spans)

    def failed(self) -> None:
        self._events.warn("the collector of traces takes no spans: these are lost")


class UsageTroubles:
    """Says on stderr, and counts, what the sums of each key's calls do not hold."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self._metrics = metrics
        self._events = events

    def failed(self, error: Exception, said: str) -> None:
        event = "how often keys call cannot be written yet; it is kept"
        self._events.fault(event, error, said=said)

    def dropped(self, calls: int) -> None:
        self._metrics.usage_lost(calls)

    def lost(self, calls: int) -> None:
        self._events.warn("calls are missing in the usage of their keys", calls=calls)


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


class PolicyNews:
    """Says on stderr, and in the figures, what becomes of the policy and of its file."""

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self._metrics = metrics
        self._events = events

    def loaded(self, old: str, new: str, at: datetime) -> None:
        self._metrics.policy(new[:12], new[:12])
        self._metrics.policy_loaded(at)
        self._metrics.policy_stale(is_stale=False)
        if old != new:
            self._metrics.policy_reload("loaded")
            self._events.info("policy loaded", old=old[:12], new=new[:12])

    def refused(self, problems: Sequence[str], running: str, file: str) -> None:
        self._metrics.policy(running[:12], file[:12])
        self._metrics.policy_reload("refused")
        self._metrics.policy_stale(is_stale=True)
        self._events.warn(
            "policy refused; the last good one goes on",
            problem=problems[0][:500],
            problems=len(problems),
            running=running[:12],
            file=file[:12] or None,
        )

    def held(self, waiting: str, running: str) -> None:
        self._metrics.policy(running[:12], waiting[:12])
        self._metrics.policy_reload("held back")
        self._metrics.policy_stale(is_stale=True)
        self._events.warn(
            "policy held back: it shows more than the one that runs",
            waiting=waiting[:12],
            running=running[:12],
            remedy=f"clinic-gateway policy approve {waiting} --by NAME --reason TEXT",
        )

    def unchanged(self, running: str) -> None:
        self._metrics.policy(running[:12], running[:12])
        self._metrics.policy_stale(is_stale=False)
        self._events.info("policy unchanged: the file is the one that runs", running=running[:12])

    def failed(self, error: Exception, said: str) -> None:
        event = "the policy cannot be followed; the last good one goes on"
        self._events.fault(event, error, said=said)

    def untaken(self, error: Exception) -> None:
        event = "the policy that was handed on cannot be taken, or the store not told of it"
        self._events.fault(event, error)
