"""Keeps what adapters note of a partner's call: how long it asked, its trace, what was cached."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, ClassVar

from msgspec import Struct


class CachedAnswer:
    """An answer as bytes; `views` has what was made of it, which is gone with it."""

    __slots__ = ("__weakref__", "data", "views")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.views: dict[Hashable, Any] = {}

    def use(self) -> bool:
        """Returns whether it is still cached, and counts that it was used."""
        return False

    def add_view(self, name: Hashable, view: object, size: int) -> bool:
        """Keeps a view of so many bytes; returns False, and keeps nothing, without room for it."""
        return False


class CallNotes(Struct, eq=False):
    """The notes of one call: the seconds for which it asked, and for which it waited for room.

    `traceparent` is sent to a practice system over HTTP, in W3C's form; "" sends nothing. `partner`
    is a key's id: the calls of one partner wait for one another before others wait for them.
    `cached` is the cached answer that the last read gave, if it gave one.
    """

    traceparent: str = ""
    partner: str = ""
    cached: CachedAnswer | None = None
    seconds: float = 0.0
    waited: float = 0.0
    # whether `begin`, `end` and `ended` are to be told
    traced: ClassVar[bool] = False

    @property
    def trace_id(self) -> str | None:
        """The trace that the call is part of."""
        return self.traceparent[3:35] or None

    def begin(self, verb: str, resource: str) -> Any:
        """Notes that the practice system is asked; the result is to be given to `end`."""

    def end(self, begun: Any, outcome: str) -> None:
        """Notes how the question ended."""

    def ended(self, status: int, key_id: str | None) -> None:
        """Notes that the call has been answered."""


# The default is for questions that no partner asked; nobody reads it.
CALL_NOTES: ContextVar[CallNotes] = ContextVar("call notes", default=CallNotes())  # noqa: B039 - see above


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Adds the seconds of its block to what the call waited (`waited`) or asked (`seconds`)."""
    began, notes = perf_counter(), CALL_NOTES.get()
    try:
        yield
    finally:
        setattr(notes, name, getattr(notes, name) + perf_counter() - began)
