"""What fails again and again: calls, once a minute for each kind; and the practice system."""

import time
from collections.abc import Callable
from math import inf
from types import CodeType

from gateway.events import Events
from gateway.observe.event_log import SILENCE
from gateway.observe.metrics import Metrics

# Kinds of failures that are told apart; there are far fewer.
MOST_KINDS = 1_000
BREAKER = ("closed", "half-open", "open")

# The class of a failure, where it was raised, what it was answered with.
_FailureKind = tuple[type[BaseException], CodeType | None, int, int]


class CallFailures:
    """Says why calls ended with a 5xx: once a minute for each kind, with how many were not said.

    A practice system that is down fails every call in the same way, and a line for each would fill
    the disk. Each call stands in the access log and in the audit all the same.
    """

    def __init__(self, events: Events, clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._clock = clock
        # when a kind was said last, and how often it came since
        self._last: dict[_FailureKind, tuple[float, int]] = {}

    def note(self, error: BaseException, *, answered: int, operation: str, request: str) -> None:
        """One call."""
        now, code, line, frame = self._clock(), None, 0, error.__traceback__
        while frame is not None:  # to the innermost function
            code, line, frame = frame.tb_frame.f_code, frame.tb_lineno, frame.tb_next
        kind = (type(error), code, line, answered)
        said, unsaid = self._last.get(kind, (-inf, 0))
        if now - said < SILENCE:
            self._last[kind] = said, unsaid + 1
            return
        if kind not in self._last and len(self._last) >= MOST_KINDS:
            self._last.clear()
        self._last[kind] = now, 0
        more = {"unsaid": unsaid} if unsaid else {}
        self._events.report(
            "call_failed", error, answered=answered, operation=operation, request=request, **more
        )


class BackendTroubles:
    """Says when the practice system is left alone, and when it is back.

    `state` is its breaker's: `closed`, `open` or `half-open`.
    """

    def __init__(self, metrics: Metrics, events: Events) -> None:
        self.state = "closed"
        self.metrics = metrics
        self._events = events
        self._alone = False
        metrics.ask("gateway_backend_breaker", lambda: BREAKER.index(self.state))

    def changed(self, state: str) -> None:
        """The breaker's new state; a try that fails is no news."""
        self.state = state
        if state == "open" and not self._alone:
            self._alone = True
            self._events.report("practice_left_alone")
        elif state == "closed":
            self._alone = False
            self._events.report("practice_answers")
