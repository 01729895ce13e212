"""Who asks: how long one call of a partner's asks the practice system, and the trace it is part of.

The gateway sets ASKING for each call.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any


class Asking:
    """What is noted of one call: seconds for which it asked, and waited for room before.

    `traceparent` is what a practice system over HTTP is told, in W3C's form; "" for nothing.
    `partner` is whose calls wait for one another before others wait for them: a key's id.
    """

    __slots__ = ("partner", "seconds", "traceparent", "waited")
    # whether `begin`, `end` and `ended` are to be told
    traced = False

    def __init__(self, traceparent: str = "") -> None:
        self.traceparent = traceparent
        self.partner = ""
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


# What is asked on nobody's behalf is noted too, where nobody looks.
ASKING: ContextVar[Asking] = ContextVar("asking", default=Asking())  # noqa: B039 - see above


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Notes how long the call waits for room (`waited`), or asks (`seconds`)."""
    began, asking = perf_counter(), ASKING.get()
    try:
        yield
    finally:
        setattr(asking, name, getattr(asking, name) + perf_counter() - began)
