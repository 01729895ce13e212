"""Who asks: how long one call of a partner's asks the practice system, and the trace it is part of.

The gateway sets ASKING for each call. What asks on its own behalf, such as a probe, has none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any


class Asking:
    """What is noted of one call: seconds for which it asked, and waited for room before.

    `traceparent` is what a practice system over HTTP is told, in W3C's form; "" for nothing.
    """

    __slots__ = ("seconds", "traceparent", "waited")
    # whether `begin` and `end` have anything to do
    traced = False

    def __init__(self, traceparent: str = "") -> None:
        self.traceparent = traceparent
        self.seconds = 0.0
        self.waited = 0.0

    @property
    def trace_id(self) -> str | None:
        """The trace that the call is part of."""
        return self.traceparent[3:35] or None

    def begin(self, verb: str, resource: str) -> Any:
        """The practice system is asked; what is returned comes back in `end`."""

    def end(self, begun: Any, outcome: str) -> None:
        """It has answered, or not."""

    def ended(self, status: int, key_id: str | None) -> None:
        """The call has been answered."""


ASKING: ContextVar[Asking | None] = ContextVar("asking", default=None)


class Question:
    """One question to the practice system, from the moment when it is put."""

    __slots__ = ("_asking", "_began", "_begun")

    def __init__(self, verb: str, resource: str, asking: Asking | None) -> None:
        self._asking = asking
        self._begun: Any = None
        if asking is not None and asking.traced:
            self._begun = asking.begin(verb, resource)
        self._began = perf_counter()

    def end(self, outcome: str) -> float:
        """The seconds that it took."""
        seconds = perf_counter() - self._began
        asking = self._asking
        if asking is not None:
            asking.seconds += seconds
            if self._begun is not None:
                asking.end(self._begun, outcome)
        return seconds


@contextmanager
def waiting() -> Iterator[None]:
    """Notes how long the call waits for room."""
    began, asking = perf_counter(), ASKING.get()
    try:
        yield
    finally:
        if asking is not None:
            asking.waited += perf_counter() - began


@contextmanager
def joining() -> Iterator[None]:
    """Notes how long the call waits for an answer that another call asked for: as its own."""
    began, asking = perf_counter(), ASKING.get()
    try:
        yield
    finally:
        if asking is not None:
            asking.seconds += perf_counter() - began
