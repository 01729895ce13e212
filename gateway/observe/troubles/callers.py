"""What comes that cannot be served: connections, calls without a key, what is no request."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from gateway.observe.logs import Events
from gateway.observe.metrics import Metrics

# Addresses that are counted each by itself.
MOST_ADDRESSES = 10_000
# Seconds between two lines of the same kind.
SILENCE = 60.0
NEVER = float("-inf")


class OnceAMinute:
    """Counts by name, and has the sums told once a minute at most: more would fill the disk.

    `since` is when they were told last, by the clock.
    """

    def __init__(
        self, tell: Callable[[Counter[str]], None], clock: Callable[[], float], since: float
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._since = since
        self._times: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many names were counted since then."""
        return len(self._times)

    def note(self, name: str) -> None:
        """One more."""
        self._times[name] += 1
        if self._clock() - self._since >= SILENCE:
            self._since = self._clock()
            self._tell(self._times)
            self._times.clear()


class ConnectionTroubles:
    """Counts the connections that are refused or cut off; says so at most once a minute."""

    def __init__(
        self, metrics: Metrics, events: Events, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._metrics = metrics
        self._events = events
        self._reasons = OnceAMinute(self._tell, clock, NEVER)

    def turned_away(self, reason: str) -> None:
        """For a reason as the figures name it."""
        self._metrics.turned_away(reason)
        self._reasons.note(reason)

    def _tell(self, times: Counter[str]) -> None:
        self._events.warn("connections turned away", **times)


class LoadTroubles:
    """Says when keys have fewer places than `most`, and once a minute who finds no room."""

    def __init__(
        self,
        metrics: Metrics,
        events: Events,
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics = metrics
        self._events = events
        self._most = most
        self._fewer = False
        self._reasons = OnceAMinute(self._tell, clock, NEVER)

    def turned_away(self, reason: str) -> None:
        """For a reason as the figures name it."""
        self._metrics.call_turned_away(reason)
        self._reasons.note(reason)

    def places(self, now: int) -> None:
        """So many calls may one key have under way."""
        fewer = now < self._most
        if fewer and not self._fewer:
            self._events.warn("the event loop comes late: each key has fewer calls at once")
        elif not fewer:
            self._events.info("the event loop comes in time: each key has all of its calls again")
        self._fewer = fewer

    def _tell(self, times: Counter[str]) -> None:
        self._events.warn("calls turned away: there was no room for them", **times)


class KeyGuesses:
    """Says at most once a minute from where calls come that have no usable key."""

    def __init__(self, events: Events, clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._addresses = OnceAMinute(self._tell, clock, clock())

    def note(self, address: str) -> None:
        """One call; addresses beyond so many are counted together."""
        self._addresses.note(address if len(self._addresses) < MOST_ADDRESSES else "others")

    def _tell(self, times: Counter[str]) -> None:
        first, of_these = times.most_common(1)[0]
        self._events.warn(
            "calls without a usable key",
            times=times.total(),
            addresses=len(times),
            most_from=first,
            of_these=of_these,
        )


class KeysElsewhere:
    """Says at most once a minute of each key that it is used from outside its networks."""

    def __init__(self, events: Events, clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._clock = clock
        self._of_keys: dict[str, OnceAMinute] = {}

    def note(self, key_id: str, address: str) -> None:
        """One call; the keys are the clinic's own, so that there are not too many."""
        if key_id not in self._of_keys:
            tell = partial(self._tell, key_id)
            self._of_keys[key_id] = OnceAMinute(tell, self._clock, NEVER)
        of_key = self._of_keys[key_id]
        of_key.note(address if len(of_key) < MOST_ADDRESSES else "others")

    def _tell(self, key_id: str, times: Counter[str]) -> None:
        first, of_these = times.most_common(1)[0]
        self._events.warn(
            "key used from outside its networks",
            key=key_id,
            times=times.total(),
            addresses=len(times),
            most_from=first,
            of_these=of_these,
        )


class Unreadable:
    """Says at most once a minute what came that is no request: none of it needs a key."""

    def __init__(self, events: Events, clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._kinds = OnceAMinute(self._tell, clock, NEVER)

    def note(self, kind: str) -> None:
        """One more, by the name of what is wrong with it."""
        self._kinds.note(kind)

    def _tell(self, times: Counter[str]) -> None:
        self._events.info("not a request", **times)


class CertificateTroubles:
    """Says when a renewed certificate is taken, and why one is not."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def renewed(self) -> None:
        self._events.info("the certificate was renewed")

    def refused(self, said: str) -> None:
        self._events.warn("the renewed certificate is not taken: the last one stays", said=said)
