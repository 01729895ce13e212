"""Calls that failed: the first of a kind is said at once, the rest are counted."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType

from gateway.observe.logs import Events

# Seconds between two lines of one kind.
SILENCE = 60.0
# Kinds that are told apart; there are far fewer.
MOST_KINDS = 1_000
# The class of the failure, where it was raised, what it was answered with.
Kind = tuple[type[BaseException], CodeType | None, int, int]


@dataclass(slots=True)
class Told:
    """When a kind was said last, and how often it came since."""

    at: float
    unsaid: int = 0


class CallFailures:
    """Says why calls ended with a 5xx: once a minute for each kind, with how many were not said.

    A practice system that is down fails every call in the same way, and a line for each would fill
    the disk. Each call stands in the access log and in the audit all the same.
    """

    def __init__(self, events: Events, clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._clock = clock
        self._told: dict[Kind, Told] = {}

    def note(self, error: BaseException, *, answered: int, operation: str, request: str) -> None:
        """One call."""
        now, kind = self._clock(), (type(error), *_raised_at(error), answered)
        told = self._told.get(kind)
        if told is not None and now - told.at < SILENCE:
            told.unsaid += 1
            return
        if told is None and len(self._told) >= MOST_KINDS:
            self._told.clear()
        self._told[kind] = Told(now)
        more = {"unsaid": told.unsaid} if told is not None and told.unsaid else {}
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
