"""What comes that cannot be served, and what fails: each kind is said once a minute at most."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType

from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics

# Seconds between two lines of one kind.
SILENCE = 60.0
# Kinds of failures that are told apart; there are far fewer.
MOST_KINDS = 1_000
# Names that are counted each by itself: addresses are many.
MOST_NAMES = 10_000
NEVER = float("-inf")

Clock = Callable[[], float]
# The class of a failure, where it was raised, what it was answered with.
_FailureKind = tuple[type[BaseException], CodeType | None, int, int]


@dataclass(slots=True)
class _LastLine:
    """When a kind was said last, and how often it came since."""

    at: float
    unsaid: int = 0


class CallFailures:
    """Says why calls ended with a 5xx: once a minute for each kind, with how many were not said.

    A practice system that is down fails every call in the same way, and a line for each would fill
    the disk. Each call stands in the access log and in the audit all the same.
    """

    def __init__(self, events: Events, clock: Clock = time.monotonic) -> None:
        self._events = events
        self._clock = clock
        self._last: dict[_FailureKind, _LastLine] = {}

    def note(self, error: BaseException, *, answered: int, operation: str, request: str) -> None:
        """One call."""
        now, kind = self._clock(), (type(error), *_raised_at(error), answered)
        last = self._last.get(kind)
        if last is not None and now - last.at < SILENCE:
            last.unsaid += 1
            return
        if last is None and len(self._last) >= MOST_KINDS:
            self._last.clear()
        self._last[kind] = _LastLine(now)
        more = {"unsaid": last.unsaid} if last is not None and last.unsaid else {}
        self._events.fault(
            "call failed", error, answered=answered, operation=operation, request=request, **more
        )


def _raised_at(error: BaseException) -> tuple[CodeType | None, int]:
    """The innermost function of the traceback, and its line."""
    frame = error.__traceback__
    if frame is None:
        return None, 0
    while frame.tb_next is not None:
        frame = frame.tb_next
    return frame.tb_frame.f_code, frame.tb_lineno


class OnceAMinute:
    """Counts by name, and has the sums told once a minute at most: more would fill the disk.

    Names beyond MOST_NAMES are counted together. `since` is when they were told last.
    """

    def __init__(
        self, tell: Callable[[Counter[str]], None], clock: Clock, since: float = NEVER
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._since = since
        self._times: Counter[str] = Counter()

    def note(self, name: str) -> None:
        """One more."""
        self._times[name if len(self._times) < MOST_NAMES else "others"] += 1
        if self._clock() - self._since >= SILENCE:
            self._since = self._clock()
            self._tell(self._times)
            self._times.clear()


class ConnectionTroubles:
    """Counts the connections that are refused or cut off; says so at most once a minute."""

    def __init__(self, metrics: Metrics, events: Events, clock: Clock = time.monotonic) -> None:
        self._metrics = metrics
        self._reasons = OnceAMinute(
            lambda times: events.warn("connections turned away", **times), clock
        )

    def turned_away(self, reason: str) -> None:
        """For a reason as the figures name it."""
        self._metrics.add("gateway_connections_turned_away_total", 1, reason)
        self._reasons.note(reason)


class LoadTroubles:
    """Says when keys have fewer places than `most`, and once a minute who finds no room."""

    def __init__(
        self, metrics: Metrics, events: Events, most: int, clock: Clock = time.monotonic
    ) -> None:
        self._metrics = metrics
        self._events = events
        self._most = most
        self._fewer = False
        event = "calls turned away: there was no room for them"
        self._reasons = OnceAMinute(lambda times: events.warn(event, **times), clock)

    def turned_away(self, reason: str) -> None:
        """For a reason as the figures name it."""
        self._metrics.add("gateway_calls_turned_away_total", 1, reason)
        self._reasons.note(reason)

    def places(self, now: int) -> None:
        """So many calls may one key have under way."""
        fewer = now < self._most
        if fewer and not self._fewer:
            self._events.warn("the event loop comes late: each key has fewer calls at once")
        elif not fewer:
            self._events.info("the event loop comes in time: each key has all of its calls again")
        self._fewer = fewer


class CallerTroubles:
    """Says at most once a minute from where calls come that are none, or have no usable key."""

    def __init__(self, events: Events, clock: Clock = time.monotonic) -> None:
        self._events = events
        self._clock = clock
        self._addresses = OnceAMinute(self._tell_addresses, clock, clock())
        self._of_keys: dict[str, OnceAMinute] = {}
        self._unreadable = OnceAMinute(lambda times: events.info("not a request", **times), clock)

    def without_key(self, address: str) -> None:
        """A call whose key is missing or not usable."""
        self._addresses.note(address)

    def key_elsewhere(self, key_id: str, address: str) -> None:
        """A good key from outside its networks; keys are the clinic's own, so they are not many."""
        if key_id not in self._of_keys:
            event = "key used from outside its networks"
            self._of_keys[key_id] = OnceAMinute(
                lambda times: self._tell_addresses(times, event, key=key_id), self._clock
            )
        self._of_keys[key_id].note(address)

    def unreadable(self, kind: str) -> None:
        """What is no request, by the name of what is wrong with it."""
        self._unreadable.note(kind)

    def _tell_addresses(
        self, times: Counter[str], event: str = "calls without a usable key", **details: str
    ) -> None:
        first, of_these = times.most_common(1)[0]
        self._events.warn(
            event,
            **details,
            times=times.total(),
            addresses=len(times),
            most_from=first,
            of_these=of_these,
        )


class CertificateTroubles:
    """Says when a renewed certificate is taken, and why one is not."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def renewed(self) -> None:
        self._events.info("the certificate was renewed")

    def refused(self, said: str) -> None:
        self._events.warn("the renewed certificate is not taken: the last one stays", said=said)
